//! Everything that can go wrong with the settings, in words that say what happened, where, and what to do next.

use std::path::PathBuf;

use crate::AgentId;

/// Why there are no settings to work with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The user has no home and none is given.
    #[error(
        "no home folder found: set HOME, or MYCLAW_HOME, or MYCLAW_STATE_DIR to the folder that MyClaw shall use"
    )]
    NoHome,
    /// The folder in which the process was started no longer exists.
    #[error(
        "the current folder no longer exists, so a relative path cannot be resolved: change to another folder, or use absolute paths"
    )]
    NoCurrentDir,
    /// A [`crate::Config`] that was not loaded has no folders.
    #[error(
        "these settings were made without folders: set `Config::paths`, or give the workspace as an absolute path"
    )]
    NoPaths,
    /// There is no settings file.
    #[error("no settings file at {}: `myclaw init` writes one", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// No agent of that name is configured.
    #[error("there is no agent `{id}`; known: {}", list(known))]
    UnknownAgent {
        /// The name that was asked for, normalised.
        id: AgentId,
        /// The names there are.
        known: Vec<AgentId>,
    },
}

fn list(ids: &[AgentId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}
