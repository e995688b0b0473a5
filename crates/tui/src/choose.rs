//! What the user chooses from a list: the session and the model.

use std::sync::Arc;

use myclaw_session::SessionKey;

use super::{Chat, View, is_interactive};
use crate::model_picker;
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::model::describe_model;
use myclaw_front::picker::Choices as _;
use myclaw_front::print::{Printer, note};
use myclaw_front::resume::SessionChoices;
use myclaw_front::sessions::Sessions;
use myclaw_front::sessions::search::{HitChoices, described};
use myclaw_front::start::{Start, Wanted};

/// The session that the user chooses from a list before the chat begins; `None` if they leave it, or there is no terminal
/// to choose on.
///
/// # Errors
/// There are no sessions, or they cannot be read.
pub(super) async fn session(
    start: Start,
    interrupts: &Interrupts,
    args: &SessionArgs,
) -> Result<Option<Start>, CliError> {
    let sessions = Sessions::of_agent(&start.config);
    let choices = SessionChoices::read(&sessions, start.config.directory.as_deref())?;
    if choices.is_empty() {
        return Err(CliError::session("there are no sessions yet; `myclaw` begins one"));
    }
    if !is_interactive() {
        let mut printer = Printer::stdout();
        printer.safe_lines(choices.lines().iter().map(String::as_str))?;
        printer.finish()?;
        note("myclaw: there is no terminal to choose on; --session NAME continues one of these");
        return Ok(None);
    }
    let Some(key) = choices.pick(interrupts).await else { return Ok(None) };
    let args = SessionArgs { session: Some(key.to_string()), ..args.clone() };
    let (home, config) = (start.config.home.clone(), Arc::clone(&start.config.config));
    Start::find(home, config, &args, Wanted::Usual).map(Some)
}

impl Chat {
    /// Lets the user choose a session, where there is a terminal to choose on.
    pub(super) async fn choose_session(&mut self) -> Result<(), CliError> {
        if !matches!(self.view, View::Terminal) {
            return self.say(&self.facts().list_sessions()?);
        }
        let directory = self.session.config().directory.clone();
        let choices = SessionChoices::read(&self.sessions, directory.as_deref())?;
        if choices.is_empty() {
            return self.say("no sessions yet");
        }
        let Some(key) = choices.pick(&self.interrupts).await else { return Ok(()) };
        self.continue_session(key.as_str()).await
    }

    /// Shows the messages that have a text, and goes on in the session of the one that the user chooses.
    pub(super) async fn search(&mut self, text: &str) -> Result<(), CliError> {
        if !matches!(self.view, View::Terminal) {
            return self.sessions.search_for(text);
        }
        let found = match HitChoices::find(&self.sessions, text) {
            Ok(found) if found.count() == 0 => return self.say("nothing was found"),
            Ok(found) => found,
            Err(error) => return self.say(&error.message),
        };
        let Some(hit) = found.pick(&self.interrupts).await else { return Ok(()) };
        if hit.key != *self.session.key() {
            self.continue_session(hit.key.as_str()).await?;
        }
        match hit.key == *self.session.key() {
            true => self.say(&described(hit)),
            false => Ok(()),
        }
    }

    /// Lets the user choose a model, where there is a terminal to choose on.
    pub(super) async fn choose_model(&mut self) -> Result<(), CliError> {
        let text = match self.view {
            View::Terminal => model_picker::choose(&self.session, &self.interrupts).await?,
            View::Plain(_) => Some(describe_model(&self.session).await?),
        };
        text.map_or(Ok(()), |text| self.say(&text))
    }

    /// The key, if the directory of the session is still there.
    pub(super) fn with_its_directory(&self, key: SessionKey) -> Result<SessionKey, CliError> {
        match self.sessions.catalog.directory_of(&key)? {
            Some(directory) if !directory.is_dir() => Err(CliError::session(format!(
                "`{}` works in {}, which is no directory any more",
                self.sessions.name_of(&key),
                directory.display()
            ))),
            _ => Ok(key),
        }
    }
}
