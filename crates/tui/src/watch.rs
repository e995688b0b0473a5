//! `myclaw sessions watch`, `stop` and `answer`: what the sessions of this machine do, and requests to them.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use myclaw_agent::approvals::WaitingApproval;
use myclaw_agent::{
    Home, did_you_mean,
    running::{
        Doing, NotAnswered, RunningCall, RunningSession, answer_from_outside, ask_to_stop,
        running_sessions,
    },
};
use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::report::summarise_arguments;
use myclaw_front::runtime;
use myclaw_front::sessions::Sessions;
use myclaw_front::time::now_ms;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::AttachArgs;
use crate::attach;

mod at_gateway;
mod screen;

/// How often the sessions are looked at.
const INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for the process that asks to take an answer, or to stop.
const TAKEN_TIME: Duration = Duration::from_secs(5);
/// What answers a question.
const ANSWERS: &str = "yes, always, no, or no with a reason";

/// How a watch prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFormat {
    /// A list that is drawn again in place; where standard output is no terminal, a line for each change.
    Text,
    /// An object for each change, one a line.
    Json,
}

/// How long a watch goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// Until the user leaves.
    Never,
    /// After the first look.
    AfterFirst,
}

/// Watches the sessions that work.
///
/// # Errors
/// The sessions cannot be read, or standard output is closed.
pub fn run(home: Home, format: WatchFormat, end: WatchEnd) -> Result<(), CliError> {
    let is_interactive = io::stdout().is_terminal() && io::stdin().is_terminal();
    let watch = Watch::of(home);
    if format == WatchFormat::Json || end == WatchEnd::AfterFirst || !is_interactive {
        return watch.print(format, end);
    }
    let interrupts = Interrupts::install()?;
    let left = CancellationToken::new();
    let chosen = {
        let _armed = interrupts.arm(left.clone());
        runtime::block_on(screen::show(&watch, &left))??
    };
    let Some(session) = chosen else { return Ok(()) };
    let args = AttachArgs { session: Some(session), ..AttachArgs::default() };
    attach::run_with(&args, String::new(), || Ok(interrupts))
}

/// Stops what a session does.
///
/// # Errors
/// There is no such session, or it does nothing.
pub fn stop(home: Home, name: &str) -> Result<(), CliError> {
    let watch = Watch::of(home);
    let session = watch.running(name)?;
    watch.stop(&session)?;
    let name = watch.sessions.name_of(&session.session);
    let is_over = |now: &[RunningSession]| {
        // Another turn may have begun since.
        !now.iter().any(|now| now.session == session.session && now.since == session.since)
    };
    match watch.waits_until(is_over)? {
        true => note(format!("`{name}` is stopped; the session is kept")),
        false => note(format!("`{name}` was asked to stop; what it does now has not ended yet")),
    }
    Ok(())
}

/// Answers the oldest question of a session.
///
/// # Errors
/// There is no such question, or it does not take this answer.
pub fn answer(home: Home, name: &str, text: &str) -> Result<(), CliError> {
    let watch = Watch::of(home);
    let session = watch.running(name)?;
    let name = watch.sessions.name_of(&session.session);
    let Some(question) = session.questions.first() else {
        return Err(CliError::usage(format!("`{name}` asks nothing at this moment")));
    };
    watch.answer(question, text)?;
    let is_taken = |now: &[RunningSession]| {
        let mut open = now.iter().flat_map(|session| &session.questions);
        !open.any(|open| is_same(open, question))
    };
    if !watch.waits_until(is_taken)? {
        return Err(CliError::usage(format!(
            "`{name}` did not take the answer `{text}` to: {}; answers are {ANSWERS}",
            asked(question)
        )));
    }
    note(format!("answered `{name}`: {}", asked(question)));
    Ok(())
}

fn is_same(one: &WaitingApproval, other: &WaitingApproval) -> bool {
    (&one.session, &one.tool_call_id) == (&other.session, &other.tool_call_id)
}

/// A question in one line.
fn asked(question: &WaitingApproval) -> String {
    format!("{} {}", question.tool, question.call)
}

/// The sessions that are watched.
struct Watch {
    home: Home,
    sessions: Sessions,
}

impl Watch {
    fn of(home: Home) -> Self {
        Self { sessions: Sessions::of(home.clone()), home }
    }

    fn look(&self) -> Result<Vec<RunningSession>, CliError> {
        Ok(running_sessions(&self.home)?)
    }

