//! Where that is which belongs to the agents' notes. The notes themselves are Markdown in a workspace, which its owner edits.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_files::{Documents, FileDocuments, MemoryDocuments};
use myclaw_memory::{Notebook, SessionSearch, remove_index};
use myclaw_session::Catalog;
use parking_lot::Mutex;

/// The directory in the agent's own one.
const DIRECTORY: &str = "memory";
/// The directory of the index.
const INDEX: &str = "search";

/// Gives what belongs to the notes of agents.
pub trait MemoryStores: fmt::Debug + Send + Sync {
    /// That of the agent with the id `id` and the directory `own_directory`. It may have left the config.
    fn of_agent(&self, id: &str, own_directory: &Path) -> AgentMemory;
}

/// What belongs to the notes of an agent.
#[derive(Debug, Clone)]
pub struct AgentMemory {
    /// The lists for prompts, what was forgotten, and how far sessions were read.
    pub documents: Arc<dyn Documents>,
    /// A directory of this machine, which need not exist: with the locks of the notes, which are files of the machine, and the
    /// index of the sessions, which is made again where it is missing.
    pub directory: PathBuf,
}

impl AgentMemory {
    /// The facts in a workspace. Those who change them hold the lock of this name.
    pub(crate) fn notebook(&self, workspace: &Path, lock: &str) -> Notebook {
        Notebook::new(workspace.to_owned(), self.lock(lock))
    }

    /// Where the lock of this name is.
    pub(crate) fn lock(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The search over the sessions of the agent with the id `agent`.
    pub(crate) fn search(&self, catalog: Arc<dyn Catalog>, agent: &str) -> SessionSearch {
        SessionSearch::new(catalog, agent, self.directory.join(INDEX))
    }

    /// Removes the index, which the next search makes again.
    pub(crate) fn forget_index(&self) -> io::Result<()> {
        remove_index(&self.directory.join(INDEX))
    }
}

/// Files in the directories of the agents.
#[derive(Debug)]
pub(crate) struct MemoryFiles;

impl MemoryStores for MemoryFiles {
    fn of_agent(&self, _: &str, own_directory: &Path) -> AgentMemory {
        let directory = own_directory.join(DIRECTORY);
        AgentMemory { documents: Arc::new(FileDocuments::new(&directory)), directory }
    }
}

/// Documents that end with the process, by the agents' ids. Locks and indexes are below a directory.
#[derive(Debug)]
pub(crate) struct MemoryInProcess {
    scratch: PathBuf,
    documents: Mutex<HashMap<String, MemoryDocuments>>,
}

impl MemoryInProcess {
    pub(crate) fn new(scratch: PathBuf) -> Self {
        Self { scratch, documents: Mutex::default() }
    }
}

impl MemoryStores for MemoryInProcess {
    fn of_agent(&self, id: &str, _: &Path) -> AgentMemory {
        let documents = self.documents.lock().entry(id.to_owned()).or_default().clone();
        let directory = self.scratch.join(DIRECTORY).join(id);
        AgentMemory { documents: Arc::new(documents), directory }
    }
}
