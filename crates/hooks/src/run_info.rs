//! What a command is given of a run.

use std::path::PathBuf;

/// The facts about a run that a command is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// The session's key.
    pub session_key: String,
    /// Id of the agent.
    pub agent: String,
    /// The directory that tools work in.
    pub working_directory: PathBuf,
    /// The directory in which commands are started.
    pub start_directory: PathBuf,
}
