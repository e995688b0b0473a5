//! The errors of model calls, classified once, where the provider's response is read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AssistantMessage, Usage};

/// The class of a failed model call. Status and structured codes decide it first, error text second; what the model
/// said never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong or not allowed (401, 403).
    Auth,
    /// Too many requests or tokens for now (429).
    RateLimit,
    /// No credit (402).
    Billing,
    /// A time-out, a broken connection or a server-side failure (5xx).
    Timeout,
    /// A quota is used up; waiting a moment does not help.
    Quota,
    /// The request is larger than the model's context window.
    ContextOverflow,
    /// Anything else, such as a malformed request.
    Unknown,
}

impl ErrorClass {
    /// The name of the class. What failed has a more precise one ([`ModelError::name`]).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Billing => "billing",
            Self::Timeout => "timeout",
            Self::Quota => "quota",
            Self::ContextOverflow => "context_overflow",
            Self::Unknown => "unknown",
        }
    }

    /// The same in a few words, for people who learn no more than the class.
    pub fn words(self) -> &'static str {
        match self {
            Self::Auth => "key refused",
            Self::RateLimit => "rate limit",
            Self::Billing => "no credit",
            Self::Timeout => "no answer",
            Self::Quota => "quota used up",
            Self::ContextOverflow => "request too long",
            Self::Unknown => "refused",
        }
    }
}

/// Whether repeating the same call can help. It makes the class more precise: after a [`ErrorClass::Timeout`] a retry
/// usually can help, but not if nothing listens at a port of this machine. Another model may be tried in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repeat {
    /// As the class says.
    #[default]
    MayHelp,
    /// One more time: a name server that does not answer may be slow to wake.
    Once,
    /// Not until a person has changed something, such as started the server.
    Pointless,
}

/// Where a call failed that the class [`ErrorClass::Timeout`] covers, for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trouble {
    /// As status and words say.
    #[default]
    AsReported,
    /// There is no connection to the server, or it broke.
    Network,
    /// The server is silent.
    Silence,
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub class: ErrorClass,
    /// HTTP status, where there was one. A failure inside a 200 stream keeps 200.
    pub status: Option<u16>,
    /// The provider's own error code or type, such as `insufficient_quota`.
    pub code: Option<String>,
    /// How long the provider asked to wait: for a rate limit or a failing server until the next attempt, for a quota
    /// until it is reset. At most 31 days; `None` for all other classes, because a wait does not help there.
    pub retry_after: Option<Duration>,
    /// Whether the same call, made again a little later, may succeed where the class alone says so.
    pub repeat: Repeat,
    /// Where it failed.
    pub trouble: Trouble,
    /// What the call cost as far as the provider said, if there is no partial message with its usage.
    pub usage: Option<Box<Usage>>,
    /// One line for a person: what failed, where, and what to do. Never holds a secret.
    pub message: String,
    /// The same without the address of the server, for people who are not to know it; `None` if `message` has none.
    pub without_address: Option<Box<str>>,
}

impl ModelError {
    /// An error that has no status, code or delay.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            code: None,
            retry_after: None,
            repeat: Repeat::MayHelp,
            trouble: Trouble::AsReported,
            usage: None,
            message: message.into(),
            without_address: None,
        }
    }

    /// The message for people who are not to know the address of the server.
    pub fn message_without_address(&self) -> &str {
        self.without_address.as_deref().unwrap_or(&self.message)
    }

    /// What failed, for programs: the name of the class. [`ErrorClass::Timeout`] has three causes, of which one is a
    /// time-out; each has a name of its own: `timeout`, `network` and `server_error`.
    pub fn name(&self) -> &'static str {
        match (self.class, self.trouble, self.status) {
            (ErrorClass::Timeout, Trouble::Network, _) => "network",
            (ErrorClass::Timeout, Trouble::Silence, _)
            | (ErrorClass::Timeout, _, Some(408 | 504 | 524)) => "timeout",
            (ErrorClass::Timeout, ..) if says_time_is_up(&self.message) => "timeout",
            (ErrorClass::Timeout, ..) => "server_error",
            (class, ..) => class.as_str(),
        }
    }

    /// The same in a few words, for people.
    pub fn cause(&self) -> &'static str {
        match (self.class, self.name()) {
            (ErrorClass::Timeout, "server_error") => "server error",
            (ErrorClass::Timeout, name) => name,
            (class, _) => class.words(),
        }
    }
}

/// Whether a server says that it waited too long.
fn says_time_is_up(message: &str) -> bool {
    let message = message.to_lowercase();
    ["timeout", "timed out", "time-out", "deadline"].iter().any(|words| message.contains(words))
}

/// The words of providers that do not accept the signature of a model's thoughts, or the thoughts themselves.
const REJECTED_THINKING: [&[&str]; 8] = [
    // Anthropic: "Invalid `signature` in `thinking` block"; "`thinking` blocks in the latest assistant message cannot
    // be modified".
    &["signature", "thinking"],
    &["thinking", "cannot be modified"],
    // Google: "Thought signature is not valid", "Corrupted thought signature".
    &["thought", "signature"],
    // OpenAI: "The encrypted content … could not be verified".
    &["encrypted content", "could not be"],
    // Groq: "property 'reasoning' is unsupported"; others that check each field: "Extra inputs are not permitted".
    &["messages", "reasoning", "unsupported"],
    &["messages", "reasoning", "not permitted"],
    &["messages", "reasoning", "unrecognized"],
    &["messages", "reasoning", "unknown"],
];

impl ModelError {
    /// Whether the provider rejects thinking in earlier messages: the same request without it may succeed.
    pub fn rejects_thinking(&self) -> bool {
        // 422 is what hosts answer that check each field: Mistral, and those that are built with FastAPI.
        let is_refusal = matches!(self.status, None | Some(400 | 422));
        let text = self.message.to_lowercase();
        let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
        is_refusal && REJECTED_THINKING.iter().any(|words| has(words))
    }
}

/// How a call that gave no complete message ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// The caller's cancellation token fired; `partial` is what had arrived, if anything had.
    #[error("the model call was aborted")]
    Aborted {
        /// What had arrived, with `stop_reason` [`crate::StopReason::Aborted`]; without content if only counters had.
        partial: Option<Box<AssistantMessage>>,
    },
    /// The call failed; `partial` is present only if something visible had been sent to the event sink.
    #[error("{error}")]
    Failed {
        /// Why.
        error: Box<ModelError>,
        /// What had arrived, with `stop_reason` [`crate::StopReason::Error`].
        partial: Option<Box<AssistantMessage>>,
    },
}

impl CallFailure {
    /// What the call cost, as far as the provider said.
    pub fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Aborted { partial: Some(partial) }
            | Self::Failed { partial: Some(partial), .. } => Some(&partial.usage),
            Self::Failed { error, partial: None } => error.usage.as_deref(),
            Self::Aborted { partial: None } => None,
        }
    }
}

impl From<ModelError> for CallFailure {
    fn from(error: ModelError) -> Self {
        Self::Failed { error: Box::new(error), partial: None }
    }
}
