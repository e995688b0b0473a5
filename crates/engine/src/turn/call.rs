//! Step `call`: one message of a model, through the auth profiles of the model and then through the fallback models.
//!
//! Before anything visible arrived a failed attempt may be repeated with another key or another model. After that it
//! never is: the partial message is closed, kept, and the failure is reported.

mod attempt;
mod wait;

use std::fmt::Write;

use attempt::Question;
use myclaw_llm::{
    AssistantMessage, CallFailure, ErrorClass, Message, ModelError, PairedMessages, Repeat,
};
use secrecy::SecretString;

use super::{Turn, fit};
use crate::failover::{Use, concerns_every_model, failure_reason};
use crate::{AgentRunEvent, Notice, RunError};

/// Why there is no message.
enum NoMessage {
    /// The run is over.
    Stop(RunError),
    /// The request is too long for the model; a shorter one may be answered.
    Overflow(ModelError),
    /// Nothing is left to try with this model; another may answer.
    GiveUp(ModelError),
}

impl<E: Into<RunError>> From<E> for NoMessage {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}

/// What was tried already to get one message of one model.
#[derive(Default)]
struct Patience {
    retries: u32,
    /// Whether an empty answer was asked for again.
    asked_again: bool,
    /// Whether a login that was refused was renewed.
    has_renewed: bool,
    last_error: Option<ModelError>,
    /// Which keys failed with what, in order.
    failures: Vec<(String, String)>,
}

impl Patience {
    /// The error after which nothing is tried any more, with what the other keys failed with.
    fn explain(&self, mut error: ModelError) -> ModelError {
        let Some(((last, _), earlier)) = self.failures.split_last() else { return error };
        let mut told = vec![last];
        let mut lines = String::new();
        for (id, message) in earlier.iter().rev() {
            if !told.contains(&id) {
                told.push(id);
                let _infallible = write!(lines, "\n  {id}: {message}");
            }
        }
        if !lines.is_empty() {
            let message = std::mem::take(&mut error.message);
            error.message = format!("no key could be used\n  {last}: {message}{lines}");
        }
        error
    }
}

/// Asks until a model gives a message, or until nothing is left to try.
pub(super) async fn call_model(turn: &mut Turn<'_>) -> Result<AssistantMessage, RunError> {
    loop {
        match call_candidate(turn).await {
            Ok(message) => return Ok(message),
            Err(NoMessage::Stop(error)) => return Err(error),
            Err(NoMessage::Overflow(error) | NoMessage::GiveUp(error)) => {
                fall_back(turn, error).await?;
            }
        }
    }
}

/// Goes on to the next model.
async fn fall_back(turn: &mut Turn<'_>, error: ModelError) -> Result<(), RunError> {
    turn.candidates.give_up_on(turn.model, &error);
    let Some(next) = turn.candidates.next() else {
        return Err(turn.candidates.exhausted(error));
    };
    turn.emit(AgentRunEvent::Fallback {
        from: turn.model.reference(),
        to: next.choice.reference(),
        reason: error.class,
        message: error.message,
    });
    turn.ask_from_now_on(next);
    // Its window may be smaller.
    fit::before_call(turn).await
}

/// Calls the current model until it gives the next message, or until none of its keys can help.
async fn call_candidate(turn: &mut Turn<'_>) -> Result<AssistantMessage, NoMessage> {
    let mut patience = Patience::default();
    loop {
        match ask(turn, &Question::Next, &mut patience).await {
            Ok(message) => {
                turn.emit(AgentRunEvent::LlmEnd { message: Box::new(message.clone()) });
                return Ok(message);
            }
            Err(NoMessage::Overflow(error)) => fit::recover_from_overflow(turn, &error).await?,
            Err(other) => return Err(other),
        }
    }
}

/// The summary that `messages` ask the current model for. The inner error is why it gives none with any of its keys.
pub(super) async fn call_for_summary(
    turn: &mut Turn<'_>,
    messages: &PairedMessages,
    max_output: u64,
) -> Result<Result<AssistantMessage, ModelError>, RunError> {
    let question = Question::Summary { messages, max_output };
    match ask(turn, &question, &mut Patience::default()).await {
        Ok(message) => Ok(Ok(message)),
        Err(NoMessage::Stop(error)) => Err(error),
        Err(NoMessage::Overflow(error) | NoMessage::GiveUp(error)) => Ok(Err(error)),
    }
}

/// Asks the current model with one key after another, until it answers or none of them can help.
async fn ask(
    turn: &mut Turn<'_>,
    question: &Question<'_>,
    patience: &mut Patience,
) -> Result<AssistantMessage, NoMessage> {
    loop {
        let profile = wait::available_profile(turn, patience.last_error.as_ref()).await?;
        let key = match key_of(turn, profile).await? {
            Ok(key) => key,
            Err(error) => {
                // Nothing was sent, so no retry is spent; a key that is not there is not looked for again.
                // Where there is no other key, it is why the run fails.
                if turn.rotation.has_other_than(profile) {
                    turn.notice(Notice::KeyUnavailable { error: error.message.clone() });
                }
                turn.rotation.failed(profile, &error, turn.now_ms());
                patience.last_error = Some(error);
                continue;
            }
        };
        match question.attempt(turn, key.as_ref()).await {
            Ok(message) if !patience.asked_again && message.is_empty_answer() => {
                patience.asked_again = true;
                turn.tally.usage.add_call(&message.usage);
                turn.notice(Notice::EmptyAnswer {});
            }
            Ok(message) => {
                succeeded(turn, profile).await;
                return Ok(message);
            }
            Err(CallFailure::Aborted { partial }) => {
                keep_partial(turn, partial)?;
                return Err(NoMessage::Stop(RunError::Aborted));
            }
            Err(CallFailure::Failed { error, partial: None })
                if !patience.has_renewed
                    && error.status == Some(401)
                    && refuse_login(turn, profile) =>
            {
                patience.has_renewed = true;
                turn.notice(Notice::LoginRenewed { error: error.message });
            }
            Err(CallFailure::Failed { error, partial }) => {
                after_failure(turn, profile, *error, partial, patience).await?;
            }
        }
    }
}

