//! Runs the installed git, without hooks and without a person who could be asked.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use myclaw_exec::{ChildSpec, EnvironmentPolicy, ErrorOutput, Exit, OutputLimits, run};
use tokio_util::sync::CancellationToken;

/// Time for each command.
const LIMIT: Duration = Duration::from_secs(120);
/// Most bytes that a command prints: the largest package.
const MAX_OUTPUT: usize = 40 << 20;
/// Most bytes of the errors of a command that are kept.
const MAX_ERRORS: usize = 2_000;
/// Settings under which no command starts a program that a repository names.
const OWN: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.editor=false",
    "core.sshCommand=false",
    "commit.gpgSign=false",
    "merge.verifySignatures=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// A command of git.
#[derive(Default)]
pub(crate) struct Git {
    /// Further settings.
    pub(crate) settings: Vec<(String, String)>,
    /// Further variables.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// What it reads.
    pub(crate) input: Vec<u8>,
    /// Longest time, if not the usual.
    pub(crate) limit: Option<Duration>,
    /// Whether it may connect to other machines.
    pub(crate) reaches_network: bool,
}

/// What a command did that ended.
pub(crate) struct Ended {
    pub(crate) is_success: bool,
    pub(crate) printed: Vec<u8>,
    /// The end of what it said about errors.
    pub(crate) errors: String,
}

impl Ended {
    /// What was printed, as text without the last line end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).trim_end_matches('\n').to_owned()
    }
}

impl Git {
    /// Runs it in a directory.
    ///
    /// # Errors
    /// It does not start, takes too long, or prints too much; the text says so.
    pub(crate) async fn run(self, directory: &Path, args: &[&str]) -> Result<Ended, String> {
        let mut environment = EnvironmentPolicy::inherited().with("GIT_TERMINAL_PROMPT", "0");
        for (name, value) in self.variables {
            environment = environment.with(name, value);
        }
        let mut all: Vec<OsString> = Vec::new();
        let network = (!self.reaches_network).then_some("protocol.allow=never");
        let own = OWN.iter().filter(|own| !self.reaches_network || !own.starts_with("core.ssh"));
        for setting in own.copied().chain(network) {
            all.extend(["-c".into(), setting.into()]);
        }
        // In variables, because the name of a setting may have any character.
        let before =
            environment.get("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok());
        let before: usize = before.unwrap_or(0);
        environment =
            environment.with("GIT_CONFIG_COUNT", (before + self.settings.len()).to_string());
        for (index, (name, value)) in self.settings.into_iter().enumerate() {
            let number = before + index;
            environment = environment
                .with(format!("GIT_CONFIG_KEY_{number}"), name)
                .with(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        all.extend(args.iter().map(OsString::from));
        let limit = self.limit.unwrap_or(LIMIT);
        let spec = ChildSpec {
            args: all,
            environment,
            input: self.input,
            timeout: Some(limit),
            output: OutputLimits {
                keep_tail_bytes: MAX_ERRORS,
                keep_tail_chars: MAX_ERRORS,
                keep_tail_lines: usize::MAX,
                side_file: None,
            },
            errors: ErrorOutput::Apart,
            ..ChildSpec::new("git", directory)
        };
        let (mut printed, too_much) = (Vec::new(), CancellationToken::new());
        let mut take = |piece: &[u8]| match printed.len() + piece.len() > MAX_OUTPUT {
            true => too_much.cancel(),
            false => printed.extend_from_slice(piece),
        };
        let finished = run(spec, &too_much, &mut take).await;
        let finished =
            finished.map_err(|error| format!("git does not start: {error}; install git"))?;
        match finished.exit {
            _ if too_much.is_cancelled() => {
                Err(format!("git printed more than {} MiB", MAX_OUTPUT >> 20))
            }
            Exit::TimedOut => Err(format!("git took longer than {} s", limit.as_secs())),
            exit => Ok(Ended {
                is_success: matches!(exit, Exit::Code(0)),
                printed,
                errors: finished.errors.tail.trim().to_owned(),
            }),
        }
    }
}
