//! `myclaw run`: one message in, one answer out.

mod form;
mod goal;
mod through_gateway;

use std::io::Read;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use myclaw_agent::subagents::SubagentTools;
use myclaw_agent::{
    Driver, FailureClass, Home, RunOptions, SessionConfig, SessionEvent, engine,
    selection::Selection,
};
use myclaw_config::{Config, ToolRules};
use myclaw_engine::{EventCallback, RunParams, RunResult};
use myclaw_files::OwnedDirectory;
use myclaw_files::portable::{StandardInput, standard_input};
use myclaw_gateway_client::RemoteTools;
use myclaw_llm::{ContentBlock, ThinkingLevel};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{BoundsArgs, RunArgs};
pub(super) use form::AnswerForm;
use form::CORRECTIONS;
use myclaw_front::approval::TerminalApprover;
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::CliError;
use myclaw_front::gateway::Worker;
use myclaw_front::home::{begin_to_write, find_home, load_config};
use myclaw_front::interrupt::{Interrupts, read_proc};
use myclaw_front::model::announce;
use myclaw_front::print::note;
use myclaw_front::report::{ErrorLine, Verbosity, json_reporter};
use myclaw_front::runtime;
use myclaw_front::start::{Start, Wanted};
use myclaw_front::terminal::{Destination, JsonMode, Output, escaped};
use myclaw_front::text_report::{activity_reporter, text_reporter};
use myclaw_front::worktree::{self, Entered, UsedWorktree};

/// Largest message that is read from standard input: far more than fits a model.
const MAX_STDIN_BYTES: u64 = 10 * 1024 * 1024;

/// How the names of directories of runs without a session begin.
const SCRATCH_PREFIX: &str = "myclaw-run-";

/// How long a pipe on standard input may stay silent when there is a message.
const FIRST_INPUT: Duration = Duration::from_secs(3);

/// What is asked.
pub(super) struct Asked {
    /// The message of the user.
    pub(super) text: String,
    /// The form of the answer, if it is for programs.
    pub(super) form: Option<AnswerForm>,
    /// What happens with what the message names.
    pub(super) names: Names,
}

/// Pictures and texts of servers that a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// They belong to it.
    Count,
    /// They are left alone: others have written parts of the message.
    Ignored,
}

/// Runs one turn and prints it.
pub(crate) fn run(args: &RunArgs) -> Result<(), CliError> {
    run_asked(args, || {
        let form = args.output_schema.as_deref().map(AnswerForm::read).transpose()?;
        let text = if args.message.is_empty() { String::new() } else { message(&args.message)? };
        Ok(Asked { text, form, names: Names::Count })
    })
}

/// The same with what `asked` gives.
pub(super) fn run_asked(
    args: &RunArgs,
    asked: impl FnOnce() -> Result<Asked, CliError>,
) -> Result<(), CliError> {
    let cancel = CancellationToken::new();
    let output = Arc::new(Output::stdout(cancel.clone()));
    let json_mode = args.json.then(|| JsonMode::for_destination(Destination::of_stdout()));
    let outcome = asked().and_then(|asked| run_turn(args, asked, (&output, json_mode), cancel));
    if let (Err(error), Some(mode)) = (&outcome, json_mode) {
        output.push_json(&ErrorLine::from(error), mode);
    }
    output.end_line();
    output.flush();
    // A closed standard output is the cause of the turn's end and takes precedence over its error.
    match output.take_failure() {
        Some(error) => Err(CliError::output(&error)),
        None => outcome,
    }
}

fn run_turn(
    args: &RunArgs,
    asked: Asked,
    shown: (&Arc<Output>, Option<JsonMode>),
    cancel: CancellationToken,
) -> Result<(), CliError> {
    let asked = (asked, attachments::named(&args.images.paths)?);
    let home = find_home()?;
    let worker = match args.no_session {
        true => Worker::Here(load_config(&home)?),
        false => args.gateway.worker(&home)?,
    };
    match worker {
        Worker::Here(config) => run_here(args, (home, config), asked, shown, cancel),
        Worker::Gateway(gateway) => through_gateway::run(args, gateway, asked, shown, cancel),
    }
}

