//! Sessions as one JSON file each, for programs that pass a session's id from one run to the next.
//!
//! The whole session is in memory while it is open. Its file is replaced as a whole when the run makes it durable, when
//! the index entry changes, and at the end. Entries appended since the last of these are lost in a crash. The format is
//! described in `docs/develop/sessions.md`.

mod document;

use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use myclaw_files::{
    Durability, LockFile, NewFile, create_private_directory, is_locked, sync_directory,
};
use parking_lot::Mutex;

use crate::entry::new_session_id;
use crate::error::IoContext;
use crate::store::{ARTIFACT_EXTENSION, INBOX_EXTENSION, LOCK_EXTENSION};
use crate::{
    Entry, FileInbox, Inbox, IndexUpdate, LockWait, LogEnd, MetaPatch, OpenSession, SessionError,
    SessionKey, SessionUse, Sessions, SideFiles, SyncHandle, Tail, TailLimit, TranscriptMessage,
    next_epoch,
};
pub(crate) use document::Document;

/// Extension of a session's file.
const EXTENSION: &str = "json";
/// Extension of the file while its next content is written.
const UNFINISHED_EXTENSION: &str = "json.new";
/// Longest wait for a session that is not open here when its index entry changes.
const INDEX_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));

/// Sessions in one directory, each in a file `<id>.json`. A session key gets its id from [`JsonSessions::resume`], or
/// else a new one. Only this value and its clones remember the id.
#[derive(Debug, Clone)]
pub struct JsonSessions {
    directory: PathBuf,
    saving: Saving,
    by_key: Arc<Mutex<HashMap<SessionKey, Arc<Session>>>>,
}

/// When the file of an open session is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Saving {
    /// When a run makes it durable.
    #[default]
    OnSync,
    /// After every append too, so that a killed process loses nothing.
    OnAppend,
}

/// One session, open or not.
#[derive(Debug)]
struct Session {
    key: SessionKey,
    id: String,
    directory: PathBuf,
    saving: Saving,
    /// The content while the session is open here.
    document: Mutex<Option<Document>>,
    /// Held while the file is replaced, so that older content never replaces newer content.
    replacing: Mutex<()>,
    /// The lock of the owner here, if there is one.
    owner: Mutex<Weak<LockFile>>,
}

/// A session opened for writing.
#[derive(Debug)]
struct OpenJson {
    session: Arc<Session>,
    end: LogEnd,
    /// Dropped after the session is saved.
    lock: Arc<LockFile>,
}

impl JsonSessions {
    /// The sessions in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), saving: Saving::OnSync, by_key: Arc::default() }
    }

    /// Replaces the file after every append too, so that a process that is killed loses nothing. Each append then costs
    /// a write of the whole session; a power cut still loses what was appended since the last sync.
    #[must_use]
    pub fn saved_at_each_append(self) -> Self {
        Self { saving: Saving::OnAppend, ..self }
    }

    /// Makes `key` refer to the session `id`. If there is no session with that id, or its file cannot be read, `key`
    /// gets a new session and that file stays unchanged. Returns the id of the session. Call it before the session is
    /// used.
    pub fn resume(&self, key: &SessionKey, id: &str) -> String {
        let is_uuid = uuid::Uuid::parse_str(id)
            .is_ok_and(|uuid| uuid.hyphenated().to_string().eq_ignore_ascii_case(id));
        let known = is_uuid
            .then(|| Session::new(self, key, id.to_owned()))
            .filter(|session| matches!(Document::load(&session.path()), Ok(Some(_))));
        let session = known.unwrap_or_else(|| Session::new(self, key, new_session_id()));
        let id = session.id.clone();
        self.by_key.lock().insert(key.clone(), Arc::new(session));
        id
    }

    fn session(&self, key: &SessionKey) -> Arc<Session> {
        let make = || Arc::new(Session::new(self, key, new_session_id()));
        Arc::clone(self.by_key.lock().entry(key.clone()).or_insert_with(make))
    }
}

impl Session {
    fn new(sessions: &JsonSessions, key: &SessionKey, id: String) -> Self {
        Self {
            key: key.clone(),
            id,
            directory: sessions.directory.clone(),
            saving: sessions.saving,
            document: Mutex::default(),
            replacing: Mutex::default(),
            owner: Mutex::default(),
        }
    }

