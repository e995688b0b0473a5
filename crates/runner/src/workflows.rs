//! Workflows: scripts of the owner, listed in `registry.json` next to them.

mod check;
mod rank;
mod run;
mod semantic;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use myclaw_files::{from_json, read_regular};
use serde::Deserialize;

pub use check::check_workflows;
pub use rank::{KeywordRanker, Ranked, Ranker, Ranking};
pub use run::WorkflowRun;
pub use semantic::{Say, semantic_ranker};

/// The file with the list.
const REGISTRY: &str = "registry.json";
/// Most bytes of it.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Most workflows.
const MAX_WORKFLOWS: usize = 10_000;

/// A script that the model can run by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Workflow {
    /// Its name, unique in the registry.
    pub name: String,
    /// What it does, for the search and the model.
    pub description: String,
    /// The command, for bash, in the directory of the registry.
    pub run: String,
    /// The names of its arguments, for the model.
    #[serde(default)]
    pub args: Vec<String>,
}

/// The workflows of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    /// In the order of the file.
    pub workflows: Vec<Workflow>,
}

/// A registry that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The file cannot be read.
    #[error("the workflows cannot be read from {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error(
        "{} is no list of workflows: {problem}. It must be a JSON list of objects with name, description and run",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Registry {
    /// Reads the registry of `directory`. Without a file there are no workflows.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn load(directory: &Path) -> Result<Self, RegistryError> {
        let path = directory.join(REGISTRY);
        let bytes = match read_regular(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(RegistryError::Unreadable { path, source }),
        };
        let malformed = |problem: String| RegistryError::Malformed { path: path.clone(), problem };
        if bytes.len() as u64 == MAX_BYTES {
            return Err(malformed(format!("it is longer than {MAX_BYTES} bytes")));
        }
        let workflows: Vec<Workflow> = from_json(&bytes).map_err(malformed)?;
        if workflows.len() > MAX_WORKFLOWS {
            return Err(malformed(format!("it has more than {MAX_WORKFLOWS} workflows")));
        }
        let mut names = HashSet::new();
        for workflow in &workflows {
            if workflow.name.trim().is_empty() || workflow.run.trim().is_empty() {
                return Err(malformed("a workflow has no name or nothing to run".to_owned()));
            }
            if !names.insert(workflow.name.as_str()) {
                return Err(malformed(format!("the name {:?} is there twice", workflow.name)));
            }
        }
        Ok(Self { workflows })
    }
}
