//! `myclaw chat`: a session in the terminal, or line by line without a terminal.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use myclaw_agent::subagents::SubagentTools;
use myclaw_agent::{Foreground, Session, SessionEvent, engine, thinking_difference};
use myclaw_engine::{Approver, Bound, EventCallback};
use myclaw_gateway_client::RemoteTools;
use myclaw_llm::ContentBlock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use aside::TurnWork;
use command::{Command, Parsed};
use display::Display;
use editor::Editor;
use facts::Facts;
use input::{Input, Source, Wake, next_input};
use jobs::JobBell;
use lines::Lines;
use myclaw_front::approval::{Asked, TerminalApprover, questions};
use myclaw_front::args::SessionArgs;
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::home::{find_home, is_shared, load_config};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::model::announce;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::runtime;
use myclaw_front::sessions::Sessions;
use myclaw_front::start::{Start, Wanted};
use myclaw_front::terminal::images::shown_picture;
use myclaw_front::terminal::{Output, Size, Title, escaped, set_title, wrapped};
use myclaw_front::text_report::text_reporter;
use myclaw_front::worktree::{self, Entered};
use outputs::{Common, View};
use talk::{Leftover, Talker};

mod args;
mod aside;
pub mod attach;
mod attention;
mod back;
mod choose;
mod clipboard;
mod command;
mod compaction;
mod completion;
mod custom;
mod display;
mod editor;
mod facts;
mod footer;
mod goal;
mod input;
mod jobs;
mod limit;
mod lines;
mod model_picker;
mod obey;
mod outputs;
mod pastes;
mod paths;
mod plan_lines;
mod queue;
mod shell;
mod skill;
mod soft_wrap;
mod status;
mod talk;
mod theme;
mod tool_lines;
mod typed;
pub mod watch;
mod welcome;

pub use args::{AttachArgs, ChatArgs};

/// Runs the chat until the user leaves.
pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let config = load_config(&home)?;
    if is_interactive() && is_shared(&home, &config) {
        return attach::run_chat(args);
    }
    let wanted = if args.resume.continue_last { Wanted::Last } else { Wanted::Usual };
    let Entered { worktree, session, wanted } =
        worktree::enter(&args.worktree, &args.session, wanted)?;
    let start = Start::find(home, config, &session, wanted)?;
    let pictures = attachments::named(&args.images.paths)?;
    let interrupts = Interrupts::install()?;
    interrupts.limit_turns();
    runtime::block_on(async {
        let mut start = match args.resume.resume {
            true => match choose::session(start, &interrupts, &args.session).await? {
                Some(start) => start,
                None => return Ok(()),
            },
            false => start,
        };
        if is_interactive() {
            start.config = start.config.attended();
        }
        let mut chat = Chat::begin(start, interrupts, &args.session).await?;
        chat.pictures = pictures;
        let outcome = chat.converse(args.message.join(" ")).await;
        if let View::Terminal = chat.view {
            set_title(Title::Restore);
        }
        chat.session.config().close_jobs(&|event| jobs::print_notice(&event)).await;
        if let Some(worktree) = worktree {
            worktree.finish().await;
        }
        outcome
    })?
}

struct Chat {
    /// The line that shows the project and the session; none in the workspace.
    place: Option<String>,
    interrupts: Interrupts,
    sessions: Sessions,
    session: Arc<Session>,
    view: View,
    /// Fires when standard output is closed; each turn's token is a child.
    closed: CancellationToken,
    /// The questions about calls that need an approval.
    questions: mpsc::Receiver<Asked>,
    turns: u32,
    /// Text that was typed during the last turn and is not handled yet.
    leftover: Leftover,
    /// Signals that a background job has ended.
    bell: JobBell,
    /// What the display, the prompt and the commands share.
    common: Arc<Common>,
    /// The pictures that belong to the next message.
    pictures: Vec<Attachment>,
    /// The limit that ended the last turn.
    reached: Option<Bound>,
}

