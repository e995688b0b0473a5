//! Searches the messages of all sessions of a directory.
//!
//! Lines are first searched as bytes, for the text as JSON would have written it. Only a line that matches is decoded,
//! and the text of its message is searched again. So most of a search costs as much as searching plain files. A program
//! that searches again and again keeps [`SearchFilters`], by which it need not open the files that cannot match.

mod directory;
mod files;
mod filters;
mod literals;
mod query;
mod snippet;
mod stamp;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use grep_matcher::LineTerminator;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkMatch};

use crate::error::SessionError;
use crate::line::{self, Line};
use crate::{Entry, EntryId, Role, SessionKey, SessionStore, TranscriptMessage};
use files::SearchedFile;
use filters::Filter;
pub use filters::SearchFilters;
pub use query::{Case, SearchError, SearchQuery};

/// Most threads of one search. More would wait for the disk, or for each other.
const MOST_THREADS: usize = 8;

/// Longest line that is searched; a file with a longer one is reported. It equals the longest line that an import
/// accepts.
const MOST_LINE_BYTES: usize = 256 << 20;

/// Which sessions to search.
#[derive(Debug, Clone, Default)]
pub struct SearchScope {
    /// Only those of this agent, by its id in the key.
    pub agent_id: Option<String>,
    /// Only these.
    pub keys: Option<HashSet<SessionKey>>,
}

/// A message that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session of the message. A fork's messages from before it branched off belong to its parent, if that is
    /// searched too.
    pub key: SessionKey,
    /// The message.
    pub id: EntryId,
    /// The author of the message.
    pub role: Role,
    /// The time of the message, in milliseconds since the Unix epoch; 0 if unknown.
    pub ts: u64,
    /// Some text before the match, on one line, like the two below.
    pub before: String,
    /// The match, or the beginning of it.
    pub matched: String,
    /// Some text after the match.
    pub after: String,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchReport {
    /// The newest messages that match, the newest first, up to the limit.
    pub hits: Vec<SearchHit>,
    /// How many messages match in each session that has any.
    pub matches: BTreeMap<SessionKey, u64>,
    /// What could not be read, in words for people, and why.
    pub unreadable: Vec<(String, std::io::Error)>,
}

impl SessionStore {
    /// Searches the text of all messages, including those that a summary replaced. Keeps the `limit` newest in memory,
    /// and otherwise at most one line of each file.
    ///
    /// # Errors
    /// The directory cannot be read. A file that cannot be read is in the report instead.
    pub fn search(
        &self,
        query: &SearchQuery,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        Ok(search_files(&files::files_to_search(self, scope)?, query, limit, None))
    }

    /// The same in all sessions, with what earlier searches of this directory have learned in `filters`.
    ///
    /// # Errors
    /// As for [`SessionStore::search`].
    pub fn search_again(
        &self,
        filters: &SearchFilters,
        query: &SearchQuery,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        Ok(search_files(&filters.files(self)?, query, limit, Some(filters)))
    }

    /// Learns what the logs hold before somebody searches, so that the first search is as fast as later ones.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn prepare_search(&self, filters: &SearchFilters) -> Result<(), SessionError> {
        filters.prepare(self)
    }
}

fn search_files(
    files: &[SearchedFile],
    query: &SearchQuery,
    limit: usize,
    filters: Option<&SearchFilters>,
) -> SearchReport {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MOST_THREADS).min(files.len());
    let work = || {
        let mut found = Found::new(limit);
        let (mut searcher, mut buffer) = (searcher(), Vec::new());
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.search((&mut searcher, &mut buffer), query, file, filters);
        }
        // All at once: threads do not wait for each other at each file.
        if let Some(filters) = filters {
            filters.add(std::mem::take(&mut found.learned));
        }
        found
    };
    let found = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        for other in others {
            // A thread that panicked has already reported it; the panic continues here.
            match other.join() {
                Ok(more) => found.add(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        found
    });
    found.into_report()
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::byte(b'\n'))
        .line_number(false)
        .binary_detection(BinaryDetection::none())
        .bom_sniffing(false)
        .heap_limit(Some(MOST_LINE_BYTES))
        // If somebody truncated a mapped file, the program would be killed.
        .memory_map(MmapChoice::never())
        .build()
}

/// The matches that were found so far.
pub(crate) struct Found {
    limit: usize,
    /// The newest matches; the oldest of them is on top.
    newest: BinaryHeap<Reverse<Ranked>>,
    matches: BTreeMap<SessionKey, u64>,
    unreadable: Vec<(String, std::io::Error)>,
    /// What is to be remembered of the files.
    learned: Vec<(u64, Filter)>,
}

