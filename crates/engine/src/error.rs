//! How a run can fail.

use std::path::PathBuf;

use myclaw_llm::{ErrorClass, ModelError};
use myclaw_session::SessionError;

use crate::notice::window_too_small;

/// A run that gave no reply. Everything up to the failure is in the session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The model could not be called, after all retries.
    #[error("{0}")]
    Model(ModelError),
    /// Several models were asked, and all of them failed.
    #[error("none of the models could answer:{}", lines(.0))]
    AllModelsFailed(Vec<CandidateFailure>),
    /// The model's context window is too small to work in.
    #[error("{}", window_too_small(.model, *.tokens, *.minimum))]
    WindowTooSmall {
        /// `provider/model`.
        model: String,
        /// Its window, in tokens.
        tokens: u64,
        /// The smallest window that is used unless the caller states the size, in tokens.
        minimum: u64,
    },
    /// The caller requires an auth profile that does not exist.
    #[error("{provider} has no auth profile `{profile}`; known: {}", known.join(", "))]
    UnknownProfile {
        /// The provider of the profile.
        provider: String,
        /// The requested profile.
        profile: String,
        /// The profiles that exist.
        known: Vec<String>,
    },
    /// The session does not fit the model's context window, and no rung of the ladder makes it smaller.
    #[error(
        "the session does not fit the context window of {model}, and nothing more can be left out: {detail}. \
         Start a new session, shorten the last message, or use a model with a larger window"
    )]
    ContextOverflow {
        /// `provider/model`.
        model: String,
        /// What the provider said.
        detail: String,
    },
    /// The caller's cancellation token fired.
    #[error("the run was aborted")]
    Aborted,
    /// A run without a message found nothing to continue.
    #[error("there is nothing to continue in this session; send a message")]
    NothingToDo,
    /// The caller gave no model.
    #[error("the run has no model to call; name at least one")]
    NoModel,
    /// The session could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session stayed busy. The message of the run was left in the session's inbox.
    #[error(
        "{0}. The message waits in the session's inbox: the current run answers it when it would end, or the next \
         run does. Do not send it again"
    )]
    MessageWaits(#[source] SessionError),
    /// The workspace could not be created or read.
    #[error("cannot use the workspace {}: {source}. Check that the path is a directory you may write to", path.display())]
    Workspace {
        /// The path that failed.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A hook refused to let the run start.
    #[error("the hook {hook} did not let the run start: {reason}")]
    Hook {
        /// Its name.
        hook: String,
        /// The reason that the hook gave.
        reason: String,
    },
    /// An internal failure that should not happen.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}

/// A model that was asked and failed.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateFailure {
    /// `provider/model`.
    pub model: String,
    /// The class of the failure.
    pub reason: ErrorClass,
    /// What failed ([`ModelError::name`]).
    pub name: &'static str,
    /// The failure, in one line.
    pub message: String,
}

fn lines(failures: &[CandidateFailure]) -> String {
    failures
        .iter()
        .map(|failure| format!("\n  {} ({}): {}", failure.model, failure.name, failure.message))
        .collect()
}

impl RunError {
    /// The class of the failure, as printed in machine-readable output.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Model(error) => error.name(),
            Self::AllModelsFailed(_) => "all_models_failed",
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::ContextOverflow { .. } => ErrorClass::ContextOverflow.as_str(),
            Self::Aborted => "aborted",
            Self::NothingToDo => "nothing_to_do",
            Self::Session(_) | Self::MessageWaits(_) => "session",
            Self::Workspace { .. } => "workspace",
            Self::NoModel | Self::UnknownProfile { .. } => "config",
            Self::Hook { .. } => "hook",
            Self::Internal(_) => "internal",
        }
    }
}
