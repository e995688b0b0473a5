//! The catalog of the sessions in memory.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::place::Taken;
use super::reader::MemoryReader;
use super::{Content, MemorySessions, Session, place_of};
use crate::json::Document;
use crate::rows::{Following, following};
use crate::search::Found;
use crate::{
    About, AboutEntry, Catalog, CreateSession, Entry, EntryId, Fork, ForkOrigin, IndexRepair,
    IndexedSession, LockWait, MetaPatch, MovedAside, PruneReport, PruneScope, ReadSession,
    SearchQuery, SearchReport, SearchScope, SessionEntry, SessionError, SessionKey, SideFiles as _,
    UpdatedAt, indexed_title, now_ms,
};

/// A session that is invisible until it is finished.
#[derive(Debug)]
struct NewMemory {
    sessions: MemorySessions,
    session: Arc<Session>,
    content: Content,
    /// `None` once it is finished or given up.
    taken: Option<Taken>,
}

impl Session {
    fn exists(&self) -> bool {
        !self.content.lock().document.is_empty()
    }

    fn listed(&self) -> Option<IndexedSession> {
        let entry = self.content.lock().document.index()?;
        Some(IndexedSession { key: self.key.clone(), entry })
    }
}

impl MemorySessions {
    /// The listed sessions with their times, the most recently changed first.
    fn listed(&self, is_wanted: impl Fn(&Session) -> bool) -> Vec<(u64, Arc<Session>)> {
        let all: Vec<Arc<Session>> = self.by_key.lock().values().cloned().collect();
        let mut listed: Vec<(u64, Arc<Session>)> = all
            .into_iter()
            .filter_map(|session| {
                let at = session.content.lock().document.listed_at()?;
                Some((at, session))
            })
            .filter(|(_, session)| is_wanted(session))
            .collect();
        listed.sort_by(|one, other| (other.0, &one.1.key).cmp(&(one.0, &other.1.key)));
        listed
    }

    fn existing(&self, key: &SessionKey) -> Result<Arc<Session>, SessionError> {
        let session = self.known(key).filter(|session| session.exists());
        session.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })
    }

    /// Takes the place of the writer of a session that must not exist yet.
    fn begin(&self, key: &SessionKey) -> Result<NewMemory, SessionError> {
        let session = self.session(key);
        let taken = session.writer.take(LockWait::Fail)?;
        if session.exists() {
            return Err(SessionError::SessionExists { key: key.clone() });
        }
        let content = Content::new();
        Ok(NewMemory { sessions: self.clone(), session, content, taken: Some(taken) })
    }

    /// Forgets a session that holds nothing, unless somebody else uses it at this moment.
    fn tidy(&self, session: &Arc<Session>) {
        let mut by_key = self.by_key.lock();
        // This one and that of the map.
        let is_unused = Arc::strong_count(session) == 2 && Arc::strong_count(&session.inbox) == 1;
        let is_empty = session.content.lock().document.index().is_none() && !session.exists();
        if is_unused && is_empty && session.inbox.is_empty() {
            by_key.remove(&session.key);
        }
    }

    /// Deletes the content under the place of the writer. Returns whether the session existed or was listed.
    fn clear(&self, session: &Session) -> Result<bool, SessionError> {
        let directory = self.artifact_directory(&session.key);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome.map_err(|error| {
                SessionError::from_io("delete the session's files in", &directory, error)
            })?,
        }
        session.inbox.clear();
        let before = std::mem::replace(&mut *session.content.lock(), Content::new());
        Ok(!before.document.is_empty() || before.document.index().is_some())
    }
}

/// The number of entries that a fork takes, and the last of them.
fn cut(
    entries: &[Entry],
    from: &SessionKey,
    at: Option<EntryId>,
) -> Result<(usize, EntryId), SessionError> {
    let is_it = |entry: &Entry| entry.id().is_some_and(|id| at.is_none_or(|at| at == id));
    let found = entries.iter().rposition(is_it);
    let found = found.and_then(|place| Some((place, entries[place].id()?)));
    let (place, mut last) = found.ok_or_else(|| match at {
        Some(id) => SessionError::NoSuchEntry { key: from.clone(), id },
        None => SessionError::EmptySession { key: from.clone() },
    })?;
    let mut count = if at.is_some() { place + 1 } else { entries.len() };
    for (place, entry) in entries.iter().enumerate().skip(count) {
        match following(entry) {
            Following::Result(id) => (count, last) = (place + 1, id),
            Following::End => break,
            Following::Undecided => {}
        }
    }
    Ok((count, last))
}

