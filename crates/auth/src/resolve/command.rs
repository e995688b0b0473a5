//! Keys that a program prints: a command of the user, or the tool of the system's keyring.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_config::KeySource;
use myclaw_exec::{ChildSpec, EnvironmentPolicy, Exit, OutputLimits};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::{KeyError, first_line};

/// Longest time for a command. A slower command most likely waits for an answer that cannot be given.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of its output that are kept: a key is one line.
const MAX_PRINTED: usize = 64 * 1024;
/// Most bytes of its standard error that are shown.
const MAX_COMPLAINT: usize = 400;
/// Runs the command in the second and further arguments, with standard error in the file that is the first. A child's
/// two outputs would otherwise come in one stream, and only standard output is the key.
const WITH_COMPLAINTS_IN_FILE: &str = r#"complaints=$1; shift; exec "$@" 2>"$complaints""#;

/// The command that prints a key.
pub(super) struct KeyCommand {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// As the user wrote it.
    written: String,
}

/// How a command failed.
#[derive(Debug)]
pub enum CommandFailure {
    /// It ended with this code and this standard error.
    Code(i32, String),
    /// It was still running at the time limit.
    TooSlow,
    /// It was ended by a signal.
    Signal(i32),
    /// It could not be started.
    NotRun(String),
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code, complaint) if complaint.is_empty() => {
                write!(formatter, "ended with code {code} and said nothing")
            }
            Self::Code(code, complaint) => write!(formatter, "ended with code {code}: {complaint}"),
            Self::TooSlow => write!(
                formatter,
                "was not done after {} s; unlock the password manager first, or give the key in another way",
                TIME_LIMIT.as_secs()
            ),
            Self::Signal(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::NotRun(reason) => write!(formatter, "could not be run: {reason}"),
        }
    }
}

/// The command of a source, if it has one.
pub(super) fn of_source(source: &KeySource) -> Option<KeyCommand> {
    let words: Vec<&str> = match source {
        KeySource::Command(command) => vec!["sh", "-c", command],
        KeySource::Keyring { service, account } if cfg!(target_os = "macos") => {
            vec!["security", "find-generic-password", "-s", service, "-a", account, "-w"]
        }
        KeySource::Keyring { service, account } => {
            vec!["secret-tool", "lookup", "service", service, "account", account]
        }
        KeySource::Literal(_) | KeySource::Environment(_) | KeySource::File(_) => return None,
    };
    Some(KeyCommand {
        words: words.into_iter().map(str::to_owned).collect(),
        written: source.describe().unwrap_or_default(),
    })
}

impl KeyCommand {
    /// Runs the command and returns the first line of its output.
    pub(super) async fn run(
        &self,
        variables: &BTreeMap<String, String>,
        cancel: &CancellationToken,
    ) -> Result<SecretString, KeyError> {
        let failed = |failure| KeyError::Command { command: self.written.clone(), failure };
        let not_run = |error: &dyn fmt::Display| failed(CommandFailure::NotRun(error.to_string()));
        let complaints = tempfile::NamedTempFile::new().map_err(|error| not_run(&error))?;
        let spec = self.spec(variables, complaints.path());
        let finished =
            myclaw_exec::run(spec, cancel, &mut |_| {}).await.map_err(|error| not_run(&error))?;
        // The output is a secret.
        let printed = SecretString::from(finished.output.tail);
        match finished.exit {
            Exit::Code(0) => first_line(printed.expose_secret()).ok_or_else(|| KeyError::Empty {
                origin: format!("what `{}` printed", self.written),
            }),
            Exit::Code(code) => {
                Err(failed(CommandFailure::Code(code, complaint(complaints.path(), &printed))))
            }
            Exit::Signal(signal) => Err(failed(CommandFailure::Signal(signal))),
            Exit::TimedOut => Err(failed(CommandFailure::TooSlow)),
            Exit::Aborted => Err(KeyError::Aborted),
        }
    }

    fn spec(&self, variables: &BTreeMap<String, String>, complaints: &Path) -> ChildSpec {
        let environment = variables
            .iter()
            .fold(EnvironmentPolicy::inherited(), |policy, (name, value)| policy.with(name, value));
        let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_dir());
        let mut spec = ChildSpec::new("sh", home.unwrap_or_else(|| PathBuf::from("/")));
        spec.args = ["-c", WITH_COMPLAINTS_IN_FILE, "sh"].map(Into::into).to_vec();
        spec.args.push(complaints.into());
        spec.args.extend(self.words.iter().map(Into::into));
        spec.environment = environment;
        spec.timeout = Some(TIME_LIMIT);
        spec.output = OutputLimits {
            keep_tail_bytes: MAX_PRINTED,
            keep_tail_chars: usize::MAX,
            keep_tail_lines: usize::MAX,
            side_file: None,
        };
        spec
    }
}

/// The command's standard error in one line, without the key if it appears there.
fn complaint(path: &Path, printed: &SecretString) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_COMPLAINT as u64).read_to_end(&mut bytes));
    // Without the text, the exit code still reports the failure.
    drop(read);
    let mut text = String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    for line in printed.expose_secret().lines().map(str::trim).filter(|line| !line.is_empty()) {
        text = text.replace(line, "[redacted]");
    }
    text
}
