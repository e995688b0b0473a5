//! The error type of this crate: a class for programs and a message for users.

use std::sync::Arc;
use std::time::Duration;

use myclaw_config::ConfigError;
use myclaw_engine::{Bound, InboxError, RunError};
use myclaw_llm::ErrorClass;
use myclaw_session::SessionError;

/// A failure, with one message that says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    /// For programs.
    pub class: FailureClass,
    /// For a person. May have several lines; never holds a secret.
    pub message: String,
    config: Option<Arc<ConfigError>>,
    passes: bool,
    for_others: Option<String>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureClass {
    /// An argument or the message itself cannot be used.
    Usage,
    /// The config file has to be changed.
    Config,
    /// The config file, or a file that belongs to it, cannot be written.
    ConfigUnwritable,
    /// A session could not be read or written.
    Session,
    /// The model or its provider could not answer; what failed has this name ([`myclaw_llm::ModelError::name`]).
    Model(&'static str),
    /// Several models were asked, and none could answer.
    AllModelsFailed,
    /// The model's context window is too small to work in.
    WindowTooSmall,
    /// The model refused to answer.
    Refusal,
    /// The model ended its turn with neither text nor tool calls.
    EmptyReply,
    /// A limit ended the run before there was an answer.
    Bound(Bound),
    /// A run without a message found nothing to continue.
    NothingToDo,
    /// The workspace could not be made or read.
    Workspace,
    /// A hook did not allow it.
    Hook,
    /// The sandbox that the session needs is not available.
    Sandbox,
    /// An MCP server does not start or does not answer, or what was approved of it cannot be read.
    Mcp,
    /// A package cannot be fetched or kept.
    Packages,
    /// Too many messages wait already.
    QueueFull,
    /// Nothing runs in the session that could take a message.
    NotRunning,
    /// Something else runs in the session.
    Busy,
    /// The caller aborted it.
    Aborted,
    /// A defect of the program.
    Internal,
}

impl FailureClass {
    /// The name for machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Config | Self::ConfigUnwritable => "config",
            Self::Session => "session",
            Self::Model(name) => name,
            Self::AllModelsFailed => "all_models_failed",
            Self::WindowTooSmall => "window_too_small",
            Self::Refusal => "refusal",
            Self::EmptyReply => "empty_reply",
            Self::Bound(bound) => bound.as_str(),
            Self::NothingToDo => "nothing_to_do",
            Self::Workspace => "workspace",
            Self::Hook => "hook",
            Self::Sandbox => "sandbox",
            Self::Mcp => "mcp",
            Self::Packages => "packages",
            Self::QueueFull => "queue_full",
            Self::NotRunning => "not_running",
            Self::Busy => "busy",
            Self::Aborted => "aborted",
            Self::Internal => "internal",
        }
    }
}

impl AgentError {
    /// A failure of `class`.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), config: None, passes: false, for_others: None }
    }

    /// An argument or a message that cannot be used.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Usage, message)
    }

    /// A config file that has to be changed.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Config, message)
    }

    /// A run that the caller aborted.
    pub(crate) fn aborted() -> Self {
        Self::new(
            FailureClass::Aborted,
            "aborted; the session is kept, the next message continues it",
        )
    }

    /// The failure of the config file that caused it; it can be shown with the lines that are wrong.
    pub fn config_error(&self) -> Option<&ConfigError> {
        self.config.as_deref()
    }

    /// A failed run. The caller adds what only it knows.
    pub(crate) fn of_run(error: &RunError) -> Self {
        let class = match error {
            RunError::Aborted => return Self::aborted(),
            RunError::Model(error) => FailureClass::Model(error.name()),
            RunError::ContextOverflow { .. } => {
                FailureClass::Model(ErrorClass::ContextOverflow.as_str())
            }
            RunError::AllModelsFailed(_) => FailureClass::AllModelsFailed,
            RunError::WindowTooSmall { .. } => FailureClass::WindowTooSmall,
            RunError::UnknownProfile { .. } => FailureClass::Usage,
            RunError::NothingToDo => FailureClass::NothingToDo,
            RunError::Session(_) | RunError::MessageWaits(_) => FailureClass::Session,
            RunError::Workspace { .. } => FailureClass::Workspace,
            RunError::Hook { .. } => FailureClass::Hook,
            _ => FailureClass::Internal,
        };
        Self { passes: passes(error), ..Self::new(class, error.to_string()) }
    }

    /// The same with a message for people other than the owner, which names no address and no option of the command line.
    pub(crate) fn for_others(self, message: String) -> Self {
        Self { for_others: Some(message), ..self }
    }

    /// The message for people other than the owner.
    pub fn message_for_others(&self) -> &str {
        self.for_others.as_deref().unwrap_or(&self.message)
    }

    /// Whether the failure may be over in some minutes without anybody doing something: a server that is away, breaks
    /// off, fails or has too much to do.
    pub fn may_pass(&self) -> bool {
        self.passes
    }
}

/// Longest time that a provider may ask to wait for a failure that passes by itself.
const LONGEST_PASSING: Duration = Duration::from_secs(10 * 60);

fn passes(error: &RunError) -> bool {
    let is_passing = |class| matches!(class, ErrorClass::Timeout | ErrorClass::RateLimit);
    match error {
        RunError::Model(error) => {
            is_passing(error.class) && error.retry_after.is_none_or(|wait| wait <= LONGEST_PASSING)
        }
        RunError::AllModelsFailed(failures) => failures.iter().any(|it| is_passing(it.reason)),
        _ => false,
    }
}

impl From<ConfigError> for AgentError {
    fn from(error: ConfigError) -> Self {
        let class = match error {
            ConfigError::Unwritable { .. } => FailureClass::ConfigUnwritable,
            _ => FailureClass::Config,
        };
        let failure = Self::new(class, error.to_string());
        Self { config: Some(Arc::new(error)), ..failure }
    }
}

impl From<SessionError> for AgentError {
    fn from(error: SessionError) -> Self {
        Self::new(FailureClass::Session, error.to_string())
    }
}

impl From<InboxError> for AgentError {
    fn from(error: InboxError) -> Self {
        let class = match error {
            InboxError::Empty => FailureClass::Usage,
            InboxError::NotRunning { .. } => FailureClass::NotRunning,
            InboxError::Session(_) => FailureClass::Session,
            InboxError::Internal(_) => FailureClass::Internal,
        };
        Self::new(class, error.to_string())
    }
}
