//! `myclaw chat`: a session in the terminal, or line by line without a terminal.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use myclaw_agent::llm::Usage;
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{Driver, Foreground, RunResult, Session, SessionConfig, check_agent, engine};
use tokio_util::sync::CancellationToken;

use crate::args::{ChatArgs, SessionArgs};
use crate::commands::sessions::Sessions;
use crate::exit::{CliError, Exit};
use crate::home::session_config;
use crate::interrupt::Interrupts;
use crate::model::{
    announce, change_model, change_thinking, describe_model, describe_thinking, thinking_difference,
};
use crate::print::{columns, note};
use crate::report::{Verbosity, text_reporter, tokens_and_cost};
use crate::runtime;
use crate::terminal::{Output, Paint, Style, escaped};
use crate::time::{local_minute, new_session_name};
use command::{Command, HELP, Parsed};
use display::Display;
use editor::Editor;
use input::{Input, Source, next_input};
use lines::Lines;
use talk::{Leftover, Talker};

mod command;
mod compaction;
mod completion;
mod display;
mod editor;
mod input;
mod lines;
mod skill;
mod talk;
mod typed;

/// Sessions that `/sessions` lists.
const LISTED_SESSIONS: usize = 20;

/// The output for answers.
enum View {
    /// A terminal that is drawn on.
    Terminal,
    /// Plain text, as `myclaw run` prints it.
    Plain(Arc<Output>),
}

/// Runs the chat until the user leaves.
pub(crate) fn run(args: &ChatArgs) -> Result<(), CliError> {
    let config = session_config(&args.session)?;
    let interrupts = Interrupts::install()?;
    runtime::block_on(async {
        let mut chat = Chat::begin(config, interrupts, &args.session).await?;
        chat.converse().await
    })?
}

struct Chat {
    interrupts: Interrupts,
    sessions: Sessions,
    session: Arc<Session>,
    view: View,
    /// Fires when standard output is closed; each turn's token is a child.
    closed: CancellationToken,
    usage: Usage,
    turns: u32,
    /// Text typed during the last turn that is not handled yet.
    leftover: Leftover,
}

impl Chat {
    async fn begin(
        config: SessionConfig,
        interrupts: Interrupts,
        args: &SessionArgs,
    ) -> Result<Self, CliError> {
        let sessions = Sessions::of_agent(&config);
        let driver = Driver::foreground(engine(config.home.http_options()), None);
        let session = Session::open(driver, config, &args.options());
        let selection = session.selection().await?;
        announce(&selection, Verbosity::Normal);
        let closed = CancellationToken::new();
        let view = if is_interactive() {
            View::Terminal
        } else {
            View::Plain(Arc::new(Output::stdout(closed.clone())))
        };
        if let Some(line) = thinking_difference(&session, &selection) {
            note(format_args!("myclaw: {line}"));
        }
        Ok(Self {
            interrupts,
            sessions,
            session,
            view,
            closed,
            usage: Usage::default(),
            turns: 0,
            leftover: Leftover::default(),
        })
    }

    async fn converse(&mut self) -> Result<(), CliError> {
        let mut source = match self.view {
            View::Terminal => {
                self.greet().await?;
                Source::Editor(Box::new(Editor::new(self.session.config())))
            }
            View::Plain(_) => Source::Lines(Lines::new()),
        };
        self.tell_what_waits().await?;
        let mut first_failure = None;
        loop {
            let (input, returned) =
                next_input(source, std::mem::take(&mut self.leftover.unsent)).await?;
            source = returned;
            let Input::Text(text) = input else { break };
            match command::parse(&text) {
                Parsed::Command(Command::Quit) => break,
                Parsed::Command(command) if !command.is_work() => self.obey(command).await?,
                Parsed::Unknown(message) => self.say(&message)?,
                work => {
                    if let Err(error) = self.work(work).await {
                        first_failure.get_or_insert(self.survive(error).await?);
                    }
                    if self.leftover.wants_to_leave || self.interrupts.is_ending() {
                        break;
                    }
                }
            }
        }
        match first_failure {
            // The exit code reports a missing answer to scripts; a person has seen the message.
            Some(exit) if !io::stdin().is_terminal() => {
                Err(CliError { exit, ..CliError::failure("not every message was answered") })
            }
            _ => Ok(()),
        }
    }

    /// Executes a command that calls a model.
    async fn work(&mut self, work: Parsed) -> Result<(), CliError> {
        match work {
            Parsed::Message(message) => self.turns(Some(message)).await,
            Parsed::Command(Command::Compact(focus)) => self.compact(focus).await,
            Parsed::Command(Command::Skill(Some(argument))) => {
                match skill::request(self.session.config(), &argument) {
                    Ok(message) => self.turns(Some(message)).await,
                    Err(message) => self.say(&message),
                }
            }
            _ => self.turns(None).await,
        }
    }

    /// Prints a failure after which the chat can continue, and returns its exit code. Returns any other failure.
    async fn survive(&self, error: CliError) -> Result<Exit, CliError> {
        let is_given_up = error.exit == Exit::Aborted
            && (self.interrupts.is_ending() || !io::stdin().is_terminal());
        if error.is_silent() || is_given_up {
            return Err(error);
        }
        note(format_args!("myclaw: {error}"));
        self.tell_what_waits().await?;
        Ok(error.exit)
    }

    /// Runs a turn, and another one for messages sent at the very end of the first.
    async fn turns(&mut self, message: Option<String>) -> Result<(), CliError> {
        self.turn(message).await?;
        if !self.session.pending().await?.is_empty() {
            self.turn(None).await?;
        }
        Ok(())
    }

