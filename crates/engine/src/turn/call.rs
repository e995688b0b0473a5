//! Step `call`: gets one message from a model, with the model's auth profiles first and then with the fallbacks.
//!
//! Before the first visible output a failed attempt may be repeated with another key or another model. After it an
//! attempt is never repeated: the partial message is closed and kept, and the failure is reported.

mod attempt;
mod context;
mod unsigned;
mod wait;

use std::fmt::Write;

use attempt::Question;
use futures_util::future::BoxFuture;
use myclaw_auth::KeyResolver;
use myclaw_llm::{
    AnswerOptions, AssistantMessage, CallFailure, CallLimits, ErrorClass, Message, ModelError,
    Repeat, ThinkingLevel, ToolUse,
};
use secrecy::{ExposeSecret as _, SecretString};
use tracing::info;

use super::Shared;
use super::fit::{SummaryRequest, Writers};
use crate::failover::{
    Candidate, Candidates, KeyLedger, Pick, ProfileRotation, Use, concerns_every_model,
    failure_reason,
};
use crate::{ActiveModel, AgentRunEvent, CutAnswers, Engine, Notice, RefusalRule, RunError};

/// The step and its state: the models to ask, their keys, and the failures so far.
pub(crate) struct Caller<'a> {
    engine: &'a Engine,
    /// The active model.
    model: &'a ActiveModel,
    /// Its keys.
    rotation: ProfileRotation,
    /// The fallbacks.
    candidates: Candidates<'a>,
    keys: &'a KeyResolver,
    ledger: KeyLedger,
    rules: CallRules,
    patience: Patience,
}

/// How calls are made.
#[derive(Debug, Clone)]
pub(crate) struct CallRules {
    pub(crate) thinking: ThinkingLevel,
    /// What is asked of the next message.
    pub(crate) options: AnswerOptions,
    /// Whether the next message may call tools.
    pub(crate) tool_use: ToolUse,
    /// Most retries of one call.
    pub(crate) max_retries: u32,
    /// Whether an answer that was cut off is made anew.
    pub(crate) cut_answers: CutAnswers,
    /// Time limits of one call.
    pub(crate) limits: CallLimits,
    /// Which refused requests may be answered if they are shorter.
    pub(crate) refusals: RefusalRule,
}

/// The outcome of asking for the next message.
pub(super) enum Answer {
    /// The message.
    Message(Box<AssistantMessage>),
    /// The request is too long for the active model; a shorter one may be answered.
    Overflow(ModelError),
    /// The active model cannot answer. A fallback is now the active model.
    OtherModel,
}

/// Why there is no message.
enum NoMessage {
    /// The run is over.
    Stop(RunError),
    /// No further attempt with this model is possible; another may answer.
    Overflow(ModelError),
    /// Nothing is left to try with this model; another may answer.
    GiveUp(ModelError),
}

impl<E: Into<RunError>> From<E> for NoMessage {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}

/// The attempts so far to get one message from one model.
#[derive(Debug, Default)]
struct Patience {
    retries: u32,
    /// Whether the question was repeated after an empty answer.
    asked_again: bool,
    /// Whether a refused login was renewed.
    has_renewed: bool,
    last_error: Option<ModelError>,
    /// The keys that failed, each with its error, in order.
    failures: Vec<(String, String)>,
}

