//! One turn: from a user message to the model's reply, one file per step.
//!
//! The loop holds no plan. It asks the end of the log what comes next ([`crate::conversation::NextStep`]), does that,
//! and asks again; every step appends its outcome before the next begins. What the user says meanwhile waits in the
//! session's inbox until a step takes it in.

mod act;
mod bounds;
mod call;
mod closing;
mod context;
mod finish;
mod fit;
mod intake;
mod interrupt;
mod repair;
mod repetition;
mod result_text;

pub(crate) use bounds::Allowance;
pub(crate) use finish::announce_end;
pub use fit::{CompactionOutcome, CompactionReport};
pub(crate) use fit::{Outlook, Recovery, input_budget};
pub(crate) use intake::Delivery;
pub(crate) use interrupt::interrupts;
pub(crate) use repetition::Repetition;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::KeyResolver;
use myclaw_llm::{Provider, ThinkingLevel, ToolSchema, Usage};
use myclaw_session::{EntryId, Inbox, SessionStore};
use tokio_util::sync::CancellationToken;

use crate::conversation::{Conversation, NextStep, Opening};
use crate::event::Events;
use crate::failover::{Candidate, Candidates, Ledger, ProfileRotation};
use crate::{
    ActiveModel, AgentRunEvent, AgentStart, Bound, Engine, Hook, Notice, RunError, RunParams,
    RunResult, ToolContext,
};

/// What the steps of a turn share.
pub(crate) struct Turn<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) events: Events,
    /// What the caller gave. The cancellation token is the run's own: it fires with `abort`, and when the time of the run
    /// is over.
    pub(crate) params: RunParams,
    /// The caller's cancellation token.
    pub(crate) caller: CancellationToken,
    /// Fires with the caller's, and when somebody interrupts the run from outside.
    pub(crate) abort: CancellationToken,
    /// Messages that waited when the run began: they interrupt it no longer.
    pub(crate) known_interrupts: Vec<EntryId>,
    pub(crate) provider: &'a dyn Provider,
    /// The model that is asked at the moment.
    pub(crate) model: &'a ActiveModel,
    pub(crate) thinking: ThinkingLevel,
    /// Its keys.
    pub(crate) rotation: ProfileRotation,
    /// Those to ask when it cannot answer.
    pub(crate) candidates: Candidates<'a>,
    pub(crate) keys: &'a KeyResolver,
    pub(crate) ledger: Ledger,
    pub(crate) store: SessionStore,
    pub(crate) inbox: Inbox,
    pub(crate) delivery: Delivery,
    /// Whether messages were taken since the last model call: the next one is for them.
    pub(crate) has_steered: bool,
    pub(crate) conversation: Conversation,
    pub(crate) opening: Opening,
    pub(crate) start: AgentStart,
    pub(crate) tool_schemas: Vec<ToolSchema>,
    pub(crate) tool_context: ToolContext,
    pub(crate) limits: TurnLimits,
    pub(crate) tally: Tally,
    pub(crate) recovery: Recovery,
    /// What pruning saw when it last looked and found nothing.
    pub(crate) fruitless_pruning: Option<Outlook>,
    pub(crate) allowance: Allowance,
    pub(crate) repetition: Repetition,
}

/// Why a run is stopped in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The caller aborted it, or somebody interrupted it.
    User,
    /// Its time is over.
    TimeLimit,
}

/// Limits of a turn, from the agent's settings.
#[derive(Debug, Clone)]
pub(crate) struct TurnLimits {
    /// Most model calls that give a message; `None` means no cap.
    pub(crate) max_iterations: Option<u32>,
    /// Most retries of one model call.
    pub(crate) max_retries: u32,
    /// When and how older messages are summarised.
    pub(crate) compaction: myclaw_config::CompactionSettings,
    /// Whether old results are sent shorter.
    pub(crate) context_pruning: myclaw_config::ContextPruning,
    /// Time limits of one model call.
    pub(crate) call: myclaw_llm::CallLimits,
}

/// What a turn has used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) usage: Usage,
    pub(crate) last_call_usage: Usage,
    pub(crate) iterations: u32,
}

impl<'a> Turn<'a> {
    /// Asks another model from here to the end of the run.
    pub(crate) fn ask_from_now_on(&mut self, candidate: Candidate<'a>) {
        self.provider = self.engine.provider(&candidate.choice.model);
        self.model = candidate.choice;
        self.rotation = candidate.rotation;
        self.recovery = Recovery::default();
    }

