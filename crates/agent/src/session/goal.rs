//! A goal of an open session: turns in the background until its condition holds, within bounds.

use std::sync::Arc;

use myclaw_config::QueueMode;
use myclaw_engine::{Notice, RunEvent, RunResult};
use myclaw_llm::ContentBlock;
use myclaw_session::QueuedKind;
use tokio_util::sync::CancellationToken;

use super::{Session, SessionEvent};
use crate::blocking::blocking;
use crate::goal::{RESTARTED, dollars, turns_left};
use crate::{
    AgentError,
    goal::{Goal, GoalOrder, GoalStep, Pursuit},
};

/// What one can do about a paused goal.
const ADVICE: &str = "/goal resume goes on, /goal stop drops it";

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
        let spent = match goal.cost > 0.0 {
            true => format!(", {} spent", dollars(goal.cost)),
            false => String::new(),
        };
        let left = turns_left(goal.turns_left);
        Ok(format!("{} ({how}, {left}{spent}); {advice}", goal.condition))
    }

    /// The goal, whether or not it is worked on.
    ///
    /// # Errors
    /// The list of sessions cannot be read.
    pub async fn known_goal(&self) -> Result<Option<Goal>, AgentError> {
        // A session that does not exist yet is not in the list.
        if let Some(pursued) = &self.state.lock().pursued {
            return Ok(Some(pursued.goal().clone()));
        }
        let config = self.config();
        blocking(move || Goal::of(&config)).await?
    }

    /// Whether this process works on a goal.
    pub fn has_goal_at_work(&self) -> bool {
        self.state.lock().pursued.is_some()
    }

    /// Continues a goal at which a process worked that was killed, with what is left of its bounds, and says so. `begun` is
    /// the goal of a session that was killed before it began. False if there is none.
    ///
    /// # Errors
    /// As for [`Session::goal`].
    pub async fn go_on_with_goal(
        self: &Arc<Self>,
        begun: Option<String>,
    ) -> Result<bool, AgentError> {
        let config = self.config();
        let left = blocking(move || {
            let mut left = match begun {
                Some(text) if !config.home.catalog().exists(&config.session_key) => {
                    Some(Pursuit::begin(Goal::new(&text)?, &config))
                }
                _ => Pursuit::left(&config)?,
            };
            if let Some(pursuit) = left.as_mut().filter(|pursuit| pursuit.bound().is_some()) {
                pursuit.pause(&config)?;
            }
            Ok::<_, AgentError>(left)
        });
        let Some(pursuit) = left.await?? else { return Ok(false) };
        let goal = pursuit.goal().clone();
        if let Some(why) = pursuit.bound() {
            self.say_of_goal(format!("the goal is paused: {why}; {ADVICE}"));
            return Ok(false);
        }
        let message = format!("{RESTARTED}\n\n{}", goal.first_message());
        self.work_on(pursuit, message).await?;
        let (condition, left) = (goal.condition, turns_left(goal.turns_left.saturating_sub(1)));
        self.say_of_goal(format!("restarted, and goes on until this holds: {condition}; {left}"));
        Ok(true)
    }

    async fn pursue(self: &Arc<Self>, order: GoalOrder) -> Result<String, AgentError> {
        if self.work().is_some() {
            return Err(self.busy());
        }
        let config = self.config();
        let Some(pursuit) = blocking(move || Pursuit::ordered(&order, &config)).await?? else {
            return Err(AgentError::usage(
                "there is no goal to go on with; /goal CONDITION, or /goal !COMMAND, sets one",
            ));
        };
        let message = pursuit.goal().first_message();
        let said = format!("works until this holds: {}", pursuit.goal().condition);
        self.work_on(pursuit, message).await?;
        Ok(said)
    }

    /// Begins the first turn of the work on a goal.
    async fn work_on(
        self: &Arc<Self>,
        pursuit: Pursuit,
        message: String,
    ) -> Result<(), AgentError> {
        // Without a model there is no goal at work.
        self.prepared().await?;
        let pursuit = self.counted(pursuit).await?;
        self.state.lock().pursued = Some(pursuit.clone());
        let content = vec![ContentBlock::text(message)];
        if let Err(error) = self.send(content, Some(QueueMode::Followup)).await {
            self.state.lock().pursued = None;
            self.pause_goal(pursuit).await;
            return Err(error);
        }
        Ok(())
    }

    /// The work with another turn, which begins.
    async fn counted(&self, mut pursuit: Pursuit) -> Result<Pursuit, AgentError> {
        let config = self.config();
        blocking(move || pursuit.turn_begins(&config).map(|()| pursuit)).await?
    }

    async fn pause_goal(&self, mut pursuit: Pursuit) {
        let config = self.config();
        let paused = blocking(move || pursuit.pause(&config)).await.flatten();
        if let Err(error) = paused {
            tracing::warn!(session = self.key().as_str(), "the goal is not kept: {error}");
        }
    }

    fn say_of_goal(&self, text: String) {
        let notice = RunEvent::notice(self.key().clone(), Notice::Goal { text });
        self.emit(SessionEvent::Run(&notice));
    }

    /// After a turn, if it was made for a goal: checks that, and has the next turn begin if it is not reached.
    pub(super) async fn after_turn(
        &self,
        result: &Result<RunResult, AgentError>,
        cancel: &CancellationToken,
    ) {
        let Some(mut pursuit) = self.state.lock().pursued.clone() else { return };
        let step = match result {
            Ok(result) => self.step(&mut pursuit, &result.reply, cancel).await,
            Err(error) => Err(error.clone()),
        };
        let step = match step {
            Ok(GoalStep::GoesOn(message)) => self.begin_next(&mut pursuit, message).await,
            step => step,
        };
        let (condition, left) = (&pursuit.goal().condition, pursuit.goal().turns_left);
        let said = match &step {
            Ok(GoalStep::Reached) => format!("the goal is reached: {condition}"),
            // The turn that begins is counted.
            Ok(GoalStep::GoesOn(_)) => {
                format!("the goal is not reached yet, {}", turns_left(left + 1))
            }
            Ok(GoalStep::Paused(why)) => format!("the goal is paused: {why}; {ADVICE}"),
            Err(error) => format!("the goal is paused: {}; {ADVICE}", error.message),
        };
        let is_dropped = match step {
            Ok(GoalStep::GoesOn(_)) => self.state.lock().pursued.is_none(),
            _ => self.state.lock().pursued.take().is_none(),
        };
        if is_dropped {
            return;
        }
        if step.is_err() {
            self.pause_goal(pursuit).await;
        }
        self.say_of_goal(said);
    }

    async fn step(
        &self,
        pursuit: &mut Pursuit,
        answer: &str,
        cancel: &CancellationToken,
    ) -> Result<GoalStep, AgentError> {
        let config = self.config();
        let missing = pursuit.goal().missing_after(answer, &config, cancel).await?;
        let mut own = pursuit.clone();
        let judged =
            blocking(move || own.after_turn(missing, &config).map(|step| (step, own))).await??;
        *pursuit = judged.1;
        Ok(judged.0)
    }

    /// Puts the message of the next turn into the inbox, unless the goal was dropped.
    async fn begin_next(
        &self,
        pursuit: &mut Pursuit,
        message: String,
    ) -> Result<GoalStep, AgentError> {
        let is_dropped = || self.state.lock().pursued.is_none();
        *pursuit = self.counted(pursuit.clone()).await?;
        if is_dropped() {
            let config = self.config();
            blocking(move || Goal::keep(None, &config)).await??;
            return Ok(GoalStep::GoesOn(message));
        }
        self.enqueue(QueuedKind::FollowUp, vec![ContentBlock::text(message.clone())]).await?;
        let mut state = self.state.lock();
        state.is_due = true;
        if let Some(pursued) = &mut state.pursued {
            pursued.clone_from(pursuit);
        }
        Ok(GoalStep::GoesOn(message))
    }
}