/// Gets ready for the next attempt, where one can help.
async fn after_failure(
    turn: &mut Turn<'_>,
    profile: usize,
    error: ModelError,
    partial: Option<Box<AssistantMessage>>,
    patience: &mut Patience,
) -> Result<(), NoMessage> {
    failed(turn, profile, &error).await;
    if partial.is_some() {
        keep_partial(turn, partial)?;
        turn.candidates.give_up_on(turn.model, &error);
        return Err(NoMessage::Stop(turn.candidates.exhausted(error)));
    }
    if error.class == ErrorClass::ContextOverflow {
        return Err(NoMessage::Overflow(error));
    }
    patience.failures.push((turn.rotation.profile(profile).id.clone(), error.message.clone()));
    // However many keys there are, each is tried.
    let has_turns_left = patience.retries < turn.limits.max_retries
        || turn.rotation.has_fresh_other_than(profile, turn.now_ms());
    if !has_turns_left || !may_retry(turn, profile, &error) {
        return Err(NoMessage::GiveUp(patience.explain(error)));
    }
    patience.retries += 1;
    turn.rotation.failed(profile, &error, turn.now_ms());
    announce_retry(turn, patience.retries, &error);
    patience.last_error = Some(error);
    Ok(())
}

/// The key of a profile, or why it cannot be had.
async fn key_of(
    turn: &Turn<'_>,
    profile: usize,
) -> Result<Result<Option<SecretString>, ModelError>, RunError> {
    let profile = turn.rotation.profile(profile);
    let cancel = &turn.params.cancel;
    match turn.keys.resolve(profile, turn.now_ms(), cancel).await {
        Ok(key) => Ok(Ok(key)),
        Err(_) if cancel.is_cancelled() => Err(RunError::Aborted),
        Err(error) => {
            let message = format!(
                "{}: the key of the auth profile {} cannot be had: {error}",
                turn.model.model.provider, profile.id
            );
            Ok(Err(ModelError::new(ErrorClass::Auth, message)))
        }
    }
}

/// Has a login renewed whose token was refused, though it had not ended; whether that can be.
fn refuse_login(turn: &Turn<'_>, profile: usize) -> bool {
    turn.keys.refuse_login(turn.rotation.profile(profile))
}

/// Whether trying again can help: later with the same key, or at once with another.
fn may_retry(turn: &Turn<'_>, profile: usize, error: &ModelError) -> bool {
    if error.repeat == Repeat::Pointless {
        return false;
    }
    match error.class {
        ErrorClass::RateLimit | ErrorClass::Timeout => true,
        ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Quota => {
            turn.rotation.has_other_than(profile)
        }
        ErrorClass::ContextOverflow | ErrorClass::Unknown => false,
    }
}

async fn succeeded(turn: &mut Turn<'_>, profile: usize) {
    let had_failures = turn.rotation.succeeded(profile);
    let (call, count) = (use_of(turn, profile), turn.rotation.count());
    if let Some(complaint) = turn.ledger.succeeded(call, had_failures, count).await {
        turn.notice(complaint);
    }
}

/// Writes down what a failed call says about its key, for this run's other models and for later runs.
async fn failed(turn: &mut Turn<'_>, profile: usize, error: &ModelError) {
    let Some(reason) = failure_reason(error.class) else { return };
    let call = use_of(turn, profile);
    if concerns_every_model(error.class) {
        let provider = &turn.model.model.provider;
        turn.candidates.spend(provider, &turn.rotation.profile(profile).id);
        turn.keys.forget(turn.rotation.profile(profile));
    }
    if let Some(complaint) = turn.ledger.failed(call, reason, error.retry_after).await {
        turn.notice(complaint);
    }
}

fn use_of(turn: &Turn<'_>, profile: usize) -> Use {
    let model = &turn.model.model;
    Use {
        profile: turn.rotation.profile(profile).store_name(&model.provider),
        model: model.id.clone(),
        at_ms: turn.now_ms(),
    }
}

fn announce_retry(turn: &Turn<'_>, attempt: u32, error: &ModelError) {
    let (profile_id, delay) = turn.rotation.upcoming(turn.now_ms());
    if delay > wait::longest_wait(turn) {
        // There is none: the error will say until when the key rests.
        return;
    }
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
    let Some(partial) = partial else { return Ok(()) };
    if partial.content.is_empty() {
        return Ok(());
    }
    Ok(turn.conversation.append(Message::Assistant(*partial))?)
}
