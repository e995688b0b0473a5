//! The interface between a run and the store of sessions, independent of the format.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    Entry, EntryId, Inbox, IndexRepair, LockWait, MetaPatch, QueuedMessage, SessionError,
    SessionKey, SessionLog, SessionStore, Tail, TailLimit, TranscriptMessage,
};

/// A store of sessions. [`SessionStore`] keeps a log of JSON lines for each, [`crate::JsonSessions`] one JSON file, and
/// [`crate::MemorySessions`] nothing that outlives the process.
///
/// All calls block: callers decide on which thread they run.
pub trait Sessions: fmt::Debug + Send + Sync {
    /// Opens a session, new or old, for writing. A new session is created with its first entry.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if it is open already, here or in another process; otherwise, the reason why it cannot
    /// be read.
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError>;

    /// True if the session is open for writing at this moment, here or in another process.
    ///
    /// # Errors
    /// The lock file cannot be read.
    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError>;

    /// The messages that wait for the session.
    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox>;

    /// Changes the metadata of a session without reading it.
    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate;

    /// Records that a turn begins in a session that has messages, so that one whose process is killed in the turn is listed by
    /// the time of its last entry. Blocks. A failure is left to the update at the end of the turn. Does nothing where no list
    /// needs it.
    fn begin_turn(&self, _key: &SessionKey) {}

    /// Lets the next append to a session that is open here say the same, which then costs nothing. False where that is a write
    /// of its own.
    fn begins_turn_with_append(&self, _key: &SessionKey) -> bool {
        false
    }

    /// Records a session that begins with this turn, so that one whose process is killed in it can be found. Blocks. A failure
    /// is left to the update at the end of the turn.
    fn enter(&self, key: &SessionKey, patch: MetaPatch) {
        drop(self.record(key, patch));
    }

    /// The id (UUID version 4) by which other programs identify the session; `None` if there is no such session.
    ///
    /// # Errors
    /// The session cannot be read.
    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError>;

    /// Where the session is, in words for people. It need not exist yet.
    fn describe(&self, key: &SessionKey) -> String;

    /// The same sessions, used in another way.
    fn used(&self, how: SessionUse) -> Arc<dyn Sessions>;

    /// Passes the session's messages to `visit`, the oldest first, until `visit` breaks off. Needs no lock.
    ///
    /// # Errors
    /// The session cannot be read.
    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError>;

    /// Passes the session's messages to `visit`, the newest first, until `visit` breaks off. Needs no lock. A row without a
    /// time has the time 0.
    ///
    /// # Errors
    /// The session cannot be read.
    fn visit_newest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError>;

    /// Makes durable what was appended to the session so far, by whomever. Needs no lock.
    ///
    /// # Errors
    /// The system could not guarantee it.
    fn sync(&self, key: &SessionKey) -> Result<(), SessionError>;

    /// Shows `search` the messages of the log, the newest first, until it breaks off. A store that knows which messages a log has
    /// taken shows none to a search for others, and ends with the last one that it has.
    ///
    /// # Errors
    /// The log cannot be read.
    fn search_log(
        &self,
        key: &SessionKey,
        search: &mut dyn MessageSearch,
    ) -> Result<(), SessionError> {
        self.visit_newest(key, &mut |row| search.row(row))
    }

    /// Searches the inbox and then the log for messages. A run takes a message by a row of the log and settles it afterwards,
    /// so one that it takes meanwhile is found in at least one of them, and nobody waits for the search. Settles what still
    /// waits although the log has it, because a run was killed between the two.
    ///
    /// # Errors
    /// The inbox or the log cannot be read.
    fn whereabouts(
        &self,
        key: &SessionKey,
        search: &mut dyn MessageSearch,
    ) -> Result<(), SessionError> {
        let inbox = self.inbox(key);
        let waiting = if inbox.may_hold_messages() { inbox.pending()? } else { Vec::new() };
        if search.waiting(&waiting).is_continue() {
            self.search_log(key, search)?;
        }
        if !waiting.iter().any(|message| search.has_found(message.id)) {
            return Ok(());
        }
        // The run that wrote the rows may only be about to settle, and is waited for here.
        let Some(mut held) = inbox.hold()? else { return Ok(()) };
        let waiting = held.pending()?;
        let ids = waiting.iter().map(|message| message.id);
        let taken: Vec<EntryId> = ids.filter(|id| search.has_found(*id)).collect();
        if taken.is_empty() {
            return Ok(());
        }
        // A run that was killed may have left its rows to the system.
        self.sync(key)?;
        held.settle_taken(&waiting, &taken)
    }
}

/// How sessions are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionUse {
    /// The directory that new sessions work in, if not their agent's workspace.
    pub directory: Option<PathBuf>,
    /// Whether the same sessions are opened again and again, so that what opening them needs may stay.
    pub is_reopened: bool,
}

/// A search for messages in a session, by their ids ([`Sessions::whereabouts`]).
pub trait MessageSearch {
    /// What it looks for.
    fn ids(&self) -> &[EntryId];

    /// Called once, first, with all messages that wait. Breaks off if the log is not needed.
    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()>;

    /// Called with the messages of the log, the newest first, until it breaks off.
    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()>;

