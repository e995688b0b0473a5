//! A goal: the agent continues, turn after turn, until a condition holds, within bounds.
//!
//! It is kept in the list of sessions with what was used of its bounds, so what a killed program leaves can be taken up again.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use myclaw_engine::ToolError;
use myclaw_files::now_ms;
use myclaw_llm::{Usage, joined_text};
use myclaw_session::{MetaPatch, Role, SessionKey, TranscriptMessage, UpdatedAt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::session_config::SUBAGENT_CHANNEL;
use crate::{AgentError, SessionConfig};

/// The field of the session's entry in the list.
const FIELD: &str = "goal";
/// Turns that a goal may take, from its begin or from the last time on that it was taken up again, as the other bounds.
const MOST_TURNS: u32 = 20;
/// Longest time for a goal.
const MOST_TIME: Duration = Duration::from_secs(2 * 60 * 60);
/// US dollars that it may cost with its sub-agents, unless the command has a limit.
const MOST_COST: f64 = 5.0;
/// The last line of an answer that says that the condition holds.
const REACHED: &str = "GOAL REACHED";
/// How the messages begin that the work on a goal writes: the first one, that after a check, and that after a restart.
const UNTIL_COMMAND: &str = "Work until this command ends with exit code 0";
const UNTIL_WORDS: &str = "Work until this holds:\n\n";
const NOT_YET: &str = "The goal is not reached yet: ";
pub(crate) const RESTARTED: &str =
    "The program was restarted while it worked on this goal, and goes on.";
/// Most bytes of a command's output that the model reads of a check.
const MOST_OUTPUT: usize = 4_000;

/// A goal of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// What is to hold, in the user's words, or the command that is to succeed.
    pub condition: String,
    /// Who says whether it holds.
    pub judge: Judge,
    /// Turns that may still be made.
    pub turns_left: u32,
    /// US dollars that its turns have cost, with their sub-agents, since it was begun or taken up again.
    #[serde(default)]
    pub cost: f64,
    /// Seconds that were worked on it since then.
    #[serde(default)]
    pub seconds: u64,
    /// Whether a process works on it. It stays true where that is killed.
    #[serde(default)]
    pub is_at_work: bool,
    /// When cost and seconds were counted, in milliseconds since the Unix epoch.
    #[serde(default)]
    counted_at: u64,
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
    /// Cost and seconds of the goal when this process began to work on it.
    before: (f64, u64),
    begun: Instant,
    /// US dollars that the session and its sub-agents had cost in this process.
    spent_before: f64,
    /// US dollars that the goal may cost.
    most_cost: f64,
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
    /// The work that an order asks for, from now on; `None` if the session has no goal to continue.
    ///
    /// # Errors
    /// The goal has no condition, or the list of sessions cannot be read.
    pub fn ordered(order: &GoalOrder, config: &SessionConfig) -> Result<Option<Self>, AgentError> {
        let goal = match order {
            GoalOrder::Begin(text) => Some(Goal::new(text)?),
            _ => Goal::of(config)?.map(Goal::taken_up),
        };
        Ok(goal.map(|goal| Self::begin(goal, config)))
    }

    /// The work of a killed process, with what it has used of the bounds; `None` if there is none. Blocks.
    ///
    /// # Errors
    /// The list of sessions or the log cannot be read.
    pub fn left(config: &SessionConfig) -> Result<Option<Self>, AgentError> {
        let Some(mut goal) = Goal::of(config)?.filter(|goal| goal.is_at_work) else {
            return Ok(None);
        };
        let (cost, newest) = used_since(&goal, config)?;
        goal.cost += cost;
        goal.seconds += newest.saturating_sub(goal.counted_at) / 1_000;
        Ok(Some(Self::begin(goal, config)))
    }

    /// Work that begins now.
    pub fn begin(goal: Goal, config: &SessionConfig) -> Self {
        Self {
            before: (goal.cost, goal.seconds),
            goal,
            begun: Instant::now(),
            spent_before: config.options.cost.dollars(),
            most_cost: config.options.max_cost.unwrap_or(MOST_COST),
        }
    }

    /// The goal, with the turns that are left.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Counts the turn that begins, and stores that a process works on the goal. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn turn_begins(&mut self, config: &SessionConfig) -> Result<(), AgentError> {
        self.count(config);
        self.goal.turns_left = self.goal.turns_left.saturating_sub(1);
        self.goal.is_at_work = true;
        Goal::keep(Some(&self.goal), config)
    }

    /// What follows a turn: `missing` is the message for the model if the condition does not hold. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn after_turn(
        &mut self,
        missing: Option<String>,
        config: &SessionConfig,
    ) -> Result<GoalStep, AgentError> {
        self.count(config);
        let Some(message) = missing else {
            Goal::keep(None, config)?;
            return Ok(GoalStep::Reached);
        };
        let bound = self.bound();
        self.goal.is_at_work = bound.is_none();
        Goal::keep(Some(&self.goal), config)?;
        Ok(match bound {
            Some(why) => GoalStep::Paused(why),
            None => GoalStep::GoesOn(message),
        })
    }

    /// Stores that no process works on the goal. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn pause(&mut self, config: &SessionConfig) -> Result<(), AgentError> {
        self.count(config);
        self.goal.is_at_work = false;
        Goal::keep(Some(&self.goal), config)
    }

    fn count(&mut self, config: &SessionConfig) {
        let (cost, seconds) = self.before;
        self.goal.cost = cost + config.options.cost.dollars() - self.spent_before;
        self.goal.seconds = seconds + self.begun.elapsed().as_secs();
        self.goal.counted_at = now_ms();
    }

    /// Why the goal is not worked on any longer. `None` within the bounds.
    pub(crate) fn bound(&self) -> Option<String> {
        let Goal { turns_left, cost, seconds, .. } = self.goal;
        if turns_left == 0 {
            Some("its turns are used up".to_owned())
        } else if seconds >= MOST_TIME.as_secs() {
            Some("it took two hours".to_owned())
        } else if cost >= self.most_cost {
            Some(format!("it cost {}", dollars(cost)))
        } else {
            None
        }
    }
}