    /// Lets the model at `place` of those in line stand where the one that answers stands, and the other way round.
    /// Said twice, all is as it was. `None` changes nothing.
    pub(crate) fn exchange_model(&mut self, place: Option<usize>) {
        if let Some(place) = place {
            self.candidates.exchange(place, &mut self.model, &mut self.rotation);
            self.provider = self.engine.provider(&self.model.model);
        }
    }
}

impl Turn<'_> {
    /// Runs the turn to its end, or until somebody interrupts it.
    pub(crate) async fn run(&mut self) -> Result<RunResult, RunError> {
        let watch = interrupt::watch(self);
        interrupt::unless_ended(self.run_steps(), watch)
            .await
            .inspect_err(|_| self.tell_interrupt())
    }

    async fn run_steps(&mut self) -> Result<RunResult, RunError> {
        repair::close_interrupted_calls(self)?;
        fit::account_for_older_messages(self).await?;
        intake::take_user_message(self).await?;
        let ending = loop {
            let (time_left, cancel) = (self.allowance.time_left(), self.params.cancel.clone());
            match within(time_left, &cancel, self.step()).await {
                Ok(None) => {}
                Ok(Some(ending)) => break ending,
                Err(RunError::Aborted) if self.stop() == Some(Stop::TimeLimit) => {
                    break finish::Ending::Bound(Bound::RunSeconds);
                }
                Err(error) => return Err(error),
            }
        };
        match ending {
            finish::Ending::Reply | finish::Ending::Switch => {}
            finish::Ending::NotBegun(bound) => closing::announce(self, bound),
            finish::Ending::Bound(bound) => {
                closing::announce(self, bound);
                closing::summarise(self, bound).await?;
            }
        }
        finish::finish(self, ending).await
    }

    /// Summarises the older part of the conversation, and nothing else.
    pub(crate) async fn compact_by_hand(
        &mut self,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        repair::close_interrupted_calls(self)?;
        fit::account_for_older_messages(self).await?;
        let watch = interrupt::watch(self);
        let report = interrupt::unless_ended(fit::compact_by_hand(self, focus), watch).await;
        let report = report.inspect_err(|_| self.tell_interrupt());
        bounds::record_usage(self).await?;
        // What never was said needs no place in the list.
        if !self.conversation.messages().is_empty() {
            finish::make_durable(self).await?;
        }
        report
    }

    /// Does what the end of the log asks for, or tells how the turn ends.
    async fn step(&mut self) -> Result<Option<finish::Ending>, RunError> {
        match self.conversation.next_step() {
            NextStep::Finish => {
                let took = intake::take_waiting(self, intake::Point::TurnEnd).await?;
                return Ok((!took).then_some(finish::Ending::Reply));
            }
            // What was taken has time of its own, so it is a step of its own.
            NextStep::CallModel
                if !self.has_steered
                    && intake::take_waiting(self, intake::Point::BeforeCall).await? => {}
            NextStep::CallModel if self.params.switch.is_due() => {
                return Ok(Some(finish::Ending::Switch));
            }
            NextStep::CallModel => {
                if let Some(bound) = bounds::reached(self).await? {
                    return Ok(Some(finish::Ending::at(bound, self.tally.iterations)));
                }
                fit::before_call(self).await?;
                let message = call::call_model(self).await?;
                self.has_steered = false;
                self.tally.count(&message.usage);
                self.recovery = Recovery::default();
                self.conversation.append(myclaw_llm::Message::Assistant(message))?;
            }
            NextStep::RunTools(pending) => act::run_tools(self, pending).await?,
        }
        Ok(None)
    }

    /// Why the step that goes on is to be stopped, if it is.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match (self.abort.is_cancelled(), self.params.cancel.is_cancelled()) {
            (true, _) => Some(Stop::User),
            (false, true) => Some(Stop::TimeLimit),
            (false, false) => None,
        }
    }

    pub(crate) fn emit(&self, event: AgentRunEvent) {
        self.events.emit(event);
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.events.notice(notice);
    }

    pub(crate) fn hooks(&self) -> &[Arc<dyn Hook>] {
        &self.params.hooks
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.params.clock.now_ms()
    }
}

impl Tally {
    /// Counts a call that gave the turn's next message.
    fn count(&mut self, call: &Usage) {
        self.iterations += 1;
        self.last_call_usage = *call;
        self.usage.add_call(call);
    }

    /// Counts the call for a closing summary, which is no iteration.
    fn count_closing(&mut self, call: &Usage) {
        self.last_call_usage = *call;
        self.usage.add_call(call);
    }
}

/// Runs `work`, and fires `cancel` if it takes longer than `time`: whatever goes on then ends in good order.
async fn within<T>(
    time: Option<Duration>,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    if let Some(time) = time {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(time) => cancel.cancel(),
        }
    }
    work.await
}
