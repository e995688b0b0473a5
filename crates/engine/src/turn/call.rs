//! Step `call`: one model call, through the auth profiles.
//!
//! Before anything visible arrived a failed attempt may be repeated with another key. After that it never is: the
//! partial message is closed, kept, and the failure is reported.

use std::time::Duration;

use myclaw_llm::{
    AssistantMessage, CallFailure, ErrorClass, Message, ModelError, ModelRequest, StreamEvent,
    ThinkingLevel,
};

use super::{Turn, context, fit};
use crate::failover::Pick;
use crate::{AgentRunEvent, RunError};

/// Longest time that a run waits for a key to be available again. Beyond it a clear message is worth more than
/// silence.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

/// Calls the model until it gives a message, or until nothing is left to try.
pub(super) async fn call_model(turn: &mut Turn<'_>) -> Result<AssistantMessage, RunError> {
    let mut retries = 0;
    let mut last_error = None;
    loop {
        let profile = available_profile(turn, last_error.as_ref()).await?;
        match attempt(turn, profile).await {
            Ok(message) => {
                turn.rotation.succeeded(profile);
                turn.emit(AgentRunEvent::LlmEnd { message: Box::new(message.clone()) });
                return Ok(message);
            }
            Err(CallFailure::Aborted { partial }) => {
                keep_partial(turn, partial)?;
                return Err(RunError::Aborted);
            }
            Err(CallFailure::Failed { error, partial: Some(partial) }) => {
                keep_partial(turn, Some(partial))?;
                return Err(RunError::Model(*error));
            }
            Err(CallFailure::Failed { error, partial: None })
                if error.class == ErrorClass::ContextOverflow =>
            {
                fit::recover_from_overflow(turn, &error).await?;
            }
            Err(CallFailure::Failed { error, partial: None }) => {
                if retries >= turn.limits.max_retries || !may_retry(turn, profile, &error) {
                    return Err(RunError::Model(*error));
                }
                retries += 1;
                turn.rotation.failed(profile, &error, turn.params.clock.now_ms());
                announce_retry(turn, retries, &error);
                last_error = Some(*error);
            }
        }
    }
}

/// One attempt with one key.
async fn attempt(turn: &mut Turn<'_>, profile: usize) -> Result<AssistantMessage, CallFailure> {
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
        max_output: None,
        thinking: ThinkingLevel::Off,
        api_key: turn.rotation.profile(profile).api_key.as_ref(),
        limits: turn.limits.call,
    };
    let on_event = turn.params.on_event.as_ref();
    let mut sink = |event: StreamEvent| {
        if let Some(on_event) = on_event {
            on_event(AgentRunEvent::LlmStream { event });
        }
    };
    let outcome = turn.provider.call(request, &turn.params.cancel, &mut sink).await;
    turn.conversation.put_back(messages);
    outcome
}

/// Waits until a profile is available; `last_error` is why there may be none.
async fn available_profile(
    turn: &mut Turn<'_>,
    last_error: Option<&ModelError>,
) -> Result<usize, RunError> {
    loop {
        if turn.params.cancel.is_cancelled() {
            return Err(RunError::Aborted);
        }
        let give_up = || {
            let unexpected =
                || ModelError::new(ErrorClass::Unknown, "no auth profile is left to try");
            last_error.cloned().unwrap_or_else(unexpected)
        };
        match turn.rotation.pick(turn.params.clock.now_ms()) {
            Pick::Ready(profile) => return Ok(profile),
            Pick::Spent => return Err(RunError::Model(give_up())),
            Pick::Wait(wait) if wait > LONGEST_WAIT => {
                let mut error = give_up();
                error.message =
                    format!("{} (the provider asks to wait {} s)", error.message, wait.as_secs());
                return Err(RunError::Model(error));
            }
            Pick::Wait(wait) => tokio::select! {
                () = turn.params.clock.sleep(wait) => {}
                () = turn.params.cancel.cancelled() => return Err(RunError::Aborted),
            },
        }
    }
}

/// Whether trying again can help: later with the same key, or at once with another.
fn may_retry(turn: &Turn<'_>, profile: usize, error: &ModelError) -> bool {
    match error.class {
        ErrorClass::RateLimit | ErrorClass::Timeout => true,
        ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Quota => {
            turn.rotation.has_other_than(profile)
        }
        ErrorClass::ContextOverflow | ErrorClass::Unknown => false,
    }
}

fn announce_retry(turn: &mut Turn<'_>, attempt: u32, error: &ModelError) {
    let (profile_id, delay) = turn.rotation.upcoming(turn.params.clock.now_ms());
    turn.emit(AgentRunEvent::Retry {
        attempt,
        reason: error.class,
        profile_id,
        delay_ms: delay.as_millis() as u64,
        message: error.message.clone(),
    });
}

/// Stores what had arrived of a message that will not be completed.
fn keep_partial(
    turn: &mut Turn<'_>,
    partial: Option<Box<AssistantMessage>>,
) -> Result<(), RunError> {
    match partial {
        Some(partial) if !partial.content.is_empty() => {
            Ok(turn.conversation.append(Message::Assistant(*partial))?)
        }
        _ => Ok(()),
    }
}