/// Whether a message under the user's name was written by the work on a goal.
pub(crate) fn is_of_goal(text: &str) -> bool {
    [UNTIL_COMMAND, UNTIL_WORDS, NOT_YET, RESTARTED].iter().any(|begin| text.starts_with(begin))
}

/// How many turns are left, in words.
pub fn turns_left(turns: u32) -> String {
    format!("{turns} {} left", if turns == 1 { "turn" } else { "turns" })
}

/// An amount of US dollars, to the cent, or more exactly where that would be nothing.
pub(crate) fn dollars(amount: f64) -> String {
    if amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// What the answers of a goal's session and of its sub-agents have cost since they were counted last, in US dollars, and when
/// the newest row was written. Reads no rows from before the goal began. Blocks.
fn used_since(goal: &Goal, config: &SessionConfig) -> Result<(f64, u64), AgentError> {
    #[derive(Deserialize)]
    struct Kept {
        usage: Usage,
    }
    let begun = goal.counted_at.saturating_sub(goal.seconds.saturating_mul(1_000));
    let (mut cost, mut newest) = (0.0, 0);
    let mut family = vec![config.session_key.clone()];
    let mut next = 0;
    while let Some(session) = family.get(next).cloned() {
        next += 1;
        config.home.sessions().visit_newest(&session, &mut |row| {
            if row.ts < begun {
                return ControlFlow::Break(());
            }
            if let Some(child) = child_named_by(&row).filter(|child| !family.contains(child)) {
                family.push(child);
            }
            if row.ts > goal.counted_at {
                newest = newest.max(row.ts);
                let kept = row.meta.and_then(|meta| meta.read::<Kept>());
                cost += kept.map_or(0.0, |kept| kept.usage.cost.total);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok((cost, newest))
}

/// The session of the sub-agent that a call has begun, if this row is the result of such a call.
fn child_named_by(row: &TranscriptMessage) -> Option<SessionKey> {
    #[derive(Deserialize)]
    struct Begun {
        session: String,
        #[serde(rename = "startedAt")]
        _started_at: u64,
    }
    if row.role != Role::Tool || !row.content.contains(SUBAGENT_CHANNEL) {
        return None;
    }
    let begun: Begun = serde_json::from_str(&row.content).ok()?;
    let key = SessionKey::parse(&begun.session).ok()?;
    (key.parts().channel == SUBAGENT_CHANNEL).then_some(key)
}

/// The field of a session's entry that keeps a goal.
fn field_of(goal: impl Serialize) -> Map<String, Value> {
    let value = serde_json::to_value(goal).unwrap_or_default();
    Map::from_iter([(FIELD.to_owned(), value)])
}

impl Goal {
    /// The same goal with all of its bounds, as its owner takes it up again.
    #[must_use]
    fn taken_up(self) -> Self {
        Self { turns_left: MOST_TURNS, cost: 0.0, seconds: 0, ..self }
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
        Ok(Self {
            condition: condition.to_owned(),
            judge,
            turns_left: MOST_TURNS,
            cost: 0.0,
            seconds: 0,
            is_at_work: false,
            counted_at: 0,
        })
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

    /// Keeps the goal of a session, or forgets it. A session that does not exist yet begins with it. Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be written.
    pub fn keep(goal: Option<&Self>, config: &SessionConfig) -> Result<(), AgentError> {
        let catalog = config.home.catalog();
        if !catalog.exists(&config.session_key) {
            *config.listed_with.lock() = goal.map(field_of).unwrap_or_default();
            return Ok(());
        }
        let extra = Some(field_of(goal));
        let patch = MetaPatch { extra, updated_at: UpdatedAt::Keep, ..MetaPatch::default() };
        catalog.update(&config.session_key, patch)?;
        Ok(())
    }

    /// The message with which the work on it begins.
    pub fn first_message(&self) -> String {
        match self.judge {
            Judge::Command => format!(
                "{UNTIL_COMMAND}; it is run after each of your answers:\n\n{}",
                self.condition
            ),
            Judge::Model => format!(
                "{UNTIL_WORDS}{}\n\nCheck it with your tools before you say so. If it holds, end your answer with the \
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
            "{NOT_YET}{}\nGo on. End your answer with the line {REACHED} when it holds.",
            self.condition
        )
    }

    /// The message after a check that failed: how the command ended, and the end of what it printed.
    pub fn failed(&self, ending: &str, output: &str) -> String {
        let from = output.len().saturating_sub(MOST_OUTPUT);
        let from = (from..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(0);
        let (command, output) = (&self.condition, output[from..].trim());
        format!("{NOT_YET}`{command}` ended with {ending}. Go on.\n\n{output}")
    }
}

#[cfg(test)]
mod tests;
