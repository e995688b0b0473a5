//! `sessions.json` and the journal, read together.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::journal::Record;
use super::snapshot::{Snapshot, SnapshotWriter};
use super::{EntriesByKey, IndexedSession, SessionEntry};
use crate::error::SessionError;
use crate::store::session_file;
use crate::{About, SearchQuery, SessionKey, indexed_title};

/// The current index.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Where the logs are.
    directory: PathBuf,
    snapshot: Arc<Snapshot>,
    /// The entries that the journal changes; `None` for those that it removes.
    changed: HashMap<String, Option<SessionEntry>>,
}

/// An entry before it is parsed.
pub(super) struct Listed<'a> {
    pub(super) key: std::borrow::Cow<'a, str>,
    updated_at: u64,
    /// Its place in the snapshot; `None` if it is in the journal.
    place: Option<usize>,
}

impl Listed<'_> {
    /// Sessions with the same time are ordered by key.
    fn latest_first(&self, other: &Self) -> Ordering {
        other.updated_at.cmp(&self.updated_at).then_with(|| self.key.cmp(&other.key))
    }
}

/// Keeps the `limit` most recently changed of `listed`, the latest first.
fn keep_latest(listed: &mut Vec<Listed<'_>>, limit: usize) {
    if limit < listed.len() {
        listed.select_nth_unstable_by(limit, Listed::latest_first);
        listed.truncate(limit);
    }
    listed.sort_unstable_by(Listed::latest_first);
}

impl View {
    /// A view of exactly these entries of the logs in `directory`.
    pub(super) fn of(directory: &Path, entries: EntriesByKey) -> Self {
        let changed = entries.into_iter().map(|(key, entry)| (key, Some(entry))).collect();
        Self { directory: directory.to_owned(), snapshot: Arc::default(), changed }
    }

    /// Applies `records` to `snapshot`. Returns the snapshot as the error if an entry that they change cannot be read.
    pub(super) fn new(
        directory: &Path,
        snapshot: Arc<Snapshot>,
        records: &[Record],
    ) -> Result<Self, Arc<Snapshot>> {
        let keys = records.iter().filter_map(Record::key);
        let mut changed: HashMap<String, Option<SessionEntry>> =
            keys.map(|key| (key.to_owned(), None)).collect();
        if !changed.is_empty() {
            for span in &snapshot.spans {
                let Some(changed) = snapshot.key(span).and_then(|key| changed.get_mut(&*key))
                else {
                    continue;
                };
                *changed = snapshot.entry(span);
                if changed.is_none() {
                    return Err(snapshot);
                }
            }
        }
        for record in records {
            if let Some(entry) = record.key().and_then(|key| changed.get_mut(key)) {
                *entry = record.apply(entry.take());
            }
        }
        Ok(Self { directory: directory.to_owned(), snapshot, changed })
    }

