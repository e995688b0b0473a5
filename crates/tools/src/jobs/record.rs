//! The record of a job on disk: private, one file each, replaced as a whole.

pub(crate) use myclaw_files::now_ms;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use myclaw_exec::{ExecError, Exit, Finished, TreeTrace};
use myclaw_files::{
    Durability, NewFile, create_private_directory, is_locked, read_regular, remove_if_there,
};
use serde::{Deserialize, Serialize};

/// Largest record that is read: a command of the largest size, escaped, and some paths.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;
/// Most characters of a command that a record keeps.
const MAX_COMMAND_CHARS: usize = 4_000;
/// Extension of a record's file name.
const EXTENSION: &str = "json";

/// The record of a background job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    /// Name of the job, unique within its session.
    pub id: String,
    /// The session that it belongs to.
    pub session: String,
    /// The command, cut if it is very long.
    pub command: String,
    /// Whether that is all of it. Records of older versions do not say so.
    #[serde(default)]
    pub command_is_whole: bool,
    /// Where it was started.
    pub directory: PathBuf,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Milliseconds since the Unix epoch.
    pub started_at: u64,
    /// The file with its output.
    pub output: PathBuf,
    /// How it ended; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<JobEnd>,
    /// In files: the lock that the MyClaw process holds that runs the job.
    pub(crate) owner: PathBuf,
    pub(crate) trace: Trace,
}

/// How a job ended, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobEnd {
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    /// How.
    #[serde(flatten)]
    pub how: JobEnding,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum JobEnding {
    /// By itself.
    Exited {
        /// 0 is success.
        code: i32,
    },
    /// By a signal that did not come from MyClaw.
    Signalled {
        /// Its number.
        signal: i32,
    },
    /// Its time was up.
    TimedOut,
    /// Somebody ended it.
    Killed {
        /// Who.
        by: Killer,
    },
    /// MyClaw ended or was killed while it ran, so how it ended is not known.
    Lost,
    /// It could not be started, or its exit status was lost.
    Failed {
        /// Why.
        reason: String,
    },
}

/// Who ends a job before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Killer {
    /// The agent, with the tool `process`.
    Agent,
    /// The user.
    User,
    /// MyClaw, because the session was closed.
    Closing,
}

/// [`TreeTrace`] in the form of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trace {
    mark: String,
    root: Option<(i32, u64)>,
    boot: String,
}

impl Trace {
    /// The process id of the command itself.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.root.map(|(pid, _)| pid)
    }
}

impl From<TreeTrace> for Trace {
    fn from(TreeTrace { mark, root, boot }: TreeTrace) -> Self {
        Self { mark, root, boot }
    }
}

impl From<Trace> for TreeTrace {
    fn from(Trace { mark, root, boot }: Trace) -> Self {
        Self { mark, root, boot }
    }
}

impl JobEnding {
    /// The end of a job that ended by itself.
    pub(crate) fn of(outcome: &Result<Finished, ExecError>) -> Self {
        match outcome {
            Ok(finished) => match finished.exit {
                Exit::Code(code) => Self::Exited { code },
                Exit::Signal(signal) => Self::Signalled { signal },
                Exit::TimedOut => Self::TimedOut,
                Exit::Aborted => Self::Killed { by: Killer::Closing },
            },
            Err(error) => Self::Failed { reason: error.to_string() },
        }
    }

    /// Whether it counts as a failure of the command.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Exited { code: 0 } | Self::Killed { .. })
    }
}

impl JobRecord {
    /// Whether the job runs.
    pub fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Process id of the command, if it was started.
    pub fn pid(&self) -> Option<i32> {
        self.trace.pid()
    }

