//! `sessions.json`: what is known about each session, derived from the logs and kept for quick listing.

mod file;
mod rebuild;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::durable::create_private_directory;
use crate::error::{IoContext, SessionError};
use crate::lock::LockFile;
use crate::{ForkOrigin, LockWait, PeerKind, SessionKey, SessionStore, now_ms};
use file::{Cached, Loaded};

/// Name of the index within the sessions directory.
pub(crate) const INDEX_NAME: &str = "sessions.json";
/// Longest wait for another process that is changing the index. A change takes milliseconds.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));

/// What the index holds, by the text of the session's key.
pub(crate) type EntriesByKey = BTreeMap<String, SessionEntry>;

/// What is known about a session without opening its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// A UUID (version 4), made with the entry.
    pub session_id: String,
    /// When the entry last changed, in milliseconds since the Unix epoch.
    pub updated_at: u64,
    /// File name of the log.
    pub session_file: String,
    /// Channel of the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_channel: Option<String>,
    /// Whom the last reply went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_to: Option<String>,
    /// What the peer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<PeerKind>,
    /// Model of the last turn, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that the session has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Anything else that the caller keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A change to an entry. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetaPatch {
    /// What becomes of [`SessionEntry::updated_at`].
    pub updated_at: UpdatedAt,
    /// Channel of the last message.
    pub last_channel: Option<String>,
    /// Whom the last reply went to.
    pub last_to: Option<String>,
    /// What the peer is.
    pub chat_type: Option<PeerKind>,
    /// Model of the last turn, as `provider/model`.
    pub model: Option<String>,
    /// Tokens to add to what the session has used.
    pub add_tokens: u64,
    /// Replaces the values of the names in it.
    pub extra: Option<Map<String, Value>>,
}

/// What a change does to an entry's time stamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpdatedAt {
    /// The present.
    #[default]
    Now,
    /// This time, in milliseconds since the Unix epoch.
    At(u64),
    /// It stays, for changes that are no activity (a heartbeat). A new entry gets the present.
    Keep,
}

/// A session as the index lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedSession {
    /// Its key.
    pub key: SessionKey,
    /// What is known about it.
    pub entry: SessionEntry,
}

/// What pruning deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneScope {
    /// The index forgets old sessions; their logs stay (and come back if the index is rebuilt).
    IndexOnly,
    /// The logs of old sessions are deleted too.
    WithTranscripts,
}

/// What pruning did.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// The sessions that are gone from the index.
    pub removed: Vec<SessionKey>,
    /// The sessions that were old enough but could not be deleted, and why (most often: they are in use).
    pub kept: Vec<(SessionKey, SessionError)>,
}

/// The index of a sessions directory. Changes are safe across threads and processes. Reads are cached.
#[derive(Debug)]
pub struct SessionIndex {
    directory: PathBuf,
    cache: Mutex<Option<Cached>>,
}