impl Chat {
    async fn begin(
        start: Start,
        interrupts: Interrupts,
        args: &SessionArgs,
    ) -> Result<Self, CliError> {
        let place = start.line();
        let config = start.config;
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
            let approver = TerminalApprover::on_terminal(&output).map(|approver| approver as _);
            (View::Plain(output), approver)
        };
        let engine = engine(config.home.http_options());
        let events = Arc::new(|_: &_, _: SessionEvent<'_>| {});
        let (driver, subagents) = SubagentTools::drive(
            engine,
            CancellationToken::new(),
            events,
            approver,
            Some(RemoteTools::with(None)),
        );
        let session = Session::open(driver, config, &args.options());
        let selection = session.selection().await?;
        announce(&selection, Verbosity::Normal);
        if let Some(line) = thinking_difference(&session, &selection) {
            note(format_args!("myclaw: {line}"));
        }
        subagents.take_up(&session.config());
        session.notice_reminders();
        Ok(Self {
            place,
            interrupts,
            sessions,
            session,
            view,
            closed,
            questions,
            turns: 0,
            leftover: Leftover::default(),
            bell,
            common: Arc::default(),
            pictures: Vec::new(),
            reached: None,
        })
    }

    /// Talks until the user leaves. A `first` message that is not blank is sent at once.
    async fn converse(&mut self, mut first: String) -> Result<(), CliError> {
        let mut source = match self.view {
            View::Terminal => {
                let early = self.look_at_terminal().await;
                self.greet().await?;
                self.keep_early(&early, &mut first);
                let breaks = Arc::clone(&self.bell.breaks_editor);
                Source::Editor(Box::new(Editor::of_chat(
                    &self.session.config(),
                    breaks,
                    Arc::clone(&self.common),
                )))
            }
            View::Plain(_) => Source::Lines(Lines::new()),
        };
        self.tell_what_waits_at_opening().await?;
        let mut first_failure = None;
        let mut first = Some(first).filter(|first| !first.trim().is_empty());
        loop {
            if self.interrupts.is_ending() {
                // The signal came while a command of the user ran, or a page was shown.
                return Err(CliError::quit());
            }
            let input = match first.take() {
                Some(text) => {
                    self.echo(&text)?;
                    Input::Text(text)
                }
                None => {
                    let (input, returned) = self.input(source).await?;
                    source = returned;
                    input
                }
            };
            let text = match input {
                Input::Text(text) => text,
                Input::Leave => break,
                Input::Wake(Wake::News) => {
                    // The prompt stays on the screen; further output begins on a line of its own.
                    put_line("")?;
                    self.answer_jobs().await?;
                    if self.leftover.wants_to_leave || self.interrupts.is_ending() {
                        break;
                    }
                    continue;
                }
                Input::Wake(key) => {
                    self.obey_key(key).await?;
                    continue;
                }
            };
            match custom::parse(&self.session.config(), &text) {
                Parsed::Command(Command::Quit) => break,
                Parsed::Command(command) if !command.is_work() => self.obey(command).await?,
                Parsed::Unknown(message) => self.say(&message)?,
                Parsed::Shell(line) => self.shell(&line).await?,
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
        if let View::Terminal = self.view {
            self.status_at_prompt().await?;
            if std::mem::take(&mut self.leftover.is_unfolded) {
                self.unfold().await?;
                if self.interrupts.is_ending() {
                    return Err(CliError::quit());
                }
            }
        }
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
            Parsed::Image(message) => {
                let config = self.session.config();
                match attachments::check_first(&message, config.working_directory()) {
                    Ok(()) => self.turns(Some(message)).await,
                    Err(problem) => self.say(&problem),
                }
            }
            Parsed::Command(Command::Retry) => match self.go_back().await? {
                Some(message) => self.turns(Some(message)).await,
                None => Ok(()),
            },
            Parsed::Command(Command::Goal(order)) => self.pursue(&order).await,
            Parsed::Command(Command::Aside(question)) => self.turn(TurnWork::Aside(question)).await,
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
        let mut turned = self.turn(TurnWork::Session(message)).await;
        while let Some(bound) = self.reached.take().filter(|bound| limit::may_go_on(*bound)) {
            let View::Terminal = self.view else { break };
            let leaves = self.interrupts.is_ending() || self.leftover.wants_to_leave;
            if leaves || !self.asks_to_go_on(bound).await? {
                break;
            }
            turned = self.turn(TurnWork::Session(Some(limit::GO_ON.to_owned()))).await;
        }
        turned?;
        if !self.session.pending().await?.is_empty() {
            self.turn(TurnWork::Session(None)).await?;
        }
        Ok(())
    }

    /// The content of a message: its text, with the pictures that it names.
    async fn content(&mut self, text: String) -> Result<Vec<ContentBlock>, CliError> {
        let place = self.session.config().working_directory().to_owned();
        let (found, problems) = attachments::mentioned(&text, &place).await;
        for problem in problems {
            self.say(&problem)?;
        }
        let mut pictures = std::mem::take(&mut self.pictures);
        pictures.extend(found);
        for picture in &pictures {
            self.say(&picture.line())?;
            if let (View::Terminal, Some(shown)) = (&self.view, shown_picture(picture.path())) {
                put_line(shown.trim_end())?;
            }
        }
        let content = attachments::content(pictures, text);
        let (content, problems) = self.session.config().with_server_texts(content).await?;
        problems.iter().try_for_each(|problem| self.say(problem))?;
        Ok(content)
    }

    /// Runs one turn and shows it.
    async fn turn(&mut self, work: TurnWork) -> Result<(), CliError> {
        let work = self.prepared(work).await?;
        let cancel = self.closed.child_token();
        let armed = self.interrupts.arm(cancel.clone());
        let reached = Cell::new(None);
        let run = async |on_event| {
            let foreground = Foreground { cancel: cancel.clone(), on_event };
            let ended = work.run(&self.session, foreground).await;
            reached.set(ended.as_ref().err().and_then(limit::reached));
            Ok::<_, CliError>(ended?)
        };
        self.common.attention.begin();
        let outcome = match &self.view {
            View::Terminal => {
                self.refresh_status().await?;
                set_title(Title::Working(&self.title_line()));
                let display = Display::new(self.closed.clone(), Arc::clone(&self.common));
                let mut talker = Talker::listen();
                let facts = Facts {
                    session: &self.session,
                    sessions: &self.sessions,
                    common: &self.common,
                    turns: self.turns,
                };
                let over = CancellationToken::new();
                let talk = talker.talk(&display, &facts, &mut self.questions, &over);
                let run = async {
                    let _over = over.drop_guard_ref();
                    run(display.callback()).await
                };
                let talked = async { tokio::join!(run, talk).0 };
                let outcome = armed.unless_quit(display.drawing(talked)).await;
                display.finish();
                self.leftover.replace(talker.finish());
                set_title(Title::Waiting(&self.title_line()));
                self.common.attention.turn_ended();
                drop(armed);
                self.finish_aside().await?;
                outcome
            }
            View::Plain(output) => {
                let report = text_reporter(Arc::clone(output), Verbosity::Normal);
                let common = Arc::clone(&self.common);
                let reporter: EventCallback = Arc::new(move |event| {
                    common.heed(&event.kind);
                    report(event);
                });
                let outcome = armed.unless_quit(output.flushing(run(reporter))).await;
                output.end_line();
                output.flush();
                if let Some(error) = output.take_failure() {
                    return Err(CliError::output(&error));
                }
                outcome
            }
        };
        self.reached = reached.get();
        outcome?;
        self.turns += 1;
        Ok(())
    }

    /// Shows a message that was given on the command line.
    fn echo(&self, text: &str) -> Result<(), CliError> {
        match self.view {
            View::Terminal => put_line(&format!("You: {}", escaped(text))),
            View::Plain(_) => Ok(()),
        }
    }

    /// What the title of the terminal says: where the tools work.
    fn title_line(&self) -> String {
        let config = self.session.config();
        let name = config.working_directory().file_name();
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Prints a message of the program itself.
    fn say(&self, text: &str) -> Result<(), CliError> {
        match &self.view {
            View::Terminal => {
                let columns = Size::current().columns.saturating_sub(1);
                put_line(&wrapped(&escaped(text), columns).join("\n"))
            }
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
