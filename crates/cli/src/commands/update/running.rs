//! The gateway that runs the installed program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use myclaw_agent::Home;
use myclaw_config::load_or_default;
use myclaw_files::portable::apart;
use myclaw_files::portable::process::{Pid, Signal, kill_process, test_kill_process};
use myclaw_front::exit::CliError;
use myclaw_front::runtime;
use myclaw_gateway_client::{ask, state_of};

use super::installed::{Installed, place_of};
use crate::commands::gateway;

/// Longest wait for a gateway that begins anew. Its running turns take up to ten seconds of that.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for one that is told to end.
const END_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// The first version whose gateway begins anew at SIGUSR2.
const FIRST_WITH_SIGNAL: [u64; 3] = [0, 2, 0];

/// What came of the order to begin anew.
pub(super) enum Change {
    /// No gateway serves this state directory.
    NoGateway,
    /// There is one that this command does not restart; the text says why.
    Elsewhere(String),
    /// It runs the new version.
    Ready,
    /// The new version is not ready.
    NotReady(Process),
}

/// The process of a gateway.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process(Pid);

impl Change {
    /// Has the gateway begin anew with the installed program, and waits until it is ready.
    pub(super) fn begin(
        home: &Home,
        installed: &Installed,
        version: &str,
    ) -> Result<Self, CliError> {
        let Some(state) = status(home)? else { return Ok(Self::NoGateway) };
        let number = state["processId"].as_i64().and_then(|number| i32::try_from(number).ok());
        let Some(process) = number.and_then(Pid::from_raw) else { return Ok(Self::NoGateway) };
        let runs = state["version"].as_str().unwrap_or_default();
        if runs == version {
            return Ok(Self::Ready);
        }
        // An earlier version would take the signal for an order to end.
        if !has_program(process, &installed.program()) || !knows_signal(runs) {
            return Ok(Self::Elsewhere(format!(
                "the gateway (process {}) runs another program or an earlier version; restart it yourself",
                process.as_raw_nonzero()
            )));
        }
        kill_process(process, Signal::USR2)
            .map_err(|error| CliError::failure(format!("cannot restart the gateway: {error}")))?;
        let process = Process(process);
        match process.gets_ready(home, version) {
            true => Ok(Self::Ready),
            false => Ok(Self::NotReady(process)),
        }
    }
}

impl Process {
    /// Waits until a gateway of this version is ready. False if it ends, or takes too long.
    fn gets_ready(self, home: &Home, version: &str) -> bool {
        wait_for(home, version, || self.is_alive())
    }

    /// A process that has ended, and that its parent has not asked about, has no program.
    fn is_alive(self) -> bool {
        let program = std::fs::read_link(link_to_program(self.0));
        test_kill_process(self.0).is_ok() && (program.is_ok() || !cfg!(target_os = "linux"))
    }

    /// Ends what is left of it, and starts the installed program. True if that gets ready.
    pub(super) fn start(self, home: &Home, installed: &Installed, version: &str) -> bool {
        for signal in [Signal::TERM, Signal::KILL] {
            let end = Instant::now() + END_PATIENCE;
            let _ = kill_process(self.0, signal);
            while self.is_alive() && Instant::now() < end {
                thread::sleep(PAUSE);
            }
        }
        if gateway::restart_service(home) {
            return wait_for(home, version, || true);
        }
        let started = apart(&mut Command::new(installed.program()))
            .arg("gateway")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        started.is_ok_and(|child| {
            let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            number.is_some_and(|number| Self(number).gets_ready(home, version))
        })
    }
}

/// Waits until a gateway of this version is ready, as long as one may come.
fn wait_for(home: &Home, version: &str, may_come: impl Fn() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if is_ready(home, version) {
            return true;
        }
        if !may_come() {
            return false;
        }
        thread::sleep(PAUSE);
    }
    false
}

fn status(home: &Home) -> Result<Option<serde_json::Value>, CliError> {
    runtime::block_on(state_of(home))?.map_err(gateway::failure)
}

/// Whether `/ready` says so, and the program has this version.
fn is_ready(home: &Home, version: &str) -> bool {
    let Ok(Some(state)) = status(home) else { return false };
    let config = load_or_default(&home.environment).map(|loaded| loaded.config).unwrap_or_default();
    let asked = runtime::block_on(ask(home, &config, "GET", "/ready", None));
    let is_ready = asked.is_ok_and(|asked| asked.is_ok_and(|answer| answer.answer().is_some()));
    is_ready && state["version"] == version
}

/// Whether a process runs the program that was or is at `path`. Where the system does not say, it is assumed.
fn has_program(process: Pid, path: &Path) -> bool {
    std::fs::read_link(link_to_program(process))
        .map_or(!cfg!(target_os = "linux"), |program| place_of(&program) == path)
}

/// Where Linux says which program a process runs.
fn link_to_program(process: Pid) -> String {
    format!("/proc/{}/exe", process.as_raw_nonzero())
}

/// Whether a gateway of this version begins anew at the signal.
fn knows_signal(version: &str) -> bool {
    super::numbers(version) >= FIRST_WITH_SIGNAL
}
