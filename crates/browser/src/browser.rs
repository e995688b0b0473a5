//! One running browser: its start, its commands, its end.
//!
//! A shell (`life.sh`) starts the browser and waits at a pipe whose other end is held here, so the processes end in every
//! case: when the [`Browser`] is closed or dropped, `myclaw-exec` ends the shell's whole process tree, to which
//! `agent-browser` and Chromium belong; when this process is killed, the pipe closes and the shell closes the browser.
//! Everything they write is in one private directory, which goes with them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_exec::{ChildSpec, EnvironmentPolicy, ErrorOutput, Exit, OutputLimits};
use myclaw_files::OwnedDirectory;
use myclaw_web::{AddressGuard, Proxy, ProxyAddress, ProxyHosts, ProxyLimits, ProxyRules};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

#[cfg_attr(unix, path = "browser/unix.rs")]
#[cfg_attr(windows, path = "browser/windows.rs")]
mod basis;

use self::basis::{answers, lifeline};
use crate::error::BrowserError;
use crate::programs::{Programs, chromium_arguments};
use crate::reply::Reply;

/// What names of browser directories begin with.
const DIRECTORY_PREFIX: &str = "myclaw-browser-";
/// Longest start. Chromium needs a second, or several on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Extra time for a command beyond the limit that `agent-browser` applies itself.
const ANSWER_GRACE: Duration = Duration::from_secs(20);
/// Largest answer: a snapshot of a very long page.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The name of the session of `agent-browser`. All browsers use the same name, because each has a directory of its own.
const SESSION: &str = "s";
/// Variables that a browser gets from this process, besides those set here: language, time, fonts, libraries.
const PASSED: [&str; 8] =
    ["LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TZDIR", "XDG_DATA_DIRS", "LD_LIBRARY_PATH"];

/// How browsers are started.
#[derive(Debug, Clone)]
pub struct BrowserOptions {
    /// Where the programs are.
    pub programs: Programs,
    /// Decides which addresses the browser may connect to.
    pub guard: AddressGuard,
    /// Longest time that one action may take, such as waiting for a page to load.
    pub action_limit: Duration,
    /// A browser without actions for this long is closed.
    pub idle_limit: Duration,
}

/// A running browser. Dropping it ends it at once.
pub(crate) struct Browser {
    program: PathBuf,
    directory: PathBuf,
    environment: EnvironmentPolicy,
    action_limit: Duration,
    proxy: Proxy,
    stop: CancellationToken,
    life: AbortOnDropHandle<()>,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub(crate) async fn start(
        options: &BrowserOptions,
        cancel: &CancellationToken,
    ) -> Result<Self, BrowserError> {
        let program = options.programs.agent_browser()?;
        let chromium = options.programs.chromium()?;
        let failed = |error: io::Error| BrowserError::Start(error.to_string());
        let home = tokio::task::spawn_blocking(Home::create)
            .await
            .map_err(|error| BrowserError::Start(error.to_string()))?
            .map_err(failed)?;
        let rules = ProxyRules {
            guard: options.guard.clone(),
            hosts: ProxyHosts::Any,
            limits: ProxyLimits::default(),
        };
        let proxy = Proxy::start(rules).await.map_err(failed)?;
        let directory = home.directory.path().to_owned();
        let environment = environment(options, &directory, &chromium, proxy.address());
        let spec = ChildSpec {
            args: vec![
                "-c".into(),
                include_str!("life.sh").into(),
                "browser".into(),
                program.clone().into(),
                directory.clone().into(),
            ],
            environment: environment.clone(),
            ..ChildSpec::new("sh", &directory)
        };
        let stop = CancellationToken::new();
        let (ready, started) = oneshot::channel();
        let life = AbortOnDropHandle::new(tokio::spawn(live(spec, home, stop.clone(), ready)));
        // Dropping it ends what was started, on every return but the last one.
        let browser = Self {
            program,
            directory,
            environment,
            action_limit: options.action_limit,
            proxy,
            stop,
            life,
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(BrowserError::Aborted),
            answer = tokio::time::timeout(START_LIMIT, started) => match answer {
                Ok(Ok(answer)) => check_start(&answer),
                Ok(Err(_)) => Err(BrowserError::Start("it ended without an answer".to_owned())),
                Err(_) => Err(BrowserError::Start(format!("no answer within {} s", START_LIMIT.as_secs()))),
            },
        };
        match answer {
            Ok(()) => Ok(browser),
            Err(error) => {
                browser.close().await;
                Err(error)
            }
        }
    }

