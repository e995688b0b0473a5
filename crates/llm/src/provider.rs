//! The interface of every model, whether on a remote server or inside this process.

use std::time::Duration;

use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    AnswerOptions, AssistantMessage, CallFailure, Model, PairedMessages, StreamEvent, ThinkingLevel,
};

/// Receives stream events in order, as they happen. It must not block.
pub type EventSink<'a> = &'a mut (dyn FnMut(StreamEvent) + Send);

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Name the model calls it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub parameters: Value,
}

/// Whether the model may call the tools on offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolUse {
    /// The model decides.
    #[default]
    Auto,
    /// The model must answer in text. The tools stay in the request where the format has a way to forbid calls, because
    /// the messages may hold calls of them. If a model calls a tool in spite of this, its calls arrive like any others.
    Forbidden,
}

impl ToolUse {
    /// The value of `tool_choice` in OpenAI's and Anthropic's formats.
    pub(crate) fn choice(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Forbidden => "none",
        }
    }
}

/// Everything one model call needs.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The model to call.
    pub model: &'a Model,
    /// System prompt; empty means none. Its bytes must be the same from turn to turn, for the provider's cache.
    pub system_prompt: &'a str,
    /// The messages, with every call paired with one result.
    pub messages: &'a PairedMessages,
    /// The tools on offer; empty means none.
    pub tools: &'a [ToolSchema],
    /// Whether the model may call them.
    pub tool_use: ToolUse,
    /// Output limit in tokens; `None` means the model's own.
    pub max_output: Option<u64>,
    /// What is asked of the answer; `None` for nothing.
    pub options: Option<&'a AnswerOptions>,
    /// How much the model should think; one it does not offer becomes [`Model::thinking_level`].
    pub thinking: ThinkingLevel,
    /// Key for the provider; `None` where none is needed.
    pub api_key: Option<&'a SecretString>,
    /// Time limits of the call.
    pub limits: CallLimits,
}

/// Time limits of a model call. There is no limit on the whole call, because a model may write for a long time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// For the connection.
    pub connect: Duration,
    /// From the request until the first event of the answer.
    pub first_event: Duration,
    /// Between two events; keep-alive bytes do not count as one.
    pub between_events: Duration,
}

impl Default for CallLimits {
    /// 10 s to connect, 300 s to the first event (a local model may read a long prompt for minutes), 120 s between
    /// events.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_event: Duration::from_secs(300),
            between_events: Duration::from_secs(120),
        }
    }
}

/// Something that answers model requests.
pub trait Provider: Send + Sync {
    /// Makes one call and reports events to `sink` as they happen, [`StreamEvent::Done`] or [`StreamEvent::Error`]
    /// being the last.
    ///
    /// # Errors
    /// [`CallFailure::Aborted`] soon after `cancel` fires (the connection is closed), [`CallFailure::Failed`]
    /// otherwise; both with what had arrived.
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        cancel: &'a CancellationToken,
        sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>>;
}
