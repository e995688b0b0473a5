//! What to run and within which limits.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::portable::{may_run, program_file};

use crate::{EnvironmentPolicy, ExecError};

/// Where programs are looked for when the child's environment has no `PATH`; what shells fall back to.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program to run once. It leads its own session, and has no terminal unless it is
/// [attached](crate::Attachment) to one.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// A name, looked for in the `PATH` of `environment`, or a path (relative to `directory`).
    pub program: OsString,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Where it starts.
    pub directory: PathBuf,
    /// Which variables it sees.
    pub environment: EnvironmentPolicy,
    /// What it reads from its standard input; held in memory until it is read, or until the program has ended.
    pub input: Vec<u8>,
    /// After this time it is ended with everything it started. `None` means no limit.
    pub timeout: Option<Duration>,
    /// What is kept of its output.
    pub output: OutputLimits,
    /// Where its standard error goes.
    pub errors: ErrorOutput,
}

/// Where the standard error of a child goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorOutput {
    /// Among its standard output, in the order of printing: for a person or a model to read.
    #[default]
    WithOutput,
    /// To [`Finished::errors`](crate::Finished::errors): for a program whose standard output is data.
    Apart,
}

/// What is kept of a child's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    /// Most bytes kept in memory, from the end of the output.
    pub keep_tail_bytes: usize,
    /// Most characters kept in memory, from the end of the output.
    pub keep_tail_chars: usize,
    /// Most lines kept in memory, from the end of the output.
    pub keep_tail_lines: usize,
    /// Gets the whole output once it exceeds one of the limits above; its directory is made when needed, and an
    /// older file of that name is replaced. `None` means that what is not kept is lost.
    pub side_file: Option<PathBuf>,
}

impl ChildSpec {
    /// A child in `directory` with the default environment, no input, no time limit, and up to 50 KB or 2,000 lines of
    /// output kept.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            directory: directory.into(),
            environment: EnvironmentPolicy::inherited(),
            input: Vec::new(),
            timeout: None,
            output: OutputLimits {
                keep_tail_bytes: 50 * 1024,
                keep_tail_chars: usize::MAX,
                keep_tail_lines: 2000,
                side_file: None,
            },
            errors: ErrorOutput::WithOutput,
        }
    }

    /// The program's absolute path: the child looks for it only after it has changed its directory.
    ///
    /// # Errors
    /// [`ExecError::ProgramNotFound`] and [`ExecError::NotExecutable`].
    pub fn resolve_program(&self) -> Result<PathBuf, ExecError> {
        let directory =
            std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let is_path = self.program.as_encoded_bytes().contains(&b'/');
        if is_path || Path::new(&self.program).is_absolute() {
            let path = directory.join(&self.program);
            return match executable(&path) {
                Executable::Yes => Ok(path),
                Executable::No => Err(ExecError::NotExecutable { program: path }),
                Executable::Missing => {
                    Err(ExecError::ProgramNotFound { program: self.program.clone() })
                }
            };
        }
        let search = self.environment.get("PATH").unwrap_or(OsStr::new(DEFAULT_PATH));
        let mut not_executable = None;
        for entry in std::env::split_paths(search) {
            let path = program_file(directory.join(entry).join(&self.program));
            match executable(&path) {
                Executable::Yes => return Ok(path),
                Executable::No => not_executable = not_executable.or(Some(path)),
                Executable::Missing => {}
            }
        }
        Err(match not_executable {
            Some(program) => ExecError::NotExecutable { program },
            None => ExecError::ProgramNotFound { program: self.program.clone() },
        })
    }
}

enum Executable {
    Yes,
    No,
    Missing,
}

fn executable(path: &Path) -> Executable {
    // Asked once: most directories of a search do not have it.
    let Ok(found) = path.metadata() else { return Executable::Missing };
    if !found.is_file() {
        return if found.is_dir() { Executable::No } else { Executable::Missing };
    }
    match may_run(path) {
        Ok(()) => Executable::Yes,
        Err(_) => Executable::No,
    }
}
