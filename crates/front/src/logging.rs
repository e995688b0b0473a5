//! The log: standard error if `MYCLAW_LOG` is set, and a file in the state directory if the config asks for it.
//!
//! Without either no subscriber is installed, so that a log statement costs one comparison. Every line goes through
//! one writer, which removes secrets before anything is written.

mod file;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use myclaw_agent::{Home, written_secrets};
use myclaw_config::{Config, Environment, LogLevel, ResolvedAgent};
use myclaw_files::variables::LOG as VARIABLE;
use myclaw_llm::redact;
use parking_lot::RwLock;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::print::note;
use file::RotatingFile;

/// The targets of this program's own crates begin with this. A level alone applies to them only: `debug` lines of
/// libraries would hide those that the user looks for.
const OWN_TARGETS: &str = "myclaw";
/// Longest line that is written, in bytes; longer ones are cut.
const MAX_LINE: usize = 16 * 1024;

/// The only subscriber of this process.
static SINKS: OnceLock<Sinks> = OnceLock::new();

/// Starts the log on standard error, if `MYCLAW_LOG` asks for it. Only the first call has an effect.
pub fn start_on_stderr(environment: &Environment) {
    if let Some(filter) = filter_of_variable(environment) {
        install(filter, Stderr::On);
    }
}

/// Starts the log file, if the config asks for it, and keeps the secrets of the config and of the key store out of all
/// lines from now on.
pub fn start_with_config(config: &Config, agent: &ResolvedAgent, home: &Home) {
    let logging = &config.logging;
    if logging.file && SINKS.get().is_none() {
        let filter = filter_of_variable(&home.environment);
        install(filter.unwrap_or_else(|| own_targets(level(logging.level))), Stderr::Off);
    }
    let Some(sinks) = SINKS.get() else { return };
    sinks.redacts.store(logging.redact_sensitive, Ordering::Relaxed);
    // A second config is that of the same user: the secrets of the first one stay secret.
    let secrets = written_secrets(config, &home.stored_keys(agent), &home.environment);
    let mut known = sinks.secrets.write();
    known.extend(secrets);
    // A gateway reads many configs.
    known.sort_unstable();
    known.dedup();
    drop(known);
    if logging.file {
        let _ = sinks.file.set(RotatingFile::in_directory(home.paths.logs_dir()));
    }
}

/// Whether lines are written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stderr {
    On,
    Off,
}

/// What `MYCLAW_LOG` asks for; `None` if it is unset, blank or `off`.
fn filter_of_variable(environment: &Environment) -> Option<Targets> {
    let text = environment.get(VARIABLE)?.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("off") {
        return None;
    }
    if let Ok(level) = text.parse::<tracing::Level>() {
        return Some(own_targets(level));
    }
    // A word without `=` would be taken for a target with all its levels.
    let is_list = text
        .split(',')
        .all(|part| part.contains('=') || part.trim().parse::<tracing::Level>().is_ok());
    let filter = text.parse().ok().filter(|_| is_list);
    if filter.is_none() {
        note(format_args!(
            "myclaw: {VARIABLE}: expected off, error, warn, info, debug or trace, or TARGET=LEVEL pairs such as \
             myclaw_engine=debug,myclaw_auth=info; nothing is logged"
        ));
    }
    filter
}

fn own_targets(level: tracing::Level) -> Targets {
    Targets::new().with_target(OWN_TARGETS, level)
}

fn level(level: LogLevel) -> tracing::Level {
    match level {
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Error => tracing::Level::ERROR,
    }
}

fn install(filter: Targets, stderr: Stderr) {
    let mut is_first = false;
    let sinks = SINKS.get_or_init(|| {
        is_first = true;
        Sinks {
            stderr,
            redacts: AtomicBool::new(true),
            secrets: RwLock::default(),
            file: OnceLock::new(),
        }
    });
    if is_first {
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || sinks);
        // This is the only place that installs a subscriber.
        let _ = tracing::subscriber::set_global_default(registry().with(filter).with(lines));
    }
}

/// Receives whole lines and writes them where they belong. A line that cannot be written is lost: a full disk must not
/// end a run.
struct Sinks {
    stderr: Stderr,
    redacts: AtomicBool,
    secrets: RwLock<Vec<String>>,
    file: OnceLock<RotatingFile>,
}

impl io::Write for &Sinks {
    /// Takes one line; the formatter gives each in one call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        let mut line = match self.redacts.load(Ordering::Relaxed) {
            true => {
                let secrets = self.secrets.read();
                redact(text, secrets.iter().map(String::as_str))
            }
            false => text.to_owned(),
        };
        line.truncate(line.floor_char_boundary(MAX_LINE));
        // One event is one line, and cannot steer a terminal.
        line = line.replace(|c: char| c.is_control() && c != '\t', " ");
        line.push('\n');
        if self.stderr == Stderr::On {
            let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
        }
        if let Some(file) = self.file.get() {
            let _ = file.append(line.as_bytes());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
