//! Session metadata, derived from the logs and kept for quick listing: `sessions.json`, and a journal of the changes
//! that it does not hold yet.
//!
//! **What arrives** are changes of one entry ([`SessionIndex::record`]), at the begin and end of each turn, from any
//! process. **What leaves** are lists, single entries and searches for a key.
//!
//! A change is one line that is appended to the journal under a shared lock. From time to time the journal is folded: the
//! entries with all changes replace `sessions.json`, and the journal begins anew, under the exclusive lock. Readers read
//! both files and apply the journal to the entries that they need.
//!
//! **What may fail:** a lock that another process holds for too long, a full disk, a damaged file. No session depends on
//! the index, so a run continues with a warning; what is missing is made again from the logs, and a damaged file is set
//! aside and reported ([`IndexRepair`]).
//!
//! **Why this shape:** a turn must not cost more because there are many sessions. To replace a file with thousands of
//! entries at each turn would; an append does not, and folding costs a small constant for each turn on average.

mod adopt;
mod entry;
mod journal;
mod read;
mod rebuild;
mod repair;
mod snapshot;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{LockKind, create_private_directory, set_aside};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::debug;

use crate::error::{IoContext, SessionError};
use crate::store::session_file;
use crate::{LockWait, PeerKind, SessionKey, SessionStore, now_ms};
use journal::{Change, Journal, Record, Records, is_false};
use snapshot::{Loaded, Snapshot, SnapshotWriter, Stamp};
use view::View;

pub use repair::IndexRepair;

/// Name of the index within the sessions directory.
pub(crate) const INDEX_NAME: &str = "sessions.json";
/// Longest wait for another process that is changing the index. A change takes milliseconds.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));
/// Up to this size `sessions.json` is replaced at each change, so that other programs that read it see every turn. It
/// holds some 150 sessions, and replacing it takes well under a millisecond.
const ALWAYS_FOLDED_BYTES: u64 = 64 * 1024;
/// A journal shorter than this is never worth writing a large `sessions.json`.
const SMALL_JOURNAL_BYTES: u64 = 1024 * 1024;
/// A longer journal is folded when its size reaches this fraction of `sessions.json`. Readers then have little to
/// apply, and the average cost of folding per turn is a small constant.
const FOLDED_PART: u64 = 16;

/// The entries of the index, by the text of the session's key.
pub(crate) type EntriesByKey = BTreeMap<String, SessionEntry>;

/// The metadata of a session, available without opening its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// A UUID (version 4), made with the entry.
    pub session_id: String,
    /// When the entry last changed, in milliseconds since the Unix epoch. Of a session in a turn, whose end the index does
    /// not know, it is the time of the log's last entry if that is later.
    pub updated_at: u64,
    /// File name of the log.
    pub session_file: String,
    /// Whether a turn has begun and not ended: it is running, or its process was killed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_turn: bool,
    /// Channel of the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_channel: Option<String>,
    /// Recipient of the last reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_to: Option<String>,
    /// The kind of the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<PeerKind>,
    /// Model of the last turn, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that the session has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// What the session has cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_dollars: Option<u64>,
    /// Messages that runs have added to the session, without results of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The directory that the session works in, if not its agent's workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Other values that the caller keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A change to an entry. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetaPatch {
    /// How [`SessionEntry::updated_at`] changes.
    pub updated_at: UpdatedAt,
    /// Channel of the last message.
    pub last_channel: Option<String>,
    /// Recipient of the last reply.
    pub last_to: Option<String>,
    /// The kind of the peer.
    pub chat_type: Option<PeerKind>,
    /// Model of the last turn, as `provider/model`.
    pub model: Option<String>,
    /// Tokens to add to what the session has used.
    pub add_tokens: u64,
    /// Millionths of a US dollar to add to what the session has cost.
    pub add_micro_dollars: u64,
    /// Messages to add to those that the session has.
    pub add_messages: u64,
    /// Whether a turn begins or ends.
    pub in_turn: Option<bool>,
    /// Replaces the values of the names in it.
    pub extra: Option<Map<String, Value>>,
}

