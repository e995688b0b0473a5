//! What commands that change nothing say. They work during a turn too.

use std::sync::Arc;

use myclaw_agent::approvals::WaitingApproval;
use myclaw_agent::{AgentError, CommandAnswer, Session, SessionCommand};

use super::command::Command;
use super::outputs::Common;
use super::skill;
use myclaw_front::exit::CliError;
use myclaw_front::memory;
use myclaw_front::mode::list_modes;
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
            Command::Model(None) => self.tell(SessionCommand::Model(None)).await?,
            Command::Thinking(None) => self.tell(SessionCommand::Thinking(None)).await?,
            Command::Mode(None) => list_modes(self.session.mode()),
            Command::Todos => self.tell(SessionCommand::Todos).await?,
            Command::Diff => self.tell(SessionCommand::Diff).await?,
            Command::Questions => self.questions()?,
            Command::Sessions(None) => self.list_sessions()?,
            Command::Skill(None) => skill::list(&self.session.config()),
            Command::Agents => self.tell(SessionCommand::Agents).await?,
            Command::Usage => self.describe_usage().await?,
            Command::Context => {
                let used = self.common.status().as_ref().map(|status| status.used);
                self.tell(SessionCommand::Context(used)).await?
            }
            Command::Title(None) => self.title(),
            Command::Memory(arguments) => {
                memory::obey(self.session.config(), arguments.clone()).await?
            }
            Command::Config => self.describe_config(),
            _ => return Ok(None),
        }))
    }

    /// What a command says that all front-ends have.
    async fn tell(&self, command: SessionCommand) -> Result<String, CliError> {
        let name = self.sessions.name_of(self.session.key());
        Ok(in_columns(&self.session.tell(command, &name).await?))
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

    async fn describe_usage(&self) -> Result<String, CliError> {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let chat =
            format!("this chat: {} {turns}, {}", self.turns, tokens_and_cost(&self.common.usage()));
        Ok(format!("{chat}\n{}", self.tell(SessionCommand::Usage).await?))
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

/// What a command says, in the columns of this terminal.
pub(super) fn in_columns(said: &CommandAnswer) -> String {
    let lines = said.text.lines().map(str::to_owned);
    columns(&said.rows).into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}