    /// What was read of `sessions.json`; `None` if these entries are not from there.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        (!self.snapshot.is_unread()).then(|| Arc::clone(&self.snapshot))
    }

    /// The entry of `key`; an error if it cannot be read.
    pub(super) fn get(&self, key: &str) -> Result<Option<SessionEntry>, Unreadable> {
        let mut entry = if let Some(entry) = self.changed.get(key) {
            entry.clone()
        } else {
            let is_wanted = |span: &&_| self.snapshot.key(span).is_some_and(|found| found == key);
            let Some(span) = self.snapshot.spans.iter().find(is_wanted) else { return Ok(None) };
            Some(self.snapshot.entry(span).ok_or(Unreadable)?)
        };
        if let Some(entry) = entry.as_mut().filter(|entry| entry.in_turn) {
            entry.updated_at = self.written_at(key, entry.updated_at);
        }
        Ok(entry)
    }

    /// When a session in a turn changed last: the later one of the time in the index, which the end of the turn changes,
    /// and that of its log. Sessions that are in no turn are not asked, so the cost does not grow with their number.
    fn written_at(&self, key: &str, updated_at: u64) -> u64 {
        let written = || {
            let log = self.directory.join(session_file(&SessionKey::parse_canonical(key)?));
            let modified = fs::metadata(log).and_then(|log| log.modified()).ok()?;
            u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
        };
        written().unwrap_or(0).max(updated_at)
    }

    /// The keys of the `limit` most recently changed sessions whose key is wanted, the latest first.
    pub(super) fn latest_keys(
        &self,
        limit: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<SessionKey> {
        let mut listed = self.listed();
        listed.retain(|listed| is_wanted(&listed.key));
        keep_latest(&mut listed, limit);
        listed.iter().filter_map(|listed| SessionKey::parse_canonical(&listed.key)).collect()
    }

    /// The `limit` most recently changed sessions, and the number of all; an error if one of them cannot be read.
    pub(super) fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), Unreadable> {
        let mut listed = self.listed();
        let count = listed.len();
        keep_latest(&mut listed, limit);
        Ok((self.parsed(&listed)?, count))
    }

    /// The `limit` most recently changed of the sessions with these labels, and the number of all of them; an error if one of
    /// the former cannot be read.
    pub(super) fn latest_labelled(
        &self,
        limit: usize,
        with: &[&str],
        without: &[&str],
    ) -> Result<(Vec<IndexedSession>, usize), Unreadable> {
        let unlabelled = About::default();
        let written = self.snapshot.labelled();
        let mut listed = self.listed();
        listed.retain(|listed| match listed.place {
            Some(place) => written.get(&place).unwrap_or(&unlabelled).fits(with, without),
            None => About::from_extra(self.entry(listed).and_then(|entry| entry.extra).as_ref())
                .fits(with, without),
        });
        let count = listed.len();
        keep_latest(&mut listed, limit);
        Ok((self.parsed(&listed)?, count))
    }

    /// The `limit` most recently changed of the sessions whose key is wanted or whose key or title matches, and the number of
    /// all of them; an error if one of them cannot be read.
    pub(super) fn search(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), Unreadable> {
        let mut listed = self.listed();
        listed.retain(|listed| {
            is_wanted(&listed.key) || query.matches(&listed.key) || self.is_titled(listed, query)
        });
        let count = listed.len();
        keep_latest(&mut listed, limit);
        Ok((self.parsed(&listed)?, count))
    }

    fn is_titled(&self, listed: &Listed<'_>, query: &SearchQuery) -> bool {
        if let Some(place) = listed.place {
            let (_, body) = self.snapshot.lines(&self.snapshot.spans[place]);
            if !query.may_be_in(body) {
                return false;
            }
        }
        let title = self.entry(listed).and_then(|entry| indexed_title(entry.extra.as_ref()));
        title.is_some_and(|title| query.matches(&title))
    }

    fn parsed(&self, listed: &[Listed<'_>]) -> Result<Vec<IndexedSession>, Unreadable> {
        let mut sessions = Vec::with_capacity(listed.len());
        for listed in listed {
            let Some(key) = SessionKey::parse_canonical(&listed.key) else { continue };
            sessions.push(IndexedSession { key, entry: self.entry(listed).ok_or(Unreadable)? });
        }
        Ok(sessions)
    }

    /// All sessions, the most recently changed first.
    pub(super) fn latest_first(&self) -> Vec<Listed<'_>> {
        let mut listed = self.listed();
        keep_latest(&mut listed, usize::MAX);
        listed
    }

    /// A listed entry; `None` if it lacks required fields.
    pub(super) fn entry(&self, listed: &Listed<'_>) -> Option<SessionEntry> {
        let entry = match listed.place {
            Some(place) => self.snapshot.entry(&self.snapshot.spans[place]),
            None => self.changed.get(&*listed.key).cloned().flatten(),
        };
        Some(SessionEntry { updated_at: listed.updated_at, ..entry? })
    }

    /// All sessions, unordered. Entries whose key is not a session key belong to another program and are left out.
    fn listed(&self) -> Vec<Listed<'_>> {
        let mut listed = Vec::with_capacity(self.snapshot.spans.len() + self.changed.len());
        for (place, span) in self.snapshot.spans.iter().enumerate() {
            let Some(key) = self.snapshot.key(span) else { continue };
            if self.changed.is_empty() || !self.changed.contains_key(&*key) {
                let updated_at = match span.in_turn {
                    true => self.written_at(&key, span.updated_at),
                    false => span.updated_at,
                };
                listed.push(Listed { key, updated_at, place: Some(place) });
            }
        }
        listed.extend(self.changed.iter().filter_map(|(key, entry)| {
            let entry = entry.as_ref()?;
            let updated_at = match entry.in_turn {
                true => self.written_at(key, entry.updated_at),
                false => entry.updated_at,
            };
            Some(Listed { key: key.as_str().into(), updated_at, place: None })
        }));
        listed.retain(|listed| listed.key.starts_with("agent:"));
        listed
    }

    /// All entries. If one of them cannot be read, the readable ones are the error.
    pub(super) fn entries(&self) -> Result<EntriesByKey, EntriesByKey> {
        let mut entries = self.snapshot.readable_entries();
        let is_whole = entries.len() == self.snapshot.spans.len();
        for (key, entry) in &self.changed {
            match entry {
                Some(entry) => drop(entries.insert(key.clone(), entry.clone())),
                None => drop(entries.remove(key)),
            }
        }
        if is_whole { Ok(entries) } else { Err(entries) }
    }

    /// The content of a `sessions.json` that needs no journal. Unchanged entries are copied byte by byte.
    pub(super) fn to_snapshot(&self, path: &Path) -> Result<SnapshotWriter, SessionError> {
        let mut writer = SnapshotWriter::default();
        let mut new: Vec<&String> = self.changed.keys().collect();
        new.sort_unstable();
        for span in &self.snapshot.spans {
            let key = self.snapshot.key(span);
            match key.as_ref().and_then(|key| Some((key, self.changed.get(&**key)?))) {
                None => {
                    let (key, body) = self.snapshot.lines(span);
                    writer.lines(key, body);
                }
                Some((key, entry)) => {
                    if let Some(entry) = entry {
                        writer.entry(key, entry, path)?;
                    }
                    if let Ok(place) = new.binary_search_by(|new| new.as_str().cmp(key)) {
                        new.remove(place);
                    }
                }
            }
        }
        for key in new {
            if let Some(Some(entry)) = self.changed.get(key) {
                writer.entry(key, entry, path)?;
            }
        }
        Ok(writer)
    }
}

/// An entry of the index lacks required fields.
#[derive(Debug)]
pub(super) struct Unreadable;
