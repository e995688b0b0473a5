//! Sessions in a PostgreSQL database: their logs, inboxes and list.
//!
//! The traits of sessions block, and the database does not, so these sessions have a thread of their own that serves the
//! connections. A log is a table of the lines that a file would have. Its owner has a lease, which that thread renews, and an
//! epoch, under which it appends: the statement that appends is refused once somebody else has opened the session.

mod blobs;
mod catalog;
mod change;
mod core;
mod create;
mod fork;
mod in_parts;
mod inbox;
mod kept;
mod lines;
mod open;
mod reader;
mod seal;
mod search;
mod segments;
mod side_files;
mod sql;
mod taken;
mod transfer;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use myclaw_session::{
    Blobs, Entry, Inbox, IndexUpdate, LockWait, MessageSearch, MetaPatch, OpenSession, ReadSession,
    RemovedFiles, SessionError, SessionHeader, SessionKey, SessionUse, Sessions, SideFiles,
    TranscriptMessage, rows,
};
use myclaw_store::{Partition, StoreError};
use tokio::runtime::Handle;

use self::core::Core;
use crate::{Address, Options};
use inbox::PostgresInbox;
use open::Opened;
use reader::PostgresReader;
pub use transfer::ImportedSession;

/// Waits on this thread for `work`, which a runtime serves that has a thread of its own.
pub fn wait_on<T>(runtime: &Handle, work: impl Future<Output = T>) -> T {
    self::core::run(runtime, work)
}

/// The sessions of one party in a database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct PostgresSessions {
    core: Arc<Core>,
    /// The directory that new sessions work in, if not their agent's workspace.
    work: Option<PathBuf>,
}

impl PostgresSessions {
    /// Connects to the database, and creates or updates its tables. Blocks. What tools write in full goes below `scratch` on
    /// this machine, which need not exist.
    ///
    /// # Errors
    /// As for [`crate::PostgresStore::open`].
    pub fn open(
        address: Address,
        options: &Options,
        partition: &Partition,
        scratch: impl Into<PathBuf>,
    ) -> Result<Self, StoreError> {
        let core = Core::open(address, options, partition, scratch.into())?;
        Ok(Self { core, work: None })
    }

    /// Waits on this thread for `work`, which the thread of the connections serves. So a store whose every call goes
    /// through here, its opening too, can be used where calls block.
    pub fn wait_for<T>(&self, work: impl Future<Output = T>) -> T {
        self.core.run(work)
    }

    /// The runtime that serves the connections, for [`wait_on`]. A clone of it does not keep it alive.
    pub fn runtime(&self) -> Handle {
        self.core.handle()
    }

    /// Large contents of sessions go to `blobs` from now on, and what went there before is read from it. Said once; where it
    /// cannot be used, contents go into the database.
    pub fn put_contents_in(&self, blobs: Arc<dyn Blobs>) {
        drop(self.core.elsewhere.set(blobs));
    }

    /// Whether old parts of logs stay in the database for now, because programs that do not look for them elsewhere use it too.
    pub fn keep_old_parts(&self, is_needed: bool) {
        let was_needed = self.core.keeps_old_parts.swap(is_needed, Ordering::SeqCst);
        if is_needed && !was_needed && self.core.elsewhere.get().is_some() {
            tracing::info!(
                "old parts of logs stay in the database as long as a gateway of an earlier version uses it"
            );
        }
    }

    /// Takes a session from its owner without the owner's knowledge, as a lease that runs out does. The owner can append
    /// until somebody else opens the session.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn lose(&self, key: &SessionKey) -> Result<(), SessionError> {
        self.core.rows_of(key, "take", sql::LOSE, &[]).map(drop)
    }

    /// Moves old parts of logs to the object storage. That happens by itself too, now and then. Returns how many segments it made.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn seal_old_parts(&self) -> Result<usize, SessionError> {
        self.core.seal_old_parts()
    }

    fn reader(&self, key: &SessionKey) -> Result<Option<PostgresReader>, SessionError> {
        PostgresReader::open(&self.core, key)
    }

    fn header(&self, key: &SessionKey) -> Result<Option<SessionHeader>, SessionError> {
        self.reader(key)?.map_or(Ok(None), |reader| reader.header())
    }

    fn scratch(&self, key: &SessionKey) -> PathBuf {
        self.core.scratch.join(key.slug())
    }
}

