//! The search over the messages of all sessions of an agent, by words and, with a model, by meaning.
//!
//! The index is made of segments, each with the words of some sessions. A session that changed is in a further segment, which
//! counts instead of the older ones. The logs are the truth: whatever is missing or damaged is made again from them.

mod documents;
mod meanings;
mod segment;
mod signature;
mod words;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{
    Durability, LockFile, LockWait, NewFile, create_private_directory, read_regular,
};
use myclaw_session::{Catalog, SessionError, SessionKey};
use serde::{Deserialize, Serialize};

use documents::{add_session, passage_of};
pub use meanings::Encoder;
use meanings::Meanings;
use segment::{Builder, Document, Segment, hash};
use words::each_word;

/// The list of segments.
const MANIFEST: &str = "index.json";
const LOCK: &str = "index.lock";
const MOST_MANIFEST_BYTES: u64 = 64 * 1024;
/// With more segments the small ones become one.
const MOST_SEGMENTS: usize = 8;
/// The share of sessions in small segments with which all become one.
const SMALL_SHARE: usize = 4;
/// Fewer sessions are no reason to make everything anew.
const FEW_SESSIONS: usize = 500;
/// Most different words of a query that count.
const MOST_WORDS: usize = 64;
/// Most documents of a ranking that are looked at.
const MOST_RANKED: usize = 200;
/// Most passages of one session in a result.
const MOST_OF_SESSION: usize = 2;
/// The usual constant of reciprocal rank fusion: how little the first ranks stand out.
const RANK_CONSTANT: f32 = 60.0;
/// Longest wait for another process that brings the index up to date.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(60));