    /// Its state in a few words: `running for 12 s`, `exit code 0 after 3 s`.
    pub fn state(&self) -> String {
        let until = self.end.as_ref().map_or_else(now_ms, |end| end.at);
        let time = seconds(until.saturating_sub(self.started_at));
        match self.end.as_ref().map(|end| &end.how) {
            None => format!("running for {time}"),
            Some(JobEnding::Exited { code }) => format!("exit code {code} after {time}"),
            Some(JobEnding::Signalled { signal }) => {
                format!("ended by signal {signal} after {time}")
            }
            Some(JobEnding::TimedOut) => format!("timed out after {time}"),
            Some(JobEnding::Killed { by: Killer::Agent }) => format!("killed after {time}"),
            Some(JobEnding::Killed { by: Killer::User }) => {
                format!("killed by the user after {time}")
            }
            Some(JobEnding::Killed { by: Killer::Closing }) => {
                format!("ended after {time}, because MyClaw closed its session")
            }
            Some(JobEnding::Lost) => {
                "dead, exit unknown: MyClaw ended unexpectedly while it ran".to_owned()
            }
            Some(JobEnding::Failed { reason }) => format!("failed: {reason}"),
        }
    }

    pub(super) fn id_of(number: u64) -> String {
        format!("j{number}")
    }

    /// The number in the id.
    pub(crate) fn number(&self) -> u64 {
        self.id.trim_start_matches('j').parse().unwrap_or(0)
    }

    /// Writes the record in place of an older one.
    pub(crate) fn save(&self, directory: &Path) -> io::Result<()> {
        self.file(directory)?.put_at(&self.path(directory), Durability::Unsynced).map(drop)
    }

    /// Writes the record under the first free id from `number` on, and takes that id.
    pub(crate) fn save_new(&mut self, directory: &Path, mut number: u64) -> io::Result<()> {
        create_private_directory(directory)?;
        loop {
            self.id = Self::id_of(number);
            let file = self.file(directory)?;
            match file.put_at_free(&self.path(directory), Durability::Unsynced) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                outcome => return outcome.map(drop),
            }
        }
    }

    /// Removes the record and the file with the output.
    pub(crate) fn delete(&self, directory: &Path) -> io::Result<()> {
        remove_if_there(&self.output)?;
        remove_if_there(&self.path(directory)).map(drop)
    }

    pub(crate) fn path(&self, directory: &Path) -> PathBuf {
        directory.join(&self.id).with_extension(EXTENSION)
    }

    fn file(&self, directory: &Path) -> io::Result<NewFile> {
        let mut file = NewFile::in_directory(directory, "job")?;
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file)
    }

    /// Reads a record; a job whose MyClaw is gone counts as lost.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bytes = read_regular(path, MAX_RECORD_BYTES)?;
        let mut record: Self = serde_json::from_slice(&bytes)?;
        if record.is_running() && !is_locked(&record.owner).unwrap_or(false) {
            record.end = Some(JobEnd { at: now_ms(), how: JobEnding::Lost });
        }
        Ok(record)
    }
}

/// The record of the job `id`, which may be any text; `None` if there is none.
pub(super) fn read(directory: &Path, id: &str) -> Option<JobRecord> {
    let number = id.trim().strip_prefix('j')?;
    let is_id = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let path = is_id.then(|| directory.join(id.trim()).with_extension(EXTENSION))?;
    JobRecord::read(&path).ok()
}

/// The records in `directory`, the oldest first. Other files are skipped.
pub(crate) fn read_all(directory: &Path) -> Vec<JobRecord> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == EXTENSION));
    let mut records: Vec<JobRecord> =
        paths.filter_map(|path| JobRecord::read(&path).ok()).collect();
    records.sort_by_key(JobRecord::number);
    records
}

/// The form of a command in a record.
pub(crate) fn kept_command(command: &str) -> String {
    crate::support::cut_end(command, MAX_COMMAND_CHARS).into_owned()
}

/// A time for people: `4.2 s`, `42 s`, `3 min 5 s`, `2 h 10 min`.
fn seconds(ms: u64) -> String {
    match ms / 1000 {
        0..10 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}
