//! A goal: the agent continues, turn after turn, until a condition holds, within bounds.
//!
//! It is kept in the list of sessions with the turns that are left, so what a killed program leaves can be taken up again.

use std::time::{Duration, Instant};

use myclaw_session::{MetaPatch, UpdatedAt};
use serde::{Deserialize, Serialize};

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

/// The work on a goal since it began, or since it was taken up again: what its bounds are compared with.
#[derive(Debug, Clone, Copy)]
pub struct GoalWork {
    begun: Instant,
    /// US dollars that were spent before.
    spent_before: f64,
}

impl GoalWork {
    /// Work that begins now, after `spent` US dollars.
    pub fn begin(spent: f64) -> Self {
        Self { begun: Instant::now(), spent_before: spent }
    }

    /// Why `goal` is not worked on any longer, now that `spent` US dollars are counted. `None` within the bounds.
    pub fn bound_reached(&self, goal: &Goal, spent: f64) -> Option<String> {
        self.bound_after(goal, self.begun.elapsed(), spent)
    }

    fn bound_after(&self, goal: &Goal, elapsed: Duration, spent: f64) -> Option<String> {
        let cost = spent - self.spent_before;
        if goal.turns_left == 0 {
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
    pub fn taken_up(self) -> Self {
        Self { turns_left: MOST_TURNS, ..self }
    }

    /// The goal that the user writes: a condition in words, or a command behind an exclamation mark.
    pub fn new(text: &str) -> Self {
        let (judge, condition) = match text.strip_prefix('!') {
            Some(command) => (Judge::Command, command.trim()),
            None => (Judge::Model, text.trim()),
        };
        Self { condition: condition.to_owned(), judge, turns_left: MOST_TURNS }
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
