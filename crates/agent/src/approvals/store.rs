//! The file with the answers "always" and the questions that wait: `approvals.json` in the state directory, private.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::formats::APPROVALS;
use myclaw_files::{
    Durability, LockError, LockFile, LockWait, NewFile, create_private_directory, parent_of,
    read_regular, set_aside,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentError, FailureClass};

/// Name of the file.
const FILE: &str = "approvals.json";
/// Version of the file's format. A file with a later version is refused.
const VERSION: u32 = APPROVALS.newest;
/// The oldest version that is read.
const OLDEST_VERSION: u32 = 1;
/// Version of what a digest is bound to. Older answers do not hold any more, because they say less.
pub(super) const GRANT_FORMAT: u32 = 2;
/// Most answers that are kept; the oldest are dropped, and asked about again.
const MAX_GRANTS: usize = 1000;
/// Most questions that are kept; they are few unless something fails.
const MAX_WAITING: usize = 200;
/// Largest file that is read: far more than these lists need.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How long to wait for another process that writes the file, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Where the answers and questions are kept. All calls block.
pub trait KeepApprovals: fmt::Debug + Send + Sync {
    /// All of them.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&self) -> Result<Approvals, ApprovalsError>;

    /// Changes them, while no other process can. The change is durable when this returns. `change` may be called again, with
    /// what another process has stored meanwhile.
    ///
    /// # Errors
    /// They cannot be read or written. Nothing has changed then.
    fn change(&self, change: &mut dyn FnMut(&mut Approvals)) -> Result<(), ApprovalsError>;

    /// Removes all, also what is damaged. Returns how many answers there were, as far as they can be read.
    ///
    /// # Errors
    /// They cannot be written, or a later version of the program wrote them.
    fn clear(&self) -> Result<usize, ApprovalsError>;
}

/// The answers "always" and the questions that wait.
#[derive(Debug, Clone)]
pub struct ApprovalStore(Arc<dyn KeepApprovals>);

/// Approvals in the file of a state directory.
#[derive(Debug)]
struct InFile {
    path: PathBuf,
}

/// Approvals that end with the process.
#[derive(Debug, Default)]
struct InMemory(Mutex<Approvals>);

/// An answer "always".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Identifies what it covers; see [`ApprovalDigest`](myclaw_policy::ApprovalDigest).
    pub digest: String,
    /// For a command: its digest without the contents of its programs and scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command_id: Option<String>,
    /// The sessions that it holds for.
    pub audience: String,
    /// Tool name.
    pub tool: String,
    /// The call that was approved, in one line that is safe to show.
    pub call: String,
    /// What it covers, for people.
    pub covers: String,
    /// When it was given, in milliseconds since 1970.
    pub ts: u64,
    /// What the digest is bound to. The first version did not say so.
    #[serde(default = "first_format")]
    pub(super) format: u32,
}

fn first_format() -> u32 {
    1
}

impl Grant {
    /// Whether an earlier version of the program stored it. It does not hold any more: the call is asked about again.
    pub fn is_old(&self) -> bool {
        self.format < GRANT_FORMAT
    }
}

/// A question that nobody has answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingApproval {
    /// Key of the session.
    pub session: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Tool name.
    pub tool: String,
    /// The call in one line that is safe to show.
    pub call: String,
    /// Why it needs an approval.
    pub reason: String,
    /// When it was asked, in milliseconds since 1970.
    pub ts: u64,
    /// What a call continues with that has begun, and in the middle of which it is asked; `None` if the call waits to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Value>,
    /// The answer that another process has given, which the one that asks has not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// It cannot be read or written.
    #[error("cannot {action} {}: {source}; check the rights of its directory and the free space", path.display())]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is damaged.
    #[error("{} is damaged: {reason}; `myclaw approvals revoke --all` begins a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// They are not in a file, and what keeps them fails. It says what to do.
    #[error("{0}")]
    Elsewhere(String),
    /// A later version of the program wrote it.
    #[error("{}", APPROVALS.refusal(path, version))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u64,
    },
}

impl From<ApprovalsError> for AgentError {
    fn from(error: ApprovalsError) -> Self {
        Self::new(FailureClass::Session, error.to_string())
    }
}

/// Everything that is kept, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approvals {
    /// The version of the format.
    version: u32,
    /// The answers, the oldest first.
    #[serde(default)]
    always: Vec<Grant>,
    /// The questions, the oldest first.
    #[serde(default)]
    waiting: Vec<WaitingApproval>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { version: VERSION, always: Vec::new(), waiting: Vec::new() }
    }
}

