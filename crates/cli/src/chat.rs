//! `myclaw chat`: a session in the terminal, or line by line without a terminal.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use myclaw_agent::llm::Usage;
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::tools::WhichTurn;
use myclaw_agent::{
    AgentRunEvent, Approver, Driver, Foreground, RunEvent, RunResult, Session, SessionConfig,
    UndoMode, check_agent, engine,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::approval::{Asked, TerminalApprover, questions};
use crate::args::{ChatArgs, SessionArgs};
use crate::commands::sessions::Sessions;
use crate::commands::sessions::undo::describe;
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
use jobs::JobBell;
use lines::Lines;
use talk::{Leftover, Talker};

pub(crate) mod attach;
mod command;
mod compaction;
mod completion;
mod display;
mod editor;
mod input;
mod jobs;
mod lines;
mod shown;
mod skill;
mod talk;
mod typed;

/// Most sessions that `/sessions` lists.
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
        let outcome = chat.converse().await;
        chat.session.config().close_jobs(&|event| print_notice(&event)).await;
        outcome
    })?
}

struct Chat {
    interrupts: Interrupts,
    sessions: Sessions,
    session: Arc<Session>,
    view: View,
    /// Fires when standard output is closed; each turn's token is a child.
    closed: CancellationToken,
    /// The questions about calls that need an approval.
    questions: mpsc::Receiver<Asked>,
    usage: Usage,
    turns: u32,
    /// Text that was typed during the last turn and is not handled yet.
    leftover: Leftover,
    /// Signals that a background job has ended.
    bell: JobBell,
}

impl Chat {
    async fn begin(
        config: SessionConfig,
        interrupts: Interrupts,
        args: &SessionArgs,
    ) -> Result<Self, CliError> {
        let sessions = Sessions::of_agent(&config);
        let bell = JobBell::default();
        config.wake_for_jobs(bell.wake());
        let jobs = config.clone();
        interrupts.before_leaving(move || jobs.kill_jobs_now());
        let closed = CancellationToken::new();
        let (asking, questions) = questions();
        let (view, approver): (_, Option<Arc<dyn Approver>>) = if is_interactive() {
            (View::Terminal, Some(asking))
        } else {
            let output = Arc::new(Output::stdout(closed.clone()));
            let approver = TerminalApprover::on_terminal(&output);
            (View::Plain(output), approver)
        };
        let driver = Driver::foreground(engine(config.home.http_options()), approver);
        let session = Session::open(driver, config, &args.options());
        let selection = session.selection().await?;
        announce(&selection, Verbosity::Normal);
        if let Some(line) = thinking_difference(&session, &selection) {
            note(format_args!("myclaw: {line}"));
        }
        Ok(Self {
            interrupts,
            sessions,
            session,
            view,
            closed,
            questions,
            usage: Usage::default(),
            turns: 0,
            leftover: Leftover::default(),
            bell,
        })
    }

    async fn converse(&mut self) -> Result<(), CliError> {
        let mut source = match self.view {
            View::Terminal => {
                self.greet().await?;
                let breaks = Arc::clone(&self.bell.breaks_editor);
                Source::Editor(Box::new(Editor::of_chat(&self.session.config(), breaks)))
            }
            View::Plain(_) => Source::Lines(Lines::new()),
        };
        self.tell_what_waits().await?;
        let mut first_failure = None;
        loop {
            let (input, returned) = self.input(source).await?;
            source = returned;
            let text = match input {
                Input::Text(text) => text,
                Input::Leave => break,
                Input::JobEnded => {
                    // The prompt stays on the screen; further output begins on a line of its own.
                    put_line("")?;
                    self.answer_jobs().await?;
                    if self.leftover.wants_to_leave || self.interrupts.is_ending() {
                        break;
                    }
                    continue;
                }
            };
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
            // For scripts the exit code reports a missing answer. A user at a terminal has seen the message.
            Some(exit) if !io::stdin().is_terminal() => {
                Err(CliError { exit, ..CliError::failure("not every message was answered") })
            }
            _ => Ok(()),
        }
    }

    /// Waits for the user. Without a line editor, turns for ended jobs run meanwhile.
    async fn input(&mut self, source: Source) -> Result<(Input, Source), CliError> {
        let unsent = std::mem::take(&mut self.leftover.unsent);
        let mut reading = std::pin::pin!(next_input(source, unsent));
        let bell = self.bell.clone();
        loop {
            tokio::select! {
                biased;
                input = &mut reading => return input,
                () = bell.rung(), if matches!(self.view, View::Plain(_)) => {
                    self.answer_jobs().await?;
                }
            }
        }
    }

    /// Runs a turn for the messages about ended jobs, unless a turn has read them. They may belong to another session.
    async fn answer_jobs(&mut self) -> Result<(), CliError> {
        if !self.session.pending().await?.is_empty()
            && let Err(error) = self.turns(None).await
        {
            self.survive(error).await?;
        }
        Ok(())
    }

    /// Executes a command that calls a model.
    async fn work(&mut self, work: Parsed) -> Result<(), CliError> {
        match work {
            Parsed::Message(message) => self.turns(Some(message)).await,
            Parsed::Command(Command::Compact(focus)) => self.compact(focus).await,
            Parsed::Command(Command::Skill(Some(argument))) => {
                match skill::request(&self.session.config(), &argument) {
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
                let talk = talker.talk(&self.session, &display, &mut self.questions);
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

/// Prints a notice of the program itself.
fn print_notice(event: &RunEvent) {
    if let AgentRunEvent::Notice(notice) = &event.kind {
        note(format_args!("myclaw: {}", escaped(&notice.to_string())));
    }
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
