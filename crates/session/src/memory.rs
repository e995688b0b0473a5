//! Sessions that live as long as the process: for programs that keep nothing, and for tests in which no process dies.

mod inbox;
mod place;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::new_session_id;
use crate::json::Document;
use crate::{
    Entry, Inbox, IndexUpdate, LockWait, MetaPatch, OpenSession, SessionError, SessionKey,
    Sessions, SyncHandle, Tail, TailLimit, TranscriptMessage,
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
}

#[derive(Debug)]
struct Session {
    key: SessionKey,
    id: String,
    document: Mutex<Document>,
    /// Taken by the writer.
    writer: Arc<Place>,
    inbox: Arc<MemoryInbox>,
}

/// A session opened for writing.
#[derive(Debug)]
struct OpenMemory {
    session: Arc<Session>,
    _taken: Taken,
}

impl MemorySessions {
    /// No sessions yet. What tools write in full goes below `scratch`, which need not exist.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self { scratch: scratch.into(), by_key: Arc::default() }
    }

    fn session(&self, key: &SessionKey) -> Arc<Session> {
        let make = || {
            let name = |what: &str| PathBuf::from(format!("memory:{}.{what}", key.slug()));
            Arc::new(Session {
                key: key.clone(),
                id: new_session_id(),
                document: Mutex::default(),
                writer: Arc::new(Place::named(name("lock"))),
                inbox: Arc::new(MemoryInbox::named(name("inbox"))),
            })
        };
        Arc::clone(self.by_key.lock().entry(key.clone()).or_insert_with(make))
    }
}

impl Sessions for MemorySessions {
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError> {
        let session = self.session(key);
        let taken = session.writer.take(wait)?;
        Ok(Box::new(OpenMemory { session, _taken: taken }))
    }

    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        Ok(self.session(key).writer.is_taken())
    }

    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox> {
        Arc::clone(&self.session(key).inbox) as Arc<dyn Inbox>
    }

    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate {
        let session = self.session(key);
        session.document.lock().record(&session.key, &session.id, patch);
        IndexUpdate { outcome: Ok(()), repairs: Vec::new() }
    }

    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        let session = self.session(key);
        let is_empty = session.document.lock().is_empty();
        Ok((!is_empty).then(|| session.id.clone()))
    }

    fn transcript_path(&self, key: &SessionKey) -> PathBuf {
        PathBuf::from(format!("memory:{}", key.slug()))
    }

    fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        self.scratch.join(key.slug())
    }

    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.session(key).document.lock().visit_oldest(visit);
        Ok(())
    }

    fn visit_newest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.session(key).document.lock().visit_newest(visit);
        Ok(())
    }

    fn sync(&self, _key: &SessionKey) -> Result<(), SessionError> {
        Ok(())
    }
}

impl OpenSession for OpenMemory {
    fn append(&mut self, entries: &[Entry]) -> Result<(), SessionError> {
        self.session.document.lock().append(entries);
        Ok(())
    }

    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        Ok(self.session.document.lock().tail(limit))
    }

    fn sync_handle(&self) -> SyncHandle {
        SyncHandle::new(|| Ok(()))
    }
}
