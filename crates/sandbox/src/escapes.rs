//! Attempts to get out of a sandbox, each tried without it and inside it.
//!
//! An attempt that fails without the sandbox proves nothing about it, so both results are reported. Nothing leaves the
//! machine: servers and victims are started for the test, and traffic goes to 127.0.0.1.

mod attributes;
#[expect(unsafe_code, reason = "attempts use system calls that no safe wrapper offers")]
mod calls;
mod files;
mod limits;
mod network;
mod processes;
mod scene;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

pub use scene::EscapeError;
use scene::{Scene, Stage};

use crate::{Level, Sandbox};

/// Exit codes of an attempt. Any other, and a signal, means that it could not be made.
const REACHED: u8 = 0;
const BLOCKED: u8 = 10;

/// One way out.
struct Attempt {
    name: &'static str,
    /// Succeeds if it got out.
    run: fn(&Scene) -> io::Result<()>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It got out.
    Reached,
    /// It was refused, with this error message of the system.
    Blocked(String),
    /// It could not be made.
    Failed(String),
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// What was attempted.
    pub name: &'static str,
    /// Without the sandbox.
    pub bare: AttemptOutcome,
    /// Inside the sandbox.
    pub confined: AttemptOutcome,
    /// Whether the documentation lists it as one that this level does not stop.
    pub is_known_gap: bool,
}

/// The verdict of a table line on the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The sandbox stopped what is possible without it.
    Held,
    /// It is not possible on this machine even without the sandbox.
    NotPossible,
    /// The level does not promise to stop it.
    KnownGap,
    /// The sandbox did not stop it.
    Escaped,
    /// One of the two could not be tried.
    Unknown,
}

impl Row {
    /// The verdict on the sandbox.
    pub fn verdict(&self) -> Verdict {
        match (&self.bare, &self.confined) {
            (_, AttemptOutcome::Reached) if self.is_known_gap => Verdict::KnownGap,
            (_, AttemptOutcome::Reached) => Verdict::Escaped,
            (AttemptOutcome::Failed(_), _) | (_, AttemptOutcome::Failed(_)) => Verdict::Unknown,
            (AttemptOutcome::Blocked(_), AttemptOutcome::Blocked(_)) => Verdict::NotPossible,
            (AttemptOutcome::Reached, AttemptOutcome::Blocked(_)) => Verdict::Held,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict() {
            Verdict::Held => "held",
            Verdict::NotPossible => "not possible here",
            Verdict::KnownGap => "known gap",
            Verdict::Escaped => "ESCAPED",
            Verdict::Unknown => "unknown",
        };
        write!(f, "{:<44} {verdict:<18}", self.name)?;
        match (&self.bare, &self.confined) {
            (AttemptOutcome::Failed(reason), _) => write!(f, "without: {reason}"),
            (_, AttemptOutcome::Failed(reason) | AttemptOutcome::Blocked(reason)) => {
                f.write_str(reason)
            }
            (_, AttemptOutcome::Reached) => Ok(()),
        }
    }
}

/// Attempts that this level cannot stop.
fn known_gaps(level: &Level) -> &'static [&'static str] {
    match level {
        // A process that puts a socket into a shared directory offers its service to others.
        Level::Bubblewrap => &["Unix socket of a service in the workspace"],
        _ => &[],
    }
}

/// Makes all attempts, without and inside a sandbox of this level. Blocking; takes a second or two.
///
/// `program` is a program that calls [`attempt`] when it is started with the arguments `hidden`.
///
/// # Errors
/// [`EscapeError`] if the level is not available here or the attempts cannot be prepared.
pub fn try_all(
    sandbox: &Sandbox,
    program: &Path,
    hidden: &[OsString],
    level: Level,
) -> Result<Vec<Row>, EscapeError> {
    let gaps = known_gaps(&level);
    let mut stage = Stage::build(program, hidden, level)?;
    let protected = attributes::PROTECTED.iter().map(|attempt| attempt.name).collect::<Vec<_>>();
    attempts()
        .filter(|attempt| stage.has_protected() || !protected.contains(&attempt.name))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|attempt| {
            let bare = stage.bare(attempt.name)?;
            let confined = stage.confined(sandbox, attempt.name)?;
            let is_known_gap = gaps.contains(&attempt.name);
            Ok(Row { name: attempt.name, bare, confined, is_known_gap })
        })
        .collect()
}

/// Makes one attempt, in a process of its own: the arguments after the hidden ones.
pub fn attempt(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    calls::give_up_after_seconds(20);
    let mut arguments = arguments.into_iter();
    let name = arguments.next().unwrap_or_default();
    let scene =
        arguments.next().and_then(|json| serde_json::from_slice::<Scene>(json.as_bytes()).ok());
    if name == "victim" {
        return scene::be_a_victim();
    }
    let attempt = attempts().find(|attempt| name == attempt.name);
    let (Some(attempt), Some(scene)) = (attempt, scene) else {
        eprintln!("no such attempt");
        return ExitCode::FAILURE;
    };
    match (attempt.run)(&scene) {
        Ok(()) => ExitCode::from(REACHED),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(BLOCKED)
        }
    }
}

fn attempts() -> impl Iterator<Item = &'static Attempt> {
    [
        files::ATTEMPTS,
        attributes::ATTEMPTS,
        attributes::PROTECTED,
        processes::ATTEMPTS,
        network::ATTEMPTS,
        limits::ATTEMPTS,
    ]
    .into_iter()
    .flatten()
}

/// The failure of an attempt that the system did not refuse by an error.
fn missed(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}
