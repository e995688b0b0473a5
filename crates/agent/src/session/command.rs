//! Commands about a session that every front-end has, and what they say.

use std::sync::Arc;

use myclaw_engine::{CompactionOutcome, CompactionReport};
use myclaw_llm::{Model, ThinkingLevel};
use myclaw_tools::{Direction, FileDifference, FileOutcome, Undone, WhichTurn};
use serde::{Deserialize, Serialize};

use super::{Foreground, Session};
use crate::blocking::blocking;
use crate::export::local_minute;
use crate::memory::refuse_store;
use crate::selection::Selection;
use crate::session_config::spent_today;
use crate::{AgentError, SessionConfig, UndoMode, goal::GoalOrder, plan::Plan};

mod context;
mod memory;

pub use context::{last_usage, window_tokens};

/// A command about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionCommand {
    /// Shows the model, or changes it.
    Model(Option<String>),
    /// Shows the thinking level, or changes it.
    Thinking(Option<String>),
    /// Shows the agent's plan.
    Todos,
    /// Shows what the agent's tools have changed.
    Diff,
    /// Shows tokens and cost.
    Usage,
    /// Shows what fills the context window, of which the provider counted so many tokens last; `None` to look that up.
    Context(Option<u64>),
    /// Replaces the older messages by a summary with this focus.
    Compact(Option<String>),
    /// Answers a question without adding it to the session.
    Aside(String),
    /// Undoes the file changes of a turn, or makes them again.
    Undo(Direction),
    /// Lists the messages of the user, or goes back to before the one with this number, in files too.
    Rewind(Option<String>),
    /// Lists the agents that are files.
    Agents,
    /// Shows or drops the goal, or begins to work on one.
    Goal(GoalOrder),
    /// Shows or changes what is remembered, in a process that has the stores open.
    Memory(String),
}

/// What a command says: a table, and lines below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandAnswer {
    /// The rows of the table, a text for each column.
    pub rows: Vec<Vec<String>>,
    /// The lines.
    pub text: String,
    /// The session that goes on from here, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The text of a message that was not sent, to be changed and sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent: Option<String>,
}

impl From<String> for CommandAnswer {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl SessionCommand {
    /// The command that a line with a slash asks for; `None` for a line that asks for something else.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, argument) =
            line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let argument = Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty());
        Some(match (name, argument) {
            ("/model", model) => Self::Model(model),
            ("/thinking", level) => Self::Thinking(level),
            ("/todos" | "/todo" | "/tasks", None) => Self::Todos,
            ("/diff", None) => Self::Diff,
            ("/usage" | "/cost", None) => Self::Usage,
            ("/context", None) => Self::Context(None),
            ("/compact", focus) => Self::Compact(focus),
            ("/btw", Some(question)) => Self::Aside(question),
            ("/undo", None) => Self::Undo(Direction::Undo),
            ("/redo", None) => Self::Undo(Direction::Redo),
            ("/rewind", number) => Self::Rewind(number),
            ("/agents", None) => Self::Agents,
            ("/memory", arguments) => Self::Memory(arguments.unwrap_or_default()),
            ("/goal", order) => Self::Goal(GoalOrder::parse(order.as_deref())),
            _ => return None,
        })
    }
}

impl Session {
    /// Obeys a command; `name` is how the user calls the session.
    ///
    /// # Errors
    /// What is asked for cannot be done.
    pub async fn obey(
        self: &Arc<Self>,
        command: SessionCommand,
        name: &str,
    ) -> Result<CommandAnswer, AgentError> {
        match command {
            SessionCommand::Compact(focus) => {
                let report = self.compact(focus).await?;
                Ok(compacted(&report, name).into())
            }
            SessionCommand::Aside(question) => {
                let cancel = self.driver.stop().child_token();
                let foreground = Foreground { cancel, on_event: Arc::new(|_| {}) };
                let result = self.ask_aside(&question, foreground).await?;
                Ok(format!("aside: {question}\n{}", result.reply.trim()).into())
            }
            SessionCommand::Goal(order) => Ok(self.goal(order).await?.into()),
            command => self.tell(command, name).await,
        }
    }