impl SessionIndex {
    /// The index of the sessions in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), cache: Mutex::new(None) }
    }

    /// Where the index is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(INDEX_NAME)
    }

    /// Changes the entry of `key`, or makes one. Gives the entry as it is now.
    ///
    /// # Errors
    /// The index could not be locked, read or written; nothing changed then. No conversation depends on it, so a
    /// caller may go on with a warning.
    pub fn upsert(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError> {
        self.change(|entries| {
            let entry =
                entries.entry(key.to_string()).or_insert_with(|| SessionEntry::new(key, now_ms()));
            entry.apply(patch);
            entry.clone()
        })
    }

    /// The entry of `key`.
    ///
    /// # Errors
    /// The index could not be read.
    pub fn get(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError> {
        Ok(self.entries()?.get(key.as_str()).cloned())
    }

    /// All sessions, the one that changed last first.
    ///
    /// # Errors
    /// The index could not be read, or was lost and the directory could not be read to rebuild it.
    pub fn list(&self) -> Result<Vec<IndexedSession>, SessionError> {
        let entries = self.entries()?;
        let mut sessions: Vec<_> = entries
            .iter()
            .filter_map(|(key, entry)| {
                Some(IndexedSession {
                    key: SessionKey::parse_canonical(key)?,
                    entry: entry.clone(),
                })
            })
            .collect();
        sessions.sort_by(|one, other| {
            other.entry.updated_at.cmp(&one.entry.updated_at).then_with(|| one.key.cmp(&other.key))
        });
        Ok(sessions)
    }

    /// Forgets the entry of `key`; its log stays (see [`SessionStore::delete`]). Gives whether there was one.
    ///
    /// # Errors
    /// The index could not be locked, read or written.
    pub fn remove(&self, key: &SessionKey) -> Result<bool, SessionError> {
        if !self.directory.is_dir() {
            return Ok(false);
        }
        self.change(|entries| entries.remove(key.as_str()).is_some())
    }

    /// Adds every log that the index does not know. Gives how many there were.
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
        self.change(|entries| {
            let mut report = PruneReport::default();
            entries.retain(|key, entry| {
                if entry.updated_at >= oldest_kept {
                    return true;
                }
                // What is no key of ours is somebody else's business.
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
        })
    }

    /// Reads, changes and writes the index while no other process can.
    fn change<T>(&self, change: impl FnOnce(&mut EntriesByKey) -> T) -> Result<T, SessionError> {
        create_private_directory(&self.directory)
            .context("create the sessions directory", &self.directory)?;
        let _lock = self.lock()?;
        let path = self.path();
        let loaded = file::load(&path)?;
        let was_missing = matches!(loaded, Loaded::Missing);
        let was_corrupt = matches!(loaded, Loaded::Corrupt(_));
        if was_corrupt {
            file::back_up(&path)?;
        }
        let before = self.restored(loaded)?;
        let mut entries = before.clone();
        let outcome = change(&mut entries);
        // Where there are no sessions, a missing index says all there is to say.
        if entries != before || was_corrupt || (was_missing && !entries.is_empty()) {
            let cached = file::store(&path, entries)?;
            self.remember(Some(cached));
        }
        Ok(outcome)
    }

    fn lock(&self) -> Result<LockFile, SessionError> {
        let path = self.directory.join(format!("{INDEX_NAME}.lock"));
        LockFile::acquire(&path, LOCK_WAIT).map_err(|error| match error {
            SessionError::Locked { path, process_id, waited } => {
                SessionError::IndexLocked { path, process_id, waited }
            }
            other => other,
        })
    }

    /// The entries as of now, from the cache if the file is the one read last.
    fn entries(&self) -> Result<Arc<EntriesByKey>, SessionError> {
        let path = self.path();
        if let Some(entries) = self.cached(&path) {
            return Ok(entries);
        }
        let stamp = file::stamp(&path);
        let loaded = file::load(&path)?;
        if loaded.is_sound() {
            let entries = Arc::new(self.restored(loaded)?);
            self.remember(stamp.map(|stamp| Cached { stamp, entries: Arc::clone(&entries) }));
            return Ok(entries);
        }
        if !self.directory.is_dir() {
            return Ok(Arc::default());
        }
        let restored = self.restored(loaded)?;
        if restored.is_empty() {
            return Ok(Arc::default());
        }
        // Write what is restored, so that it is done once. Where that is impossible, the list is still right.
        Ok(Arc::new(self.change(|entries| entries.clone()).unwrap_or(restored)))
    }

    /// What was loaded, completed from the logs if it is not sound.
    fn restored(&self, loaded: Loaded) -> Result<EntriesByKey, SessionError> {
        let mut entries = match loaded {
            Loaded::Sound(entries) => return Ok(entries),
            Loaded::Missing => EntriesByKey::new(),
            Loaded::Corrupt(readable) => readable,
        };
        rebuild::add_missing(&mut entries, rebuild::entries_from_logs(&self.directory)?);
        Ok(entries)
    }

    fn cached(&self, path: &Path) -> Option<Arc<EntriesByKey>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache.as_ref()?;
        (file::stamp(path)? == cached.stamp).then(|| Arc::clone(&cached.entries))
    }

    fn remember(&self, cached: Option<Cached>) {
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = cached;
    }
}

impl MetaPatch {
    /// What is known about a fork that has just been made.
    pub(crate) fn forked_from(key: &SessionKey, origin: &ForkOrigin) -> Self {
        let parts = key.parts();
        Self {
            last_channel: Some(parts.channel),
            chat_type: Some(parts.peer_kind),
            extra: Some(origin.to_extra()),
            ..Self::default()
        }
    }
}

impl SessionEntry {
    /// The entry of a session of which nothing but the key is known.
    fn new(key: &SessionKey, updated_at: u64) -> Self {
        Self {
            session_id: uuid::Uuid::new_v4().to_string(),
            updated_at,
            session_file: format!("{}.{}", key.slug(), crate::store::LOG_EXTENSION),
            last_channel: None,
            last_to: None,
            chat_type: None,
            model: None,
            total_tokens: None,
            extra: None,
            unknown: Map::new(),
        }
    }

    fn apply(&mut self, patch: MetaPatch) {
        let MetaPatch { updated_at, last_channel, last_to, chat_type, model, add_tokens, extra } =
            patch;
        match updated_at {
            UpdatedAt::Now => self.updated_at = now_ms(),
            UpdatedAt::At(time) => self.updated_at = time,
            UpdatedAt::Keep => {}
        }
        self.last_channel = last_channel.or_else(|| self.last_channel.take());
        self.last_to = last_to.or_else(|| self.last_to.take());
        self.chat_type = chat_type.or(self.chat_type);
        self.model = model.or_else(|| self.model.take());
        if add_tokens > 0 {
            self.total_tokens = Some(self.total_tokens.unwrap_or(0).saturating_add(add_tokens));
        }
        if let Some(extra) = extra {
            self.extra.get_or_insert_default().extend(extra);
        }
    }
}
