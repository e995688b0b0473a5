//! A goal: the agent continues, turn after turn, until a condition holds, within bounds.
//!
//! It is kept in the list of sessions with the turns that are left, so what a killed program leaves can be taken up again.

use std::time::{Duration, Instant};

use myclaw_engine::ToolError;
use myclaw_llm::joined_text;
use myclaw_session::{MetaPatch, UpdatedAt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use crate::{AgentError, SessionConfig};

/// The field of the session's entry in the list.
const FIELD: &str = "goal";
/// Turns that a goal may take, from its begin or from the last time on that it was taken up again, as the other bounds.
const MOST_TURNS: u32 = 20;
/// Longest time for a goal.
const MOST_TIME: Duration = Duration::from_secs(2 * 60 * 60);
/// US dollars that it may cost.
const MOST_COST: f64 = 5.0;
/// The last line of an answer that says that the condition holds.
const REACHED: &str = "GOAL REACHED";
/// Most bytes of a command's output that the model reads of a check.
const MOST_OUTPUT: usize = 4_000;

/// A goal of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// What is to hold, in the user's words, or the command that is to succeed.
    pub condition: String,
    /// Who says whether it holds.
    pub judge: Judge,
    /// Turns that may still be made.
    pub turns_left: u32,
}

/// Who says whether the condition of a goal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The condition is a command, which ends with 0 then.
    Command,
    /// The model, at the end of its answer.
    Model,
}

/// What the user wants of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalOrder {
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
    /// The order that stands behind `/goal`.
    pub fn parse(argument: Option<&str>) -> Self {
        match argument {
            None => Self::Show,
            Some("stop" | "clear" | "off") => Self::Stop,
            Some("resume" | "continue") => Self::Resume,
            Some(text) => Self::Begin(text.to_owned()),
        }
    }

    /// Whether it begins turns.
    pub fn is_work(&self) -> bool {
        matches!(self, Self::Resume | Self::Begin(_))
    }
}

/// A goal that is worked on, with what its bounds are compared with.
#[derive(Debug, Clone)]
pub struct Pursuit {
    goal: Goal,
    begun: Instant,
    /// US dollars that were spent before.
    spent_before: f64,
}

/// What follows a turn that was made for a goal.
#[derive(Debug, PartialEq, Eq)]
pub enum GoalStep {
    /// The condition holds. The goal is forgotten.
    Reached,
    /// Another turn, with this message.
    GoesOn(String),
    /// A bound was reached, which the text names. The goal is kept.
    Paused(String),
}

impl Pursuit {
    /// The work that an order asks for, from now on, after `spent` US dollars; `None` if the session has no goal to go on with.
    ///
    /// # Errors
    /// The goal has no condition, or the list of sessions cannot be read.
    pub fn ordered(
        order: &GoalOrder,
        config: &SessionConfig,
        spent: f64,
    ) -> Result<Option<Self>, AgentError> {
        let goal = match order {
            GoalOrder::Begin(text) => Some(Goal::new(text)?),
            _ => Goal::of(config)?.map(Goal::taken_up),
        };
        Ok(goal.map(|goal| Self::begin(goal, spent)))
    }

    /// Work that begins now, after `spent` US dollars.
    pub fn begin(goal: Goal, spent: f64) -> Self {
        Self { goal, begun: Instant::now(), spent_before: spent }
    }

    /// The goal, with the turns that are left.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Counts a turn, which begins, and keeps the goal as one that a killed program leaves paused. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn turn_begins(&mut self, config: &SessionConfig) -> Result<(), AgentError> {
        self.goal.turns_left = self.goal.turns_left.saturating_sub(1);
        Goal::keep(Some(&self.goal), config)
    }

    /// What follows a turn: `missing` is the message for the model if the condition does not hold, and `spent` what is counted
    /// now, in US dollars. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn after_turn(
        &self,
        missing: Option<String>,
        spent: f64,
        config: &SessionConfig,
    ) -> Result<GoalStep, AgentError> {
        // A session that has just begun is in the list now.
        Goal::keep(missing.is_some().then_some(&self.goal), config)?;
        let Some(message) = missing else { return Ok(GoalStep::Reached) };
        Ok(match self.bound_after(self.begun.elapsed(), spent) {
            Some(why) => GoalStep::Paused(why),
            None => GoalStep::GoesOn(message),
        })
    }

    /// Why the goal is not worked on any longer after this time and `spent` US dollars. `None` within the bounds.
    fn bound_after(&self, elapsed: Duration, spent: f64) -> Option<String> {
        let cost = spent - self.spent_before;
        if self.goal.turns_left == 0 {
            Some("its turns are used up".to_owned())
        } else if elapsed >= MOST_TIME {
            Some("it took two hours".to_owned())
        } else if cost >= MOST_COST {
            Some(format!("it cost ${cost:.2}"))
        } else {
            None
        }
    }
}