impl Patience {
    /// Adds the errors of the other keys to the final error.
    fn explain(&self, mut error: ModelError) -> ModelError {
        let Some(((last, _), earlier)) = self.failures.split_last() else { return error };
        let mut listed = vec![last];
        let mut lines = String::new();
        for (id, message) in earlier.iter().rev() {
            if !listed.contains(&id) {
                listed.push(id);
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

impl<'a> Caller<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        keys: &'a KeyResolver,
        (first, candidates): (Candidate<'a>, Candidates<'a>),
        ledger: KeyLedger,
        rules: CallRules,
    ) -> Self {
        let Candidate { choice: model, rotation, .. } = first;
        let patience = Patience::default();
        Self { engine, model, rotation, candidates, keys, ledger, rules, patience }
    }

    /// The active model.
    pub(super) fn model(&self) -> &'a ActiveModel {
        self.model
    }

    /// Whether a call can be made without waiting for a key.
    pub(super) fn has_key_now(&mut self, now_ms: u64) -> bool {
        matches!(self.rotation.pick(now_ms), Pick::Ready(_))
    }

    /// Switches to closing mode: each key is tried once, and the model has to answer without tools.
    pub(super) fn ask_for_closing_summary(&mut self) {
        self.rules.max_retries = 0;
        self.rules.tool_use = ToolUse::Forbidden;
    }

    /// Asks the active model for the next message.
    pub(super) async fn next_message(&mut self, shared: &mut Shared) -> Result<Answer, RunError> {
        let mut patience = std::mem::take(&mut self.patience);
        match self.ask(shared, &Question::Next, &mut patience).await {
            Ok(message) => {
                shared.emit(AgentRunEvent::LlmEnd { message: Box::new(message.clone()) });
                Ok(Answer::Message(Box::new(message)))
            }
            Err(NoMessage::Stop(error)) => Err(error),
            Err(NoMessage::Overflow(error)) => {
                self.patience = patience;
                Ok(Answer::Overflow(error))
            }
            Err(NoMessage::GiveUp(error)) => {
                self.fall_back(shared, error)?;
                Ok(Answer::OtherModel)
            }
        }
    }

    /// Makes the next model the active model until the run is over.
    fn fall_back(&mut self, shared: &Shared, error: ModelError) -> Result<(), RunError> {
        self.candidates.give_up_on(self.model, &error);
        let Some(next) = self.candidates.next() else {
            return Err(self.candidates.exhausted(error));
        };
        info!(from = %self.model.reference(), to = %next.choice.reference(), "another model is asked");
        shared.emit(AgentRunEvent::Fallback {
            from: self.model.reference(),
            to: next.choice.reference(),
            reason: error.name(),
            cause: error.cause(),
            message: error.message,
        });
        self.model = next.choice;
        self.rotation = next.rotation;
        Ok(())
    }

    /// Swaps the active model and the fallback at `place`. A second call swaps back; `None` is a no-op.
    fn exchange_model(&mut self, place: Option<usize>) {
        if let Some(place) = place {
            self.candidates.exchange(place, &mut self.model, &mut self.rotation);
        }
    }

    /// Asks the active model with one key after another, until it answers or no key can help.
    async fn ask(
        &mut self,
        shared: &mut Shared,
        question: &Question<'_>,
        patience: &mut Patience,
    ) -> Result<AssistantMessage, NoMessage> {
        loop {
            let profile = self.available_profile(shared, patience.last_error.as_ref()).await?;
            let key = match self.key_of(shared, profile).await? {
                Ok(key) => key,
                Err(error) => {
                    // Nothing was sent, so no retry is used up. A missing key is not looked up again. Without another
                    // key, this error ends the run.
                    if self.rotation.has_other_than(profile) {
                        shared.notice(Notice::KeyUnavailable { error: error.message.clone() });
                    }
                    self.rotation.failed(profile, &error, shared.now_ms());
                    patience.last_error = Some(error);
                    continue;
                }
            };
            match self.attempt(shared, question, key.as_ref()).await {
                Ok(message) if !patience.asked_again && message.is_empty_answer() => {
                    patience.asked_again = true;
                    shared.notice(Notice::EmptyAnswer {});
                }
                Ok(message) => {
                    self.succeeded(shared, profile).await;
                    return Ok(message);
                }
                Err(CallFailure::Aborted { partial }) => {
                    keep_partial(shared, partial)?;
                    return Err(NoMessage::Stop(RunError::Aborted));
                }
                Err(CallFailure::Failed { error, partial: None })
                    if !patience.has_renewed
                        && error.status == Some(401)
                        && self.keys.refuse_login(self.rotation.profile(profile)) =>
                {
                    patience.has_renewed = true;
                    shared.notice(Notice::LoginRenewed { error: error.message });
                }
                Err(CallFailure::Failed { error, partial: None })
                    if matches!(question, Question::Next)
                        && error.rejects_thinking()
                        && self.leave_signatures_out(shared)? =>
                {
                    let model = self.model.reference();
                    shared.notice(Notice::ThinkingRejected { model, error: error.message });
                }
                Err(CallFailure::Failed { error, partial }) => {
                    self.after_failure(shared, profile, *error, partial, patience).await?;
                }
            }
        }
    }

    /// Leaves out the signatures of all thoughts so far, in later runs too. Returns `false` if they were left out
    /// already.
    fn leave_signatures_out(&self, shared: &mut Shared) -> Result<bool, RunError> {
        let model = self.model.reference();
        let newest = unsigned::newest_answer(shared.log.messages());
        if shared.log.unsigned_until(&model).is_some_and(|until| until >= newest) {
            return Ok(false);
        }
        let now_ms = shared.now_ms();
        shared.log.note_unsigned(model, newest, now_ms)?;
        Ok(true)
    }

    /// Prepares the next attempt, if one can help.
    async fn after_failure(
        &mut self,
        shared: &mut Shared,
        profile: usize,
        error: ModelError,
        partial: Option<Box<AssistantMessage>>,
        patience: &mut Patience,
    ) -> Result<(), NoMessage> {
        self.failed(shared, profile, &error).await;
        if partial.is_some() {
            keep_partial(shared, partial)?;
            self.candidates.give_up_on(self.model, &error);
            return Err(NoMessage::Stop(self.candidates.exhausted(error)));
        }
        if self.rules.refusals.makes_shorter(&error) {
            return Err(NoMessage::Overflow(error));
        }
        patience.failures.push((self.rotation.profile(profile).id.clone(), error.message.clone()));
        // Every key is tried, even beyond the retries, unless only one request is allowed.
        let max_retries = self.rules.max_retries;
        let has_fresh_key = || self.rotation.has_fresh_other_than(profile, shared.now_ms());
        let has_turns_left = patience.retries < max_retries || (max_retries > 0 && has_fresh_key());
        if !has_turns_left || !self.may_retry(profile, &error, patience.retries) {
            return Err(NoMessage::GiveUp(patience.explain(error)));
        }
        patience.retries += 1;
        self.rotation.failed(profile, &error, shared.now_ms());
        self.announce_retry(shared, patience.retries, &error);
        patience.last_error = Some(error);
        Ok(())
    }

    /// The key of a profile, or the reason why it cannot be obtained.
    async fn key_of(
        &self,
        shared: &Shared,
        profile: usize,
    ) -> Result<Result<Option<SecretString>, ModelError>, RunError> {
        let profile = self.rotation.profile(profile);
        let cancel = shared.run.cancel.token();
        match self.keys.resolve(profile, shared.now_ms(), cancel).await {
            Ok(key) => {
                // It may come from a command, so only now it is known.
                let keys = key.iter().map(|key| key.expose_secret());
                shared.run.known_secrets.learn(keys);
                Ok(Ok(key))
            }
            Err(_) if cancel.is_cancelled() => Err(RunError::Aborted),
            Err(error) => {
                let message = format!(
                    "{}: the key of the auth profile {} cannot be fetched: {error}",
                    self.model.model.provider, profile.id
                );
                Ok(Err(ModelError::new(ErrorClass::Auth, message)))
            }
        }
    }

    /// Whether another attempt can help: later with the same key, or at once with another.
    fn may_retry(&self, profile: usize, error: &ModelError, retries: u32) -> bool {
        match error.repeat {
            Repeat::MayHelp => {}
            Repeat::Once if retries == 0 => {}
            Repeat::Once | Repeat::Pointless => return false,
        }
        match error.class {
            ErrorClass::RateLimit | ErrorClass::Timeout => true,
            ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Quota => {
                self.rotation.has_other_than(profile)
            }
            ErrorClass::ContextOverflow | ErrorClass::Unknown => false,
        }
    }

    async fn succeeded(&mut self, shared: &Shared, profile: usize) {
        let had_failures = self.rotation.succeeded(profile);
        let (call, count) = (self.use_of(shared, profile), self.rotation.count());
        if let Some(complaint) = self.ledger.succeeded(call, had_failures, count).await {
            shared.notice(complaint);
        }
    }

    /// Records the failure of a key, for the other models of this run and for later runs.
    async fn failed(&mut self, shared: &Shared, profile: usize, error: &ModelError) {
        let Some(reason) = failure_reason(error.class) else { return };
        let call = self.use_of(shared, profile);
        if concerns_every_model(error.class) {
            let provider = &self.model.model.provider;
            self.candidates.exhaust(provider, &self.rotation.profile(profile).id);
            self.keys.forget(self.rotation.profile(profile));
        }
        if let Some(complaint) = self.ledger.failed(call, reason, error.retry_after).await {
            shared.notice(complaint);
        }
    }

    fn use_of(&self, shared: &Shared, profile: usize) -> Use {
        let model = &self.model.model;
        Use {
            profile: self.rotation.profile(profile).store_name(&model.provider),
            model: model.id.clone(),
            at_ms: shared.now_ms(),
        }
    }

    fn announce_retry(&self, shared: &Shared, attempt: u32, error: &ModelError) {
        let (profile_id, delay) = self.rotation.upcoming(shared.now_ms());
        if delay > self.longest_wait() {
            // No key is available: the error will say until when the key is in cooldown.
            return;
        }
        shared.emit(AgentRunEvent::Retry {
            attempt,
            reason: error.name(),
            cause: error.cause(),
            profile_id,
            delay_ms: delay.as_millis() as u64,
            message: error.message.clone(),
        });
    }
}

impl Writers for Caller<'_> {
    fn active(&self) -> &ActiveModel {
        self.model
    }