impl Catalog for MemorySessions {
    fn exists(&self, key: &SessionKey) -> bool {
        self.known(key).is_some_and(|session| session.exists())
    }

    fn has_any(&self) -> bool {
        self.by_key.lock().values().any(|session| session.exists())
    }

    fn describe(&self, key: &SessionKey) -> String {
        place_of(key)
    }

    fn directory_of(&self, key: &SessionKey) -> Result<Option<PathBuf>, SessionError> {
        Ok(self.known(key).and_then(|session| session.content.lock().directory.clone()))
    }

    fn read(&self, key: &SessionKey) -> Result<Option<Box<dyn ReadSession>>, SessionError> {
        let session = self.known(key).filter(|session| session.exists());
        Ok(session.map(|session| Box::new(MemoryReader::new(session)) as Box<dyn ReadSession>))
    }

    fn entry(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError> {
        Ok(self.known(key).and_then(|session| session.content.lock().document.index()))
    }

    fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        let listed = self.listed(|_| true);
        let latest = listed.iter().take(limit).filter_map(|(_, session)| session.listed());
        Ok((latest.collect(), listed.len()))
    }

    fn latest_keys(
        &self,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<SessionKey>, SessionError> {
        let listed = self.listed(|session| is_wanted(session.key.as_str()));
        Ok(listed.into_iter().take(limit).map(|(_, session)| session.key.clone()).collect())
    }

    fn visit(
        &self,
        visit: &mut dyn FnMut(IndexedSession) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        for (_, session) in self.listed(|_| true) {
            if session.listed().is_some_and(|session| visit(session).is_break()) {
                break;
            }
        }
        Ok(())
    }

    fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        let is_titled = |session: &Session| {
            let entry = session.content.lock().document.index();
            let title = entry.and_then(|entry| indexed_title(entry.extra.as_ref()));
            title.is_some_and(|title| query.matches(&title))
        };
        let found = self.listed(|session| {
            let key = session.key.as_str();
            is_wanted(key) || query.matches(key) || is_titled(session)
        });
        let latest = found.iter().take(limit).filter_map(|(_, session)| session.listed());
        Ok((latest.collect(), found.len()))
    }

    fn search(
        &self,
        query: &SearchQuery,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        let mut sessions: Vec<Arc<Session>> = self.by_key.lock().values().cloned().collect();
        sessions.retain(|session| scope.contains(&session.key));
        // Of the forks that share messages of a session which is not searched, the one with most of them has them.
        sessions.sort_by_cached_key(|session| {
            (Reverse(session.content.lock().inherited), session.key.clone())
        });
        let mut found = Found::new(limit);
        let mut own = HashSet::new();
        for session in &sessions {
            let content = session.content.lock();
            for entry in content.document.entries().iter().skip(content.inherited) {
                let Entry::Message(message) = entry else { continue };
                own.insert(message.id);
                found.look_into(query, &session.key, message);
            }
        }
        for session in &sessions {
            let content = session.content.lock();
            for entry in content.document.entries().iter().take(content.inherited) {
                if let Entry::Message(message) = entry
                    && own.insert(message.id)
                {
                    found.look_into(query, &session.key, message);
                }
            }
        }
        Ok(found.into_report())
    }

