//! Reading the index.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::journal::Journal;
use super::snapshot::Stamp;
use super::view::{Unreadable, View};
use super::{Cached, Found, IndexedSession, LOCK_WAIT, SessionEntry, SessionIndex};
use crate::{SearchQuery, SessionError, SessionKey};

impl SessionIndex {
    /// The entry of `key`.
    ///
    /// # Errors
    /// The index could not be read.
    pub fn get(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError> {
        self.read(|view| view.get(key.as_str()))
    }

    /// All sessions, the most recently changed first.
    ///
    /// # Errors
    /// The index could not be read, or was lost and the directory could not be read to rebuild it.
    pub fn list(&self) -> Result<Vec<IndexedSession>, SessionError> {
        Ok(self.latest(usize::MAX)?.0)
    }

    /// The `limit` most recently changed sessions, the latest first, and the number of all sessions. Much faster than
    /// [`SessionIndex::list`] where there are many.
    ///
    /// # Errors
    /// As for [`SessionIndex::list`].
    pub fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.read(|view| view.latest(limit))
    }

    /// The `limit` most recently changed of the sessions that have all labels of `with` and none of `without`, and the number
    /// of all of them. Labels are parsed once for each state of the file.
    ///
    /// # Errors
    /// As for [`SessionIndex::list`].
    pub fn latest_labelled(
        &self,
        limit: usize,
        with: &[&str],
        without: &[&str],
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.read(|view| view.latest_labelled(limit, with, without))
    }

    /// The `limit` most recently changed of the sessions whose key `is_wanted` or whose key or title matches, and the number of
    /// all of them. Only those that may match are parsed.
    ///
    /// # Errors
    /// As for [`SessionIndex::list`].
    pub fn search(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        self.read(|view| view.search(query, limit, &is_wanted))
    }

    /// The keys of the most recently changed sessions whose key is wanted, the latest first, at most `limit`. Only these
    /// are parsed, so this is fast where there are many sessions.
    ///
    /// # Errors
    /// As for [`SessionIndex::list`].
    pub fn latest_keys(
        &self,
        limit: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<SessionKey>, SessionError> {
        self.read(|view| Ok(view.latest_keys(limit, &is_wanted)))
    }

    /// Passes the sessions to `take`, the most recently changed first, until it returns `Break`. Entries are parsed one
    /// after the other, so the memory does not depend on what they hold.
    ///
    /// # Errors
    /// As for [`SessionIndex::list`]; and those of `take`.
    pub fn each<E: From<SessionError>>(
        &self,
        mut take: impl FnMut(IndexedSession) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let view = self.view()?;
        for listed in view.latest_first() {
            let Some(key) = SessionKey::parse_canonical(&listed.key) else { continue };
            let entry = match view.entry(&listed) {
                Some(entry) => entry,
                // It lacks required fields. Reading it by its key rebuilds it from its log.
                None => match self.get(&key)? {
                    Some(entry) => entry,
                    None => continue,
                },
            };
            if take(IndexedSession { key, entry })?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The names of the logs of all sessions, without their extension.
    pub(super) fn slugs(&self) -> Result<HashSet<String>, SessionError> {
        let view = self.view()?;
        let listed = view.latest_first();
        let keys = listed.into_iter().filter_map(|listed| SessionKey::parse_canonical(&listed.key));
        Ok(keys.map(|key| key.slug()).collect())
    }

    /// Passes the current index to `look`, from the cache if the files have not changed since they were read.
    fn read<T>(&self, look: impl Fn(&View) -> Result<T, Unreadable>) -> Result<T, SessionError> {
        if let Ok(found) = look(&*self.view()?) {
            return Ok(found);
        }
        // An entry lacks required fields: rebuild it from its log.
        self.change(|_| ())?;
        *self.cache.lock() = None;
        let view = self.view()?;
        look(&view).map_err(|Unreadable| SessionError::UnreadableIndex { path: self.path() })
    }

    fn view(&self) -> Result<Arc<View>, SessionError> {
        let journal = Journal::open_existing(&self.directory, LOCK_WAIT)?;
        let journal_stamp = journal.as_ref().map(Journal::stamp).transpose()?;
        let stamps = (Stamp::of(&self.path()), journal_stamp);
        if let Some(view) = self.cached(stamps) {
            return Ok(view);
        }
        let (found, damaged_lines) = self.read_locked(journal.as_ref())?;
        drop(journal);
        let view = match found {
            Found::Sound(view) if damaged_lines == 0 => view,
            _ if !self.directory.is_dir() => return Ok(Arc::default()),
            // Write the restored index, so that it is restored only once. If that fails, the list is still right.
            found => match (self.change(|entries| entries.clone()), found) {
                (Ok(entries), _) => View::of(&self.directory, entries),
                (Err(_), Found::Sound(view)) => view,
                (Err(_), Found::Lost(readable, records)) => {
                    View::of(&self.directory, self.completed(readable, &records)?)
                }
            },
        };
        let view = Arc::new(view);
        // The restored files have other stamps now, so they are read again the next time.
        let cached = Cached { stamps, view: Arc::clone(&view) };
        *self.cache.lock() = Some(cached);
        Ok(view)
    }

    fn cached(&self, stamps: (Option<Stamp>, Option<Stamp>)) -> Option<Arc<View>> {
        let cache = self.cache.lock();
        let cached = cache.as_ref()?;
        (stamps.0.is_some() && cached.stamps == stamps).then(|| Arc::clone(&cached.view))
    }
}