impl Sessions for PostgresSessions {
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError> {
        let opened = Opened::take(&self.core, key, wait)?.with_files()?;
        Ok(Box::new(opened.for_work_in(self.work.clone())))
    }

    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        // Whoever has lost it finds that out by itself.
        let is_open_here = self.core.open_here(key).is_some_and(|here| !here.is_given_back);
        Ok(is_open_here || !self.core.rows_of(key, "look for", sql::IN_USE, &[])?.is_empty())
    }

    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox> {
        Arc::new(PostgresInbox::new(&self.core, key))
    }

    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate {
        let outcome = self.core.record(key, &patch).map(drop);
        IndexUpdate { outcome, repairs: Vec::new() }
    }

    fn begin_turn(&self, key: &SessionKey) {
        self.enter(key, MetaPatch::default());
    }

    fn begins_turn_with_append(&self, key: &SessionKey) -> bool {
        let here = self.core.open_here(key);
        here.is_some_and(|here| {
            self.core.change_open(key.as_str(), here.epoch, |here| here.begins_turn = true)
        })
    }

    fn enter(&self, key: &SessionKey, patch: MetaPatch) {
        drop(self.core.record(key, &MetaPatch { in_turn: Some(true), ..patch }));
    }

    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        Ok(self.header(key)?.and_then(|header| header.session_id))
    }

    fn describe(&self, key: &SessionKey) -> String {
        self.core.place(key).display().to_string()
    }

    fn used(&self, how: SessionUse) -> Arc<dyn Sessions> {
        Arc::new(Self { work: how.directory, ..self.clone() })
    }

    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        let Some(reader) = self.reader(key)? else { return Ok(()) };
        for entry in reader.entries() {
            let entry = match entry {
                // A turn asks for it, and does not need it.
                Err(error) if reader.has_sealed() => {
                    tracing::warn!(session = key.as_str(), %error, "the beginning of a session is left out");
                    return Ok(());
                }
                entry => entry?,
            };
            if let Entry::Message(message) = entry
                && visit(message).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn visit_newest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.reader(key)?.map_or(Ok(()), |reader| reader.visit_recent(visit))
    }

    fn search_log(
        &self,
        key: &SessionKey,
        search: &mut dyn MessageSearch,
    ) -> Result<(), SessionError> {
        taken::search_log(&self.core, key, search)
    }

    fn sync(&self, _key: &SessionKey) -> Result<(), SessionError> {
        Ok(())
    }
}

impl SideFiles for PostgresSessions {
    fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        self.scratch(key)
    }

    fn share(&self, key: &SessionKey) -> io::Result<()> {
        let shared = Opened::take(&self.core, key, LockWait::Fail).and_then(Opened::with_files);
        match shared {
            Ok(_) | Err(SessionError::Locked { .. }) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn trim(
        &self,
        key: &SessionKey,
        most_bytes: u64,
        is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        rows::trim_side_files(&self.scratch(key), most_bytes, is_needed)
    }

    /// Removes what is left of deleted sessions and of programs that were killed. The limit of all sessions together is one of
    /// a machine's disk, and does not hold for a database.
    fn trim_all(
        &self,
        _most_bytes: u64,
        _is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        if self.core.is_time_to_clean() {
            let cleaned = self.core.remove_side_files_of_deleted();
            cleaned.and_then(|()| self.core.sweep_blobs()).map_err(io::Error::other)?;
        }
        Ok(RemovedFiles::default())
    }
}

/// A path as the header keeps it. One that is not UTF-8 is not kept.
fn text_of(directory: Option<&Path>) -> Option<String> {
    directory.and_then(Path::to_str).map(str::to_owned)
}