    fn update(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError> {
        let session = self.session(key);
        session.record(patch);
        let entry = session.content.lock().document.index();
        entry.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })
    }

    fn change_about(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: &mut dyn FnMut(&mut About),
    ) -> Result<About, SessionError> {
        let session = self.existing(key)?;
        let _taken = session.writer.take(wait)?;
        // It may have been deleted meanwhile.
        if !session.exists() {
            return Err(SessionError::NoSuchSession { key: key.clone() });
        }
        let before = MemoryReader::new(Arc::clone(&session)).about()?;
        let mut about = before.clone();
        change(&mut about);
        let mut content = session.content.lock();
        if about != before {
            content.document.append(&[AboutEntry::new(about.clone()).into()]);
        }
        let extra = Some(about.to_extra());
        let updated_at = UpdatedAt::Keep;
        content.record(key, MetaPatch { extra, updated_at, ..MetaPatch::default() });
        Ok(about)
    }

    fn fork(
        &self,
        from: &SessionKey,
        at: Option<EntryId>,
        to: &SessionKey,
    ) -> Result<Fork, SessionError> {
        let parent = self.existing(from)?;
        let mut child = self.begin(to)?;
        let origin = {
            let parent = parent.content.lock();
            let (count, last) = cut(parent.document.entries(), from, at)?;
            let taken = parent.document.entries()[..count].iter();
            // The parent's title and labels are not inherited.
            let taken = taken.filter(|entry| !matches!(entry, Entry::About(_)));
            let origin = ForkOrigin { session_key: from.to_string(), entry_id: Some(last) };
            let entries: Vec<Entry> = taken.cloned().collect();
            child.content.inherited = entries.len();
            child.content.document = Document::of_entries(entries, now_ms());
            child.content.directory.clone_from(&parent.directory);
            child.content.forked_from = Some(origin.clone());
            origin
        };
        child.content.record(to, MetaPatch::forked_from(to, &origin));
        Box::new(child).finish()?;
        Ok(Fork { origin, skipped_lines: 0 })
    }

    fn create(
        &self,
        key: &SessionKey,
        created_at: u64,
        directory: Option<&Path>,
    ) -> Result<Box<dyn CreateSession>, SessionError> {
        let mut new = self.begin(key)?;
        new.content.document = Document::of_entries(Vec::new(), created_at);
        new.content.directory = directory.map(Path::to_owned);
        Ok(Box::new(new))
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, SessionError> {
        let Some(session) = self.known(key) else { return Ok(false) };
        let taken = session.writer.take(LockWait::Fail)?;
        let existed = self.clear(&session);
        drop(taken);
        self.tidy(&session);
        existed
    }

    fn prune(&self, max_age: Duration, scope: PruneScope) -> Result<PruneReport, SessionError> {
        let max_age = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let oldest_kept = now_ms().saturating_sub(max_age);
        let mut report = PruneReport::default();
        let old = self.listed(|_| true).into_iter().filter(|(at, _)| *at < oldest_kept);
        let mut old: Vec<SessionKey> = old.map(|(_, session)| session.key.clone()).collect();
        old.sort();
        for key in old {
            match scope {
                PruneScope::IndexOnly => {
                    if let Some(session) = self.known(&key) {
                        *session.content.lock().document.index_mut() = None;
                    }
                }
                PruneScope::WithTranscripts => {
                    if let Err(error) = Catalog::delete(self, &key) {
                        report.kept.push((key, error));
                        continue;
                    }
                }
            }
            report.removed.push(key);
        }
        Ok(report)
    }

    fn adopt(&self) -> Result<usize, SessionError> {
        Ok(0)
    }

    fn moved_aside(&self, _of: Option<&SessionKey>) -> Result<Vec<MovedAside>, SessionError> {
        Ok(Vec::new())
    }

    fn take_repairs(&self) -> Vec<IndexRepair> {
        Vec::new()
    }
}

impl CreateSession for NewMemory {
    fn key(&self) -> &SessionKey {
        &self.session.key
    }

    fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        self.content.document.push(entry);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), SessionError> {
        let mut content = std::mem::replace(&mut self.content, Content::new());
        let mut place = self.session.content.lock();
        // What was recorded of it before it existed stays.
        if content.document.index().is_none() {
            *content.document.index_mut() = place.document.index();
        }
        *place = content;
        drop(place);
        self.taken = None;
        Ok(())
    }
}

impl Drop for NewMemory {
    fn drop(&mut self) {
        if self.taken.take().is_some() {
            self.sessions.tidy(&self.session);
        }
    }
}
