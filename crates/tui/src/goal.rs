//! `/goal`: turns until a condition holds, within bounds.

use myclaw_agent::goal::{Goal, GoalOrder, GoalStep, Judge, Pursuit, turns_left};
use myclaw_session::Role;

use super::Chat;
use myclaw_front::exit::CliError;
use myclaw_front::terminal::escaped;

/// Messages at the end of the session among which the answer is looked for.
const MOST_ROWS: usize = 10;

impl Chat {
    /// Shows or drops the goal.
    pub(super) fn goal(&mut self, order: &GoalOrder) -> Result<(), CliError> {
        let config = self.session.config();
        let goal = Goal::of(&config)?;
        if *order == GoalOrder::Stop {
            Goal::keep(None, &config)?;
            self.common.show_goal(None);
        }
        match (goal, order) {
            (None, _) => self.say("there is no goal; /goal CONDITION, or /goal !COMMAND, sets one"),
            (Some(goal), GoalOrder::Stop) => self.say(&format!("dropped: {}", goal.condition)),
            (Some(goal), _) => self.say(&format!(
                "{} (paused, {}); /goal resume goes on, /goal stop drops it",
                goal.condition,
                turns_left(goal.turns_left)
            )),
        }
    }

    /// Works on a goal until it is reached, a bound is, or the user stops it.
    pub(super) async fn pursue(&mut self, order: &GoalOrder) -> Result<(), CliError> {
        let config = self.session.config();
        let mut pursuit = match Pursuit::ordered(order, &config) {
            Ok(Some(pursuit)) => pursuit,
            Ok(None) => return self.goal(&GoalOrder::Show),
            Err(error) => return self.say(&error.message),
        };
        let mut message = pursuit.goal().first_message();
        loop {
            let left = turns_left(pursuit.goal().turns_left);
            self.common.show_goal(Some(format!("goal, {left}")));
            pursuit.turn_begins(&config)?;
            let turned = self.turns(Some(message)).await;
            let is_over = self.leftover.wants_to_leave || self.interrupts.is_ending();
            if turned.is_err() || is_over {
                pursuit.pause(&config)?;
                self.common.show_goal(Some("goal paused".to_owned()));
                return turned;
            }
            let missing = match self.check(pursuit.goal()).await {
                Ok(Some(missing)) => missing,
                stopped => {
                    pursuit.pause(&config)?;
                    return stopped.and_then(|_| self.pause_goal("the check was stopped"));
                }
            };
            match pursuit.after_turn(missing, &config)? {
                GoalStep::Reached => {
                    self.common.show_goal(None);
                    return self.say(&format!("the goal is reached: {}", pursuit.goal().condition));
                }
                GoalStep::GoesOn(next) => message = next,
                GoalStep::Paused(why) => return self.pause_goal(&why),
            }
        }
    }

    fn pause_goal(&self, why: &str) -> Result<(), CliError> {
        self.common.show_goal(Some("goal paused".to_owned()));
        self.say(&format!("the goal is paused: {why}; /goal resume goes on, /goal stop drops it"))
    }

    /// What [`Goal::missing_after`] says, where a command runs as one of the user; `None` if the user has stopped it.
    async fn check(&self, goal: &Goal) -> Result<Option<Option<String>>, CliError> {
        if goal.judge == Judge::Model {
            return Ok(Some((!Goal::is_reached_by(&self.last_answer()?)).then(|| goal.go_on())));
        }
        self.say(&format!("checking: {}", escaped(&goal.condition)))?;
        let cancel = self.closed.child_token();
        let _armed = self.interrupts.arm(cancel.clone());
        match self.captured(&goal.condition, &cancel).await {
            _ if cancel.is_cancelled() => Ok(None),
            Ok((ending, _)) if ending == "exit 0" => Ok(Some(None)),
            Ok((ending, output)) => Ok(Some(Some(goal.failed(&ending, &output)))),
            Err(error) => Err(CliError::failure(format!("the check could not be run: {error}"))),
        }
    }

    fn last_answer(&self) -> Result<String, CliError> {
        let Some(reader) = self.sessions.catalog.read(self.session.key())? else {
            return Ok(String::new());
        };
        let rows = reader.last_messages(MOST_ROWS)?;
        let answer = rows.into_iter().rfind(|row| row.role == Role::Assistant);
        Ok(answer.map(|row| row.content).unwrap_or_default())
    }
}