    /// The same for commands that begin no work.
    ///
    /// # Errors
    /// What is asked for cannot be done.
    pub async fn tell(
        &self,
        command: SessionCommand,
        name: &str,
    ) -> Result<CommandAnswer, AgentError> {
        Ok(match command {
            SessionCommand::Model(None) => describe_model(self).await?.into(),
            SessionCommand::Model(Some(model)) => change_model(self, &model).await?.into(),
            SessionCommand::Thinking(None) => describe_thinking(self).await?.into(),
            SessionCommand::Thinking(Some(level)) => change_thinking(self, &level).await?.into(),
            SessionCommand::Todos => self.todos()?.into(),
            SessionCommand::Diff => self.differences_in_words().await?.into(),
            SessionCommand::Usage => self.used(name).into(),
            SessionCommand::Context(used) => context::describe(self, used).await?,
            SessionCommand::Undo(direction) => {
                let undone = self.undo(direction, WhichTurn::Next, UndoMode::Apply).await?;
                undone_in_words(&undone, direction, UndoMode::Apply).into()
            }
            SessionCommand::Rewind(number) => self.rewind_to(number.as_deref(), name).await?,
            SessionCommand::Agents => agents(&self.config()),
            SessionCommand::Memory(arguments) => {
                let config = self.config();
                blocking(move || config.obey_memory(&arguments, &refuse_store)).await??
            }
            SessionCommand::Compact(_) | SessionCommand::Aside(_) | SessionCommand::Goal(_) => {
                return Err(AgentError::usage("a call of the model cannot begin here"));
            }
        })
    }

    /// The agent's plan, which the log has.
    fn todos(&self) -> Result<String, AgentError> {
        let plan = match self.config().home.catalog().read(self.key())? {
            Some(reader) => Plan::last_of(&*reader)?,
            None => None,
        };
        let lines = plan.map(|plan| plan.lines()).filter(|lines| !lines.is_empty());
        Ok(lines
            .map_or_else(|| "the agent has made no plan here".to_owned(), |lines| lines.join("\n")))
    }

    /// What the tools have changed in the session.
    async fn differences_in_words(&self) -> Result<String, AgentError> {
        let config = self.config();
        let files = blocking(move || config.differences()).await??;
        if files.is_empty() {
            return Ok("nothing is different now of what the agent's tools changed here".to_owned());
        }
        let shown = |file: &FileDifference| match (&file.diff, &file.not_compared) {
            (Some(diff), _) => format!("{}\n{}", file.path, diff.trim_end()),
            (None, why) => format!("{}: it {}", file.path, why.as_deref().unwrap_or_default()),
        };
        Ok(files.iter().map(shown).collect::<Vec<_>>().join("\n\n"))
    }

    /// Tokens and cost of the session and of the day.
    fn used(&self, name: &str) -> String {
        let home = &self.config().home;
        let dollars = |micro: u64| format!("${:.4}", micro as f64 / 1_000_000.0);
        let mut lines = Vec::new();
        let entry = home.catalog().entry(self.key()).ok().flatten();
        if let Some((entry, total)) =
            entry.and_then(|entry| entry.total_tokens.map(|it| (entry, it)))
        {
            let cost = entry.micro_dollars.map(|micro| format!(", {}", dollars(micro)));
            lines.push(format!("session `{name}`: {total} tokens{}", cost.unwrap_or_default()));
        }
        if let Ok(spent) = spent_today(home) {
            let (tokens, dollars) = (spent.tokens, dollars(spent.micro_dollars));
            lines.push(format!("today, all sessions: {tokens} tokens, {dollars}"));
        }
        lines.join("\n")
    }
}

/// The agents that are files, and the mistakes in such files.
fn agents(config: &SessionConfig) -> CommandAnswer {
    let found = config.agent_files();
    if found.agents.is_empty() && found.problems.is_empty() {
        return "no agents yet; `myclaw agents --help` shows how to write one".to_owned().into();
    }
    let row =
        |agent: &crate::agent_files::AgentFile| vec![agent.name.clone(), agent.description.clone()];
    let mistakes: Vec<String> = found
        .problems
        .iter()
        .map(|problem| format!("{}:{}: {}", problem.path.display(), problem.line, problem.message))
        .collect();
    CommandAnswer {
        rows: found.agents.iter().map(row).collect(),
        text: mistakes.join("\n"),
        ..CommandAnswer::default()
    }
}

