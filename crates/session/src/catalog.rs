//! What is asked of stored sessions outside of a turn: to list, find, read, fork, describe, import and delete them.
//!
//! [`crate::Sessions`] is what a run uses; this is what everybody else uses. Neither says where sessions are: that is for
//! the eyes of people only ([`Catalog::describe`]).

mod files;

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{
    About, CompactionEntry, Entry, EntryId, Fork, IndexRepair, IndexedSession, LockWait, MetaPatch,
    MovedAside, PruneReport, PruneScope, SearchQuery, SearchReport, SearchScope, SessionEntry,
    SessionError, SessionHeader, SessionKey, Tail, TailLimit, TranscriptMessage,
};

/// The stored sessions and the list of them. A session *exists* once it has an entry in its log. It is *listed* once
/// something was recorded of it, until it is pruned from the list or deleted.
///
/// All calls block: callers decide on which thread they run.
pub trait Catalog: fmt::Debug + Send + Sync {
    /// True if the session exists.
    fn exists(&self, key: &SessionKey) -> bool;

    /// True if any session exists, listed or not.
    fn has_any(&self) -> bool;

    /// Where the session is, in words for people. It need not exist.
    fn describe(&self, key: &SessionKey) -> String;

    /// The directory that a session works in; `None` if that is its agent's workspace, or there is no such session.
    ///
    /// # Errors
    /// The session cannot be read.
    fn directory_of(&self, key: &SessionKey) -> Result<Option<PathBuf>, SessionError>;

