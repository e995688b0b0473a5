//! One turn: from a user message to the model's reply, one file per step.
//!
//! The loop holds no plan. It derives the next step from the end of the log ([`crate::open_log::NextStep`]), runs
//! it, and repeats; every step appends its outcome before the next begins. User messages that arrive meanwhile wait in
//! the session's inbox until a step takes them in.
//!
//! Each step is a struct with its own state; [`Shared`] holds what they have in common. Only this loop knows all steps.

mod act;
mod approval_gate;
mod bounds;
mod call;
mod closing;
mod finish;
mod fit;
mod intake;
mod interrupt;
mod repair;
mod repetition;
mod result_text;
mod shared;
mod time_limit;
mod unread_call;

pub(crate) use act::{Act, Toolbox};
pub(crate) use bounds::Bounds;
pub use bounds::utc_day;
pub(crate) use call::{CallRules, Caller};
pub(crate) use finish::announce_end;
pub use fit::{CompactionOutcome, CompactionReport};
pub(crate) use fit::{Fit, input_budget};
pub(crate) use intake::{Intake, QueueRules};
pub(crate) use interrupt::{Interrupts, Watch, interrupts};
pub(crate) use shared::{Cancellation, Prompt, RunContext, Schemas, Shared, Tally};
pub(crate) use time_limit::Pauses;

use std::pin::pin;

use myclaw_llm::{AssistantMessage, Message};

use crate::open_log::NextStep;
use crate::{Bound, ModelSwitch, RunError, RunResult};
use call::Answer;
use finish::Ending;
use intake::Point;
use shared::Stop;
use time_limit::within;

/// The steps of a turn.
pub(crate) struct Turn<'a> {
    pub(crate) shared: Shared,
    pub(crate) intake: Intake,
    pub(crate) bounds: Bounds,
    pub(crate) fit: Fit,
    pub(crate) call: Caller<'a>,
    pub(crate) act: Act,
    pub(crate) switch: ModelSwitch,
}

