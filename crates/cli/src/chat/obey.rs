//! The commands of the chat that call no model.

use std::io::Write;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_agent::sessions::{Role, SessionKey, TailLimit, TranscriptMessage};
use myclaw_agent::tools::WhichTurn;
use myclaw_agent::{UndoMode, check_agent, spent_today};

use super::command::{Command, HELP};
use super::shell::RAN;
use super::{Chat, View, context, jobs, pager, skill, talk};
use crate::commands::sessions::undo::describe;
use crate::exit::CliError;
use crate::model::{change_model, change_thinking, describe_thinking};
use crate::print::columns;
use crate::report::tokens_and_cost;
use crate::time::{local_minute, new_session_name};

/// Most sessions that `/sessions` lists.
const LISTED_SESSIONS: usize = 20;

impl Chat {
    /// Executes a command.
    ///
    /// # Errors
    /// Standard output is closed, or the session cannot be read.
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        match command {
            // These are handled by the loop of the chat and by the code that runs turns.
            Command::Quit
            | Command::Continue
            | Command::Retry
            | Command::Compact(_)
            | Command::Skill(Some(_)) => Ok(()),
            Command::Help => self.say(HELP),
            Command::New(name) => self.begin_session(name),
            Command::Model(None) => self.choose_model().await,
            Command::Model(Some(name)) => {
                let changed = change_model(&self.session, &name).await;
                self.say(&changed.unwrap_or_else(|error| error.message))
            }
            Command::Thinking(None) => self.say(&describe_thinking(&self.session).await?),
            Command::Thinking(Some(level)) => {
                if let Some(answer) = talk::show_thinking(&self.common, &level) {
                    return self.say(answer);
                }
                let changed = change_thinking(&self.session, &level).await;
                self.say(&changed.unwrap_or_else(|error| error.message))
            }
            Command::Sessions(None) => self.list_sessions(),
            Command::Sessions(Some(name)) => {
                self.continue_session(&name)?;
                self.show_end()?;
                self.tell_what_waits().await
            }
            Command::Resume => self.choose_session().await,
            Command::Skill(None) => self.say(&skill::list(&self.session.config())),
            Command::Queue(None) => {
                let pending = self.session.pending().await?;
                self.say(&talk::list(&pending))
            }
            Command::Queue(Some(number)) => {
                let answer = talk::drop_one(&self.session, number).await?;
                self.say(&answer)
            }
            Command::Undo(direction) => {
                let mode = UndoMode::Apply;
                let undone = self.session.undo(direction, WhichTurn::Next, mode).await;
                self.say(&match undone {
                    Ok(undone) => describe(&undone, direction, mode),
                    Err(error) => error.message,
                })
            }
            Command::Jobs(None) => self.say(&jobs::list(&self.session).await),
            Command::Jobs(Some(id)) => self.say(&jobs::kill(&self.session, &id).await),
            Command::Usage => self.say(&self.describe_usage()),
            Command::Fork(name) => self.fork(name),
            Command::Export(file) => self.export(&file),
            Command::Copy => self.copy(),
            Command::Title(title) => self.title(title),
            Command::Search(text) => self.sessions.search_for(&text),
            Command::Context => {
                let text = context::describe(&self.session, &self.common).await?;
                self.say(&text)
            }
            Command::Config => self.describe_config(),
        }
    }

    fn begin_session(&mut self, name: Option<String>) -> Result<(), CliError> {
        let before = self.sessions.name_of(self.session.key());
        match self.free_session(name) {
            Ok(key) => {
                self.session = self.session.open_beside(key);
                self.forget_context();
            }
            Err(message) => return self.say(&message),
        }
        self.say(&format!(
            "new session `{}`; the one before is kept as `{before}`",
            self.sessions.name_of(self.session.key())
        ))
    }

    /// The tokens that were counted last are those of another session.
    fn forget_context(&self) {
        if let Some(status) = self.common.status().as_mut() {
            status.used = 0;
        }
    }

    fn exists(&self, name: &str) -> bool {
        SessionKey::parse_for_agent(&self.sessions.agent_id, name)
            .is_ok_and(|key| self.sessions.store.exists(&key))
    }

    pub(super) fn continue_session(&mut self, name: &str) -> Result<(), CliError> {
        match self.sessions.find(name).and_then(|key| self.with_its_directory(key)) {
            Ok(key) => {
                self.session = self.session.open_beside(key);
                self.forget_context();
                self.say(&format!("continuing `{}`", self.sessions.name_of(self.session.key())))
            }
            Err(error) => self.say(&error.message),
        }
    }

    pub(super) fn list_sessions(&self) -> Result<(), CliError> {
        let (sessions, count) = match self.sessions.latest(LISTED_SESSIONS) {
            Ok(found) => found,
            Err(error) => return self.say(&error.message),
        };
        if sessions.is_empty() {
            return self.say("no sessions yet");
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
        self.say(&text)
    }

    fn describe_usage(&self) -> String {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let mut text =
            format!("this chat: {} {turns}, {}", self.turns, tokens_and_cost(&self.usage));
        let entry = self.sessions.store.index().get(self.session.key()).ok().flatten();
        if let Some(total) = entry.and_then(|entry| entry.total_tokens) {
            text.push_str(&format!(
                "\nsession `{}`: {total} tokens",
                self.sessions.name_of(self.session.key())
            ));
        }
        if let Ok(spent) = spent_today(&self.session.config().home) {
            let dollars = spent.micro_dollars as f64 / 1_000_000.0;
            text.push_str(&format!(
                "\ntoday, all sessions: {} tokens, ${dollars:.4}",
                spent.tokens
            ));
        }
        text
    }

    /// A session that does not exist: the named one, or one with a new name.
    fn free_session(&self, name: Option<String>) -> Result<SessionKey, String> {
        let name = name.unwrap_or_else(|| new_session_name(|name| self.exists(name)));
        if self.exists(&name) {
            return Err(format!(
                "there is a session `{name}` already; /sessions {name} continues it"
            ));
        }
        let key = SessionKey::parse_for_agent(&self.sessions.agent_id, &name)
            .map_err(|error| error.to_string())?;
        let config = self.session.config();
        check_agent(&config.config, &self.sessions.store, &key).map_err(|error| error.message)?;
        Ok(key)
    }

    /// Goes on in a copy of the session.
    fn fork(&mut self, name: Option<String>) -> Result<(), CliError> {
        let key = match self.free_session(name) {
            Ok(key) => key,
            Err(message) => return self.say(&message),
        };
        let before = self.sessions.name_of(self.session.key());
        if let Err(error) = self.sessions.store.fork(self.session.key(), None, &key) {
            return self.say(&error.to_string());
        }
        self.session = self.session.open_beside(key);
        self.say(&format!(
            "`{}` goes on from here; `{before}` stays as it is",
            self.sessions.name_of(self.session.key())
        ))
    }

    /// Makes a session without the last message of the user and what followed, and changes to it. Returns the message.
    pub(super) fn go_back(&mut self) -> Result<Option<String>, CliError> {
        let reader = self.sessions.store.reader(self.session.key())?;
        let rows = match reader {
            Some(reader) => reader.tail(TailLimit::UNLIMITED)?.messages,
            None => Vec::new(),
        };
        let is_message =
            |row: &TranscriptMessage| row.role == Role::User && !row.content.starts_with(RAN);
        let Some(at) = rows.iter().rposition(is_message) else {
            self.say("there is no message to send again")?;
            return Ok(None);
        };
        let key = match self.free_session(None) {
            Ok(key) => key,
            Err(message) => return self.say(&message).map(|()| None),
        };
        let before = self.sessions.name_of(self.session.key());
        if let Some(last) = at.checked_sub(1).and_then(|at| rows.get(at)) {
            self.sessions.store.fork(self.session.key(), Some(last.id), &key)?;
        }
        self.session = self.session.open_beside(key);
        let name = self.sessions.name_of(self.session.key());
        self.say(&format!("once more, in `{name}`; `{before}` stays as it is"))?;
        Ok(Some(rows[at].content.clone()))
    }

    /// Writes the session to a file whose name says the format.
    fn export(&self, file: &str) -> Result<(), CliError> {
        let path = match (file.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(below), Some(home)) => PathBuf::from(home).join(below),
            _ => self.session.config().working_directory().join(file),
        };
        match self.sessions.export_as(self.session.key(), &path) {
            Ok(()) => self.say(&format!("written to {}", path.display())),
            Err(error) => self.say(&error.message),
        }
    }

    /// Puts the last answer into the clipboard, through the terminal.
    fn copy(&self) -> Result<(), CliError> {
        let reader = self.sessions.store.reader(self.session.key())?;
        let rows = match reader {
            Some(reader) => reader.tail(TailLimit::UNLIMITED)?.messages,
            None => Vec::new(),
        };
        let is_answer = |row: &&TranscriptMessage| {
            row.role == Role::Assistant && !row.content.trim().is_empty()
        };
        let Some(answer) = rows.iter().rev().find(is_answer) else {
            return self.say("there is no answer to copy");
        };
        if !matches!(self.view, View::Terminal) {
            return self.say(&answer.content);
        }
        let encoded = BASE64_STANDARD.encode(answer.content.trim_end());
        // OSC 52: terminals that do not know it ignore it.
        let mut stdout = std::io::stdout();
        write!(stdout, "\x1b]52;c;{encoded}\x07")
            .and_then(|()| stdout.flush())
            .map_err(|error| CliError::output(&error))?;
        self.say(&format!(
            "the last answer ({} characters) is in the clipboard, if the terminal allows it (OSC 52)",
            answer.content.trim_end().chars().count()
        ))
    }

    /// Shows or changes the title of the session.
    fn title(&self, title: Option<String>) -> Result<(), CliError> {
        let name = self.sessions.name_of(self.session.key());
        let Some(title) = title else {
            return match self.sessions.title_of(self.session.key()) {
                Some(title) => self.say(&format!("`{name}`: {title}")),
                None => self.say(&format!("`{name}` is empty")),
            };
        };
        match self.sessions.title(&name, Some(&title)) {
            Ok(()) => self.say(&format!("`{name}`: {title}")),
            Err(error) => self.say(&error.message),
        }
    }

    fn describe_config(&self) -> Result<(), CliError> {
        let config = self.session.config();
        let path = config.home.paths.config_file().display().to_string();
        self.say(&format!(
            "config: {path}\nagent: {}\nworkspace: {}\n`myclaw config check` checks it; a change counts from the next chat on",
            config.agent.id,
            config.agent.workspace.display()
        ))
    }

    /// Shows the outputs of the last tools in full, until the user closes them.
    pub(super) async fn unfold(&self) -> Result<(), CliError> {
        let (lines, start) = self.common.page();
        if lines.is_empty() {
            return self.say(pager::NOTHING);
        }
        pager::show_at_prompt(&self.interrupts, &lines, start).await;
        Ok(())
    }
}