/// Runs the turn in this program.
fn run_here(
    args: &RunArgs,
    loaded: (Home, Arc<Config>),
    (Asked { text: message, form, names }, pictures): (Asked, Vec<Attachment>),
    (output, json_mode): (&Arc<Output>, Option<JsonMode>),
    cancel: CancellationToken,
) -> Result<(), CliError> {
    let options = run_options(&args.bounds)?;
    let goal = args.goal.as_deref().map(goal::goal).transpose()?;
    let scratch = args.no_session.then(scratch).transpose()?;
    let verbosity = if args.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let (worktree, config) = enter(args, loaded, options, scratch.as_ref())?;
    let on_event = match json_mode {
        Some(mode) => json_reporter(Arc::clone(output), mode),
        None if form.is_some() => activity_reporter(Arc::clone(output), verbosity),
        None => text_reporter(Arc::clone(output), verbosity),
    };
    let interrupts = Interrupts::install()?;
    let jobs = config.clone();
    interrupts.before_leaving(move || jobs.kill_jobs_now());
    let armed = interrupts.arm(cancel.clone());
    runtime::block_on(armed.unless_quit(async {
        let approver = TerminalApprover::on_terminal(output).map(|approver| approver as _);
        let engine = engine(config.home.http_options());
        let events = Arc::new(|_: &_, _: SessionEvent<'_>| {});
        let (driver, subagents) = SubagentTools::drive(
            engine,
            cancel.child_token(),
            events,
            approver,
            Some(RemoteTools::with(None)),
        );
        // This command waits for them by itself.
        subagents.await_results(Arc::new(|_| {}));
        let selection = config.select_model(args.session.model.as_deref()).await?;
        announce(&selection, verbosity);
        let place = config.working_directory();
        let (mentioned, problems) = match names {
            Names::Count => attachments::mentioned(&message, place).await,
            Names::Ignored => (Vec::new(), Vec::new()),
        };
        problems.iter().for_each(|problem| note(format_args!("myclaw: {problem}")));
        let pictures = pictures.into_iter().chain(mentioned).collect();
        config.subscribe_to_notices(&on_event);
        let turns = Turns {
            driver,
            subagents,
            verbosity,
            selection,
            thinking: args.session.thinking,
            config: &config,
            names,
            is_kept: !args.no_session,
            output,
            cancel,
            on_event: &on_event,
        };
        let outcome = match goal {
            Some(goal) => turns.pursue(goal, pictures, message).await.map(|()| None),
            None => turns.answer(pictures, message, form.as_ref()).await,
        };
        if let Ok(Some(value)) = &outcome {
            print_value(output, json_mode, value);
        }
        let emit = Arc::clone(&on_event);
        // Nobody can manage the jobs after the end of the program.
        config.close_jobs(&|event| emit(event)).await;
        if let Some(worktree) = &worktree {
            worktree.finish().await;
        }
        outcome.map(drop)
    }))?
}

/// The worktree that was asked for, and the session as the options name it; emits its line if it is kept.
fn enter(
    args: &RunArgs,
    (home, config): (Home, Arc<Config>),
    options: RunOptions,
    scratch: Option<&OwnedDirectory>,
) -> Result<(Option<UsedWorktree>, SessionConfig), CliError> {
    let Entered { worktree, session, wanted } =
        worktree::enter(&args.worktree, &args.session, Wanted::from(args.last))?;
    let mut start = Start::find_in(home_with(home, scratch), config, &session, wanted)?;
    if !args.no_session {
        begin_to_write(&start.config.home)?;
    }
    start.config.options = options;
    let names_session = !args.quiet && !args.no_session;
    if let Some(line) = start.line().filter(|_| names_session) {
        note(format_args!("myclaw: {}", escaped(&line)));
    }
    Ok((worktree, start.config))
}

/// The home, with sessions in memory if there is a directory for their outputs.
fn home_with(home: Home, scratch: Option<&OwnedDirectory>) -> Home {
    match scratch {
        Some(scratch) => {
            let stores = home.stores().clone().with_sessions_in_memory(scratch.path());
            home.with_stores(stores)
        }
        None => home,
    }
}

/// The directory for outputs of a run without a session.
fn scratch() -> Result<OwnedDirectory, CliError> {
    let place = std::env::temp_dir();
    OwnedDirectory::create(&place, SCRATCH_PREFIX).map_err(|error| {
        let place = place.display();
        CliError::failure(format!("cannot make a directory for outputs in {place}: {error}"))
    })
}

/// What the turns of one command have in common.
struct Turns<'a> {
    driver: Arc<Driver>,
    subagents: Arc<SubagentTools>,
    verbosity: Verbosity,
    selection: Selection,
    thinking: Option<ThinkingLevel>,
    config: &'a SessionConfig,
    names: Names,
    /// Whether the session is there after this command.
    is_kept: bool,
    output: &'a Arc<Output>,
    cancel: CancellationToken,
    on_event: &'a EventCallback,
}

