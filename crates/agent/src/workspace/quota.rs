//! How much a session's own workspace may hold, its temporary files included. It is counted between tool calls, and every few
//! seconds while a command runs, so a command can pass the limit before it is ended; the sandbox bounds the size of each
//! file. From then on nothing is added.

mod room;
mod watch;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use futures_util::future::BoxFuture;
use myclaw_engine::{Hook, HookError, Notice, PreparedCall, ToolCallVerdict, ToolOutput};
use myclaw_executor::TEMPORARY_PREFIX;
use myclaw_files::{EntryKind, SharedDirectory};
use parking_lot::Mutex;

use self::room::{makes_room, may_add_files};
use crate::SessionConfig;
use crate::blocking::blocking;

/// Entries that are counted for each call that may have changed files, on average: they take some tenths of a millisecond.
/// A larger workspace is counted less often.
const ENTRIES_PER_CALL: u64 = 500;
/// Most entries that are counted where the config sets no limit on files.
const MOST_ENTRIES: u64 = 100_000;
/// Deepest directory that is counted. A deeper tree counts as one with too many files.
const MOST_DEPTH: usize = 100;
const MEGABYTE: u64 = 1 << 20;
/// What gives a full workspace room.
const ROOM: &str = "remove files of it, or let the owner raise `agents.defaults.sandbox.confinement.limits.workspaceMb` or \
                    `workspaceFiles`";
/// Most directories of temporary files that are counted. A session has one, and one for each helper that was killed.
const MOST_TEMPORARY: usize = 100;

/// What a workspace may hold; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all files.
    pub bytes: Option<u64>,
    /// Files, directories and everything else that has a name.
    pub files: Option<u64>,
}

/// What a workspace holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceUse {
    /// Bytes of all files that were counted, as the files say.
    pub bytes: u64,
    /// Entries that were counted.
    pub files: u64,
    /// Whether there are more.
    pub has_more: bool,
}

/// The directories of a session that are counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedPlace {
    workspace: PathBuf,
    /// Holds those with the temporary files of its commands.
    scratch: PathBuf,
}

impl Quota {
    /// Counts what is there, up to the limit on files. Links are not followed. Blocks.
    ///
    /// # Errors
    /// The workspace cannot be read.
    pub(crate) fn count(&self, place: &CountedPlace) -> io::Result<WorkspaceUse> {
        let most = self.files.map_or(MOST_ENTRIES, |files| files.saturating_add(1));
        let mut used = WorkspaceUse::default();
        used.add(&SharedDirectory::open(&place.workspace)?, most, 0)?;
        // There is none before the first command.
        let Ok(scratch) = SharedDirectory::open(&place.scratch) else { return Ok(used) };
        let prefix = TEMPORARY_PREFIX.as_bytes();
        let names =
            scratch.names(MOST_TEMPORARY, |name| name.as_encoded_bytes().starts_with(prefix))?;
        used.has_more |= names.is_cut;
        for temporary in names.names.iter().filter_map(|name| scratch.directory(name).ok()) {
            used.add(&temporary, most, 0)?;
        }
        Ok(used)
    }

    /// Why nothing may be added to what is there, if it may not. `new` are the bytes that would come.
    pub(crate) fn refusal(&self, used: &WorkspaceUse, new: u64) -> Option<String> {
        let has_most_files = self.files.is_some_and(|most| used.files >= most || used.has_more);
        let is_too_large = self.bytes.is_some_and(|most| used.bytes.saturating_add(new) > most);
        let is_full = self.bytes.is_some_and(|most| used.bytes >= most);
        match (has_most_files, is_too_large || is_full) {
            (true, _) => Some(format!(
                "the workspace of this session is full: it has {} files, temporary ones included, which is the limit",
                self.files.unwrap_or_default()
            )),
            (_, true) => Some(format!(
                "the workspace of this session is full: it has {} of {} MB, temporary files included",
                used.bytes.div_ceil(MEGABYTE),
                self.bytes.unwrap_or_default() / MEGABYTE
            )),
            _ => None,
        }
    }
}

impl WorkspaceUse {
    fn add(&mut self, directory: &SharedDirectory, most: u64, depth: usize) -> io::Result<()> {
        if depth > MOST_DEPTH {
            self.has_more = true;
            return Ok(());
        }
        let left = usize::try_from(most.saturating_sub(self.files)).unwrap_or(usize::MAX);
        let names = directory.names(left, |_| true)?;
        for name in &names.names {
            if self.has_more || self.files >= most {
                self.has_more = true;
                return Ok(());
            }
            self.files += 1;
            // It may be gone by now.
            let Ok(Some(facts)) = directory.facts(name) else { continue };
            if facts.kind != EntryKind::Directory {
                self.bytes = self.bytes.saturating_add(facts.bytes);
            } else if let Ok(below) = directory.directory(name) {
                self.add(&below, most, depth + 1)?;
            }
        }
        self.has_more |= names.is_cut;
        Ok(())
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            Some(bytes) => write!(formatter, "{} MB", bytes / MEGABYTE)?,
            None => formatter.write_str("any number of bytes")?,
        }
        match self.files {
            Some(files) => write!(formatter, " in {files} files"),
            None => formatter.write_str(" in any number of files"),
        }
    }
}

