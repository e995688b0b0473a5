//! Commands and how they end, as the two processes write them down.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_exec::{
    Attachment, CapturedOutput, ChildSpec, EnvironmentPolicy, ErrorOutput, ExecError, Exit,
    Finished, LeftRunning, OutputLimits, SideFile, SideFileProblem, TerminalSize,
};
use serde::{Deserialize, Serialize};

use super::CallNumber;

/// Most bytes of one piece of output. More than the newest 128 KiB of a command is never shown.
pub(crate) const MAX_PIECE_BYTES: usize = 256 << 10;
/// A byte that is not UTF-8 becomes a character of this many bytes.
const BYTES_OF_REPLACEMENT: usize = 3;
/// Most processes left running that are named. Results name five.
const MAX_LEFT_RUNNING: usize = 64;
/// Most characters of the name of a process and of the reason of a failure.
const MAX_NAME_CHARS: usize = 64;
const MAX_REASON_CHARS: usize = 1_000;

/// A command to run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandRequest {
    pub number: CallNumber,
    /// Marks the processes of the command.
    pub mark: String,
    program: String,
    arguments: Vec<String>,
    directory: PathBuf,
    /// In addition to those of the helper.
    variables: Vec<(String, String)>,
    /// In milliseconds.
    timeout: Option<u64>,
    keep_bytes: usize,
    keep_chars: usize,
    keep_lines: usize,
    side_file: Option<PathBuf>,
    /// Columns and rows, if it has a terminal.
    terminal: Option<(u16, u16)>,
    has_input: bool,
}

