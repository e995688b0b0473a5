//! What a session's own workspace may hold and holds, and what is known of that from one run to the next.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use myclaw_files::{EntryKind, SharedDirectory};
use parking_lot::Mutex;

/// Entries that are counted for each call that may have changed files, on average: they take some tenths of a millisecond.
/// A larger workspace is counted less often.
const ENTRIES_PER_CALL: u64 = 500;
/// Most entries that are counted where the config sets no limit on files.
const MOST_ENTRIES: u64 = 100_000;
/// Deepest directory that is counted. A deeper tree counts as one with too many files.
pub(super) const MOST_DEPTH: usize = 100;
pub(super) const MEGABYTE: u64 = 1 << 20;
/// The directory with what undo needs, next to the temporary files.
const CHANGES: &str = "changes";
/// Bytes in it that do not count: more than undo keeps.
const MOST_OLD_CONTENTS: u64 = 300 * MEGABYTE;

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
    pub(super) workspace: PathBuf,
    /// Holds the temporary files of its commands and the full texts of large outputs. Commands can write everywhere in it.
    pub(super) scratch: PathBuf,
}

impl Quota {
    /// Counts what is there, up to the limit on files. Links are not followed. Blocks.
    ///
    /// # Errors
    /// The workspace cannot be read.
    pub(super) fn count(&self, place: &CountedPlace) -> io::Result<WorkspaceUse> {
        let most = self.files.map_or(MOST_ENTRIES, |files| files.saturating_add(1));
        let mut used = WorkspaceUse::default();
        used.add(&SharedDirectory::open(&place.workspace)?, most, 0)?;
        // There is none before the first command.
        let Ok(scratch) = SharedDirectory::open(&place.scratch) else { return Ok(used) };
        used.add_but(CHANGES, &scratch, most, 0)?;
        if let Ok(changes) = scratch.directory(CHANGES) {
            let mut old = WorkspaceUse::default();
            old.add(&changes, most, 0)?;
            // Its writer keeps to its limit. Commands can write there too.
            used.bytes = used.bytes.saturating_add(old.bytes.saturating_sub(MOST_OLD_CONTENTS));
            used.has_more |= old.has_more;
        }
        Ok(used)
    }

    /// Why nothing may be added to what is there, if it may not. `new` are the bytes that would come.
    pub(super) fn refusal(&self, used: &WorkspaceUse, new: u64) -> Option<String> {
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
        self.add_but("", directory, most, depth)
    }

    /// Adds what is in a directory, but for the entry with this name.
    fn add_but(
        &mut self,
        left_out: &str,
        directory: &SharedDirectory,
        most: u64,
        depth: usize,
    ) -> io::Result<()> {
        if depth > MOST_DEPTH {
            self.has_more = true;
            return Ok(());
        }
        let left = usize::try_from(most.saturating_sub(self.files)).unwrap_or(usize::MAX);
        let names = directory.names(left, |name| name != left_out)?;
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
    pub(super) counted: Arc<Mutex<Counted>>,
    /// Whether it is watched after a command.
    pub(super) is_watched: Arc<AtomicBool>,
    /// How many commands run that make room.
    pub(super) making_room: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
pub(super) struct Counted {
    used: Option<WorkspaceUse>,
    /// Whether a call may have changed it since.
    is_old: bool,
    /// Calls that may have changed it, and the entries that were counted for them.
    calls: u64,
    pub(super) entries: u64,
}

impl QuotaState {
    /// What the workspace holds, counted again if something may have changed and that costs little.
    pub(super) fn used(&self, quota: &Quota, place: &CountedPlace) -> io::Result<WorkspaceUse> {
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
    pub(super) fn recount(&self, quota: &Quota, place: &CountedPlace) -> io::Result<WorkspaceUse> {
        let used = quota.count(place)?;
        let mut counted = self.counted.lock();
        counted.used = Some(used);
        counted.is_old = false;
        Ok(used)
    }

    pub(super) fn is_changed(&self) {
        self.counted.lock().is_old = true;
    }
}