/// A document: the number of its segment, and its own in that.
type Place = (usize, u32);
/// Documents with what says how well they fit.
type Ranking = Vec<(Place, f32)>;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchFailure {
    /// The sessions cannot be read.
    #[error(transparent)]
    Sessions(#[from] SessionError),
    /// The index cannot be written.
    #[error("the index in {} cannot be used: {source}", directory.display())]
    Index {
        /// Where it is.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has the index for too long.
    #[error("another process makes the index of all sessions; try again")]
    Busy,
}

/// The messages of one agent's sessions.
#[derive(Debug, Clone)]
pub struct SessionSearch {
    catalog: Arc<dyn Catalog>,
    /// How the keys of the agent's sessions begin.
    prefix: String,
    directory: PathBuf,
}

/// What to look for.
pub struct Wanted<'a> {
    /// The question, or some words.
    pub query: &'a str,
    /// Most passages.
    pub most: usize,
    /// Which sessions whoever asks may see.
    pub may_see: &'a dyn Fn(&SessionKey) -> bool,
    /// Compares meanings.
    pub encoder: Option<&'a dyn Encoder>,
}

/// A passage of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPassage {
    /// The session.
    pub session: String,
    /// The row of the person's message.
    pub row: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub ts: u64,
    /// What was said and answered, around the words of the query.
    pub text: String,
    /// The sum of the reciprocal ranks; only the order says something.
    pub score: f32,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Passages {
    /// The best passages, the best first.
    pub passages: Vec<SessionPassage>,
    /// Why the meanings were not compared, or not all.
    pub remark: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    /// When the newest session that is in the index changed.
    newest: u64,
    /// Sessions of the catalog then.
    count: usize,
    /// The files of the segments, the oldest first.
    segments: Vec<String>,
    next: u64,
    /// Digest of what is left out.
    hidden: u64,
}

/// Rows that are not shown and not learned from, because what they say was forgotten: of each session by its key.
pub type Hidden = HashMap<String, HashSet<String>>;

impl SessionSearch {
    /// The sessions of the agent `agent` in `catalog`. The index is in `directory`, which need not exist.
    pub fn new(catalog: Arc<dyn Catalog>, agent: &str, directory: PathBuf) -> Self {
        Self { catalog, prefix: format!("agent:{agent}:"), directory }
    }

    /// The best passages. The index is brought up to date first.
    ///
    /// # Errors
    /// The sessions cannot be read, or the index cannot be written.
    pub fn search(&self, wanted: &Wanted<'_>, hidden: &Hidden) -> Result<Passages, SearchFailure> {
        let segments = self.up_to_date(hidden)?;
        let by_words = ranked_by_words(&segments, wanted.query).map_err(self.failed())?;
        let mut scores: HashMap<Place, f32> = HashMap::new();
        self.add_ranks(&mut scores, &segments, by_words, wanted.may_see)?;
        let mut remark = None;
        if let Some(encoder) = wanted.encoder {
            let meanings = Meanings::open(&self.directory, encoder);
            let ranked = meanings.and_then(|mut meanings| {
                remark =
                    meanings.learn(&segments, |document| {
                        Ok(self.catalog.read(&document.session).ok().flatten().and_then(|log| {
                            passage_of(&*log, document.row, &[]).map(|(_, text)| text)
                        }))
                    })?;
                meanings.ranked(&segments, wanted.query)
            });
            match ranked {
                Ok(ranked) => self.add_ranks(&mut scores, &segments, ranked, wanted.may_see)?,
                Err(why) => remark = Some(format!("searched by words alone: {why}")),
            }
        }
        let mut best: Ranking = scores.into_iter().collect();
        best.sort_by(|left, right| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0)));
        let passages = self.passages(&segments, &best, wanted)?;
        Ok(Passages { passages, remark })
    }

    /// Adds the reciprocal ranks of the documents that may be seen and are the newest version of their session.
    fn add_ranks(
        &self,
        scores: &mut HashMap<Place, f32>,
        segments: &[Segment],
        ranked: Ranking,
        may_see: &dyn Fn(&SessionKey) -> bool,
    ) -> Result<(), SearchFailure> {
        let mut rank = 0.0;
        let mut of_sessions: HashMap<SessionKey, usize> = HashMap::new();
        for ((segment, number), _) in ranked {
            let document = segments[segment].document(number).map_err(self.failed())?;
            let is_old = segments[segment + 1..].iter().any(|newer| newer.has(&document.session));
            if is_old || !may_see(&document.session) {
                continue;
            }
            let count = of_sessions.entry(document.session).or_default();
            *count += 1;
            if *count > MOST_OF_SESSION {
                continue;
            }
            rank += 1.0;
            *scores.entry((segment, number)).or_default() += 1.0 / (RANK_CONSTANT + rank);
        }
        Ok(())
    }

    fn passages(
        &self,
        segments: &[Segment],
        best: &[(Place, f32)],
        wanted: &Wanted<'_>,
    ) -> Result<Vec<SessionPassage>, SearchFailure> {
        let mut words = Vec::new();
        each_word(wanted.query, |word| words.push(word.to_owned()));
        let mut of_sessions: HashMap<SessionKey, usize> = HashMap::new();
        let mut passages = Vec::new();
        for ((segment, number), score) in best {
            if passages.len() >= wanted.most {
                break;
            }
            let document = segments[*segment].document(*number).map_err(self.failed())?;
            let count = of_sessions.entry(document.session.clone()).or_default();
            if *count >= MOST_OF_SESSION {
                continue;
            }
            // A session may have been deleted since.
            let Some(log) = self.catalog.read(&document.session)? else { continue };
            let Some((ts, text)) = passage_of(&*log, document.row, &words) else { continue };
            *count += 1;
            let (session, row) = (document.session.to_string(), document.row.to_string());
            passages.push(SessionPassage { session, row, ts, text, score: *score });
        }
        Ok(passages)
    }

    /// Makes the index again from the logs. For tests, and for those who want no wait later.
    ///
    /// # Errors
    /// As for [`SessionSearch::search`].
    pub fn rebuild(&self, hidden: &Hidden) -> Result<(), SearchFailure> {
        remove_index(&self.directory).map_err(self.failed())?;
        self.up_to_date(hidden).map(drop)
    }

    /// The segments, after what changed since was added.
    fn up_to_date(&self, hidden: &Hidden) -> Result<Vec<Segment>, SearchFailure> {
        let (latest, count) = self.catalog.latest(1)?;
        let newest = latest.first().map_or(0, |session| session.entry.updated_at);
        let mark = digest(hidden);
        let is_current = |manifest: &Manifest| {
            (manifest.newest, manifest.count, manifest.hidden) == (newest, count, mark)
        };
        if let Some(manifest) = self.manifest().filter(is_current)
            && let Ok(segments) = self.open(&manifest)
        {
            return Ok(segments);
        }
        create_private_directory(&self.directory).map_err(self.failed())?;
        let _lock = LockFile::acquire(&self.directory.join(LOCK), LOCK_WAIT)
            .map_err(|_| SearchFailure::Busy)?;
        let kept = self.manifest().filter(|kept| kept.hidden == mark);
        let opened = kept.and_then(|kept| self.open(&kept).ok().map(|segments| (kept, segments)));
        let (mut manifest, mut segments) = opened.unwrap_or_default();
        let since = if manifest.segments.is_empty() { 0 } else { manifest.newest };
        let changed = self.changed(since)?;
        let known = |key: &SessionKey| segments.iter().any(|segment| segment.has(key));
        let new = changed.iter().filter(|key| !known(key)).count();
        let total: usize = segments.iter().map(|segment| segment.session_hashes().len()).sum();
        let is_fewer = count < manifest.count + new;
        let small = total - segments.first().map_or(0, |first| first.session_hashes().len());
        let is_much = small + changed.len() > FEW_SESSIONS.max(total / SMALL_SHARE);
        if since == 0 || is_fewer || is_much {
            let all = if since == 0 { changed } else { self.changed(0)? };
            let old = std::mem::take(&mut manifest.segments);
            segments = vec![self.add_segment(&mut manifest, &all, hidden)?];
            self.finish(&mut manifest, (newest, count, mark), &old)?;
            return Ok(segments);
        }
        let mut old = Vec::new();
        let mut together = changed;
        if segments.len() >= MOST_SEGMENTS {
            let small: HashSet<u64> =
                segments.drain(1..).flat_map(|segment| segment.session_hashes().to_vec()).collect();
            old = manifest.segments.split_off(1);
            let of_small = self.changed(0)?;
            let is_of_small = |key: &SessionKey| small.contains(&hash(key.as_str()));
            let before: HashSet<SessionKey> = together.iter().cloned().collect();
            let more = of_small.into_iter().filter(|key| is_of_small(key) && !before.contains(key));
            together.extend(more);
        }
        if !together.is_empty() {
            segments.push(self.add_segment(&mut manifest, &together, hidden)?);
        }
        self.finish(&mut manifest, (newest, count, mark), &old)?;
        Ok(segments)
    }

    /// The agent's sessions that changed at `since` or later, the oldest first.
    fn changed(&self, since: u64) -> Result<Vec<SessionKey>, SearchFailure> {
        let mut changed = Vec::new();
        self.catalog.visit(&mut |session| {
            if session.entry.updated_at < since {
                return ControlFlow::Break(());
            }
            if session.key.as_str().starts_with(&self.prefix) {
                changed.push(session.key);
            }
            ControlFlow::Continue(())
        })?;
        changed.reverse();
        Ok(changed)
    }

    fn add_segment(
        &self,
        manifest: &mut Manifest,
        sessions: &[SessionKey],
        hidden: &Hidden,
    ) -> Result<Segment, SearchFailure> {
        let mut builder = Builder::default();
        let nothing = HashSet::new();
        for key in sessions {
            // One that cannot be read is left out here, and reported where it is opened.
            if let Ok(Some(log)) = self.catalog.read(key) {
                let hidden = hidden.get(key.as_str()).unwrap_or(&nothing);
                add_session(&mut builder, key, &*log, hidden);
            }
        }
        let name = format!("{}.words", manifest.next);
        manifest.next += 1;
        let path = self.directory.join(&name);
        builder.write(&path).map_err(self.failed())?;
        manifest.segments.push(name);
        Segment::open(&path).map_err(self.failed())
    }

    fn finish(
        &self,
        manifest: &mut Manifest,
        (newest, count, hidden): (u64, usize, u64),
        old: &[String],
    ) -> Result<(), SearchFailure> {
        (manifest.newest, manifest.count, manifest.hidden) = (newest, count, hidden);
        let written = || {
            let file = NewFile::in_directory(&self.directory, ".index")?;
            serde_json::to_writer(file.as_file(), manifest)?;
            file.put_at(&self.directory.join(MANIFEST), Durability::Unsynced)?;
            // A search that began before may still read them; then it begins again.
            old.iter().try_for_each(|name| fs::remove_file(self.directory.join(name)))
        };
        written().map_err(self.failed())
    }

    fn manifest(&self) -> Option<Manifest> {
        let bytes = read_regular(&self.directory.join(MANIFEST), MOST_MANIFEST_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn open(&self, manifest: &Manifest) -> io::Result<Vec<Segment>> {
        let paths = manifest.segments.iter().map(|name| self.directory.join(name));
        paths.map(|path| Segment::open(&path)).collect()
    }

    fn failed(&self) -> impl Fn(io::Error) -> SearchFailure {
        let directory = self.directory.clone();
        move |source| SearchFailure::Index { directory: directory.clone(), source }
    }
}

/// Removes the index in `directory`, which the next search makes again.
///
/// # Errors
/// It cannot be removed.
pub fn remove_index(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The documents with words of the query, the best first.
fn ranked_by_words(segments: &[Segment], query: &str) -> io::Result<Ranking> {
    let mut words: Vec<String> = Vec::new();
    each_word(query, |word| {
        if words.len() < MOST_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    });
    let total: usize = segments.iter().map(Segment::documents).sum();
    let mut scores: HashMap<Place, f32> = HashMap::new();
    for word in &words {
        let postings: Vec<Vec<(u32, u32)>> =
            segments.iter().map(|segment| segment.postings(word)).collect::<io::Result<_>>()?;
        let having: usize = postings.iter().map(Vec::len).sum();
        let rarity = (1.0 + (total as f32 - having as f32 + 0.5) / (having as f32 + 0.5)).ln();
        for (index, (segment, postings)) in segments.iter().zip(postings).enumerate() {
            for (document, count) in postings {
                let gain = rarity * segment.gain(document, count);
                *scores.entry((index, document)).or_default() += gain;
            }
        }
    }
    Ok(best_of(scores.into_iter().collect()))
}

/// The best of a ranking, in order.
fn best_of(mut ranked: Ranking) -> Ranking {
    let order = |left: &(Place, f32), right: &(Place, f32)| {
        right.1.total_cmp(&left.1).then(right.0.cmp(&left.0))
    };
    if ranked.len() > MOST_RANKED {
        ranked.select_nth_unstable_by(MOST_RANKED, order);
        ranked.truncate(MOST_RANKED);
    }
    ranked.sort_by(order);
    ranked
}

fn digest(hidden: &Hidden) -> u64 {
    let rows = hidden
        .iter()
        .flat_map(|(session, rows)| rows.iter().map(move |row| hash(&format!("{session}\n{row}"))));
    rows.fold(0, |sum, row| sum ^ row)
}

/// The documents of a segment list with their places, for those that have a name.
fn places(segments: &[Segment]) -> io::Result<Vec<(segment::Name, Place)>> {
    let mut places = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        places.extend(segment.names()?.zip(0..).map(|(name, number)| (name, (index, number))));
    }
    Ok(places)
}

fn document_at(segments: &[Segment], (segment, number): Place) -> io::Result<Document> {
    segments[segment].document(number)
}

#[cfg(test)]
mod tests;