impl Goal {
    /// The same goal with all its turns, as it is taken up again.
    #[must_use]
    fn taken_up(self) -> Self {
        Self { turns_left: MOST_TURNS, ..self }
    }

    /// The goal that the user writes: a condition in words, or a command behind an exclamation mark.
    ///
    /// # Errors
    /// There is neither.
    pub fn new(text: &str) -> Result<Self, AgentError> {
        let (judge, condition) = match text.trim().strip_prefix('!') {
            Some(command) => (Judge::Command, command.trim()),
            None => (Judge::Model, text.trim()),
        };
        if condition.is_empty() {
            return Err(AgentError::usage("a goal needs a condition, or a command behind `!`"));
        }
        Ok(Self { condition: condition.to_owned(), judge, turns_left: MOST_TURNS })
    }

    /// The goal that a session has.
    ///
    /// # Errors
    /// The list of sessions cannot be read.
    pub fn of(config: &SessionConfig) -> Result<Option<Self>, AgentError> {
        let entry = config.home.catalog().entry(&config.session_key)?;
        let extra = entry.and_then(|entry| entry.extra).unwrap_or_default();
        Ok(extra.get(FIELD).and_then(|goal| Self::deserialize(goal).ok()))
    }

    /// Keeps the goal of a session, or forgets it. Does nothing for a session that does not exist yet. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn keep(goal: Option<&Self>, config: &SessionConfig) -> Result<(), AgentError> {
        let catalog = config.home.catalog();
        if !catalog.exists(&config.session_key) {
            return Ok(());
        }
        let value = serde_json::to_value(goal).unwrap_or_default();
        let extra = Some([(FIELD.to_owned(), value)].into_iter().collect());
        let patch = MetaPatch { extra, updated_at: UpdatedAt::Keep, ..MetaPatch::default() };
        catalog.update(&config.session_key, patch)?;
        Ok(())
    }

    /// The message with which the work on it begins.
    pub fn first_message(&self) -> String {
        match self.judge {
            Judge::Command => format!(
                "Work until this command ends with exit code 0; it is run after each of your answers:\n\n{}",
                self.condition
            ),
            Judge::Model => format!(
                "Work until this holds:\n\n{}\n\nCheck it with your tools before you say so. If it holds, end your answer with the \
                 line {REACHED}; if it cannot be reached, say why and what you need.",
                self.condition
            ),
        }
    }

    /// The message for the model if the condition does not hold after this answer; `None` if it does. A command runs under the
    /// rules of the session.
    ///
    /// # Errors
    /// The command cannot be run, or was stopped.
    pub async fn missing_after(
        &self,
        answer: &str,
        config: &SessionConfig,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, AgentError> {
        if self.judge == Judge::Model {
            return Ok((!Self::is_reached_by(answer)).then(|| self.go_on()));
        }
        let tools = config.direct_tools().await?;
        let arguments = Map::from_iter([("command".to_owned(), json!(self.condition))]);
        match tools.call("bash", arguments, cancel.clone()).await {
            Ok(output) if !output.is_error => Ok(None),
            Ok(output) => {
                let code = output.details.as_ref().map(|details| details["exitCode"].to_string());
                let ending = format!("exit {}", code.unwrap_or_default());
                Ok(Some(self.failed(&ending, &joined_text(&output.content, "\n"))))
            }
            Err(ToolError::Failed(why)) => {
                Err(AgentError::usage(format!("the command of the goal cannot be run: {why}")))
            }
            Err(ToolError::Aborted(_)) => Err(AgentError::aborted()),
        }
    }

    /// Whether an answer says that the condition holds.
    pub fn is_reached_by(answer: &str) -> bool {
        answer.trim_end().lines().next_back().is_some_and(|line| line.contains(REACHED))
    }

    /// The message after an answer without the line.
    pub fn go_on(&self) -> String {
        format!(
            "The goal is not reached yet: {}\nGo on. End your answer with the line {REACHED} when it holds.",
            self.condition
        )
    }

    /// The message after a check that failed: how the command ended, and the end of what it printed.
    pub fn failed(&self, ending: &str, output: &str) -> String {
        let from = output.len().saturating_sub(MOST_OUTPUT);
        let from = (from..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(0);
        let (command, output) = (&self.condition, output[from..].trim());
        format!("The goal is not reached yet: `{command}` ended with {ending}. Go on.\n\n{output}")
    }
}

#[cfg(test)]
mod tests;