    /// Runs one turn and shows it.
    async fn turn(&mut self, message: Option<String>) -> Result<(), CliError> {
        let cancel = self.closed.child_token();
        let armed = self.interrupts.arm(cancel.clone());
        let run = async |on_event| {
            let foreground = Foreground { cancel: cancel.clone(), on_event };
            Ok::<_, CliError>(self.session.run(message, foreground).await?)
        };
        let outcome = match &self.view {
            View::Terminal => {
                let display = Display::new(self.closed.clone());
                let mut talker = Talker::listen();
                let talk = talker.talk(&self.session, &display);
                let talked = with_talk(run(display.callback()), talk);
                let outcome = armed.unless_quit(display.drawing(talked)).await;
                display.finish();
                self.leftover = talker.finish();
                outcome
            }
            View::Plain(output) => {
                let reporter = text_reporter(Arc::clone(output), Verbosity::Normal);
                let outcome = armed.unless_quit(output.flushing(run(reporter))).await;
                output.end_line();
                output.flush();
                if let Some(error) = output.take_failure() {
                    return Err(CliError::output(&error));
                }
                outcome
            }
        };
        let result = outcome?;
        self.usage.add_call(&result.usage);
        self.turns += 1;
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        match command {
            // These are handled by the loop of the chat and by the code that runs turns.
            Command::Quit | Command::Continue | Command::Compact(_) | Command::Skill(Some(_)) => {
                Ok(())
            }
            Command::Help => self.say(HELP),
            Command::New(name) => self.begin_session(name),
            Command::Model(None) => self.say(&describe_model(&self.session).await?),
            Command::Model(Some(name)) => {
                let changed = change_model(&self.session, &name).await;
                self.say(&changed.unwrap_or_else(|error| error.message))
            }
            Command::Thinking(None) => self.say(&describe_thinking(&self.session).await?),
            Command::Thinking(Some(level)) => {
                let changed = change_thinking(&self.session, &level).await;
                self.say(&changed.unwrap_or_else(|error| error.message))
            }
            Command::Sessions(None) => self.list_sessions(),
            Command::Sessions(Some(name)) => {
                self.continue_session(&name)?;
                self.tell_what_waits().await
            }
            Command::Skill(None) => self.say(&skill::list(self.session.config())),
            Command::Queue(None) => {
                let pending = self.session.pending().await?;
                self.say(&talk::list(&pending))
            }
            Command::Queue(Some(number)) => {
                let answer = talk::drop_one(&self.session, number).await?;
                self.say(&answer)
            }
            Command::Usage => self.say(&self.describe_usage()),
        }
    }

    /// Prints how many messages an earlier turn left unanswered, if input is interactive.
    async fn tell_what_waits(&self) -> Result<(), CliError> {
        let View::Terminal = self.view else { return Ok(()) };
        let text = match self.session.pending().await?.len() {
            0 => return Ok(()),
            1 => "1 message waits to be answered".to_owned(),
            count => format!("{count} messages wait to be answered"),
        };
        self.say(&format!(
            "{text}: with your next message, or now with /continue; /queue lists them"
        ))
    }

    fn begin_session(&mut self, name: Option<String>) -> Result<(), CliError> {
        let before = self.sessions.name_of(self.session.key());
        let name = name.unwrap_or_else(|| new_session_name(|name| self.exists(name)));
        if self.exists(&name) {
            return self.say(&format!(
                "there is a session `{name}` already; /sessions {name} continues it"
            ));
        }
        match SessionKey::parse_for_agent(&self.sessions.agent_id, &name) {
            Ok(key) => match check_agent(&self.session.config().config, &self.sessions.store, &key)
            {
                Ok(()) => self.session = self.session.open_beside(key),
                Err(error) => return self.say(&error.message),
            },
            Err(error) => return self.say(&error.to_string()),
        }
        self.say(&format!(
            "new session `{}`; the one before is kept as `{before}`",
            self.sessions.name_of(self.session.key())
        ))
    }

    fn exists(&self, name: &str) -> bool {
        SessionKey::parse_for_agent(&self.sessions.agent_id, name)
            .is_ok_and(|key| self.sessions.store.exists(&key))
    }

    fn continue_session(&mut self, name: &str) -> Result<(), CliError> {
        match self.sessions.find(name) {
            Ok(key) => {
                self.session = self.session.open_beside(key);
                self.say(&format!("continuing `{}`", self.sessions.name_of(self.session.key())))
            }
            Err(error) => self.say(&error.message),
        }
    }

    fn list_sessions(&self) -> Result<(), CliError> {
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
        text
    }

    async fn greet(&self) -> Result<(), CliError> {
        let paint = Paint::for_stream(&io::stdout());
        let head = paint.paint(Style::Heading, concat!("myclaw ", env!("CARGO_PKG_VERSION")));
        let model = self.session.selection().await?.reference.to_string();
        let session = self.sessions.name_of(self.session.key());
        let line =
            format!("{head}  {}, session `{}`, /help for help", escaped(&model), escaped(&session));
        put_line(&line)
    }

    /// Prints a message of the program itself.
    fn say(&self, text: &str) -> Result<(), CliError> {
        match &self.view {
            View::Terminal => put_line(&escaped(text)),
            View::Plain(output) => {
                output.push_text(text);
                output.end_line();
                output.flush();
                output.take_failure().map_or(Ok(()), |error| Err(CliError::output(&error)))
            }
        }
    }
}

/// Writes a line of the program itself to the terminal.
fn put_line(line: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| CliError::output(&error))
}

/// Whether lines can be edited and drawn on a terminal.
fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// Runs a turn while the user can type.
async fn with_talk(
    run: impl Future<Output = Result<RunResult, CliError>>,
    talk: impl Future<Output = Infallible>,
) -> Result<RunResult, CliError> {
    tokio::select! {
        biased;
        outcome = run => outcome,
        never = talk => match never {},
    }
}
