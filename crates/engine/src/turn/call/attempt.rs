//! One attempt: a request with one key, and what counts as a failure of it.

use std::time::Instant;

use myclaw_llm::{
    AssistantMessage, CallFailure, ContentBlock, ErrorClass, ModelError, ModelRequest, StopReason,
    StreamEvent, ThinkingLevel, ToolUse, classify,
};
use secrecy::SecretString;
use tracing::{Instrument, debug, info, info_span};

use super::{Caller, context, unsigned};
use crate::AgentRunEvent;
use crate::turn::Shared;
use crate::turn::fit::SummaryRequest;

/// What a model is asked for.
pub(super) enum Question<'q> {
    /// The next message of the session. What arrives is emitted as it comes, so an attempt that has begun to answer is
    /// not repeated.
    Next,
    /// A summary, which nobody sees before it is whole.
    Summary(&'q SummaryRequest<'q>),
}

impl Caller<'_> {
    /// One attempt with one key. What it cost counts, even if it failed.
    pub(super) async fn attempt(
        &mut self,
        shared: &mut Shared,
        question: &Question<'_>,
        key: Option<&SecretString>,
    ) -> Result<AssistantMessage, CallFailure> {
        let model = &self.model.model;
        let span = info_span!("model_call", provider = %model.provider, model = %model.id);
        let began = Instant::now();
        let outcome = match question {
            Question::Next => self.attempt_next(shared, key).instrument(span.clone()).await,
            Question::Summary(request) => {
                self.attempt_summary(shared, key, request).instrument(span.clone()).await
            }
        };
        let duration_ms = began.elapsed().as_millis() as u64;
        span.in_scope(|| match &outcome {
            Ok(message) => debug!(duration_ms, tokens = message.usage.total_tokens, "answered"),
            Err(CallFailure::Aborted { .. }) => debug!(duration_ms, "aborted"),
            Err(CallFailure::Failed { error, .. }) => {
                info!(duration_ms, class = error.class.as_str(), "call failed");
            }
        });
        outcome.map_err(|mut failure| {
            if let Some(usage) = failure.usage() {
                shared.tally.usage.add_call(usage);
            }
            // What nobody has seen may be asked for again.
            match (&mut failure, question) {
                (
                    CallFailure::Aborted { partial } | CallFailure::Failed { partial, .. },
                    Question::Summary(_),
                ) => *partial = None,
                (CallFailure::Failed { partial, .. }, Question::Next) => {
                    let has_callback = shared.run.events.callback.is_some();
                    partial.take_if(|partial| !(is_cut(partial) || has_callback && shows(partial)));
                }
                (CallFailure::Aborted { .. }, Question::Next) => {}
            }
            failure
        })
    }

    async fn attempt_next(
        &self,
        shared: &mut Shared,
        key: Option<&SecretString>,
    ) -> Result<AssistantMessage, CallFailure> {
        let changed_by_hooks = context::ask_hooks(shared).await?;
        let model = &self.model.model;
        shared.emit(AgentRunEvent::LlmStart {
            iteration: shared.tally.iterations,
            provider: model.provider.clone(),
            model: model.id.clone(),
        });
        let messages = shared.conversation.take_paired();
        let to_send = changed_by_hooks.as_ref().unwrap_or(&messages);
        let mut thinking = self.rules.thinking;
        let stripped = self.unsigned_until.map(|until_ms| {
            if unsigned::goes_on_with_stripped(to_send.as_slice(), until_ms) {
                thinking = ThinkingLevel::Off;
            }
            unsigned::strip(to_send.as_slice(), until_ms)
        });
        let request = ModelRequest {
            model,
            system_prompt: &shared.prompt.system_prompt,
            messages: stripped.as_ref().unwrap_or(to_send),
            tools: &shared.prompt.tool_schemas,
            tool_use: self.rules.tool_use,
            max_output: None,
            thinking,
            api_key: key,
            limits: self.rules.limits,
        };
        let events = &shared.run.events;
        let mut sink = |event: StreamEvent| events.emit(AgentRunEvent::LlmStream { event });
        let provider = self.engine.provider(model);
        let outcome = provider.call(request, shared.run.cancel.token(), &mut sink).await;
        shared.conversation.put_back(messages);
        outcome.and_then(unless_failed).and_then(|message| unless_cut(message, model.max_output))
    }

    async fn attempt_summary(
        &self,
        shared: &Shared,
        key: Option<&SecretString>,
        summary: &SummaryRequest<'_>,
    ) -> Result<AssistantMessage, CallFailure> {
        let model = &self.model.model;
        let request = ModelRequest {
            model,
            system_prompt: "",
            messages: summary.messages,
            tools: &[],
            tool_use: ToolUse::Auto,
            max_output: Some(summary.max_output),
            thinking: ThinkingLevel::Off,
            api_key: key,
            limits: self.rules.limits,
        };
        let provider = self.engine.provider(model);
        let outcome = provider.call(request, shared.run.cancel.token(), &mut |_event| {}).await;
        outcome.and_then(unless_failed)
    }
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

/// Whether it was complete but for the output limit: asked again, it would be cut alike.
fn is_cut(message: &AssistantMessage) -> bool {
    message.stop_reason == StopReason::Length
}

/// Whether the user has seen text of it. Thoughts and the beginning of a tool call are no answer yet.
fn shows(message: &AssistantMessage) -> bool {
    message
        .content
        .iter()
        .any(|block| matches!(block, ContentBlock::Text(text) if !text.text.trim().is_empty()))
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