impl Turn<'_> {
    /// Runs the turn until it ends or is interrupted. Afterwards its messages are on disk, even if it failed.
    pub(crate) async fn run(mut self) -> Result<RunResult, RunError> {
        let watch = self.intake.interrupts.watch(&self.shared.run.cancel);
        let outcome = interrupt::unless_ended(pin!(self.run_steps()), watch).await;
        if outcome.is_err() {
            interrupt::report(&self.shared);
            self.save_failed_run().await;
        }
        outcome
    }

    async fn run_steps(&mut self) -> Result<RunResult, RunError> {
        let asked = repair::close_interrupted_calls(&mut self.shared, &self.act).await?;
        self.fit.account_for_older_messages(&mut self.shared)?;
        if let Some(calls) = asked {
            // Their results must precede the user's message. Each tool has a time limit of its own.
            let running = self.act.run_tools(&mut self.shared, &self.intake, calls);
            Box::pin(running).await?;
        }
        if self.intake.take_user_message(&mut self.shared).await? {
            self.begin_message();
        }
        let ending = loop {
            let (limit, cancel) =
                (self.bounds.time_limit(), self.shared.run.cancel.token().clone());
            let stepped = within(limit, &cancel, pin!(self.step())).await;
            match stepped {
                Ok(None) => {}
                Ok(Some(ending)) => break ending,
                Err(RunError::Aborted)
                    if self.shared.run.cancel.stop() == Some(Stop::TimeLimit) =>
                {
                    break Ending::Bound(Bound::RunSeconds);
                }
                Err(error) => return Err(error),
            }
        };
        match ending {
            Ending::Reply | Ending::Switch => {}
            Ending::NotBegun(bound) => {
                closing::announce(&self.shared, bound, &self.bounds.config_key(bound))
            }
            Ending::Bound(bound) => {
                closing::announce(&self.shared, bound, &self.bounds.config_key(bound));
                Box::pin(self.summarise_closing(bound)).await?;
            }
        }
        self.make_durable().await?;
        Ok(finish::result(&self.shared, self.call.model(), ending))
    }

    /// Summarises the older part of the session, and nothing else.
    pub(crate) async fn compact_manually(
        mut self,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        repair::close_all_calls(&mut self.shared, &self.act).await?;
        self.fit.account_for_older_messages(&mut self.shared)?;
        let watch = self.intake.interrupts.watch(&self.shared.run.cancel);
        let compacting = self.fit.compact_manually(&mut self.shared, &mut self.call, focus);
        let report = interrupt::unless_ended(pin!(compacting), watch).await;
        if report.is_err() {
            interrupt::report(&self.shared);
        }
        // A session without messages used nothing, and is not added to the index.
        if !self.shared.log.messages().is_empty() {
            self.make_durable().await?;
        }
        report
    }

    async fn make_durable(&mut self) -> Result<(), RunError> {
        finish::make_durable(&mut self.shared, self.call.model(), &mut self.bounds).await
    }

    /// Runs the step that the end of the log requires, or returns how the turn ends.
    async fn step(&mut self) -> Result<Option<Ending>, RunError> {
        match self.shared.log.next_step() {
            NextStep::Finish => {
                let took = self.take_waiting(Point::TurnEnd).await?;
                return Ok((!took).then_some(Ending::Reply));
            }
            // The taken messages start a new time limit, so they begin a new step.
            NextStep::CallModel
                if !self.intake.has_taken() && self.take_waiting(Point::BeforeCall).await? => {}
            NextStep::CallModel if self.switch.is_due() => return Ok(Some(Ending::Switch)),
            NextStep::CallModel => {
                let reached = self.bounds.reached(&self.shared, &self.call.model().model).await?;
                let repeats = || self.act.repeats_itself().then_some(Bound::RepeatedCalls);
                if let Some(bound) = reached.or_else(repeats) {
                    return Ok(Some(Ending::at(bound, self.shared.tally.iterations)));
                }
                Box::pin(self.fit.before_call(&mut self.shared, &mut self.call)).await?;
                let mut message = self.next_message().await?;
                self.intake.answered();
                self.shared.tally.count(&message.usage);
                self.act.clean_names(&mut message);
                let written = self.act.tool_called_in_text(&message);
                // Before it is in the log, where others look for the answer.
                if written.as_ref().is_some_and(|written| !written.is_first) {
                    unread_call::mark_as_failed(&mut message);
                }
                self.shared.log.append(Message::Assistant(message))?;
                if let Some(written) = written {
                    unread_call::correct(&mut self.shared, self.call.model(), written)?;
                }
            }
            NextStep::RunTools(pending) => {
                // Boxed: the state of a step is held by each turn that streams.
                Box::pin(self.act.run_tools(&mut self.shared, &self.intake, pending)).await?;
            }
        }
        Ok(None)
    }

    /// Gets the model's next message, if necessary with smaller requests and other models.
    async fn next_message(&mut self) -> Result<AssistantMessage, RunError> {
        loop {
            match self.call.next_message(&mut self.shared).await? {
                Answer::Message(message) => {
                    self.fit.answered();
                    return Ok(*message);
                }
                Answer::Overflow(error) => {
                    Box::pin(self.fit.recover(&mut self.shared, &mut self.call, &error)).await?;
                }
                Answer::OtherModel => {
                    self.fit.answered();
                    // The window of the new model may be smaller.
                    Box::pin(self.fit.before_call(&mut self.shared, &mut self.call)).await?;
                }
            }
        }
    }

    async fn take_waiting(&mut self, point: Point) -> Result<bool, RunError> {
        let took = self.intake.take_waiting(&mut self.shared, point).await?;
        if took {
            self.begin_message();
        }
        Ok(took)
    }

    /// Restarts limits and repetition counts, because the user sent a message.
    fn begin_message(&mut self) {
        self.bounds.begin_message(&self.shared);
        self.act.begin_message();
    }

    /// Makes a failed turn durable too.
    async fn save_failed_run(&mut self) {
        if let Err(error) = self.make_durable().await {
            self.shared.notice(crate::Notice::NotDurable { error: error.to_string() });
        }
    }
}