impl Found {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            newest: BinaryHeap::new(),
            matches: BTreeMap::new(),
            unreadable: Vec::new(),
            learned: Vec::new(),
        }
    }

    fn search(
        &mut self,
        with: (&mut Searcher, &mut Vec<u8>),
        query: &SearchQuery,
        file: &SearchedFile,
        filters: Option<&SearchFilters>,
    ) {
        let mut learned = std::mem::take(&mut self.learned);
        let mut lines = Lines { query, file, key: None, found: self, count: 0 };
        let is_answered = filters.is_some_and(|filters| {
            filters.answers_for(file, query, |said| {
                lines.look_into(said);
            })
        });
        let searched = match is_answered {
            true => Ok(()),
            false => file.search(with, query, filters.zip(Some(&mut learned)), &mut lines),
        };
        lines.finish();
        self.learned = learned;
        match searched {
            Err(error) if file.key().is_some() => {
                self.unreadable.push((file.path.display().to_string(), error));
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Looks into a message of the session `key`.
    pub(crate) fn look_into(
        &mut self,
        query: &SearchQuery,
        key: &SessionKey,
        message: &TranscriptMessage,
    ) {
        let Some(range) = query.find(&message.content) else { return };
        *self.matches.entry(key.clone()).or_default() += 1;
        self.consider(key, message.into(), range);
    }

    /// Keeps the message if it is one of the newest. Those that match everywhere are many, and most are older.
    fn consider(&mut self, key: &SessionKey, said: Said<'_>, range: Range<usize>) {
        let oldest = self.newest.peek().filter(|_| self.newest.len() >= self.limit);
        let is_older = oldest.is_some_and(|Reverse(Ranked(oldest))| said.ts < oldest.ts);
        if self.limit > 0 && !is_older {
            self.keep(hit(key, said, range));
        }
    }

    fn keep(&mut self, hit: SearchHit) {
        self.newest.push(Reverse(Ranked(hit)));
        if self.newest.len() > self.limit {
            self.newest.pop();
        }
    }

    fn add(&mut self, other: Self) {
        for Reverse(Ranked(hit)) in other.newest {
            self.keep(hit);
        }
        for (key, count) in other.matches {
            *self.matches.entry(key).or_default() += count;
        }
        self.unreadable.extend(other.unreadable);
    }

    pub(crate) fn into_report(self) -> SearchReport {
        let newest_first = self.newest.into_sorted_vec();
        SearchReport {
            hits: newest_first.into_iter().map(|Reverse(Ranked(hit))| hit).collect(),
            matches: self.matches,
            unreadable: self.unreadable,
        }
    }
}

/// Collects the lines of one file that may match.
struct Lines<'a> {
    query: &'a SearchQuery,
    file: &'a SearchedFile,
    /// The session of the file, once a line matches.
    key: Option<SessionKey>,
    found: &'a mut Found,
    count: u64,
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let offset = found.absolute_byte_offset();
        Ok(match line::decode(found.bytes(), offset) {
            Line::Entry(Entry::Message(message)) => self.look_into((&message).into()),
            _ => true,
        })
    }
}

impl Lines<'_> {
    /// False if the file is of no session, and is not searched any further.
    fn look_into(&mut self, said: Said<'_>) -> bool {
        let Some(range) = self.query.find(said.text) else { return true };
        if self.key.is_none() {
            self.key = self.file.key();
        }
        let Some(key) = &self.key else { return false };
        self.count += 1;
        self.found.consider(key, said, range);
        true
    }

    fn finish(self) {
        if let Some(key) = self.key.filter(|_| self.count > 0) {
            *self.found.matches.entry(key).or_default() += self.count;
        }
    }
}

/// What a search looks at of a message.
#[derive(Clone, Copy)]
struct Said<'m> {
    id: EntryId,
    role: Role,
    ts: u64,
    text: &'m str,
}

impl<'m> From<&'m TranscriptMessage> for Said<'m> {
    fn from(message: &'m TranscriptMessage) -> Self {
        let TranscriptMessage { id, role, ts, content, .. } = message;
        Self { id: *id, role: *role, ts: *ts, text: content }
    }
}

fn hit(key: &SessionKey, said: Said<'_>, range: Range<usize>) -> SearchHit {
    let Said { id, role, ts, text } = said;
    let (before, matched, after) = snippet::around(text, range);
    SearchHit { key: key.clone(), id, role, ts, before, matched, after }
}

/// A hit, ordered by time; messages with the same time are ordered by session and id.
#[derive(PartialEq, Eq)]
struct Ranked(SearchHit);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (one, other) = (&self.0, &other.0);
        (one.ts, Reverse(&one.key), one.id).cmp(&(other.ts, Reverse(&other.key), other.id))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