impl Turns<'_> {
    /// Runs turns until the answer has the form, if there is one; then returns the value.
    async fn answer(
        &self,
        mut pictures: Vec<Attachment>,
        message: String,
        form: Option<&AnswerForm>,
    ) -> Result<Option<Value>, CliError> {
        fitting(message, form, async |message| {
            let content = attachments::content(std::mem::take(&mut pictures), message);
            Ok(self.run(self.with_texts(content).await?).await?.reply)
        })
        .await
    }

    /// The message with the texts of servers that it names.
    async fn with_texts(&self, content: Vec<ContentBlock>) -> Result<Vec<ContentBlock>, CliError> {
        if self.names == Names::Ignored {
            return Ok(content);
        }
        let (content, problems) = self.config.with_server_texts(content).await?;
        problems.iter().for_each(|problem| note(format_args!("myclaw: {problem}")));
        Ok(content)
    }

    /// Runs one turn, and those that answer the results of the sub-agents that it has begun in the background.
    async fn run(&self, user_message: Vec<ContentBlock>) -> Result<RunResult, CliError> {
        let mut result = self.run_once(user_message).await?;
        loop {
            let key = &self.config.session_key;
            let count = self.subagents.in_background(key);
            if count > 0 && self.verbosity == Verbosity::Normal {
                let agents = if count == 1 { "sub-agent" } else { "sub-agents" };
                note(format_args!("myclaw: waiting for {count} {agents} in the background"));
            }
            let has_waited = self.subagents.background_ended(key).await;
            // Then those that it would have waited for may be gone already, without a result.
            if self.cancel.is_cancelled() {
                return Err(CliError::aborted());
            }
            if !has_waited {
                return Ok(result);
            }
            let before = result.usage;
            match self.run_once(Vec::new()).await {
                Ok(next) => result = next,
                // The turn before has taken the results.
                Err(error) if error.class == FailureClass::NothingToDo.as_str() => {
                    return Ok(result);
                }
                Err(error) => return Err(error),
            }
            result.usage.add_call(&before);
        }
    }

    async fn run_once(&self, user_message: Vec<ContentBlock>) -> Result<RunResult, CliError> {
        let Self { driver, selection, config, output, .. } = self;
        let added = driver.additions(config);
        let params = RunParams {
            user_message,
            thinking: self.thinking,
            cancel: self.cancel.clone(),
            on_event: Some(Arc::clone(self.on_event)),
            note: driver.note_for(config),
            ..config.run_params(selection, added).await?
        };
        let cancel = self.cancel.clone();
        let _seen = config.seen_turn(move || cancel.cancel());
        let running = output.flushing(driver.run(params, selection));
        let (outcome, ()) = tokio::join!(running, config.trim_side_files());
        Ok(outcome?)
    }
}

/// Asks until the answer has the form, if there is one; then returns the value.
async fn fitting(
    message: String,
    form: Option<&AnswerForm>,
    mut ask: impl AsyncFnMut(String) -> Result<String, CliError>,
) -> Result<Option<Value>, CliError> {
    let mut message = match form {
        Some(form) => format!("{message}\n\n{}", form.instruction()),
        None => message,
    };
    let mut corrections = 0;
    loop {
        let reply = ask(message).await?;
        let Some(form) = form else { return Ok(None) };
        match form.value_in(&reply) {
            Ok(value) => return Ok(Some(value)),
            Err(reason) if corrections < CORRECTIONS => {
                corrections += 1;
                message = AnswerForm::correction(&reason);
            }
            Err(reason) => return Err(CliError::form(escaped(&reason))),
        }
    }
}

