//! Why a confined process could not be started.

use std::io;

use myclaw_exec::ExecError;

/// Why a confined process could not be started. It is never started with less protection than the caller requires.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This machine cannot enforce what is demanded.
    #[error("the sandbox cannot be set up: {reason}; {remedy}")]
    Unavailable {
        /// What is missing.
        reason: String,
        /// What to install or change.
        remedy: String,
    },
    /// The demands contradict each other, or name something that does not exist.
    #[error("the sandbox cannot be set up: {0}")]
    Demand(String),
    /// The program that confines itself failed before it started the command.
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
    /// The command could not be started.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The system refused to start the program that confines itself.
    #[error("cannot start the sandbox: {0}")]
    Start(#[source] io::Error),
}

impl SandboxError {
    pub(crate) fn unavailable(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), remedy: remedy.into() }
    }
}
