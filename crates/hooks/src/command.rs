//! Runs a command and reports its failures.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_config::{CommandLine, ConfigError, Paths};
use myclaw_engine::HookError;
use myclaw_exec::{
    CapturedOutput, ChildSpec, EnvironmentPolicy, ErrorOutput, ExecError, Exit, OutputLimits, run,
};
use myclaw_llm::access::one_line;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Bytes by which an answer may exceed the input: an answer repeats the input at most, and adds some text.
const ANSWER_BYTES: usize = 1024 * 1024;
/// Characters of a command that are shown as its name.
const NAME_CHARS: usize = 60;
/// Most characters of a command's standard error that are shown.
const COMPLAINT_CHARS: usize = 300;

/// Says why a command must not start, before each start.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A command of the config.
pub(crate) struct Command {
    name: String,
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
    environment: EnvironmentPolicy,
    check: Option<Check>,
}

/// Whether the output of a command is its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// It is the answer, and its size is limited.
    Answer,
    /// It is ignored.
    Ignored,
}

/// How a command has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it has printed.
    pub(crate) output: String,
    /// What it has printed to standard error.
    pub(crate) errors: String,
}

impl Command {
    /// A relative program path starts at the config file's directory, never at the directory of the run: files that the
    /// agent can write must not become hooks.
    pub(crate) fn new(
        line: &CommandLine,
        timeout_seconds: u64,
        paths: &Paths,
    ) -> Result<Self, ConfigError> {
        let (name, program, arguments) = match line {
            CommandLine::Shell(text) => {
                (text.clone(), "sh".to_owned(), vec!["-c".to_owned(), text.clone()])
            }
            CommandLine::Program(words) => {
                let program = words.first().map_or("", |program| program.trim());
                let is_path = program.contains('/') || program.starts_with('~');
                let program = if is_path {
                    paths.resolve_in_config(program)?.to_string_lossy().into_owned()
                } else {
                    program.to_owned()
                };
                (words.join(" "), program, words.iter().skip(1).cloned().collect())
            }
        };
        Ok(Self {
            name: one_line(&name, NAME_CHARS),
            program,
            arguments,
            timeout: Duration::from_secs(timeout_seconds),
            environment: EnvironmentPolicy::inherited(),
            check: None,
        })
    }

    /// The same command, which finds the directory of its package in a variable: in a line for the shell a path with blanks
    /// would be several words.
    pub(crate) fn of_package(self, root: &Path, check: Check) -> Self {
        let environment = self.environment.with("CLAUDE_PLUGIN_ROOT", root);
        Self { environment, check: Some(check), ..self }
    }

    /// The command as written in the config, cut if it is long.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Path of the program.
    pub(crate) fn find_program(&self) -> Result<PathBuf, ExecError> {
        self.spec(Path::new("/"), Vec::new()).resolve_program()
    }

    /// The same command with one more variable.
    pub(crate) fn with_variable(self, name: &str, value: &Path) -> Self {
        Self { environment: self.environment.with(name, value), ..self }
    }

    /// Runs the command to its end and returns its output. It is killed if the future is dropped.
    pub(crate) async fn run(
        &self,
        directory: &Path,
        input: &Value,
        printed: Printed,
    ) -> Result<String, HookError> {
        let (code, output, errors) = self.end_of(directory, input, printed).await?;
        match code {
            0 => Ok(output),
            code => Err(HookError(format!("it ended with exit code {code}{}", complaint(&errors)))),
        }
    }

    /// Runs the command to its end, whatever its exit code is.
    pub(crate) async fn finish(
        &self,
        directory: &Path,
        input: &Value,
    ) -> Result<Finished, HookError> {
        let (code, output, errors) = self.end_of(directory, input, Printed::Answer).await?;
        Ok(Finished { code, output, errors: errors.tail })
    }

    async fn end_of(
        &self,
        directory: &Path,
        input: &Value,
        printed: Printed,
    ) -> Result<(i32, String, CapturedOutput), HookError> {
        if let Some(check) = &self.check {
            check().await.map_err(HookError)?;
        }
        let mut input = input.to_string().into_bytes();
        input.push(b'\n');
        let spec = self.spec(directory, input);
        let limit = spec.output.keep_tail_bytes;
        let too_much = CancellationToken::new();
        let mut seen = 0_usize;
        let mut count = |piece: &[u8]| {
            seen = seen.saturating_add(piece.len());
            if printed == Printed::Answer && seen > limit {
                too_much.cancel();
            }
        };
        let finished =
            run(spec, &too_much, &mut count).await.map_err(|error| HookError(error.to_string()))?;
        let complaint = complaint(&finished.errors);
        match finished.exit {
            // The limit may be exceeded just before the exit.
            Exit::Code(code)
                if code != 0 || printed == Printed::Ignored || !finished.output.truncated =>
            {
                Ok((code, finished.output.tail, finished.errors))
            }
            Exit::Code(_) | Exit::Aborted => {
                Err(HookError(format!("it printed more than {limit} bytes and was stopped")))
            }
            Exit::Signal(signal) => {
                Err(HookError(format!("it was ended by signal {signal}{complaint}")))
            }
            Exit::TimedOut => Err(HookError(format!(
                "it did not end within {} s and was stopped; make it faster, or raise its timeoutSeconds{complaint}",
                self.timeout.as_secs()
            ))),
        }
    }

    fn spec(&self, directory: &Path, input: Vec<u8>) -> ChildSpec {
        ChildSpec {
            args: self.arguments.iter().map(Into::into).collect(),
            environment: self.environment.clone(),
            timeout: Some(self.timeout),
            output: OutputLimits {
                keep_tail_bytes: input.len().saturating_add(ANSWER_BYTES),
                keep_tail_chars: usize::MAX,
                keep_tail_lines: usize::MAX,
                side_file: None,
            },
            errors: ErrorOutput::Apart,
            input,
            ..ChildSpec::new(&self.program, directory)
        }
    }
}

/// The last line of standard error, which for most programs is the important one.
fn complaint(errors: &CapturedOutput) -> String {
    match errors.tail.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", one_line(line, COMPLAINT_CHARS)),
        None => String::new(),
    }
}
