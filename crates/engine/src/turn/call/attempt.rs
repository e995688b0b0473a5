//! One attempt: a request with one key, and the rules for what counts as its failure.

use std::time::Instant;

use myclaw_llm::{
    AssistantMessage, CallFailure, ContentBlock, ErrorClass, ModelError, ModelRequest, StopReason,
    StreamEvent, ThinkingLevel, ToolUse, classify,
};
use secrecy::SecretString;
use tracing::{Instrument, debug, info, info_span};

use super::{Caller, context, unsigned};
use crate::turn::Shared;
use crate::turn::fit::SummaryRequest;
use crate::{AgentRunEvent, CutAnswers, Notice};

/// The kind of message that is requested.
pub(super) enum Question<'q> {
    /// The next message of the session. Output is emitted as it arrives, so an attempt that has begun to answer is not
    /// repeated.
    Next,
    /// A summary, which is not shown before it is complete.
    Summary(&'q SummaryRequest<'q>),
}

impl Caller<'_> {
    /// Makes one attempt with one key. Its cost counts even if it failed.
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
                info!(duration_ms, class = error.name(), "call failed");
            }
        });
        let usage = match &outcome {
            Ok(message) => Some(&message.usage),
            Err(failure) => failure.usage().filter(|usage| usage.total_tokens > 0),
        };
        if let Some(usage) = usage {
            shared.tally.usage.add_call(usage);
            let (provider, model) = (model.provider.clone(), model.id.clone());
            shared.emit(AgentRunEvent::LlmUsage { provider, model, usage: *usage });
        }
        outcome.map_err(|mut failure| {
            // Output that was not shown may be requested again.
            match (&mut failure, question) {
                (
                    CallFailure::Aborted { partial } | CallFailure::Failed { partial, .. },
                    Question::Summary(_),
                ) => *partial = None,
                (CallFailure::Failed { partial, error }, Question::Next) => {
                    let is_passing =
                        matches!(error.class, ErrorClass::Timeout | ErrorClass::RateLimit);
                    let stays = shared.run.events.callback.is_some()
                        && !(is_passing && self.rules.cut_answers == CutAnswers::Repeated);
                    partial.take_if(|partial| !(is_cut(partial) || stays && shows(partial)));
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
        let messages = shared.log.take_paired();
        let to_send = changed_by_hooks.as_ref().unwrap_or(&messages);
        let mut thinking = self.rules.thinking;
        let unsigned_until = shared.log.unsigned_until(&self.model.reference());
        let stripped = unsigned_until.map(|until_ms| {
            if unsigned::goes_on_with_stripped(to_send.as_slice(), until_ms) {
                thinking = ThinkingLevel::Off;
            }
            unsigned::strip(to_send.as_slice(), until_ms)
        });
        let request = ModelRequest {
            model,
            system_prompt: &shared.prompt.system_prompt,
            messages: stripped.as_ref().unwrap_or(to_send),
            tools: shared.prompt.schemas.list(),
            tool_use: self.rules.tool_use,
            max_output: self.rules.options.max_output.map(|most| match model.max_output {
                0 => most,
                limit => most.min(limit),
            }),
            options: Some(&self.rules.options),
            thinking,
            api_key: key,
            limits: self.rules.limits,
        };
        let events = &shared.run.events;
        let reference = self.model.reference();
        let mut sink = |event: StreamEvent| match event {
            StreamEvent::OptionLeftOut { option, error } => {
                events.notice(left_out(&reference, option, error));
            }
            event => events.emit(AgentRunEvent::LlmStream { event }),
        };
        let provider = self.engine.provider(model);
        let outcome = provider.call(request, shared.run.cancel.token(), &mut sink).await;
        shared.log.put_back(messages);
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
            options: None,
            thinking: ThinkingLevel::Off,
            api_key: key,
            limits: self.rules.limits,
        };
        let provider = self.engine.provider(model);
        let reference = self.model.reference();
        let mut sink = |event: StreamEvent| {
            if let StreamEvent::OptionLeftOut { option, error } = event {
                shared.notice(left_out(&reference, option, error));
            }
        };
        let outcome = provider.call(request, shared.run.cancel.token(), &mut sink).await;
        outcome.and_then(unless_failed)
    }
}

fn left_out(model: &str, option: String, error: String) -> Notice {
    Notice::OptionLeftOut { model: model.to_owned(), option, error }
}

/// Turns a message that reports a provider's failure into the error of a failed call.
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

/// Whether the message is complete except for the output limit. A repeated request would be cut at the same limit.
fn is_cut(message: &AssistantMessage) -> bool {
    message.stop_reason == StopReason::Length
}

/// Whether the user has seen text of the message. Thoughts and the beginning of a tool call are not yet an answer.
fn shows(message: &AssistantMessage) -> bool {
    message
        .content
        .iter()
        .any(|block| matches!(block, ContentBlock::Text(text) if !text.text.trim().is_empty()))
}

/// Turns a message that reached the output limit before it said anything, for example during its thoughts, into an
/// error. A repeated request would be cut at the same limit.
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