    /// Whether the log names this message as taken.
    fn has_found(&self, id: EntryId) -> bool;
}

/// The number of an opening. A later opening of the same session has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The end of a session as one owner knows it: a further entry goes behind it, or nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The owner's opening.
    pub epoch: Epoch,
    /// How many entries the owner has appended.
    pub entries: u64,
}

impl LogEnd {
    /// The end of a session that was just opened.
    pub fn of_opening(epoch: Epoch) -> Self {
        Self { epoch, entries: 0 }
    }

    /// The end after `count` more entries.
    #[must_use]
    pub fn behind(self, count: usize) -> Self {
        Self { entries: self.entries + count as u64, ..self }
    }
}

/// A session opened for writing. Nobody else can write to it while this value lives, unless its owner loses it: somebody
/// removes the lock, or a lease runs out. Once somebody else has opened the session then, what this owner appends is
/// refused.
pub trait OpenSession: fmt::Debug + Send + Sync {
    /// The end of the session, behind which the next entries go.
    fn end(&self) -> LogEnd;

    /// Adds `entries` behind `after`, which must be the end, all or none. Returns the new end. They survive a crash of the
    /// machine once [`SyncHandle::sync`] has returned. Whether they survive a crash of this program before that depends on
    /// the store.
    ///
    /// # Errors
    /// [`SessionError::Fenced`] if the session was opened again meanwhile, or `after` is not its end. None of `entries` is
    /// in the session after any error, and after others than this one it can still be used.
    fn append(&mut self, after: LogEnd, entries: &[Entry]) -> Result<LogEnd, SessionError>;

    /// The end of the session, as far as the next request needs it.
    ///
    /// # Errors
    /// The session cannot be read.
    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError>;

    /// A handle that makes the entries durable. It can be sent to another thread.
    fn sync_handle(&self) -> SyncHandle;
}

/// The result of a change of the index.
#[derive(Debug)]
pub struct IndexUpdate {
    /// Whether the change is stored. No session depends on it, so a caller may continue with a warning.
    pub outcome: Result<(), SessionError>,
    /// Repairs of damaged files during the change.
    pub repairs: Vec<IndexRepair>,
}

/// Makes the entries durable that were appended before [`SyncHandle::sync`] is called.
#[derive(Clone)]
pub struct SyncHandle(Arc<dyn Fn() -> Result<(), SessionError> + Send + Sync>);

impl SyncHandle {
    /// A handle that calls `sync`, which returns when the entries are on disk.
    pub fn new(sync: impl Fn() -> Result<(), SessionError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sync))
    }

    /// Waits until the entries are on disk, and the name of the file too if it is new. Does nothing before the first
    /// entry of a new session.
    ///
    /// # Errors
    /// The system could not guarantee it. Entries appended since the last success may be lost if the machine stops.
    pub fn sync(&self) -> Result<(), SessionError> {
        (self.0)()
    }
}

impl fmt::Debug for SyncHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SyncHandle")
    }
}

impl Sessions for SessionStore {
    fn open(&self, key: &SessionKey, wait: LockWait) -> Result<Box<dyn OpenSession>, SessionError> {
        Ok(Box::new(Self::open(self, key, wait)?))
    }

    fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        Self::is_in_use(self, key)
    }

    fn inbox(&self, key: &SessionKey) -> Arc<dyn Inbox> {
        Arc::new(Self::inbox(self, key))
    }

    fn record(&self, key: &SessionKey, patch: MetaPatch) -> IndexUpdate {
        let index = self.index();
        IndexUpdate { outcome: index.record(key, patch), repairs: index.take_repairs() }
    }

    fn begin_turn(&self, key: &SessionKey) {
        // Programs that leave lock files continue interrupted turns when they start.
        if !self.leaves_lock_files {
            drop(self.index().begin_turn(key, MetaPatch::default()));
        }
    }

    fn enter(&self, key: &SessionKey, patch: MetaPatch) {
        drop(self.index().begin_turn(key, patch));
    }

    fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        Self::session_id(self, key)
    }

    fn describe(&self, key: &SessionKey) -> String {
        self.transcript_path(key).display().to_string()
    }

    fn used(&self, how: SessionUse) -> Arc<dyn Sessions> {
        let mut store = self.clone().for_work_in(how.directory);
        store.leaves_lock_files |= how.is_reopened;
        Arc::new(store)
    }

    fn visit_oldest(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        let Some(reader) = self.reader(key)? else { return Ok(()) };
        for entry in reader.entries() {
            if let Entry::Message(message) = entry?
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
        self.reader(key)?.map_or(Ok(()), |reader| reader.visit_newest(visit))
    }

    fn sync(&self, key: &SessionKey) -> Result<(), SessionError> {
        self.reader(key)?.map_or(Ok(()), |reader| reader.sync())
    }
}

impl OpenSession for SessionLog {
    fn end(&self) -> LogEnd {
        Self::end(self)
    }

    fn append(&mut self, after: LogEnd, entries: &[Entry]) -> Result<LogEnd, SessionError> {
        self.check_end(after)?;
        Self::append(self, entries)?;
        Ok(self.end())
    }

    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        Self::tail(self, limit)
    }

    fn sync_handle(&self) -> SyncHandle {
        Self::sync_handle(self)
    }
}