    /// Runs commands one after the other, all of them even if one fails, and returns their answers.
    pub(crate) async fn run(
        &self,
        commands: &[Vec<String>],
        cancel: &CancellationToken,
    ) -> Result<Vec<Reply>, BrowserError> {
        // Without this check, agent-browser would start another browser outside the process tree.
        if !self.is_alive() {
            return Err(BrowserError::Gone);
        }
        let count = u32::try_from(commands.len()).unwrap_or(u32::MAX);
        let limit = self.action_limit.saturating_mul(count) + ANSWER_GRACE;
        let input = serde_json::to_vec(commands)
            .map_err(|error| BrowserError::Answer(error.to_string()))?;
        let spec = ChildSpec {
            // As data on standard input: arguments that begin with a dash would be options, which can start a browser
            // without the proxy.
            args: ["--json", "batch", "--omit-command"].map(OsString::from).to_vec(),
            environment: self.environment.clone(),
            input,
            timeout: Some(limit),
            output: OutputLimits {
                keep_tail_bytes: MAX_ANSWER_BYTES,
                keep_tail_chars: usize::MAX,
                keep_tail_lines: usize::MAX,
                side_file: None,
            },
            errors: ErrorOutput::Apart,
            ..ChildSpec::new(&self.program, &self.directory)
        };
        let finished = myclaw_exec::run(spec, cancel, &mut |_| {}).await?;
        match finished.exit {
            Exit::Aborted => Err(BrowserError::Aborted),
            Exit::TimedOut => Err(BrowserError::TimedOut(limit)),
            Exit::Code(_) | Exit::Signal(_) => Reply::parse(&finished.output.tail),
        }
    }

