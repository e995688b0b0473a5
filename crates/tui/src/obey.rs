//! The commands of the chat that call no model.

use std::io::Write;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_agent::{UndoMode, check_agent, undone_in_words};
use myclaw_config::ThemeName;
use myclaw_session::{Role, SessionKey, TailLimit, TranscriptMessage};
use myclaw_tools::{Direction, WhichTurn};

use super::back::GoesBack;
use super::command::Command;
use super::facts::Facts;
use super::input::Wake;
use super::{Chat, View, jobs, put_line, queue, status, talk, theme};
use myclaw_front::exit::CliError;
use myclaw_front::mode::{change_mode, next_mode};
use myclaw_front::model::{change_model, change_thinking};
use myclaw_front::pager;
use myclaw_front::time::new_session_name;

impl Chat {
    /// Executes a command.
    ///
    /// # Errors
    /// Standard output is closed, or the session cannot be read.
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        if command == Command::Model(None) {
            return self.choose_model().await;
        }
        match self.facts().answer(&command).await {
            Ok(None) => {}
            Ok(Some(answer)) => return self.say(&answer),
            Err(error) => return self.say(&error.message),
        }
        match command {
            // These are handled above.
            Command::Help
            | Command::Model(None)
            | Command::Thinking(None)
            | Command::Mode(None)
            | Command::Todos
            | Command::Diff
            | Command::Questions
            | Command::Sessions(None)
            | Command::Skill(None)
            | Command::Agents
            | Command::Usage
            | Command::Context
            | Command::Title(None)
            | Command::Memory(_)
            | Command::Config => Ok(()),
            // These are handled by the loop of the chat and by the code that runs turns.
            Command::Quit
            | Command::Continue
            | Command::Retry
            | Command::Compact(_)
            | Command::Aside(_)
            | Command::Skill(Some(_)) => Ok(()),
            Command::New(name) => self.begin_session(name),
            Command::Model(Some(name)) => {
                self.say_changed(change_model(&self.session, &name).await)
            }
            Command::Thinking(Some(level)) => {
                if let Some(answer) = talk::show_thinking(&self.common, &level) {
                    return self.say(answer);
                }
                self.say_changed(change_thinking(&self.session, &level).await)
            }
            Command::Mode(Some(name)) => self.say_changed(change_mode(&self.session, &name).await),
            Command::Sessions(Some(name)) => self.continue_session(&name).await,
            Command::Resume => self.choose_session().await,
            Command::Queue(None) => {
                let pending = self.session.pending().await?;
                self.say(&queue::list(&pending))
            }
            Command::Queue(Some(number)) => {
                let answer = queue::drop_one(&self.session, number).await?;
                self.say(&answer)
            }
            Command::Undo(direction) => self.undo(direction).await,
            Command::Jobs(None) => self.say(&jobs::list(&self.session).await),
            Command::Jobs(Some(id)) => self.say(&jobs::kill(&self.session, &id).await),
            Command::Mcp(command) => {
                let answer = command.run(&self.session.config()).await;
                self.say(&answer)
            }
            Command::Goal(order) => self.goal(&order),
            Command::Fork(name) => self.fork(name),
            Command::Tree => self.tree().await,
            Command::Back(what) => self.choose_and_go_back(what).await,
            Command::Export(file) => self.export(&file),
            Command::Copy => self.copy(),
            Command::Title(Some(title)) => self.title(&title),
            Command::Theme(None) => self.say(&theme::list(self.theme())),
            Command::Theme(Some(name)) => {
                let (theme, said) = theme::change(&self.session.config().home, &name).await;
                self.common.set_theme(theme);
                self.say(&said)
            }
            Command::Search(text) => self.search(&text).await,
        }
    }

    /// Says what a change did, or why it failed.
    fn say_changed(&self, changed: Result<String, CliError>) -> Result<(), CliError> {
        self.say(&changed.unwrap_or_else(|error| error.message))
    }

    fn theme(&self) -> ThemeName {
        self.common.theme(self.session.config().config.terminal.theme)
    }

    /// Undoes the changes of a turn, or makes them again.
    async fn undo(&mut self, direction: Direction) -> Result<(), CliError> {
        let mode = UndoMode::Apply;
        let undone = self.session.undo(direction, WhichTurn::Next, mode).await;
        self.say(&match undone {
            Ok(undone) => undone_in_words(&undone, direction, mode),
            Err(error) => error.message,
        })
    }

    /// Brings the status line up to date.
    ///
    /// # Errors
    /// No model can be used.
    pub(super) async fn refresh_status(&self) -> Result<(), CliError> {
        let selection = self.session.selection().await?;
        self.common.work_in(self.session.config().working_directory());
        let mut status = self.common.status();
        status.get_or_insert_default().refresh(&self.session, &selection, &self.sessions);
        Ok(())
    }

    /// The same, and asks the owner's command for the line, if there is one.
    ///
    /// # Errors
    /// As [`Chat::refresh_status`], and that standard output is closed.
    pub(super) async fn status_at_prompt(&self) -> Result<(), CliError> {
        self.refresh_status().await?;
        let config = self.session.config();
        let Some(command) = &config.config.terminal.status_command else { return Ok(()) };
        let facts = self.common.status().as_ref().map(status::Status::facts).unwrap_or_default();
        let printed = status::printed(command, &config.home, &facts).await;
        let problem = printed.as_ref().err().cloned();
        if let Some(status) = self.common.status().as_mut() {
            status.printed = printed.ok();
        }
        match problem.filter(|problem| self.common.is_news(problem)) {
            Some(problem) => self.say(&problem),
            None => Ok(()),
        }
    }

    /// Does what a key at the prompt asks for.
    ///
    /// # Errors
    /// Standard output is closed, or the session cannot be read.
    pub(super) async fn obey_key(&mut self, key: Wake) -> Result<(), CliError> {
        match key {
            Wake::Unfold => self.unfold().await,
            Wake::Back => {
                put_line("")?;
                self.choose_and_go_back(GoesBack::Talk).await
            }
            Wake::Thinking => {
                put_line("")?;
                self.say(self.common.toggle_thinking())
            }
            Wake::Mode => {
                put_line("")?;
                self.say_changed(next_mode(&self.session).await)
            }
            // The loop of the chat answers the jobs.
            Wake::News => Ok(()),
        }
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        let Self { session, sessions, common, turns, .. } = self;
        Facts { session, sessions, common, turns: *turns }
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
    pub(super) fn forget_context(&self) {
        self.common.set_plan(None);
        self.common.show_goal(None);
        if let Some(status) = self.common.status().as_mut() {
            status.used = 0;
        }
    }

    fn exists(&self, name: &str) -> bool {
        SessionKey::parse_for_agent(&self.sessions.agent_id, name)
            .is_ok_and(|key| self.sessions.catalog.exists(&key))
    }

    pub(super) async fn continue_session(&mut self, name: &str) -> Result<(), CliError> {
        match self.sessions.find(name).and_then(|key| self.with_its_directory(key)) {
            Ok(key) => {
                self.session = self.session.open_beside(key);
                self.forget_context();
                let name = self.sessions.name_of(self.session.key());
                self.say(&format!("continuing `{name}`"))?;
                self.show_end()?;
                self.tell_what_waits_at_opening().await
            }
            Err(error) => self.say(&error.message),
        }
    }

    /// A session that does not exist: the named one, or one with a new name.
    pub(super) fn free_session(&self, name: Option<String>) -> Result<SessionKey, String> {
        let name = name.unwrap_or_else(|| new_session_name(|name| self.exists(name)));
        if self.exists(&name) {
            return Err(format!(
                "there is a session `{name}` already; /sessions {name} continues it"
            ));
        }
        let key = SessionKey::parse_for_agent(&self.sessions.agent_id, &name)
            .map_err(|error| error.to_string())?;
        let config = self.session.config();
        check_agent(&config.config, &*self.sessions.catalog, &key)
            .map_err(|error| error.message)?;
        Ok(key)
    }

    /// Goes on in a copy of the session.
    fn fork(&mut self, name: Option<String>) -> Result<(), CliError> {
        let key = match self.free_session(name) {
            Ok(key) => key,
            Err(message) => return self.say(&message),
        };
        let before = self.sessions.name_of(self.session.key());
        if let Err(error) = self.sessions.catalog.fork(self.session.key(), None, &key) {
            return self.say(&error.to_string());
        }
        self.session = self.session.open_beside(key);
        self.say(&format!(
            "`{}` goes on from here; `{before}` stays as it is",
            self.sessions.name_of(self.session.key())
        ))
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
        let reader = self.sessions.catalog.read(self.session.key())?;
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

    /// Changes the title of the session.
    fn title(&self, title: &str) -> Result<(), CliError> {
        if !self.sessions.catalog.exists(self.session.key()) {
            return self
                .say("the session begins with your first message; give it a title after that");
        }
        let name = self.sessions.name_of(self.session.key());
        match self.sessions.title(&name, Some(title)) {
            Ok(()) => self.say(&format!("`{name}`: {title}")),
            Err(error) => self.say(&error.message),
        }
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