/// How a change affects an entry's time stamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpdatedAt {
    /// Set to the present.
    #[default]
    Now,
    /// Set to this time, in milliseconds since the Unix epoch.
    At(u64),
    /// Unchanged, for changes that are no activity (a heartbeat). A new entry gets the present.
    Keep,
}

/// A session as the index lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedSession {
    /// Its key.
    pub key: SessionKey,
    /// Its metadata.
    pub entry: SessionEntry,
}

/// How much pruning deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneScope {
    /// Old sessions are removed from the index; their logs stay, and reappear if the index is rebuilt.
    IndexOnly,
    /// The logs of old sessions are deleted too.
    WithTranscripts,
}

/// The result of pruning.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// The sessions that were removed from the index.
    pub removed: Vec<SessionKey>,
    /// The sessions that were old enough but could not be deleted, and why (usually because they are in use).
    pub kept: Vec<(SessionKey, SessionError)>,
}

/// The index of a sessions directory. Changes are safe across threads and processes. Reads are cached.
#[derive(Debug)]
pub struct SessionIndex {
    directory: PathBuf,
    cache: Mutex<Option<Cached>>,
    repairs: Mutex<Vec<IndexRepair>>,
}

/// The content that was read last, and the state of the two files at that time.
#[derive(Debug)]
struct Cached {
    stamps: (Option<Stamp>, Option<Stamp>),
    view: Arc<View>,
}

/// The content of the two files.
enum Found {
    /// All of it could be read.
    Sound(View),
    /// `sessions.json` is missing or damaged. These entries and records could be read.
    Lost(EntriesByKey, Vec<Record>),
}