    /// Ends the browser and waits until its processes and files are gone.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        // It only fails if it panicked; the processes are gone then too.
        let _ = self.life.await;
    }

    /// Whether `agent-browser` takes commands.
    pub(crate) fn is_alive(&self) -> bool {
        let socket = self.directory.join(format!("{SESSION}.sock"));
        !self.stop.is_cancelled() && !self.life.is_finished() && answers(&socket)
    }

    /// Where everything is that the browser writes.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The reasons why addresses were refused since the last call.
    pub(crate) fn take_refusals(&self) -> Vec<String> {
        self.proxy.take_refusals()
    }

    /// Where files are put for the browser to read.
    pub(crate) fn uploads(&self) -> PathBuf {
        self.directory.join(UPLOADS)
    }

    /// Where the browser puts downloads.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.directory.join(DOWNLOADS)
    }

    /// A path for a file that the browser is asked to write.
    pub(crate) fn output(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

const UPLOADS: &str = "uploads";
const DOWNLOADS: &str = "downloads";
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
const LIFELINE: &str = "lifeline";

/// The directory of a browser, and the end of the pipe at which `life.sh` waits.
struct Home {
    _lifeline: File,
    /// Dropped last.
    directory: OwnedDirectory,
}

impl Home {
    fn create() -> io::Result<Self> {
        // Private: it holds cookies, and a socket that takes commands.
        let directory = OwnedDirectory::create(&std::env::temp_dir(), DIRECTORY_PREFIX)?;
        for name in [UPLOADS, DOWNLOADS, HOME, TEMPORARY] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        let path = directory.path().join(LIFELINE);
        Ok(Self { _lifeline: lifeline(&path)?, directory })
    }
}

/// The life of a browser, as a task: runs its shell until `stop`, and removes its files. Sends the first line that the
/// shell prints, or everything if it ends before.
async fn live(
    spec: ChildSpec,
    home: Home,
    stop: CancellationToken,
    ready: oneshot::Sender<String>,
) {
    let mut ready = Some(ready);
    let mut printed = Vec::new();
    let mut on_output = |piece: &[u8]| {
        if ready.is_some() && printed.len() < MAX_ANSWER_BYTES {
            printed.extend_from_slice(piece);
            if printed.ends_with(b"\n")
                && let Some(ready) = ready.take()
            {
                // The receiver may have given up.
                let _ = ready.send(String::from_utf8_lossy(&printed).into_owned());
            }
        }
    };
    let finished = myclaw_exec::run(spec, &stop, &mut on_output).await;
    if let Some(ready) = ready {
        let text = match finished {
            Ok(finished) => finished.output.tail,
            Err(error) => error.to_string(),
        };
        let _ = ready.send(text);
    }
    // It fails only while the runtime shuts down, and then the task's own end removes the files.
    let _ = tokio::task::spawn_blocking(move || drop(home)).await;
}

/// Whether the first answer says that the browser has started.
fn check_start(answer: &str) -> Result<(), BrowserError> {
    let replies = Reply::parse(answer)
        .map_err(|_| BrowserError::Start(crate::reply::quoted(answer.trim())))?;
    match replies.iter().find_map(Reply::failure) {
        None => Ok(()),
        Some(failure) => Err(BrowserError::Start(crate::reply::quoted(failure))),
    }
}

fn environment(
    options: &BrowserOptions,
    directory: &Path,
    chromium: &Path,
    proxy: &ProxyAddress,
) -> EnvironmentPolicy {
    let proxy = match proxy {
        ProxyAddress::Port(port) => format!("http://127.0.0.1:{port}"),
        ProxyAddress::Socket(path) => path.display().to_string(),
    };
    let milliseconds = |time: Duration| time.as_millis().to_string();
    let own: [(&str, OsString); 15] = [
        ("PATH", options.programs.path.clone()),
        // The user's own config of agent-browser could lead around the proxy.
        ("HOME", directory.join(HOME).into()),
        ("TMPDIR", directory.join(TEMPORARY).into()),
        // Relative to the directory in which all its processes start: paths of sockets must be short.
        ("AGENT_BROWSER_SOCKET_DIR", ".".into()),
        ("AGENT_BROWSER_SESSION", SESSION.into()),
        ("AGENT_BROWSER_EXECUTABLE_PATH", chromium.into()),
        ("AGENT_BROWSER_PROFILE", directory.join("profile").into()),
        ("AGENT_BROWSER_DOWNLOAD_PATH", directory.join(DOWNLOADS).into()),
        ("AGENT_BROWSER_PROXY", proxy.into()),
        // Without this, Chromium connects to this machine directly.
        ("AGENT_BROWSER_PROXY_BYPASS", "<-loopback>".into()),
        ("AGENT_BROWSER_ARGS", chromium_arguments().into()),
        ("AGENT_BROWSER_DEFAULT_TIMEOUT", milliseconds(options.action_limit).into()),
        ("AGENT_BROWSER_IDLE_TIMEOUT_MS", milliseconds(options.idle_limit).into()),
        ("AGENT_BROWSER_NO_WEBMCP", "1".into()),
        // It would fetch a page from the network around the proxy.
        ("AGENT_BROWSER_NO_VERSION_CHECK", "1".into()),
    ];
    let inherited = EnvironmentPolicy::inherited();
    let passed = PASSED.iter().filter_map(|name| Some((*name, inherited.get(name)?.to_owned())));
    own.into_iter()
        .chain(passed)
        .fold(EnvironmentPolicy::empty(), |policy, (name, value)| policy.with(name, value))
}
