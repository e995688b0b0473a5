//! One run of a program: what it cost and what the server saw of it.

use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use myclaw_testkit::{ModelServer, RecordedRequest, Signal, peak_memory, send_signal};
use wait4::Wait4;

use crate::contestant::Contestant;
use crate::scenario::Scenario;

/// A run that takes longer is stopped and counts as failed.
const DEADLINE: Duration = Duration::from_secs(300);

/// How often the memory of a program is looked at. The kernel keeps the peak, so only what happens after the last
/// look is missed.
const MEMORY_INTERVAL: Duration = Duration::from_millis(1);

/// Most characters of a failed program's standard error that are shown.
const ERROR_CHARS: usize = 200;

/// What a run is for: looking at the memory takes a little time of its own, so the two are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Time,
    Memory,
}

/// What one run showed.
#[derive(Debug)]
pub(crate) struct Observation {
    /// From the spawn to the headers of the first request.
    pub(crate) first_request: Duration,
    /// From the last byte of each answer to the headers of the request after it.
    pub(crate) gaps: Vec<Duration>,
    /// From the spawn to the end.
    pub(crate) wall: Duration,
    /// User and system time of the program and what it waited for.
    pub(crate) cpu: Duration,
    /// Only for [`Purpose::Memory`], in bytes.
    pub(crate) peak: Option<u64>,
    pub(crate) connections: usize,
    /// Model calls.
    pub(crate) calls: usize,
    /// Bytes of the first request's body.
    pub(crate) first_body: usize,
}

/// Runs one turn of `scenario`.
///
/// # Errors
/// A program that cannot be started, fails, or makes another number of calls than the scenario has answers.
pub(crate) fn run(
    contestant: &Contestant,
    scenario: Scenario,
    purpose: Purpose,
) -> io::Result<Observation> {
    contestant.prepare(scenario)?;
    let server = ModelServer::spawn_blocking_thread(scenario.script());
    let mut command = contestant.turn(server.url());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(contestant.error_file())?);
    let cost = measured(&mut command, purpose)?;
    if !cost.success {
        let text = fs::read_to_string(contestant.error_file()).unwrap_or_default();
        let text: String = text.trim().chars().take(ERROR_CHARS).collect();
        return Err(io::Error::other(format!(
            "{} ended with {}: {text}",
            scenario.name(),
            cost.status
        )));
    }
    let requests = server.requests();
    if !scenario.may_call(requests.len()) {
        let seen = requests.len();
        return Err(io::Error::other(format!("{} made {seen} model calls", scenario.name())));
    }
    let first = &requests[0];
    Ok(Observation {
        first_request: first.head_arrived.duration_since(cost.spawned),
        calls: requests.len(),
        gaps: requests.windows(2).filter_map(|pair| gap(&pair[0], &pair[1])).collect(),
        wall: cost.wall,
        cpu: cost.cpu,
        peak: cost.peak,
        connections: server.connections(),
        first_body: first.body.len(),
    })
}

fn gap(before: &RecordedRequest, after: &RecordedRequest) -> Option<Duration> {
    let (_, answered) = before.answer_end()?;
    Some(after.head_arrived.saturating_duration_since(answered))
}

struct Cost {
    spawned: Instant,
    wall: Duration,
    cpu: Duration,
    peak: Option<u64>,
    success: bool,
    status: String,
}

fn measured(command: &mut Command, purpose: Purpose) -> io::Result<Cost> {
    let spawned = Instant::now();
    let child = command.spawn()?;
    let pid = child.id();
    let (over, is_over) = mpsc::channel::<()>();
    let watch = thread::spawn(move || watch(pid, purpose, &is_over));
    let used = child.wait4()?;
    let wall = spawned.elapsed();
    drop(over);
    let peak = watch.join().unwrap_or(None);
    Ok(Cost {
        spawned,
        wall,
        cpu: used.rusage.utime + used.rusage.stime,
        peak,
        success: used.status.success(),
        status: used.status.to_string(),
    })
}

/// Looks at a program's memory until it is over, and stops it at the deadline.
fn watch(pid: u32, purpose: Purpose, is_over: &mpsc::Receiver<()>) -> Option<u64> {
    let deadline = Instant::now() + DEADLINE;
    let mut peak = None;
    loop {
        let wait = match purpose {
            Purpose::Time => DEADLINE,
            Purpose::Memory => {
                peak = peak_memory(pid).or(peak);
                MEMORY_INTERVAL
            }
        };
        match is_over.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                send_signal(pid, Signal::Kill)
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return peak,
        }
    }
}
