//! The catalog of a directory of logs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Catalog, CreateSession, ReadEntries, ReadSession};
use crate::{
    About, CompactionEntry, Entries, Entry, EntryId, Fork, IndexRepair, IndexedSession, LockWait,
    MetaPatch, MovedAside, NewSession, PruneReport, PruneScope, SearchQuery, SearchReport,
    SearchScope, SessionEntry, SessionError, SessionHeader, SessionIndex, SessionKey,
    SessionReader, SessionStore, Tail, TailLimit, TranscriptMessage,
};

impl Catalog for SessionStore {
    fn exists(&self, key: &SessionKey) -> bool {
        Self::exists(self, key)
    }

    fn has_any(&self) -> bool {
        self.has_transcripts()
    }

    fn describe(&self, key: &SessionKey) -> String {
        self.transcript_path(key).display().to_string()
    }

    fn directory_of(&self, key: &SessionKey) -> Result<Option<PathBuf>, SessionError> {
        Self::directory_of(self, key)
    }

    fn read(&self, key: &SessionKey) -> Result<Option<Box<dyn ReadSession>>, SessionError> {
        let reader = self.reader(key)?;
        Ok(reader.map(|reader| Box::new(reader) as Box<dyn ReadSession>))
    }

    fn entry(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError> {
        // One entry is no reason to keep what was read of the whole list.
        SessionIndex::new(self.directory()).get(key)
    }

    fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.index().latest(limit)
    }

    fn latest_labelled(
        &self,
        limit: usize,
        with: &[&str],
        without: &[&str],
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.index().latest_labelled(limit, with, without)
    }

    fn latest_keys(
        &self,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<SessionKey>, SessionError> {
        self.index().latest_keys(limit, is_wanted)
    }

    fn visit(
        &self,
        visit: &mut dyn FnMut(IndexedSession) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.index().each(|session| Ok(visit(session)))
    }

    fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.index().search(query, limit, is_wanted)
    }

    fn search(
        &self,
        query: &SearchQuery,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        Self::search(self, query, scope, limit)
    }

    fn search_again(
        &self,
        query: &SearchQuery,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        Self::search_again(self, &self.filters, query, limit)
    }

    fn prepare_search(&self) -> Result<(), SessionError> {
        Self::prepare_search(self, &self.filters)
    }

    fn update(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError> {
        SessionIndex::new(self.directory()).upsert(key, patch)
    }

    fn change_about(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: &mut dyn FnMut(&mut About),
    ) -> Result<About, SessionError> {
        Self::change_about(self, key, wait, change)
    }

    fn fork(
        &self,
        from: &SessionKey,
        at: Option<EntryId>,
        to: &SessionKey,
    ) -> Result<Fork, SessionError> {
        Self::fork(self, from, at, to)
    }

    fn create(
        &self,
        key: &SessionKey,
        created_at: u64,
        directory: Option<&Path>,
    ) -> Result<Box<dyn CreateSession>, SessionError> {
        let store = self.clone().for_work_in(directory.map(Path::to_owned));
        Ok(Box::new(Self::create(&store, key, created_at)?))
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, SessionError> {
        let (had_log, was_listed) = (Self::delete(self, key)?, self.index().remove(key)?);
        Ok(had_log || was_listed)
    }

    fn prune(&self, max_age: Duration, scope: PruneScope) -> Result<PruneReport, SessionError> {
        self.index().prune(max_age, scope)
    }

    fn adopt(&self) -> Result<usize, SessionError> {
        self.index().adopt()
    }

    fn moved_aside(&self, of: Option<&SessionKey>) -> Result<Vec<MovedAside>, SessionError> {
        of.map_or_else(|| self.all_moved_aside(), |key| Self::moved_aside(self, key))
    }

    fn take_repairs(&self) -> Vec<IndexRepair> {
        self.index().take_repairs()
    }
}

impl ReadSession for SessionReader {
    fn describe(&self) -> String {
        self.path().display().to_string()
    }

    fn header(&self) -> Result<Option<SessionHeader>, SessionError> {
        Self::header(self)
    }

    fn about(&self) -> Result<About, SessionError> {
        Self::about(self)
    }

    fn entries(&self) -> Box<dyn ReadEntries + '_> {
        Box::new(Self::entries(self))
    }

    fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        Self::tail(self, limit)
    }

    fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError> {
        Self::last_compaction(self)
    }

    fn messages_before(
        &self,
        before: Option<EntryId>,
        count: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError> {
        Self::messages_before(self, before, count)
    }

    fn visit_before(
        &self,
        before: Option<EntryId>,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<bool, SessionError> {
        Self::visit_before(self, before, visit)
    }

    fn torn_bytes(&self) -> Result<u64, SessionError> {
        Self::torn_bytes(self)
    }
}

impl ReadEntries for Entries<'_> {
    fn skipped_lines(&self) -> usize {
        Self::skipped_lines(self)
    }
}

impl CreateSession for NewSession {
    fn key(&self) -> &SessionKey {
        Self::key(self)
    }

    fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        Self::append(self, entry)
    }

    fn finish(self: Box<Self>) -> Result<(), SessionError> {
        Self::finish(*self)
    }
}