impl SessionIndex {
    /// The index of the sessions in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), cache: Mutex::default(), repairs: Mutex::default() }
    }

    /// Where the index is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(INDEX_NAME)
    }

    /// Changes the entry of `key`, or makes one. What this costs does not depend on how many sessions there are.
    ///
    /// # Errors
    /// The index could not be locked or written. No session depends on it, so a caller may continue with a warning.
    pub fn record(&self, key: &SessionKey, patch: MetaPatch) -> Result<(), SessionError> {
        create_private_directory(&self.directory)
            .context("create the sessions directory", &self.directory)?;
        self.append(&self.line(key, patch))
    }

    /// Records that a turn begins in a session, which changes its entry, or makes one. Costs one append: `sessions.json` is
    /// written when the turn ends.
    ///
    /// # Errors
    /// As for [`SessionIndex::record`].
    pub fn begin_turn(&self, key: &SessionKey, patch: MetaPatch) -> Result<(), SessionError> {
        let line = self.line(key, MetaPatch { in_turn: Some(true), ..patch });
        Journal::open(&self.directory, LockKind::Shared, LOCK_WAIT)?.append(&line)
    }

    /// The line of the journal for a change of the entry of `key`.
    fn line(&self, key: &SessionKey, patch: MetaPatch) -> Record {
        let made = rebuild::made_from(&self.directory.join(session_file(key)), self.pruned_at());
        Record::Set(Box::new(Change::new(key, made, patch)))
    }

    /// Like [`SessionIndex::record`], but returns the new entry.
    ///
    /// # Errors
    /// As for [`SessionIndex::record`]; or the index could not be read.
    pub fn upsert(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError> {
        self.record(key, patch)?;
        self.get(key)?.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })
    }

    /// The repairs of damaged files since the last call.
    pub fn take_repairs(&self) -> Vec<IndexRepair> {
        std::mem::take(&mut *self.repairs.lock())
    }

    /// Removes the entry of `key`; its log stays (see [`SessionStore::delete`]). Returns whether there was one.
    ///
    /// # Errors
    /// The index could not be locked, read or written.
    pub fn remove(&self, key: &SessionKey) -> Result<bool, SessionError> {
        if !self.directory.is_dir() || self.get(key)?.is_none() {
            return Ok(false);
        }
        self.append(&Record::Remove(key.to_string()))?;
        Ok(true)
    }

    /// Adds every log that the index does not list. Returns how many there were.
    ///
    /// # Errors
    /// The directory could not be read, or the index not locked, read or written.
    pub fn rebuild(&self) -> Result<usize, SessionError> {
        if !self.directory.is_dir() {
            return Ok(0);
        }
        let found = rebuild::entries_from_logs(&self.directory)?;
        self.change(|entries| {
            let before = entries.len();
            rebuild::add_missing(entries, found);
            entries.len() - before
        })
    }

    /// Removes the sessions that did not change for longer than `max_age`.
    ///
    /// # Errors
    /// The index could not be locked, read or written.
    pub fn prune(&self, max_age: Duration, scope: PruneScope) -> Result<PruneReport, SessionError> {
        if !self.directory.is_dir() {
            return Ok(PruneReport::default());
        }
        let max_age = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let oldest_kept = now_ms().saturating_sub(max_age);
        let store = SessionStore::new(self.directory.clone());
        let report = self.change(|entries| {
            let mut report = PruneReport::default();
            entries.retain(|key, entry| {
                if entry.updated_at >= oldest_kept {
                    return true;
                }
                // An entry whose key is not a session key belongs to another program.
                let Some(key) = SessionKey::parse_canonical(key) else { return true };
                match scope {
                    PruneScope::IndexOnly => report.removed.push(key),
                    PruneScope::WithTranscripts => match store.delete(&key) {
                        Ok(_) => report.removed.push(key),
                        Err(error) => {
                            report.kept.push((key, error));
                            return true;
                        }
                    },
                }
                false
            });
            report
        })?;
        if !report.removed.is_empty() {
            self.note_pruned()?;
        }
        Ok(report)
    }

    /// Appends to the journal, and folds it if it has grown long enough.
    fn append(&self, record: &Record) -> Result<(), SessionError> {
        let snapshot = Stamp::of(&self.path()).map_or(0, Stamp::length);
        let is_small = snapshot <= ALWAYS_FOLDED_BYTES;
        if is_small {
            // If nobody else uses the index, one lock serves for both.
            match Journal::open(&self.directory, LockKind::Exclusive, LockWait::Fail) {
                Ok(journal) => {
                    journal.append(record)?;
                    return match self.fold_into(journal) {
                        Some(()) => Ok(()),
                        None => self.change(|_| ()),
                    };
                }
                Err(SessionError::IndexLocked { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let journal = Journal::open(&self.directory, LockKind::Shared, LOCK_WAIT)?;
        journal.append(record)?;
        let length = journal.length()?;
        drop(journal);
        if snapshot == 0 {
            return self.change(|_| ());
        }
        let is_due = is_small || length > SMALL_JOURNAL_BYTES.max(snapshot / FOLDED_PART);
        if is_due && self.fold().is_none() && is_small {
            return self.change(|_| ());
        }
        Ok(())
    }

    /// Folds the journal into `sessions.json`, unless somebody else is using it: then they or the next writer fold it.
    /// `None` if something is wrong. The journal's content is safe in the journal, and the next reader reports what it is.
    fn fold(&self) -> Option<()> {
        let journal = match Journal::open(&self.directory, LockKind::Exclusive, LockWait::Fail) {
            Err(SessionError::IndexLocked { .. }) => return Some(()),
            opened => opened.ok()?,
        };
        self.fold_into(journal)
    }

    /// Folds the journal, which is locked for this process alone. `None` if something is wrong, or there is no
    /// `sessions.json` yet.
    fn fold_into(&self, journal: Journal) -> Option<()> {
        let Ok((Found::Sound(view), 0)) = self.read_locked(Some(&journal)) else { return None };
        let writer = view.to_snapshot(&self.path()).ok()?;
        self.replace(writer, journal).ok()
    }

    /// Reads, changes and writes the index under the exclusive lock.
    fn change<T>(&self, change: impl FnOnce(&mut EntriesByKey) -> T) -> Result<T, SessionError> {
        create_private_directory(&self.directory)
            .context("create the sessions directory", &self.directory)?;
        let journal = Journal::open(&self.directory, LockKind::Exclusive, LOCK_WAIT)?;
        let is_missing = Stamp::of(&self.path()).is_none();
        let (found, damaged_lines) = self.read_locked(Some(&journal))?;
        if damaged_lines > 0 {
            self.keep_copy(journal.path())?;
        }
        let (mut entries, is_changed) = match found {
            Found::Sound(view) => match view.entries() {
                Ok(entries) => (entries, journal.length()? > 0),
                Err(readable) => (self.restored(readable, &[])?, true),
            },
            Found::Lost(readable, records) => (self.restored(readable, &records)?, true),
        };
        let before = (!is_changed).then(|| entries.clone());
        let outcome = change(&mut entries);
        // If there are no sessions, no file needs to be written.
        if before.as_ref() == Some(&entries) || (is_missing && entries.is_empty()) {
            journal.remove()?;
            return Ok(outcome);
        }
        let path = self.path();
        let mut writer = SnapshotWriter::default();
        for (key, entry) in &entries {
            writer.entry(key, entry, &path)?;
        }
        self.replace(writer, journal)?;
        Ok(outcome)
    }

    fn replace(&self, writer: SnapshotWriter, journal: Journal) -> Result<(), SessionError> {
        writer.put_at(&self.path(), |stamp| journal.append(&Record::Folded(stamp)))?;
        journal.remove()
    }

    /// Reads both files, and counts unreadable lines of the journal. `journal` is locked, if there is one.
    fn read_locked(&self, journal: Option<&Journal>) -> Result<(Found, usize), SessionError> {
        let path = self.path();
        let stamp = Stamp::of(&path);
        let Records { records, damaged } =
            journal.map(|journal| journal.read(stamp)).transpose()?.unwrap_or_default();
        // Most changes are in the journal only.
        let loaded = match stamp.and_then(|stamp| self.known_snapshot(stamp)) {
            Some(snapshot) => return Ok((self.found(snapshot, records), damaged)),
            None => Snapshot::load(&path)?,
        };
        let found = match loaded {
            Loaded::Missing => Found::Lost(EntriesByKey::new(), records),
            Loaded::Corrupt(readable) => Found::Lost(readable, records),
            Loaded::Sound(snapshot) => self.found(Arc::new(snapshot), records),
        };
        Ok((found, damaged))
    }

    /// The snapshot that was read last, if the file has not changed since.
    fn known_snapshot(&self, stamp: Stamp) -> Option<Arc<Snapshot>> {
        let cache = self.cache.lock();
        cache.as_ref().filter(|cached| cached.stamps.0 == Some(stamp))?.view.snapshot()
    }

    fn found(&self, snapshot: Arc<Snapshot>, records: Vec<Record>) -> Found {
        match View::new(&self.directory, snapshot, &records) {
            Ok(view) => Found::Sound(view),
            Err(snapshot) => Found::Lost(snapshot.readable_entries(), records),
        }
    }

    /// Completes the readable entries from the logs. Keeps a copy of the damaged file, if there is one.
    fn restored(
        &self,
        readable: EntriesByKey,
        records: &[Record],
    ) -> Result<EntriesByKey, SessionError> {
        let path = self.path();
        if path.exists() {
            self.keep_copy(&path)?;
        }
        self.completed(readable, records)
    }

    /// Completes the readable entries from the logs and applies the journal.
    fn completed(
        &self,
        mut entries: EntriesByKey,
        records: &[Record],
    ) -> Result<EntriesByKey, SessionError> {
        rebuild::add_missing(&mut entries, rebuild::entries_from_logs(&self.directory)?);
        for record in records {
            let Some(key) = record.key() else { continue };
            let before = entries.remove(key);
            entries.extend(record.apply(before).map(|entry| (key.to_owned(), entry)));
        }
        Ok(entries)
    }

    fn keep_copy(&self, path: &Path) -> Result<(), SessionError> {
        debug!(path = %path.display(), "a file of the session index is damaged");
        let backup = set_aside(path).map_err(|(backup, source)| {
            SessionError::from_io("save the corrupt session index to", &backup, source)
        })?;
        let repair = IndexRepair { path: path.to_path_buf(), backup };
        self.repairs.lock().push(repair);
        Ok(())
    }
}