    /// Changes all texts and contents that are kept elsewhere than in files, in their place: `change` keeps the number of bytes and
    /// says whether it has changed them. A session with something to change is waited for. True if something was changed.
    ///
    /// # Errors
    /// A session is in use, or something cannot be changed.
    fn change_kept(
        &self,
        _wait: LockWait,
        _change: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<bool, SessionError> {
        Ok(false)
    }

    /// Opens a session for reading, without a lock; `None` if there is none.
    ///
    /// # Errors
    /// The session cannot be read, or a later version of the program wrote it.
    fn read(&self, key: &SessionKey) -> Result<Option<Box<dyn ReadSession>>, SessionError>;

    /// The session's entry in the list; `None` if it is not listed.
    ///
    /// # Errors
    /// The list cannot be read.
    fn entry(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError>;

    /// The `limit` most recently changed sessions of the list, the latest first, and the number of all. Sessions with the
    /// same time are ordered by key.
    ///
    /// # Errors
    /// The list cannot be read.
    fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), SessionError>;

    /// The `limit` most recently changed of the listed sessions that have all labels of `with` and none of `without`, the
    /// latest first, and the number of all of them.
    ///
    /// # Errors
    /// The list cannot be read.
    fn latest_labelled(
        &self,
        limit: usize,
        with: &[&str],
        without: &[&str],
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        let (mut found, mut count) = (Vec::new(), 0);
        self.visit(&mut |session| {
            if About::from_extra(session.entry.extra.as_ref()).fits(with, without) {
                count += 1;
                found.extend((found.len() < limit).then_some(session));
            }
            ControlFlow::Continue(())
        })?;
        Ok((found, count))
    }

    /// The keys of the `limit` most recently changed of the sessions whose key `is_wanted`, the latest first.
    ///
    /// # Errors
    /// The list cannot be read.
    fn latest_keys(
        &self,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<SessionKey>, SessionError>;

    /// Passes the listed sessions to `visit`, the most recently changed first, until it breaks off. The memory that this
    /// takes does not depend on what the entries hold.
    ///
    /// # Errors
    /// The list cannot be read.
    fn visit(
        &self,
        visit: &mut dyn FnMut(IndexedSession) -> ControlFlow<()>,
    ) -> Result<(), SessionError>;

    /// The `limit` most recently changed of the listed sessions whose key `is_wanted` or whose key or title matches, and the
    /// number of all of them.
    ///
    /// # Errors
    /// The list cannot be read.
    fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), SessionError>;

    /// Searches the text of all messages, including those that a summary replaced, and keeps the `limit` newest hits.
    /// Messages that a fork shares with its parent are found once.
    ///
    /// # Errors
    /// The sessions cannot be listed. One that cannot be read is in the report instead.
    fn search(
        &self,
        query: &SearchQuery,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<SearchReport, SessionError>;

    /// The same in all sessions, by a program that searches again and again: the catalog remembers in which sessions a text
    /// cannot be.
    ///
    /// # Errors
    /// As for [`Catalog::search`].
    fn search_again(
        &self,
        query: &SearchQuery,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        self.search(query, &SearchScope::default(), limit)
    }

    /// Prepares for [`Catalog::search_again`], whose first call would otherwise read all sessions.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    fn prepare_search(&self) -> Result<(), SessionError> {
        Ok(())
    }

    /// Changes the session's entry in the list, or makes one. Returns the new one.
    ///
    /// # Errors
    /// The list cannot be read or written.
    fn update(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError>;

    /// Changes the title and labels of an existing session, in it and in the list. Returns the new ones.
    ///
    /// # Errors
    /// There is no such session, somebody has it open for longer than `wait`, or it cannot be read or written.
    fn change_about(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: &mut dyn FnMut(&mut About),
    ) -> Result<About, SessionError>;

    /// Creates the session `to` from the entries of `from` up to and including `at`, or from all entries if `at` is `None`.
    /// Tool results that directly follow that entry are included, because they belong to calls before them. The parent may
    /// be running meanwhile, and the fork stays complete if it is deleted.
    ///
    /// # Errors
    /// There is no session `from` or no entry `at` in it, `to` exists, or `from` cannot be read. The session `to` does not
    /// exist then.
    fn fork(
        &self,
        from: &SessionKey,
        at: Option<EntryId>,
        to: &SessionKey,
    ) -> Result<Fork, SessionError>;

    /// Begins a session that must not exist yet and is invisible until it is finished. `created_at` is in milliseconds since
    /// the Unix epoch; `directory` is the one that it works in, if not its agent's workspace.
    ///
    /// # Errors
    /// The session exists, somebody else creates or has opened it, or it cannot be written.
    fn create(
        &self,
        key: &SessionKey,
        created_at: u64,
        directory: Option<&Path>,
    ) -> Result<Box<dyn CreateSession>, SessionError>;

    /// Deletes a session with everything that belongs to it, and takes it off the list. Returns whether it existed or was
    /// listed.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if somebody has it open; or it cannot be deleted.
    fn delete(&self, key: &SessionKey) -> Result<bool, SessionError>;

    /// Removes the sessions that did not change for longer than `max_age`.
    ///
    /// # Errors
    /// The list cannot be read or written.
    fn prune(&self, max_age: Duration, scope: PruneScope) -> Result<PruneReport, SessionError>;

    /// Lists sessions that came into the store without this program, and takes those off the list that went so. Returns how
    /// many came.
    ///
    /// # Errors
    /// The store cannot be read, or the list not written.
    fn adopt(&self) -> Result<usize, SessionError>;

    /// Damaged ends of logs that were moved aside, of one session or of all, the oldest of a session first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn moved_aside(&self, of: Option<&SessionKey>) -> Result<Vec<MovedAside>, SessionError>;

    /// The repairs of damaged files of the list since the last call.
    fn take_repairs(&self) -> Vec<IndexRepair>;
}

impl dyn Catalog + '_ {
    /// Like [`Catalog::visit`], for a visitor that can fail.
    ///
    /// # Errors
    /// As for [`Catalog::visit`]; and those of `take`.
    pub fn each<E: From<SessionError>>(
        &self,
        mut take: impl FnMut(IndexedSession) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut failure = None;
        self.visit(&mut |session| match take(session) {
            Ok(flow) => flow,
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// A session opened for reading, even while it is written. What is appended meanwhile may or may not be seen. If somebody
/// deletes it meanwhile, a call gives what was there or [`SessionError::NoSuchSession`], and never a part of it.
pub trait ReadSession: fmt::Debug + Send + Sync {
    /// Where the session is, in words for people.
    fn describe(&self) -> String;

    /// The header; `None` if the session has none.
    ///
    /// # Errors
    /// The session cannot be read.
    fn header(&self) -> Result<Option<SessionHeader>, SessionError>;

    /// The title and labels. A fork does not inherit those of its parent.
    ///
    /// # Errors
    /// The session cannot be read.
    fn about(&self) -> Result<About, SessionError>;

    /// All entries from the first on, one in memory at a time. Those of a fork begin with its parent's.
    fn entries(&self) -> Box<dyn ReadEntries + '_>;

    /// The entries from which the next turn would start.
    ///
    /// # Errors
    /// The session cannot be read.
    fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError>;

    /// The last compaction: the summary from which the next turn starts.
    ///
    /// # Errors
    /// The session cannot be read.
    fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError>;

    /// The `count` messages before the one with the id `before`, the oldest first; without an id, the last ones. Messages
    /// that a summary replaced are included. `None` if no message has that id. Reads from the end, as far as needed.
    ///
    /// # Errors
    /// The session cannot be read.
    fn messages_before(
        &self,
        before: Option<EntryId>,
        count: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError>;

    /// Passes the messages to `visit`, the newest first, until it breaks off. A row without a time has the time 0.
    ///
    /// # Errors
    /// The session cannot be read.
    fn visit_newest(
        &self,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.visit_before(None, visit).map(drop)
    }

    /// The same for the messages before the one with the id `before`. Whether there is such a message.
    ///
    /// # Errors
    /// The session cannot be read.
    fn visit_before(
        &self,
        before: Option<EntryId>,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<bool, SessionError>;

    /// How many bytes at the end are no whole entry, because a crash cut it off. The next writer moves them aside.
    ///
    /// # Errors
    /// The session cannot be read.
    fn torn_bytes(&self) -> Result<u64, SessionError>;

    /// The last `count` messages, the oldest first.
    ///
    /// # Errors
    /// The session cannot be read.
    fn last_messages(&self, count: usize) -> Result<Vec<TranscriptMessage>, SessionError> {
        Ok(self.messages_before(None, count)?.unwrap_or_default())
    }
}

/// The entries of a session, from the first on.
pub trait ReadEntries: Iterator<Item = Result<Entry, SessionError>> {
    /// How many lines were skipped so far because they are not entries.
    fn skipped_lines(&self) -> usize;
}

/// A session that is created as a whole. Dropping it leaves nothing.
pub trait CreateSession: fmt::Debug + Send {
    /// The session's key.
    fn key(&self) -> &SessionKey;

    /// Adds an entry.
    ///
    /// # Errors
    /// The entry cannot be written. The session cannot be finished then.
    fn append(&mut self, entry: &Entry) -> Result<(), SessionError>;

    /// Makes the session visible and durable.
    ///
    /// # Errors
    /// It cannot be written. There is no session then.
    fn finish(self: Box<Self>) -> Result<(), SessionError>;
}
