//! The changes of a pull request, as the program `gh` fetches them.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use myclaw_front::exit::CliError;
use myclaw_front::terminal::escaped;

/// Longest time for it.
const LIMIT: Duration = Duration::from_secs(120);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of changes.
const MOST_BYTES: u64 = 40 << 20;
/// Most bytes of its errors that are shown.
const MOST_ERRORS: u64 = 2_000;

/// The changes of a pull request. `gh` knows the login.
///
/// # Errors
/// `gh` is missing, fails, takes too long, or prints too much.
pub(super) fn pull_request(place: &Path, pull: &str) -> Result<String, CliError> {
    fetched(OsStr::new("gh"), place, pull, LIMIT)
}

fn fetched(gh: &OsStr, place: &Path, pull: &str, limit: Duration) -> Result<String, CliError> {
    let failed = |why: String| CliError::failure(format!("gh pr diff {pull}: {why}"));
    let mut gh = Command::new(gh)
        .args(["pr", "diff", pull])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CliError::failure(
                "a pull request needs the program gh, which is not installed; install it, or check out the branch and use --branch",
            ),
            _ => failed(format!("it does not start: {error}")),
        })?;
    let (printed, errors) =
        (read(gh.stdout.take(), MOST_BYTES + 1), read(gh.stderr.take(), MOST_ERRORS));
    let outcome = ended(&mut gh, &printed, limit);
    // It may have ended, and have been waited for.
    let _ = gh.kill();
    let _ = gh.wait();
    let printed = outcome.map_err(failed)?;
    if let Some(code) = printed.failure {
        let errors = errors.recv_timeout(limit).unwrap_or_default();
        let why = escaped(String::from_utf8_lossy(&errors).trim()).into_owned();
        return Err(failed(if why.is_empty() { code } else { why }));
    }
    Ok(String::from_utf8_lossy(&printed.bytes).into_owned())
}

/// What it printed, and how it failed if it did.
struct Printed {
    bytes: Vec<u8>,
    failure: Option<String>,
}

/// Waits for its end. The error says what is wrong with it.
fn ended(
    gh: &mut Child,
    printed: &mpsc::Receiver<Vec<u8>>,
    limit: Duration,
) -> Result<Printed, String> {
    let deadline = Instant::now() + limit;
    let late = || format!("it took longer than {} s; try again, or use --branch", limit.as_secs());
    let left = || deadline.saturating_duration_since(Instant::now());
    let bytes = printed.recv_timeout(left()).map_err(|_| late())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it printed more than {} MiB", MOST_BYTES >> 20));
    }
    while !left().is_zero() {
        if let Some(status) = gh.try_wait().map_err(|error| error.to_string())? {
            let failure = (!status.success()).then(|| status.to_string());
            return Ok(Printed { bytes, failure });
        }
        thread::sleep(LOOK);
    }
    Err(late())
}

/// Reads the beginning of a stream on a thread of its own.
fn read(stream: Option<impl Read + Send + 'static>, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // What was read until an error counts.
            let _ = stream.take(most).read_to_end(&mut bytes);
        }
        // Whoever waited may have given up.
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests;