    /// A session that works, by the name that the user gives.
    fn running(&self, name: &str) -> Result<RunningSession, CliError> {
        let key = self.sessions.find(name)?;
        let mut now = self.look()?;
        if let Some(at) = now.iter().position(|session| session.session == key) {
            return Ok(now.swap_remove(at));
        }
        let names: Vec<String> =
            now.iter().map(|session| self.sessions.name_of(&session.session)).collect();
        let suggestion = did_you_mean(name, names.iter().map(String::as_str));
        Err(CliError::usage(format!(
            "`{name}` does nothing at this moment{suggestion} `myclaw sessions watch --once` lists what works"
        )))
    }

    fn stop(&self, session: &RunningSession) -> Result<(), CliError> {
        Ok(ask_to_stop(&self.home, &session.session)?)
    }

    fn answer(&self, question: &WaitingApproval, text: &str) -> Result<(), CliError> {
        answer_from_outside(&self.home, question, text).map_err(|refusal| match refusal {
            NotAnswered::Failed(error) => CliError::failure(error.to_string()),
            refusal => CliError::usage(refusal.to_string()),
        })
    }

    /// Looks until something holds; false if that takes too long.
    fn waits_until(&self, holds: impl Fn(&[RunningSession]) -> bool) -> Result<bool, CliError> {
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_TIME {
            if holds(&self.look()?) {
                return Ok(true);
            }
            std::thread::sleep(INTERVAL / 5);
        }
        Ok(false)
    }

    /// Prints what changes, until the user breaks it off.
    fn print(&self, format: WatchFormat, end: WatchEnd) -> Result<(), CliError> {
        let mut before: Vec<Value> = Vec::new();
        let mut is_first = true;
        loop {
            let now = self.look()?;
            let described: Vec<Value> = now.iter().map(|session| self.described(session)).collect();
            let mut printer = Printer::stdout();
            for (session, described) in now.iter().zip(&described) {
                if before.contains(described) {
                    continue;
                }
                match format {
                    WatchFormat::Json => printer.json(described)?,
                    WatchFormat::Text => printer.line(printer.safe(&self.line(session)))?,
                }
            }
            let is_there =
                |old: &Value| now.iter().any(|now| old["session"] == now.session.as_str());
            for ended in before.iter().filter(|old| !is_there(old)) {
                match format {
                    WatchFormat::Json => printer.json(&json!({
                        "session": ended["session"], "name": ended["name"], "state": "ended",
                    }))?,
                    WatchFormat::Text => {
                        let name = ended["name"].as_str().unwrap_or_default();
                        printer.line(printer.safe(&format!("{name}  ended")))?;
                    }
                }
            }
            printer.finish()?;
            if std::mem::take(&mut is_first) && now.is_empty() && format == WatchFormat::Text {
                note("nothing works at this moment");
            }
            if end == WatchEnd::AfterFirst {
                return Ok(());
            }
            before = described;
            std::thread::sleep(INTERVAL);
        }
    }

    /// A session for programs.
    fn described(&self, session: &RunningSession) -> Value {
        let state = if session.questions.is_empty() { "working" } else { "asking" };
        let mut described = json!(session);
        described["state"] = json!(state);
        described["name"] = json!(self.sessions.name_of(&session.session));
        described
    }

    /// A session in one line.
    fn line(&self, session: &RunningSession) -> String {
        columns(&[self.row(session)]).join("")
    }

    /// What is shown of a session: name, age, cost, and what it does.
    fn row(&self, session: &RunningSession) -> Vec<String> {
        vec![
            self.sessions.name_of(&session.session),
            age(session.since),
            format!("${:.4}", session.micro_dollars as f64 / 1_000_000.0),
            match session.questions.first() {
                Some(question) => format!("asks: {}", asked(question)),
                None => doing(session),
            },
        ]
    }
}

/// What a session does, in words.
fn doing(session: &RunningSession) -> String {
    match &session.doing {
        Doing::Model => match &session.model {
            Some(model) => format!("model {model}"),
            None => "model".to_owned(),
        },
        Doing::Tools { calls } => {
            let of_call = |call: &RunningCall| {
                format!("{} {}", call.tool, summarise_arguments(&call.arguments))
            };
            calls.iter().map(of_call).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The time since then, such as `3:07` or `1:02:45`.
fn age(since: u64) -> String {
    let seconds = now_ms().saturating_sub(since) / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