    fn path(&self) -> PathBuf {
        self.beside(EXTENSION)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.id))
    }

    fn open(self: Arc<Self>, wait: LockWait) -> Result<OpenJson, SessionError> {
        let changed = create_private_directory(&self.directory)
            .context("create the sessions directory", &self.directory)?;
        for directory in changed.iter().rev() {
            sync_directory(directory).context("write to disk the directory", directory)?;
        }
        let path = self.beside(LOCK_EXTENSION);
        let lock = LockFile::acquire(&path, wait).context("lock", &path)?;
        let document = Document::load(&self.path())?.unwrap_or_default();
        *self.document.lock() = Some(document);
        let lock = Arc::new(lock);
        *self.owner.lock() = Arc::downgrade(&lock);
        Ok(OpenJson { session: self, end: LogEnd::of_opening(next_epoch()), lock })
    }

    /// Runs `work` on the content; returns `None` if the session is not open here.
    fn with_document<T>(&self, work: impl FnOnce(&mut Document) -> T) -> Option<T> {
        self.document.lock().as_mut().map(work)
    }

    /// Runs `work` on the content, whether the session is open here or not. Does nothing if there is none.
    fn read(&self, mut work: impl FnMut(&Document)) -> Result<(), SessionError> {
        if self.with_document(|document| work(document)).is_none()
            && let Some(document) = Document::load(&self.path())?
        {
            work(&document);
        }
        Ok(())
    }

    /// Replaces the file, unless nothing has changed since it was written.
    fn save(&self, durability: Durability) -> Result<(), SessionError> {
        let _replacing = self.replacing.lock();
        let path = self.path();
        let owner = self.owner.lock().upgrade();
        if let Some(lock) = owner
            && lock.is_replaced().context("check the lock of", &path)?
        {
            return Err(SessionError::Fenced { key: self.key.clone() });
        }
        let Some(text) = self.with_document(|document| document.take_text(&self.id)).flatten()
        else {
            return Ok(());
        };
        let replaced = text
            .map_err(|source| SessionError::Encode { path: path.clone(), source })
            .and_then(|text| self.replace(&path, &text, durability));
        // A file that the system writes later is written again by the next sync.
        if replaced.is_err() || durability == Durability::Unsynced {
            self.with_document(|document| document.is_changed = true);
        }
        replaced
    }

    fn replace(
        &self,
        path: &Path,
        text: &[u8],
        durability: Durability,
    ) -> Result<(), SessionError> {
        let mut file = NewFile::named(&self.beside(UNFINISHED_EXTENSION))
            .context("create the session file", path)?;
        file.write_all(text).context("write the session file", path)?;
        file.put_at(path, durability).context("write the session file", path)?;
        Ok(())
    }

    fn record(self: Arc<Self>, patch: MetaPatch) -> Result<(), SessionError> {
        let is_open = self.document.lock().is_some();
        let _held = (!is_open).then(|| Arc::clone(&self).open(INDEX_WAIT)).transpose()?;
        self.with_document(|document| document.record(&self.key, &self.id, patch));
        self.save(Durability::Synced)
    }
}

impl Sessions for JsonSessions {
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError> {
        Ok(Box::new(self.session(key).open(wait)?))
    }

    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        let path = self.session(key).beside(LOCK_EXTENSION);
        is_locked(&path).context("lock", &path)
    }

    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox> {
        Arc::new(FileInbox::new(self.session(key).beside(INBOX_EXTENSION)))
    }

    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate {
        let outcome = self.session(key).record(patch).map_err(SessionError::of_index);
        IndexUpdate { outcome, repairs: Vec::new() }
    }

    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        let session = self.session(key);
        let has_entries = session.with_document(|document| !document.is_empty());
        let exists = has_entries.unwrap_or_else(|| session.path().is_file());
        Ok(exists.then(|| session.id.clone()))
    }

    fn describe(&self, key: &SessionKey) -> String {
        self.session(key).path().display().to_string()
    }

    fn used(&self, _how: SessionUse) -> Arc<dyn Sessions> {
        // A document says nothing of a directory, and its lock file goes when it is closed.
        Arc::new(self.clone())
    }

    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.session(key).read(|document| document.visit_oldest(visit))
    }

    fn visit_newest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.session(key).read(|document| document.visit_newest(visit))
    }

    fn sync(&self, key: &SessionKey) -> Result<(), SessionError> {
        self.session(key).save(Durability::Synced)
    }
}

impl SideFiles for JsonSessions {
    fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        self.session(key).beside(ARTIFACT_EXTENSION)
    }
}

impl OpenSession for OpenJson {
    fn end(&self) -> LogEnd {
        self.end
    }

    fn append(&mut self, after: LogEnd, entries: &[Entry]) -> Result<LogEnd, SessionError> {
        if after != self.end || self.is_replaced()? {
            return Err(SessionError::Fenced { key: self.session.key.clone() });
        }
        self.session.with_document(|document| document.append(entries));
        if self.session.saving == Saving::OnAppend
            && let Err(error) = self.session.save(Durability::Unsynced)
        {
            self.session.with_document(|document| document.cut_off(entries.len()));
            return Err(error);
        }
        self.end = self.end.behind(entries.len());
        Ok(self.end)
    }

    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        Ok(self.session.with_document(|document| document.tail(limit)).unwrap_or_default())
    }

    fn sync_handle(&self) -> SyncHandle {
        let session = Arc::clone(&self.session);
        SyncHandle::new(move || session.save(Durability::Synced))
    }
}

impl OpenJson {
    fn is_replaced(&self) -> Result<bool, SessionError> {
        self.lock.is_replaced().context("check the lock of", &self.session.path())
    }
}

impl Drop for OpenJson {
    fn drop(&mut self) {
        // The next owner here, if there is one, has what is in memory.
        if self.session.owner.lock().as_ptr() != Arc::as_ptr(&self.lock) {
            return;
        }
        // A failure cannot be reported from here. Everything that a run promised was made durable before.
        let _ = self.session.save(Durability::Synced);
        *self.session.document.lock() = None;
    }
}
