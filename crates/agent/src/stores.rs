//! The stores of what outlives a run. The files below the state directory are one way to keep it; a library user may give
//! others ([`crate::Home::with_stores`]).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::Paths;
use myclaw_files::{Documents, FileDocuments, MemoryDocuments};
use myclaw_session::{
    Blobs, Catalog, DaySpending, FileBlobs, MemoryBlobs, MemorySessions, MemorySpending,
    SessionKey, SessionStore, Sessions, SideFiles, Spending,
};

use myclaw_tools::{FileJobs, JobStore, MemoryJobs};

use crate::approvals::ApprovalStore;
use crate::key_stores::{KeyFiles, KeyStores, KeysInMemory};
use crate::memory::ForgetRecord;
use crate::memory_stores::{MemoryFiles, MemoryInProcess, MemoryStores};
use crate::vector_stores::{VectorFiles, VectorStores, VectorsInMemory};

/// File in the state directory with the totals of the day.
const SPENDING_FILE: &str = "usage.json";

/// Directory in the state directory with the copies of files that the gateway sends.
const OUTGOING_DIRECTORY: &str = "gateway/outgoing";

/// Directory in the state directory with what processes run.
const JOBS_DIRECTORY: &str = "jobs";

/// Directory in the state directory, and among what tools write, with what belongs to MCP servers.
const SERVERS_DIRECTORY: &str = "mcp";

/// Directory in the state directory with the sub-agents whose results are due.
const SUBAGENTS_DIRECTORY: &str = "subagents";

/// Directory in the state directory with what files held before a command.
const SNAPSHOTS_DIRECTORY: &str = "snapshots";
const TURNS_DIRECTORY: &str = "turns";

/// What an agent keeps, by kind.
#[derive(Debug, Clone)]
pub struct Stores {
    /// The sessions, as runs use them.
    pub sessions: Arc<dyn Sessions>,
    /// The same sessions: to list, read, search and delete them.
    pub catalog: Arc<dyn Catalog>,
    /// The directories in which the tools of the sessions work.
    pub side_files: Arc<dyn SideFiles>,
    /// Copies of files that wait to be sent to people.
    pub outgoing: Arc<dyn Blobs>,
    /// The usage of all runs of the day.
    pub spending: Arc<dyn Spending>,
    /// The answers "always" and the questions that wait.
    pub approvals: ApprovalStore,
    /// The background jobs, and the commands that run.
    pub jobs: Arc<dyn JobStore>,
    /// The vectors of the agents' notes.
    pub vectors: Arc<dyn VectorStores>,
    /// The keys of the agents.
    pub keys: Arc<dyn KeyStores>,
    /// What belongs to the notes of the agents.
    pub memory: Arc<dyn MemoryStores>,
    /// What is to be forgotten, if a process was killed while it did so.
    pub forgetting: ForgetRecord,
    /// What belongs to the MCP servers.
    pub servers: ServerStores,
    /// The sub-agents of sessions outside of a gateway whose results are due.
    pub subagents: Arc<dyn Documents>,
    /// A directory of this machine, which need not exist: with what files held before a command, until that is over. `None` for
    /// sessions that nobody goes back in.
    pub snapshots: Option<PathBuf>,
    /// The same: with a mark of each turn that goes on. `None` for sessions that no other process sees.
    pub turns: Option<PathBuf>,
}

/// What belongs to the MCP servers.
#[derive(Debug, Clone)]
pub struct ServerStores {
    /// What the owner has approved of the servers of the config and of projects.
    pub approvals: Arc<dyn Documents>,
    /// A directory of this machine, which need not exist: with the logs of the servers, and the directories in which their
    /// programs start.
    pub directory: PathBuf,
}

impl Stores {
    /// Files in the directories of `paths`. Nothing is opened or made before it is used.
    pub fn in_files(paths: &Paths) -> Self {
        let sessions = Arc::new(SessionStore::new(paths.sessions_dir()));
        let records = Arc::clone(&sessions);
        Self {
            sessions: Arc::clone(&sessions) as Arc<dyn Sessions>,
            side_files: Arc::clone(&sessions) as Arc<dyn SideFiles>,
            catalog: sessions,
            outgoing: Arc::new(FileBlobs::new(paths.state_dir().join(OUTGOING_DIRECTORY))),
            spending: Arc::new(DaySpending::new(paths.state_dir().join(SPENDING_FILE))),
            approvals: ApprovalStore::in_state_dir(paths.state_dir()),
            jobs: Arc::new(FileJobs::new(paths.state_dir().join(JOBS_DIRECTORY), move |session| {
                // A job that is written down names its session as the key does.
                match SessionKey::parse(session) {
                    Ok(key) => records.job_directory(&key),
                    Err(_) => records.directory().join("unknown.jobs"),
                }
            })),
            vectors: Arc::new(VectorFiles(paths.clone())),
            keys: Arc::new(KeyFiles(paths.clone())),
            memory: Arc::new(MemoryFiles),
            forgetting: ForgetRecord::in_state_dir(paths.state_dir()),
            servers: ServerStores {
                approvals: Arc::new(FileDocuments::new(paths.state_dir().join(SERVERS_DIRECTORY))),
                directory: paths.state_dir().join(SERVERS_DIRECTORY),
            },
            subagents: Arc::new(FileDocuments::new(paths.state_dir().join(SUBAGENTS_DIRECTORY))),
            snapshots: Some(paths.state_dir().join(SNAPSHOTS_DIRECTORY)),
            turns: Some(paths.state_dir().join(TURNS_DIRECTORY)),
        }
    }

    /// Removes what files held before commands; what was recorded of that stays. A command that runs leaves nothing to undo.
    pub(crate) fn forget_snapshots(&self) -> io::Result<()> {
        match self.snapshots.as_ref().map(std::fs::remove_dir_all) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The same, but for sessions with their jobs and outputs: those are in the memory of this process, which forgets them at its
    /// end. What tools write in full is in files below `scratch`, which need not exist.
    #[must_use]
    pub fn with_sessions_in_memory(self, scratch: impl Into<PathBuf>) -> Self {
        let Self { sessions, catalog, side_files, jobs, subagents, .. } = Self::in_memory(scratch);
        let (snapshots, turns) = (None, None);
        Self { sessions, catalog, side_files, jobs, subagents, snapshots, turns, ..self }
    }

    /// The memory of this process, which forgets everything at its end. What tools and other programs work with is in files
    /// below `scratch`, which need not exist; who removes it then has no file left.
    pub fn in_memory(scratch: impl Into<PathBuf>) -> Self {
        let scratch = scratch.into();
        let sessions = Arc::new(MemorySessions::new(scratch.clone()));
        Self {
            sessions: Arc::clone(&sessions) as Arc<dyn Sessions>,
            side_files: Arc::clone(&sessions) as Arc<dyn SideFiles>,
            catalog: sessions,
            outgoing: Arc::new(MemoryBlobs::default()),
            spending: Arc::new(MemorySpending::default()),
            approvals: ApprovalStore::in_memory(),
            jobs: Arc::new(MemoryJobs::default()),
            vectors: Arc::new(VectorsInMemory::default()),
            keys: Arc::new(KeysInMemory::default()),
            memory: Arc::new(MemoryInProcess::new(scratch.clone())),
            forgetting: ForgetRecord::in_memory(),
            servers: ServerStores {
                approvals: Arc::new(MemoryDocuments::default()),
                directory: scratch.join(SERVERS_DIRECTORY),
            },
            subagents: Arc::new(MemoryDocuments::default()),
            snapshots: None,
            turns: None,
        }
    }
}
