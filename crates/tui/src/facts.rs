//! What commands that change nothing say. They work during a turn too.

use std::sync::Arc;

use myclaw_agent::approvals::WaitingApproval;
use myclaw_agent::{AgentError, AgentFile, Plan, Session, SessionConfig, spent_today};
use myclaw_tools::FileDifference;

use super::command::Command;
use super::outputs::Common;
use super::{context, skill};
use myclaw_front::exit::CliError;
use myclaw_front::memory;
use myclaw_front::mode::list_modes;
use myclaw_front::model::{describe_model, describe_thinking};
use myclaw_front::print::columns;
use myclaw_front::report::tokens_and_cost;
use myclaw_front::sessions::Sessions;
use myclaw_front::time::local_minute;

/// Most sessions that `/sessions` lists.
const LISTED_SESSIONS: usize = 20;

/// What is known about the chat.
pub(super) struct Facts<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) sessions: &'a Sessions,
    pub(super) common: &'a Arc<Common>,
    /// The turns that are over.
    pub(super) turns: u32,
}

impl Facts<'_> {
    /// The answer to a command that changes nothing; `None` for other commands.
    ///
    /// # Errors
    /// The session cannot be read, or no model can be used.
    pub(super) async fn answer(&self, command: &Command) -> Result<Option<String>, CliError> {
        Ok(Some(match command {
            Command::Help => super::command::HELP.to_owned(),
            Command::Model(None) => describe_model(self.session).await?,
            Command::Thinking(None) => describe_thinking(self.session).await?,
            Command::Mode(None) => list_modes(self.session.mode()),
            Command::Todos => self.todos()?,
            Command::Diff => self.differences().await?,
            Command::Questions => self.questions()?,
            Command::Sessions(None) => self.list_sessions()?,
            Command::Skill(None) => skill::list(&self.session.config()),
            Command::Agents => agents(&self.session.config()),
            Command::Usage => self.describe_usage(),
            Command::Context => context::describe(self.session, self.common).await?,
            Command::Title(None) => self.title(),
            Command::Memory(arguments) => {
                memory::obey(self.session.config(), arguments.clone()).await?
            }
            Command::Config => self.describe_config(),
            _ => return Ok(None),
        }))
    }

    /// The agent's plan, which the log has.
    fn todos(&self) -> Result<String, CliError> {
        let plan = match self.sessions.catalog.read(self.session.key())? {
            Some(reader) => Plan::last_of(&*reader)?,
            None => None,
        };
        let lines = plan.map(|plan| plan.lines()).filter(|lines| !lines.is_empty());
        Ok(lines
            .map_or_else(|| "the agent has made no plan here".to_owned(), |lines| lines.join("\n")))
    }

    /// What the tools have changed in the session.
    async fn differences(&self) -> Result<String, CliError> {
        let config = self.session.config();
        let comparing = tokio::task::spawn_blocking(move || config.differences()).await;
        let files = comparing.map_err(|error| CliError::failure(error.to_string()))??;
        if files.is_empty() {
            return Ok("nothing is different now of what write, edit and apply_patch changed here; `!!git diff` shows what \
                       commands did"
                .to_owned());
        }
        let shown = |file: &FileDifference| match (&file.diff, &file.not_compared) {
            (Some(diff), _) => format!("{}\n{}", file.path, diff.trim_end()),
            (None, why) => format!("{}: it {}", file.path, why.as_deref().unwrap_or_default()),
        };
        Ok(files.iter().map(shown).collect::<Vec<_>>().join("\n\n"))
    }

    /// The questions that wait, of this session and of others of this state directory.
    fn questions(&self) -> Result<String, CliError> {
        let waiting =
            self.session.config().home.stores().approvals.list().map_err(AgentError::from)?.1;
        if waiting.is_empty() {
            return Ok("no question waits".to_owned());
        }
        let row = |one: &WaitingApproval| {
            let mark = if one.session == self.session.key().as_str() { "*" } else { " " };
            let session = one.session.parse().map(|key| self.sessions.name_of(&key));
            let session = session.unwrap_or_else(|_| one.session.clone());
            vec![
                format!("{mark} {session}"),
                local_minute(one.ts),
                one.tool.clone(),
                one.call.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = waiting.iter().map(row).collect();
        Ok(columns(&rows).join("\n"))
    }

    /// Brings the permission mode in the status line up to date.
    pub(super) fn show_mode(&self) {
        if let Some(status) = self.common.status().as_mut() {
            status.show_mode(self.session.mode());
        }
    }

    /// The latest sessions.
    ///
    /// # Errors
    /// The sessions cannot be read.
    pub(super) fn list_sessions(&self) -> Result<String, CliError> {
        let (sessions, count) = self.sessions.latest(LISTED_SESSIONS)?;
        if sessions.is_empty() {
            return Ok("no sessions yet".to_owned());
        }
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .map(|session| {
                let mark = if session.key == *self.session.key() { "*" } else { " " };
                vec![
                    format!("{mark} {}", self.sessions.name_of(&session.key)),
                    local_minute(session.entry.updated_at),
                    session.entry.model.clone().unwrap_or_default(),
                    self.sessions.title_of(&session.key).unwrap_or_default(),
                ]
            })
            .collect();
        let mut text = columns(&rows).join("\n");
        if count > sessions.len() {
            let more = count - sessions.len();
            text.push_str(&format!("\n  and {more} more: myclaw sessions list"));
        }
        Ok(text)
    }

    fn describe_usage(&self) -> String {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let mut text =
            format!("this chat: {} {turns}, {}", self.turns, tokens_and_cost(&self.common.usage()));
        let entry = self.sessions.catalog.entry(self.session.key()).ok().flatten();
        let dollars = |micro: u64| format!("${:.4}", micro as f64 / 1_000_000.0);
        if let Some(entry) = entry
            && let Some(total) = entry.total_tokens
        {
            let name = self.sessions.name_of(self.session.key());
            text.push_str(&format!("\nsession `{name}`: {total} tokens"));
            if let Some(micro) = entry.micro_dollars {
                text.push_str(&format!(", {}", dollars(micro)));
            }
        }
        if let Ok(spent) = spent_today(&self.session.config().home) {
            let (tokens, dollars) = (spent.tokens, dollars(spent.micro_dollars));
            text.push_str(&format!("\ntoday, all sessions: {tokens} tokens, {dollars}"));
        }
        text
    }

    fn title(&self) -> String {
        let name = self.sessions.name_of(self.session.key());
        match self.sessions.title_of(self.session.key()) {
            Some(title) => format!("`{name}`: {title}"),
            None => format!("`{name}` is empty"),
        }
    }

    fn describe_config(&self) -> String {
        let config = self.session.config();
        let path = config.home.paths.config_file().display().to_string();
        format!(
            "config: {path}\nagent: {}\nworkspace: {}\n`myclaw config check` checks it; a change counts from the next chat on",
            config.agent.id,
            config.agent.workspace.display()
        )
    }
}

/// The agents that are files, and the mistakes in such files.
fn agents(config: &SessionConfig) -> String {
    let found = config.agent_files();
    if found.agents.is_empty() && found.problems.is_empty() {
        return "no agents yet; `myclaw agents --help` shows how to write one".to_owned();
    }
    let row = |agent: &AgentFile| vec![agent.name.clone(), agent.description.clone()];
    let rows: Vec<Vec<String>> = found.agents.iter().map(row).collect();
    let mistakes = found
        .problems
        .iter()
        .map(|problem| format!("{}:{}: {}", problem.path.display(), problem.line, problem.message));
    columns(&rows).into_iter().chain(mistakes).collect::<Vec<_>>().join("\n")
}