impl Approvals {
    /// What was stored at `path`.
    ///
    /// # Errors
    /// It is damaged, or a later version of the program wrote it.
    pub fn read(stored: serde_json::Value, path: &Path) -> Result<Self, ApprovalsError> {
        let damaged = |reason| ApprovalsError::Damaged { path: path.to_owned(), reason };
        // This comes first: a later version may have other fields.
        match stored["version"].as_u64() {
            Some(version) if version > VERSION.into() => {
                Err(ApprovalsError::Newer { path: path.to_owned(), version })
            }
            Some(version) if version < OLDEST_VERSION.into() => {
                Err(damaged(format!("there is no version {version}")))
            }
            _ => serde_json::from_value(stored)
                .map(|document: Self| Self { version: VERSION, ..document })
                .map_err(|error| damaged(error.to_string())),
        }
    }

    /// How many answers there are.
    pub fn count(&self) -> usize {
        self.always.len()
    }
}

impl ApprovalStore {
    /// The approvals of a state directory. Nothing is read yet.
    pub fn in_state_dir(state_dir: &Path) -> Self {
        Self::kept_by(Arc::new(InFile { path: state_dir.join(FILE) }))
    }

    /// Approvals that end with the process.
    pub fn in_memory() -> Self {
        Self::kept_by(Arc::new(InMemory::default()))
    }

    /// Approvals that are kept elsewhere.
    pub fn kept_by(keeper: Arc<dyn KeepApprovals>) -> Self {
        Self(keeper)
    }

    /// The answers "always" and the questions that wait, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<(Vec<Grant>, Vec<WaitingApproval>), ApprovalsError> {
        let Approvals { always, waiting, .. } = self.load()?;
        Ok((always, waiting))
    }

    /// Removes the answers whose digest begins with `id`; returns them.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn revoke(&self, id: &str) -> Result<Vec<Grant>, ApprovalsError> {
        self.change(|document| {
            document.always.extract_if(.., |grant| grant.digest.starts_with(id)).collect()
        })
    }

    /// Removes all answers and questions, also those of a damaged file, of which a copy is kept.
    ///
    /// # Errors
    /// The file cannot be written, or a later version of the program wrote it.
    pub fn clear(&self) -> Result<usize, ApprovalsError> {
        self.0.clear()
    }

    /// Whether an answer of these sessions covers one of the digests.
    pub(super) fn covers(
        &self,
        audience: &str,
        digests: &[String],
    ) -> Result<bool, ApprovalsError> {
        let is_it = |grant: &Grant| {
            !grant.is_old() && grant.audience == audience && digests.contains(&grant.digest)
        };
        Ok(self.load()?.always.iter().any(is_it))
    }

    /// Removes the answers of these sessions that have one of the digests, or are for this command.
    pub(super) fn withdraw(
        &self,
        audience: &str,
        digests: &[String],
        command_id: Option<&str>,
    ) -> Result<(), ApprovalsError> {
        let is_meant = |grant: &Grant| {
            let is_command = command_id.is_some() && grant.command_id.as_deref() == command_id;
            grant.audience == audience && (is_command || digests.contains(&grant.digest))
        };
        // Most refusals withdraw nothing.
        if !self.load()?.always.iter().any(is_meant) {
            return Ok(());
        }
        self.change(|document| document.always.retain(|grant| !is_meant(grant)))
    }

    pub(super) fn grant(&self, grant: &Grant) -> Result<(), ApprovalsError> {
        self.change(|document| {
            // The answer to a question that was asked again replaces the old one.
            let is_renewed =
                |old: &Grant| old.is_old() && old.tool == grant.tool && old.call == grant.call;
            let is_same = |old: &Grant| {
                old.audience == grant.audience && (old.digest == grant.digest || is_renewed(old))
            };
            document.always.retain(|old| !is_same(old));
            document.always.push(grant.clone());
            keep_newest(&mut document.always, MAX_GRANTS);
        })
    }

    pub(crate) fn begin_wait(&self, waiting: &WaitingApproval) -> Result<(), ApprovalsError> {
        self.change(|document| {
            let is_same = |old: &WaitingApproval| {
                old.session == waiting.session && old.tool_call_id == waiting.tool_call_id
            };
            document.waiting.retain(|old| !is_same(old));
            document.waiting.push(waiting.clone());
            keep_newest(&mut document.waiting, MAX_WAITING);
        })
    }

    /// Gives the answer to a question that some process asks. False if it does not wait any more, or has an answer.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn answer(
        &self,
        session: &str,
        tool_call_id: &str,
        answer: &str,
    ) -> Result<bool, ApprovalsError> {
        self.change(|document| {
            let mut all = document.waiting.iter_mut();
            let question = all
                .find(|waiting| waiting.session == session && waiting.tool_call_id == tool_call_id);
            let open = question.filter(|question| question.answer.is_none());
            open.map(|question| question.answer = Some(answer.to_owned())).is_some()
        })
    }

    /// Removes an answer that does not fit the question, so that the question can be answered again.
    pub(super) fn reject(&self, session: &str, tool_call_id: &str) -> Result<(), ApprovalsError> {
        self.change(|document| {
            let mut all = document.waiting.iter_mut();
            let question = all
                .find(|waiting| waiting.session == session && waiting.tool_call_id == tool_call_id);
            if let Some(question) = question {
                question.answer = None;
            }
        })
    }

    pub(super) fn waits(&self, session: &str, tool_call_id: &str) -> Result<bool, ApprovalsError> {
        Ok(self.waiting(session, tool_call_id)?.is_some_and(|waiting| waiting.begun.is_none()))
    }

    /// The question about a call.
    pub(crate) fn waiting(
        &self,
        session: &str,
        tool_call_id: &str,
    ) -> Result<Option<WaitingApproval>, ApprovalsError> {
        let is_it = |waiting: &WaitingApproval| {
            waiting.session == session && waiting.tool_call_id == tool_call_id
        };
        Ok(self.load()?.waiting.into_iter().find(is_it))
    }

    /// Removes the question about a call, and those about calls that it has made itself (`ID.NUMBER`).
    pub(crate) fn end_wait(&self, session: &str, tool_call_id: &str) -> Result<(), ApprovalsError> {
        let is_of_call = |waiting: &WaitingApproval| {
            let rest = waiting.tool_call_id.strip_prefix(tool_call_id);
            waiting.session == session
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !self.load()?.waiting.iter().any(is_of_call) {
            return Ok(());
        }
        self.change(|document| document.waiting.retain(|waiting| !is_of_call(waiting)))
    }

    fn load(&self) -> Result<Approvals, ApprovalsError> {
        self.0.load()
    }

    /// Changes what is kept, and returns what `change` does.
    fn change<T: Default>(
        &self,
        mut change: impl FnMut(&mut Approvals) -> T,
    ) -> Result<T, ApprovalsError> {
        let mut outcome = T::default();
        self.0.change(&mut |kept| outcome = change(kept))?;
        Ok(outcome)
    }
}

