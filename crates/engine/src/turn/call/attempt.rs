//! One attempt: a request with one key, and what counts as a failure of it.

use myclaw_llm::{
    AssistantMessage, CallFailure, ErrorClass, ModelError, ModelRequest, PairedMessages,
    StopReason, StreamEvent, ThinkingLevel, ToolUse, classify,
};
use secrecy::SecretString;

use crate::AgentRunEvent;
use crate::turn::{Turn, context};

/// What a model is asked for.
pub(super) enum Question<'q> {
    /// The next message of the conversation. What arrives is told as it comes, so an attempt that has begun to answer
    /// is not repeated.
    Next,
    /// A summary, which nobody sees before it is whole.
    Summary {
        messages: &'q PairedMessages,
        /// Tokens that it may have.
        max_output: u64,
    },
}

impl Question<'_> {
    /// One attempt with one key. What it cost counts, even if it failed.
    pub(super) async fn attempt(
        &self,
        turn: &mut Turn<'_>,
        key: Option<&SecretString>,
    ) -> Result<AssistantMessage, CallFailure> {
        let outcome = match self {
            Self::Next => attempt_next(turn, key).await,
            Self::Summary { messages, max_output } => {
                attempt_summary(turn, key, messages, *max_output).await
            }
        };
        outcome.map_err(|mut failure| {
            if let Some(usage) = failure.usage() {
                turn.tally.usage.add_call(usage);
            }
            if matches!(self, Self::Summary { .. }) {
                // Nobody has seen what arrived, so the attempt may be repeated.
                let (CallFailure::Aborted { partial } | CallFailure::Failed { partial, .. }) =
                    &mut failure;
                *partial = None;
            }
            failure
        })
    }
}

async fn attempt_next(
    turn: &mut Turn<'_>,
    key: Option<&SecretString>,
) -> Result<AssistantMessage, CallFailure> {
    let changed_by_hooks = context::ask_hooks(turn).await?;
    let model = &turn.model.model;
    turn.emit(AgentRunEvent::LlmStart {
        iteration: turn.tally.iterations,
        provider: model.provider.clone(),
        model: model.id.clone(),
    });
    let messages = turn.conversation.take_paired();
    let request = ModelRequest {
        model,
        system_prompt: &turn.start.system_prompt,
        messages: changed_by_hooks.as_ref().unwrap_or(&messages),
        tools: &turn.tool_schemas,
        tool_use: ToolUse::Auto,
        max_output: None,
        thinking: turn.thinking,
        api_key: key,
        limits: turn.limits.call,
    };
    let events = &turn.events;
    let mut sink = |event: StreamEvent| events.emit(AgentRunEvent::LlmStream { event });
    let outcome = turn.provider.call(request, &turn.params.cancel, &mut sink).await;
    turn.conversation.put_back(messages);
    outcome.and_then(unless_failed).and_then(|message| unless_cut(message, model.max_output))
}

async fn attempt_summary(
    turn: &Turn<'_>,
    key: Option<&SecretString>,
    messages: &PairedMessages,
    max_output: u64,
) -> Result<AssistantMessage, CallFailure> {
    let request = ModelRequest {
        model: &turn.model.model,
        system_prompt: "",
        messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: Some(max_output),
        thinking: ThinkingLevel::Off,
        api_key: key,
        limits: turn.limits.call,
    };
    let outcome = turn.provider.call(request, &turn.params.cancel, &mut |_event| {}).await;
    outcome.and_then(unless_failed)
}

/// A provider may report its failure as a message: that is a failed call like any other.
fn unless_failed(message: AssistantMessage) -> Result<AssistantMessage, CallFailure> {
    if message.stop_reason != StopReason::Error {
        return Ok(message);
    }
    let text = message.error_message.clone().unwrap_or_else(|| "the model failed".to_owned());
    let mut error = ModelError::new(classify(None, [], &text), text);
    if message.content.is_empty() {
        error.usage = Some(Box::new(message.usage));
        return Err(error.into());
    }
    Err(CallFailure::Failed { error: Box::new(error), partial: Some(Box::new(message)) })
}

/// A message that was cut at the output limit before it said anything, in the middle of its thoughts perhaps, is no
/// answer, and the next one would be cut alike.
fn unless_cut(message: AssistantMessage, max_output: u64) -> Result<AssistantMessage, CallFailure> {
    if message.stop_reason != StopReason::Length || !message.says_nothing() {
        return Ok(message);
    }
    let text = format!(
        "{}: the answer was cut at the output limit of {max_output} tokens before it said anything: let the model think \
         less, or raise maxOutput for it under models.providers",
        message.provider
    );
    let error = Box::new(ModelError::new(ErrorClass::Unknown, text));
    Err(CallFailure::Failed { error, partial: Some(Box::new(message)) })
}