/// Makes the model that the user names the active one; returns the message to show.
async fn change_model(session: &Session, name: &str) -> Result<String, AgentError> {
    let selection = session.select_model(Some(name)).await?;
    let mut text = format!("{} answers from now on", selection.reference);
    if let Some(line) = thinking_difference(session, &selection) {
        text.push('\n');
        text.push_str(&line);
    }
    Ok(text)
}

/// Sets the thinking level that the user names; returns the message to show.
async fn change_thinking(session: &Session, level: &str) -> Result<String, AgentError> {
    let asked: ThinkingLevel =
        level.parse().map_err(|error| AgentError::usage(format!("{error}")))?;
    let selection = session.selection().await?;
    session.set_thinking(asked);
    let level = selection.model().thinking_level(asked);
    Ok(thinking_difference(session, &selection)
        .unwrap_or_else(|| format!("the thinking level is {level} from now on")))
}

/// The message for a thinking level that the model does not offer.
pub fn thinking_difference(session: &Session, selection: &Selection) -> Option<String> {
    let asked = session.asked_thinking()?;
    let level = selection.model().thinking_level(asked);
    (level != asked).then(|| {
        format!(
            "{} does not offer the thinking level {asked} but {}; {level} is used",
            selection.reference,
            offered_levels(selection.model())
        )
    })
}

async fn describe_model(session: &Session) -> Result<String, AgentError> {
    Ok(format!(
        "{} answers; /model PROVIDER/MODEL changes it, `myclaw models list` shows the known models",
        session.selection().await?.reference
    ))
}

async fn describe_thinking(session: &Session) -> Result<String, AgentError> {
    let selection = session.selection().await?;
    let (_, level) = session.thinking(&selection);
    Ok(format!(
        "the thinking level is {level}; {} offers {}; /thinking LEVEL changes it",
        selection.reference,
        offered_levels(selection.model())
    ))
}

/// The thinking levels that a model offers, such as `off, low, high`.
pub fn offered_levels(model: &Model) -> String {
    let levels = model.offered_thinking_levels();
    levels.into_iter().map(ThinkingLevel::as_str).collect::<Vec<_>>().join(", ")
}

/// The message about what was undone, or would be, one line for each file. Terminals get it escaped.
pub fn undone_in_words(undone: &Undone, direction: Direction, mode: UndoMode) -> String {
    let verb = match (direction, mode) {
        (Direction::Undo, UndoMode::Apply) => "undid",
        (Direction::Undo, UndoMode::DryRun) => "would undo",
        (Direction::Redo, UndoMode::Apply) => "restored",
        (Direction::Redo, UndoMode::DryRun) => "would restore",
    };
    let mut text =
        format!("{verb} the file changes of turn {} of {}:", undone.turn, local_minute(undone.ts));
    for file in &undone.files {
        let path = &file.path;
        text.push_str(&match &file.outcome {
            FileOutcome::Restored => format!("\n  restored    {path}"),
            FileOutcome::Removed => format!("\n  removed     {path}"),
            FileOutcome::Unchanged => format!("\n  unchanged   {path}"),
            FileOutcome::LeftAlone { reason } => format!("\n  left alone  {path}: it {reason}"),
        });
    }
    text
}

/// The message about the compaction of the session that the user calls `name`.
pub fn compacted(report: &CompactionReport, name: &str) -> String {
    match report.outcome {
        CompactionOutcome::Done => format!(
            "{} messages of `{name}` became a summary: the model is sent about {} tokens instead of {}; nothing is lost, \
             `myclaw sessions show {name} --all` shows them",
            report.old_count + 1 - report.new_count,
            report.tokens_after,
            report.tokens_before
        ),
        CompactionOutcome::NothingOlder if report.old_count == 0 => {
            format!("nothing to compact: `{name}` holds no messages yet")
        }
        CompactionOutcome::NothingOlder => format!(
            "nothing to compact: `{name}` holds no message before the last one and its answer"
        ),
        CompactionOutcome::NotShorter => format!(
            "nothing to compact: a summary of the older messages of `{name}` would be no shorter than they are"
        ),
        CompactionOutcome::Forbidden => format!("`{name}` was not compacted: a hook forbids it"),
    }
}