impl KeepApprovals for InFile {
    fn load(&self) -> Result<Approvals, ApprovalsError> {
        let bytes = match read_regular(&self.path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Approvals::default());
            }
            Err(source) => return Err(self.failed("read")(source)),
        };
        let stored = serde_json::from_slice(&bytes).map_err(|error| ApprovalsError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        Approvals::read(stored, &self.path)
    }

    /// Changes the file under its lock. What is on disk when this returns survives a power cut.
    fn change(&self, change: &mut dyn FnMut(&mut Approvals)) -> Result<(), ApprovalsError> {
        let _lock = self.lock()?;
        let mut kept = self.load()?;
        change(&mut kept);
        self.write(&kept)
    }

    fn clear(&self) -> Result<usize, ApprovalsError> {
        let _lock = self.lock()?;
        let count = match self.load() {
            Ok(document) => document.always.len(),
            Err(ApprovalsError::Damaged { .. }) => {
                set_aside(&self.path).map_err(|(path, source)| ApprovalsError::Io {
                    action: "write",
                    path,
                    source,
                })?;
                0
            }
            Err(error) => return Err(error),
        };
        self.write(&Approvals::default())?;
        Ok(count)
    }
}

impl KeepApprovals for InMemory {
    fn load(&self) -> Result<Approvals, ApprovalsError> {
        Ok(self.0.lock().clone())
    }

    fn change(&self, change: &mut dyn FnMut(&mut Approvals)) -> Result<(), ApprovalsError> {
        change(&mut self.0.lock());
        Ok(())
    }

    fn clear(&self) -> Result<usize, ApprovalsError> {
        Ok(std::mem::take(&mut *self.0.lock()).always.len())
    }
}

impl InFile {
    fn lock(&self) -> Result<LockFile, ApprovalsError> {
        create_private_directory(&parent_of(&self.path)).map_err(self.failed("write"))?;
        let lock = self.path.with_extension("lock");
        LockFile::acquire(&lock, LockWait::Until(LOCK_WAIT)).map_err(|error| match error {
            LockError::Held { .. } => self.failed("lock")(io::ErrorKind::TimedOut.into()),
            LockError::Io { source, .. } => self.failed("lock")(source),
        })
    }

    fn write(&self, document: &Approvals) -> Result<(), ApprovalsError> {
        let write = || {
            let mut file = NewFile::named(&self.path.with_extension("new"))?;
            file.write_all(&serde_json::to_vec_pretty(document)?)?;
            file.put_at(&self.path, Durability::Synced)
        };
        write().map(drop).map_err(self.failed("write"))
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> ApprovalsError + use<> {
        let path = self.path.clone();
        move |source| ApprovalsError::Io { action, path, source }
    }
}

fn keep_newest<T>(list: &mut Vec<T>, most: usize) {
    let surplus = list.len().saturating_sub(most);
    list.drain(..surplus);
}

#[cfg(test)]
mod tests;