    fn fallback(&self, place: usize) -> Option<&ActiveModel> {
        self.candidates.waiting().nth(place).map(|candidate| candidate.choice)
    }

    fn ask<'f>(
        &'f mut self,
        shared: &'f mut Shared,
        request: SummaryRequest<'f>,
    ) -> BoxFuture<'f, Result<Result<AssistantMessage, ModelError>, RunError>> {
        Box::pin(async move {
            // Swap back: the fallback keeps its place in the order for the answer itself.
            self.exchange_model(request.fallback);
            let question = Question::Summary(&request);
            let asked = Caller::ask(self, shared, &question, &mut Patience::default()).await;
            self.exchange_model(request.fallback);
            match asked {
                Ok(message) => Ok(Ok(message)),
                Err(NoMessage::Stop(error)) => Err(error),
                Err(NoMessage::Overflow(error) | NoMessage::GiveUp(error)) => Ok(Err(error)),
            }
        })
    }
}

/// Stores the part of a message that arrived before it was broken off.
fn keep_partial(
    shared: &mut Shared,
    partial: Option<Box<AssistantMessage>>,
) -> Result<(), RunError> {
    let Some(partial) = partial else { return Ok(()) };
    if partial.content.is_empty() {
        return Ok(());
    }
    Ok(shared.log.append(Message::Assistant(*partial))?)
}