/// How a command ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CommandEnd {
    Finished {
        exit: ExitName,
        tail: String,
        total_bytes: u64,
        total_lines: u64,
        truncated: bool,
        side_file: SideFileState,
        left_running: Vec<(i32, String)>,
    },
    /// There is no such program.
    NotFound,
    /// It was not started, or how it ended is not known.
    Failed { text: String },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ExitName {
    Code(i32),
    Signal(i32),
    TimedOut,
    Aborted,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SideFileState {
    None,
    Whole,
    Capped(u64),
    Failed(String),
}

impl CommandRequest {
    /// # Errors
    /// The command cannot be written as text.
    pub(crate) fn new(
        number: CallNumber,
        mark: String,
        spec: &ChildSpec,
        attachment: Attachment,
    ) -> Result<Self, ExecError> {
        let text = |text: &OsString| {
            text.to_str().map(str::to_owned).ok_or_else(|| ExecError::Elsewhere {
                reason: format!("{text:?} is not valid UTF-8, so it cannot be run in the sandbox"),
            })
        };
        let variables = spec
            .environment
            .iter()
            .map(|(name, value)| Ok((text(&name.to_owned())?, text(&value.to_owned())?)));
        Ok(Self {
            number,
            mark,
            program: text(&spec.program)?,
            arguments: spec.args.iter().map(text).collect::<Result<_, _>>()?,
            directory: spec.directory.clone(),
            variables: variables.collect::<Result<_, ExecError>>()?,
            timeout: spec.timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            keep_bytes: spec.output.keep_tail_bytes,
            keep_chars: spec.output.keep_tail_chars,
            keep_lines: spec.output.keep_tail_lines,
            side_file: spec.output.side_file.clone(),
            terminal: match attachment {
                Attachment::Terminal(TerminalSize { columns, rows }) => Some((columns, rows)),
                Attachment::None | Attachment::Pipe => None,
            },
            has_input: attachment != Attachment::None,
        })
    }

    pub(crate) fn attachment(&self) -> Attachment {
        match (self.terminal, self.has_input) {
            (Some((columns, rows)), _) => Attachment::Terminal(TerminalSize { columns, rows }),
            (None, true) => Attachment::Pipe,
            (None, false) => Attachment::None,
        }
    }

    /// The command as this process runs it, with its own variables.
    pub(crate) fn into_spec(self) -> ChildSpec {
        let own = EnvironmentPolicy::inherited();
        let with = |environment: EnvironmentPolicy, (name, value)| environment.with(name, value);
        ChildSpec {
            program: self.program.into(),
            args: self.arguments.into_iter().map(OsString::from).collect(),
            directory: self.directory,
            environment: self.variables.into_iter().fold(own, with),
            input: Vec::new(),
            timeout: self.timeout.map(Duration::from_millis),
            output: OutputLimits {
                keep_tail_bytes: self.keep_bytes,
                keep_tail_chars: self.keep_chars,
                keep_tail_lines: self.keep_lines,
                side_file: self.side_file,
            },
            errors: ErrorOutput::WithOutput,
        }
    }
}

impl From<Result<Finished, ExecError>> for CommandEnd {
    fn from(outcome: Result<Finished, ExecError>) -> Self {
        let Finished { exit, output, left_running, .. } = match outcome {
            Ok(finished) => finished,
            Err(ExecError::ProgramNotFound { .. }) => return Self::NotFound,
            Err(error) => return Self::Failed { text: error.to_string() },
        };
        let left_running = left_running.into_iter().take(MAX_LEFT_RUNNING);
        Self::Finished {
            exit: match exit {
                Exit::Code(code) => ExitName::Code(code),
                Exit::Signal(signal) => ExitName::Signal(signal),
                Exit::TimedOut => ExitName::TimedOut,
                Exit::Aborted => ExitName::Aborted,
            },
            side_file: match output.side_file.map(|file| file.problem) {
                None => SideFileState::None,
                Some(None) => SideFileState::Whole,
                Some(Some(SideFileProblem::Capped { limit })) => SideFileState::Capped(limit),
                Some(Some(SideFileProblem::Failed { reason })) => SideFileState::Failed(reason),
            },
            tail: output.tail,
            total_bytes: output.total_bytes,
            total_lines: output.total_lines,
            truncated: output.truncated,
            left_running: left_running.map(|process| (process.pid, process.name)).collect(),
        }
    }
}

impl CommandEnd {
    /// What the caller gets, who asked for `spec`. The helper may have been taken over by what it runs, so sizes are
    /// checked, and paths are the caller's own.
    ///
    /// # Errors
    /// The command was not run to its end, or its result is not one that a command may have.
    pub(crate) fn check(self, spec: &ChildSpec, duration: Duration) -> Result<Finished, ExecError> {
        let (exit, output, left_running) = match self {
            Self::NotFound => {
                return Err(ExecError::ProgramNotFound { program: spec.program.clone() });
            }
            Self::Failed { text } => {
                return Err(ExecError::Elsewhere { reason: cut(&text, MAX_REASON_CHARS) });
            }
            Self::Finished {
                exit,
                tail,
                total_bytes,
                total_lines,
                truncated,
                side_file,
                left_running,
            } => {
                let most = spec.output.keep_tail_bytes.saturating_mul(BYTES_OF_REPLACEMENT);
                if tail.len() > most || left_running.len() > MAX_LEFT_RUNNING {
                    return Err(ExecError::Elsewhere {
                        reason: "the sandboxed helper process returned a result of a command that is too large; run \
                                 the command again"
                            .to_owned(),
                    });
                }
                let side_file = side_file.of(spec.output.side_file.clone());
                let output =
                    CapturedOutput { tail, total_bytes, total_lines, truncated, side_file };
                (exit, output, left_running)
            }
        };
        let exit = match exit {
            ExitName::Code(code) => Exit::Code(code),
            ExitName::Signal(signal) => Exit::Signal(signal),
            ExitName::TimedOut => Exit::TimedOut,
            ExitName::Aborted => Exit::Aborted,
        };
        let left_running = left_running
            .into_iter()
            .map(|(pid, name)| LeftRunning { pid, name: cut(&name, MAX_NAME_CHARS) })
            .collect();
        Ok(Finished { exit, output, errors: CapturedOutput::default(), duration, left_running })
    }
}

impl SideFileState {
    fn of(self, path: Option<PathBuf>) -> Option<SideFile> {
        let problem = match self {
            Self::None => return None,
            Self::Whole => None,
            Self::Capped(limit) => Some(SideFileProblem::Capped { limit }),
            Self::Failed(reason) => {
                Some(SideFileProblem::Failed { reason: cut(&reason, MAX_REASON_CHARS) })
            }
        };
        path.map(|path| SideFile { path, problem })
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().filter(|char| !char.is_control()).take(most).collect()
}

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of such a text.
///
/// # Errors
/// It is no such text.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("it sent bytes that are no base 64: {error}"))
}