/// What is known of a session's workspace, from one run to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaState {
    counted: Arc<Mutex<Counted>>,
    /// Whether it is watched after a command.
    is_watched: Arc<AtomicBool>,
    /// How many commands run that make room.
    making_room: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Counted {
    used: Option<WorkspaceUse>,
    /// Whether a call may have changed it since.
    is_old: bool,
    /// Calls that may have changed it, and the entries that were counted for them.
    calls: u64,
    entries: u64,
}

impl QuotaState {
    /// What the workspace holds, counted again if something may have changed and that costs little.
    fn used(&self, quota: &Quota, place: &CountedPlace) -> io::Result<WorkspaceUse> {
        {
            let mut counted = self.counted.lock();
            counted.calls += 1;
            let is_cheap = counted.entries <= counted.calls.saturating_mul(ENTRIES_PER_CALL);
            if let Some(used) = counted.used.filter(|_| !counted.is_old || !is_cheap) {
                return Ok(used);
            }
        }
        let used = self.recount(quota, place)?;
        let mut counted = self.counted.lock();
        counted.entries = counted.entries.saturating_add(used.files);
        Ok(used)
    }

    /// Counts again.
    fn recount(&self, quota: &Quota, place: &CountedPlace) -> io::Result<WorkspaceUse> {
        let used = quota.count(place)?;
        let mut counted = self.counted.lock();
        counted.used = Some(used);
        counted.is_old = false;
        Ok(used)
    }

    fn is_changed(&self) {
        self.counted.lock().is_old = true;
    }
}

/// Refuses calls that could add to a full workspace.
pub(crate) struct QuotaHook {
    place: CountedPlace,
    quota: Quota,
    config: SessionConfig,
}

impl SessionConfig {
    /// The hook for a session with a workspace of its own.
    pub(crate) fn quota_hook(&self) -> Option<Arc<dyn Hook>> {
        Some(self.own_quota()? as Arc<dyn Hook>)
    }

    fn own_quota(&self) -> Option<Arc<QuotaHook>> {
        let quota = self.quota().filter(|quota| quota.bytes.is_some() || quota.files.is_some())?;
        Some(Arc::new(QuotaHook { place: self.counted_place()?, quota, config: self.clone() }))
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        let scratch = self.home.sessions().artifact_directory(&self.session_key);
        Some(CountedPlace { workspace: self.own_workspace()?.to_owned(), scratch })
    }

    /// Why a file of `bytes` that came with a message is not kept, if there is no room for it. Blocks.
    pub fn refuses_file(&self, bytes: u64) -> Option<String> {
        let (quota, place) = self.quota().zip(self.counted_place())?;
        let refusal = match quota.count(&place) {
            Ok(used) => quota.refusal(&used, bytes),
            Err(error) => Some(format!("the workspace of this session cannot be read: {error}")),
        };
        self.quota_state.is_changed();
        self.note_if_full(refusal.as_deref());
        refusal
    }

    /// Tells the owner and the people of the session, once until there is room again.
    fn note_if_full(&self, refusal: Option<&str>) {
        let is_new = self.notices.begins_to_be_full(refusal.is_some());
        let Some(why) = refusal.filter(|_| is_new) else { return };
        let session = self.session_key.as_str();
        tracing::warn!(session, "{why}; {ROOM}");
        self.emit_notice(Notice::Workspace { text: format!("{why}; {ROOM}") });
    }

    /// What the session's own workspace holds, and may hold. Blocks.
    pub fn workspace_use(&self) -> Option<(WorkspaceUse, Quota)> {
        let (quota, place) = self.quota().zip(self.counted_place())?;
        Some((quota.count(&place).unwrap_or_default(), quota))
    }
}

impl Hook for QuotaHook {
    fn name(&self) -> &str {
        "workspace quota"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn judge<'a>(
        &'a self,
        call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            if !may_add_files(call) || makes_room(call) {
                return Ok(ToolCallVerdict::Allow);
            }
            let (state, quota, place) =
                (self.config.quota_state.clone(), self.quota, self.place.clone());
            let used = blocking(move || state.used(&quota, &place)).await?;
            let used =
                used.map_err(|error| HookError(format!("the workspace cannot be read: {error}")))?;
            let refusal = self.quota.refusal(&used, 0);
            self.config.note_if_full(refusal.as_deref());
            let Some(why) = refusal else {
                return Ok(ToolCallVerdict::Allow);
            };
            Ok(ToolCallVerdict::Deny {
                reason: format!(
                    "{why}. Remove files that nobody needs with a plain command, such as `rm -r old/`, `find . -name '*.o' \
                     -delete` or `rm -rf $TMPDIR/x`, or tell the person that the owner can make more room. `ls` and `du` show \
                     what there is, and jobs can be ended"
                ),
            })
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        _output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        if may_add_files(call) {
            self.config.quota_state.is_changed();
        }
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests;
