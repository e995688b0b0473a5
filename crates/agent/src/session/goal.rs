//! A goal of an open session: turns in the background until its condition holds, within bounds.

use std::sync::Arc;

use myclaw_config::QueueMode;
use myclaw_engine::{Notice, RunEvent, RunResult};
use myclaw_llm::ContentBlock;
use myclaw_session::QueuedKind;
use tokio_util::sync::CancellationToken;

use super::{Session, SessionEvent};
use crate::blocking::blocking;
use crate::{AgentError, Goal, GoalOrder, GoalStep, Pursuit};

/// What one can do about a paused goal.
const ADVICE: &str = "/goal resume goes on, /goal stop drops it";

/// A goal that this process works on.
pub(super) struct Pursued {
    pursuit: Pursuit,
    /// What its turns have cost, in US dollars.
    spent: f64,
}

impl Session {
    /// Shows the goal, drops it, or begins to work on one, and says so. What comes of the work is said by notices.
    ///
    /// # Errors
    /// The session is busy, the goal cannot be used, or no model can be.
    pub async fn goal(self: &Arc<Self>, order: GoalOrder) -> Result<String, AgentError> {
        if order.is_work() {
            return self.pursue(order).await;
        }
        let Some(goal) = self.known_goal().await? else {
            return Ok("there is no goal; /goal CONDITION, or /goal !COMMAND, sets one".to_owned());
        };
        if order == GoalOrder::Stop {
            self.state.lock().pursued = None;
            let config = self.config();
            blocking(move || Goal::keep(None, &config)).await??;
            return Ok(format!("dropped: {}", goal.condition));
        }
        let how = if self.state.lock().pursued.is_some() { "at work" } else { "paused" };
        let advice = if how == "paused" { ADVICE } else { "/goal stop drops it" };
        Ok(format!("{} ({how}, {} turns left); {advice}", goal.condition, goal.turns_left))
    }

    /// The goal, whether or not it is worked on.
    ///
    /// # Errors
    /// The list of sessions cannot be read.
    pub async fn known_goal(&self) -> Result<Option<Goal>, AgentError> {
        // A session that does not exist yet is not in the list.
        if let Some(pursued) = &self.state.lock().pursued {
            return Ok(Some(pursued.pursuit.goal().clone()));
        }
        let config = self.config();
        blocking(move || Goal::of(&config)).await?
    }

    async fn pursue(self: &Arc<Self>, order: GoalOrder) -> Result<String, AgentError> {
        if self.work().is_some() {
            return Err(self.busy());
        }
        let (config, asked) = (self.config(), order);
        let begun = blocking(move || {
            let mut pursuit = Pursuit::ordered(&asked, &config, 0.0)?;
            if let Some(pursuit) = &mut pursuit {
                pursuit.turn_begins(&config)?;
            }
            Ok::<_, AgentError>(pursuit)
        });
        let Some(pursuit) = begun.await?? else {
            return Err(AgentError::usage(
                "there is no goal to go on with; /goal CONDITION, or /goal !COMMAND, sets one",
            ));
        };
        let message = pursuit.goal().first_message();
        let said = format!("works until this holds: {}", pursuit.goal().condition);
        self.state.lock().pursued = Some(Pursued { pursuit, spent: 0.0 });
        let content = vec![ContentBlock::text(message)];
        if let Err(error) = self.send(content, Some(QueueMode::Followup)).await {
            self.state.lock().pursued = None;
            return Err(error);
        }
        Ok(said)
    }

    /// After a turn, if it was made for a goal: checks that, and has the next turn begin if it is not reached.
    pub(super) async fn after_turn(
        &self,
        result: &Result<RunResult, AgentError>,
        cancel: &CancellationToken,
    ) {
        let Some((pursuit, spent)) = self.pursued_after(result) else { return };
        let step = match result {
            Ok(result) => self.step(&pursuit, &result.reply, spent, cancel).await,
            Err(error) => Err(error.clone()),
        };
        let step = match step {
            Ok(GoalStep::GoesOn(message)) => self.begin_next(&pursuit, message).await,
            step => step,
        };
        let (condition, left) = (&pursuit.goal().condition, pursuit.goal().turns_left);
        let said = match &step {
            Ok(GoalStep::Reached) => format!("the goal is reached: {condition}"),
            Ok(GoalStep::GoesOn(_)) => format!("the goal is not reached yet, {left} turns left"),
            Ok(GoalStep::Paused(why)) => format!("the goal is paused: {why}; {ADVICE}"),
            Err(error) => format!("the goal is paused: {}; {ADVICE}", error.message),
        };
        let is_dropped = match step {
            Ok(GoalStep::GoesOn(_)) => self.state.lock().pursued.is_none(),
            _ => self.state.lock().pursued.take().is_none(),
        };
        if !is_dropped {
            let notice = RunEvent::notice(self.key().clone(), Notice::Goal { text: said });
            self.emit(SessionEvent::Run(&notice));
        }
    }

    /// The goal that is worked on, and what its turns have cost with this one.
    fn pursued_after(&self, result: &Result<RunResult, AgentError>) -> Option<(Pursuit, f64)> {
        let mut state = self.state.lock();
        let pursued = state.pursued.as_mut()?;
        pursued.spent += result.as_ref().map_or(0.0, |result| result.usage.cost.total);
        Some((pursued.pursuit.clone(), pursued.spent))
    }

    async fn step(
        &self,
        pursuit: &Pursuit,
        answer: &str,
        spent: f64,
        cancel: &CancellationToken,
    ) -> Result<GoalStep, AgentError> {
        let config = self.config();
        let missing = pursuit.goal().missing_after(answer, &config, cancel).await?;
        let own = pursuit.clone();
        blocking(move || own.after_turn(missing, spent, &config)).await?
    }

    /// Puts the message of the next turn into the inbox, unless the goal was dropped.
    async fn begin_next(&self, pursuit: &Pursuit, message: String) -> Result<GoalStep, AgentError> {
        let (mut next, config) = (pursuit.clone(), self.config());
        let is_dropped = || self.state.lock().pursued.is_none();
        let counted = blocking(move || {
            next.turn_begins(&config)?;
            Ok::<_, AgentError>(next)
        });
        let next = counted.await??;
        if is_dropped() {
            let config = self.config();
            blocking(move || Goal::keep(None, &config)).await??;
            return Ok(GoalStep::GoesOn(message));
        }
        self.enqueue(QueuedKind::FollowUp, vec![ContentBlock::text(message.clone())]).await?;
        let mut state = self.state.lock();
        state.is_due = true;
        if let Some(pursued) = &mut state.pursued {
            pursued.pursuit = next;
        }
        Ok(GoalStep::GoesOn(message))
    }
}
