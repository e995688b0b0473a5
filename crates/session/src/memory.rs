//! Sessions that live as long as the process: for programs that keep nothing, and for tests in which no process dies.

mod catalog;
mod inbox;
mod place;
mod reader;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::new_session_id;
use crate::json::Document;
use crate::{
    Entry, Epoch, ForkOrigin, Inbox, IndexUpdate, LockWait, LogEnd, MetaPatch, OpenSession,
    SessionError, SessionKey, SessionUse, Sessions, SideFiles, SyncHandle, Tail, TailLimit,
    TranscriptMessage,
};
use inbox::MemoryInbox;
use parking_lot::Mutex;
use place::{Place, Taken};

/// Sessions in the memory of this process. Clones share them. A crash of the process takes them all.
#[derive(Debug, Clone)]
pub struct MemorySessions {
    /// For large data of tools, which is files in any case.
    scratch: PathBuf,
    by_key: Arc<Mutex<HashMap<SessionKey, Arc<Session>>>>,
    /// The directory that new sessions work in, if not their agent's workspace.
    work: Option<PathBuf>,
}

#[derive(Debug)]
struct Session {
    key: SessionKey,
    content: Mutex<Content>,
    /// Taken by the writer.
    writer: Arc<Place>,
    inbox: Arc<MemoryInbox>,
}

/// What is lost when the session is deleted.
#[derive(Debug)]
struct Content {
    id: String,
    document: Document,
    /// The directory that it works in, if not its agent's workspace.
    directory: Option<PathBuf>,
    forked_from: Option<ForkOrigin>,
    /// How many of its first entries are its parent's.
    inherited: usize,
}

/// A session opened for writing.
#[derive(Debug)]
struct OpenMemory {
    session: Arc<Session>,
    work: Option<PathBuf>,
    end: LogEnd,
    taken: Taken,
}

impl MemorySessions {
    /// No sessions yet. What tools write in full goes below `scratch`, which need not exist.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self { scratch: scratch.into(), by_key: Arc::default(), work: None }
    }

    /// Takes a session from its owner without the owner's knowledge, as a lease that runs out does. The owner can append
    /// until somebody else opens the session.
    pub fn lose(&self, key: &SessionKey) {
        if let Some(session) = self.known(key) {
            session.writer.lose();
        }
    }

    fn session(&self, key: &SessionKey) -> Arc<Session> {
        let make = || Arc::new(Session::new(key));
        Arc::clone(self.by_key.lock().entry(key.clone()).or_insert_with(make))
    }

    /// The session, if anybody has used it. Unlike [`Self::session`] it makes none.
    fn known(&self, key: &SessionKey) -> Option<Arc<Session>> {
        self.by_key.lock().get(key).cloned()
    }
}

impl Session {
    fn new(key: &SessionKey) -> Self {
        let name = |what: &str| PathBuf::from(format!("{}.{what}", place_of(key)));
        Self {
            key: key.clone(),
            content: Mutex::new(Content::new()),
            writer: Arc::new(Place::named(name("lock"))),
            inbox: Arc::new(MemoryInbox::named(name("inbox"))),
        }
    }

    fn record(&self, patch: MetaPatch) {
        self.content.lock().record(&self.key, patch);
    }
}

impl Content {
    fn new() -> Self {
        Self {
            id: new_session_id(),
            document: Document::default(),
            directory: None,
            forked_from: None,
            inherited: 0,
        }
    }

    fn record(&mut self, key: &SessionKey, patch: MetaPatch) {
        self.document.record(key, &self.id, patch);
        let directory = self.directory.as_deref().and_then(std::path::Path::to_str);
        if let Some(entry) = self.document.index_mut() {
            entry.directory = directory.map(str::to_owned);
        }
    }
}

/// Where a session is, for people.
fn place_of(key: &SessionKey) -> String {
    format!("memory:{}", key.slug())
}

impl Sessions for MemorySessions {
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError> {
        let session = self.session(key);
        let taken = session.writer.take(wait)?;
        let end = LogEnd::of_opening(Epoch(taken.number()));
        Ok(Box::new(OpenMemory { session, work: self.work.clone(), end, taken }))
    }

    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        Ok(self.known(key).is_some_and(|session| session.writer.is_taken()))
    }

    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox> {
        Arc::clone(&self.session(key).inbox) as Arc<dyn Inbox>
    }

    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate {
        self.session(key).record(patch);
        IndexUpdate { outcome: Ok(()), repairs: Vec::new() }
    }

    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        let Some(session) = self.known(key) else { return Ok(None) };
        let content = session.content.lock();
        Ok((!content.document.is_empty()).then(|| content.id.clone()))
    }

    fn describe(&self, key: &SessionKey) -> String {
        place_of(key)
    }

    fn used(&self, how: SessionUse) -> Arc<dyn Sessions> {
        Arc::new(Self { work: how.directory, ..self.clone() })
    }

    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        if let Some(session) = self.known(key) {
            session.content.lock().document.visit_oldest(visit);
        }
        Ok(())
    }

    fn visit_newest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        if let Some(session) = self.known(key) {
            session.content.lock().document.visit_newest(visit);
        }
        Ok(())
    }

    fn sync(&self, _key: &SessionKey) -> Result<(), SessionError> {
        Ok(())
    }
}

impl SideFiles for MemorySessions {
    fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        self.scratch.join(key.slug())
    }
}

impl OpenSession for OpenMemory {
    fn end(&self) -> LogEnd {
        self.end
    }

    fn append(&mut self, after: LogEnd, entries: &[Entry]) -> Result<LogEnd, SessionError> {
        let append = || {
            let mut content = self.session.content.lock();
            if content.document.is_empty() {
                content.directory.clone_from(&self.work);
            }
            content.document.append(entries);
        };
        let appended = if after == self.end { self.taken.while_last(append) } else { None };
        appended.ok_or_else(|| SessionError::Fenced { key: self.session.key.clone() })?;
        self.end = self.end.behind(entries.len());
        Ok(self.end)
    }

    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        Ok(self.session.content.lock().document.tail(limit))
    }

    fn sync_handle(&self) -> SyncHandle {
        SyncHandle::new(|| Ok(()))
    }
}