/// The bounds of the run.
fn run_options(bounds: &BoundsArgs) -> Result<RunOptions, CliError> {
    let BoundsArgs { allow_tool, deny_tool, max_turns, max_cost } = bounds;
    let list = |entries: &Vec<String>| (!entries.is_empty()).then(|| entries.clone());
    let tools =
        ToolRules { allow: list(allow_tool), deny: list(deny_tool), ..ToolRules::default() };
    let options =
        RunOptions { tools, max_turns: *max_turns, max_cost: *max_cost, ..RunOptions::default() };
    options.checked().map_err(CliError::usage)
}

/// Prints the answer that fits the form: alone, or as the last line of `--json`.
fn print_value(output: &Output, json_mode: Option<JsonMode>, value: &Value) {
    match json_mode {
        Some(mode) => output.push_json(&json!({"type": "output", "value": value}), mode),
        None => output.push_json(value, JsonMode::for_destination(Destination::of_stdout())),
    }
}

/// The user's message: the words of the command line with what is piped in below them, or standard input for a lone
/// `-`.
fn message(words: &[String]) -> Result<String, CliError> {
    let text = match words {
        [word] if word == "-" => read_message(std::io::stdin().lock())?,
        words => {
            let text = words.join(" ");
            match piped_input()? {
                Some(input) if !text.trim().is_empty() => format!("{text}\n\n{input}"),
                _ => text,
            }
        }
    };
    if text.trim().is_empty() {
        return Err(CliError::usage(
            "the message is empty; write a message, as in `myclaw run \"list my files\"`",
        ));
    }
    Ok(text)
}

/// What a pipe or a file on standard input holds; `None` if there is nothing, or nothing comes.
fn piped_input() -> Result<Option<String>, CliError> {
    let kind = standard_input();
    if belongs_to_shell() {
        return Ok(None);
    }
    let text = match kind {
        StandardInput::File => read_message(std::io::stdin().lock())?,
        StandardInput::Pipe => match read_in_time()? {
            Some(text) => text,
            None => {
                note(
                    "myclaw: nothing came from standard input; `-` instead of a message waits for it",
                );
                return Ok(None);
            }
        },
        // It may never end.
        StandardInput::Other => return Ok(None),
    };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Whether the shell that started this program reads the same standard input, as in `while read`: then it is a list of the
/// shell's, and what is read here is missing there.
fn belongs_to_shell() -> bool {
    /// Shells by the names of their programs.
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish"];
    let Some(parent) = myclaw_files::portable::process::getppid() else { return false };
    let parent = format!("/proc/{}", parent.as_raw_nonzero());
    let name = read_proc(&format!("{parent}/comm"));
    let input = |process: &str| std::fs::read_link(format!("{process}/fd/0")).ok();
    SHELLS.contains(&name.trim())
        && input("/proc/self").is_some_and(|own| input(&parent) == Some(own))
}

/// Reads a message from a pipe; `None` if nothing comes in time, as from a pipe that another program keeps open.
fn read_in_time() -> Result<Option<String>, CliError> {
    let (begun, begins) = mpsc::channel();
    let read = move || {
        let mut first = [0];
        // A failure ends the message; it is reported below if it lasts.
        let count = std::io::stdin().lock().read(&mut first).unwrap_or(0);
        // Nobody may wait any more.
        let _ = begun.send(());
        read_message((&first[..count]).chain(std::io::stdin().lock()))
    };
    let reading = std::thread::Builder::new().spawn(read).map_err(|error| {
        let advice = myclaw_front::panic::advice_about(&error);
        CliError::failure(format!("cannot start to read standard input: {error}{advice}"))
    })?;
    if begins.recv_timeout(FIRST_INPUT).is_err() {
        return Ok(None);
    }
    let read = reading.join().map_err(|_| CliError::failure("standard input cannot be read"))?;
    read.map(Some)
}

/// Reads a message of bounded length, without the line ends at its end.
fn read_message(source: impl Read) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    source
        .take(MAX_STDIN_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(CliError::usage(format!(
            "the message on standard input is larger than {} MiB; save it to a file in the workspace and ask about that",
            MAX_STDIN_BYTES / 1024 / 1024
        )));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        CliError::usage(format!(
            "the message on standard input is not UTF-8 (byte {}); convert it first, for example with iconv",
            error.utf8_error().valid_up_to() + 1
        ))
    })?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

#[cfg(test)]
mod tests;
