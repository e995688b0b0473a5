//! `/goal`: turns until a condition holds, within bounds.

use myclaw_agent::{Goal, GoalWork, Judge};
use myclaw_session::Role;

use super::Chat;
use myclaw_front::exit::CliError;
use myclaw_front::terminal::escaped;

/// Messages at the end of the session among which the answer is looked for.
const MOST_ROWS: usize = 10;

/// What the user wants of the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoalOrder {
    /// To see it.
    Show,
    /// To drop it.
    Stop,
    /// To continue with it.
    Resume,
    /// This one from now on.
    Begin(String),
}

impl GoalOrder {
    pub(super) fn parse(argument: Option<&str>) -> Self {
        match argument {
            None => Self::Show,
            Some("stop" | "clear" | "off") => Self::Stop,
            Some("resume" | "continue") => Self::Resume,
            Some(text) => Self::Begin(text.to_owned()),
        }
    }

    /// Whether it begins turns.
    pub(super) fn is_work(&self) -> bool {
        matches!(self, Self::Resume | Self::Begin(_))
    }
}

/// Whether the condition holds.
enum Checked {
    Reached,
    /// The message that says so to the model.
    NotYet(String),
    /// The user has aborted the check.
    Aborted,
}

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
                "{} (paused, {} turns left); /goal resume goes on, /goal stop drops it",
                goal.condition, goal.turns_left
            )),
        }
    }

    /// Works on a goal until it is reached, a bound is, or the user stops it.
    pub(super) async fn pursue(&mut self, order: GoalOrder) -> Result<(), CliError> {
        let config = self.session.config();
        let (mut goal, mut message) = match order {
            GoalOrder::Begin(text) => {
                let goal = Goal::new(&text);
                let message = goal.first_message();
                (goal, message)
            }
            _ => match Goal::of(&config)? {
                None => return self.goal(&GoalOrder::Show),
                Some(kept) => {
                    let goal = kept.taken_up();
                    let message = goal.first_message();
                    (goal, message)
                }
            },
        };
        let work = GoalWork::begin(self.common.usage().cost.total);
        loop {
            self.common.show_goal(Some(format!("goal, {} turns left", goal.turns_left)));
            goal.turns_left = goal.turns_left.saturating_sub(1);
            Goal::keep(Some(&goal), &config)?;
            let turned = self.turns(Some(message)).await;
            // A session that has just begun is in the list now.
            Goal::keep(Some(&goal), &config)?;
            let is_over = self.leftover.wants_to_leave || self.interrupts.is_ending();
            if turned.is_err() || is_over {
                self.common.show_goal(Some("goal paused".to_owned()));
                return turned;
            }
            message = match self.check(&goal).await? {
                Checked::Reached => {
                    Goal::keep(None, &config)?;
                    self.common.show_goal(None);
                    return self.say(&format!("the goal is reached: {}", goal.condition));
                }
                Checked::NotYet(message) => message,
                Checked::Aborted => return self.pause_goal("the check was stopped"),
            };
            if let Some(why) = work.bound_reached(&goal, self.common.usage().cost.total) {
                return self.pause_goal(&why);
            }
        }
    }

    fn pause_goal(&self, why: &str) -> Result<(), CliError> {
        self.common.show_goal(Some("goal paused".to_owned()));
        self.say(&format!("the goal is paused: {why}; /goal resume goes on, /goal stop drops it"))
    }

    async fn check(&self, goal: &Goal) -> Result<Checked, CliError> {
        if goal.judge == Judge::Model {
            return Ok(match Goal::is_reached_by(&self.last_answer()?) {
                true => Checked::Reached,
                false => Checked::NotYet(goal.go_on()),
            });
        }
        self.say(&format!("checking: {}", escaped(&goal.condition)))?;
        let cancel = self.closed.child_token();
        let _armed = self.interrupts.arm(cancel.clone());
        match self.captured(&goal.condition, &cancel).await {
            _ if cancel.is_cancelled() => Ok(Checked::Aborted),
            Ok((ending, _)) if ending == "exit 0" => Ok(Checked::Reached),
            Ok((ending, output)) => Ok(Checked::NotYet(goal.failed(&ending, &output))),
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
