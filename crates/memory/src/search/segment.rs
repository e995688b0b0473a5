//! A part of the index: the words of some sessions, in one file that is never changed.
//!
//! ```text
//! magic, number of sessions, documents and words           4 x u32
//! for each session: hash of its key                        u64, sorted
//! for each document: hash of its name                      u64
//! for each document: its length, in steps                  u8
//! for each session, document and word: where its record begins   u32; the words are sorted
//! length of the records and of the postings                2 x u32
//! records of sessions: the key; of documents: the number of the session, the row, the second; of words: the word, where its
//! postings begin, their number, their bytes
//! postings: of each document the distance to the one before, and how often it has the word
//! ```
//!
//! A search reads the lengths, and of everything else only what its words need.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use myclaw_files::portable::FileExt;
use myclaw_files::{Durability, NewFile, open_regular, parent_of};
use myclaw_session::{EntryId, SessionKey};

use super::words::each_word;

const MAGIC: u32 = 0x314d_434d;
/// Most bytes of a segment; all sessions of 10,000 have some 30 MB.
const MAX_BYTES: u64 = 1 << 31;
/// Most times that a word counts in a document.
const MOST_COUNT: u32 = 15;
/// Most bytes of a record that is read at once.
const RECORD: usize = 512;
/// Saturation and weight of the length, as usual for BM25.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Names a document: a digest of its session and row.
pub(super) type Name = u64;

/// A part of a session: what a person said, and the answers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) session: SessionKey,
    /// The row of the person's message.
    pub(super) row: EntryId,
    /// When, in seconds since the Unix epoch.
    pub(super) second: u32,
}

impl Document {
    pub(super) fn name(&self) -> Name {
        hash(&format!("{}\n{}", self.session, self.row))
    }
}

/// A digest of a text that is the same in every version of the program: FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Collects documents for a new segment.
#[derive(Debug, Default)]
pub(super) struct Builder {
    sessions: Vec<SessionKey>,
    documents: Vec<(Document, u8)>,
    words: HashMap<Box<str>, Posted>,
    counts: HashMap<String, u32>,
}

/// The postings of one word so far.
#[derive(Debug, Default)]
struct Posted {
    last: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl Builder {
    /// Begins a session. It is in this segment even if it has no documents.
    pub(super) fn begin(&mut self, session: &SessionKey) {
        self.sessions.push(session.clone());
    }

    /// Adds a document of the session that was begun last.
    pub(super) fn add(&mut self, document: Document, text: &str) {
        let number = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        let mut counts = std::mem::take(&mut self.counts);
        let mut length = 0_u32;
        each_word(text, |word| {
            length += 1;
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.to_owned(), 1)),
            }
        });
        if length == 0 {
            self.counts = counts;
            return;
        }
        for (word, count) in counts.drain() {
            let posted = self.words.entry(word.into_boxed_str()).or_default();
            put(&mut posted.bytes, ((number - posted.last) << 4) | count.min(MOST_COUNT));
            posted.last = number;
            posted.count += 1;
        }
        self.counts = counts;
        self.documents.push((document, step_of(length)));
    }

    /// Writes the file as a whole.
    pub(super) fn write(mut self, path: &Path) -> io::Result<()> {
        let words: BTreeMap<Box<str>, Posted> = self.words.drain().collect();
        let (mut records, mut postings) = (Vec::new(), Vec::new());
        let mut places: Vec<u32> = Vec::new();
        for session in &self.sessions {
            places.push(size(&records)?);
            put_text(&mut records, session.as_str());
        }
        let mut session = 0;
        for (document, _) in &self.documents {
            while self.sessions.get(session).is_some_and(|key| *key != document.session) {
                session += 1;
            }
            places.push(size(&records)?);
            put(&mut records, session as u32);
            put(&mut records, document.second);
            put_text(&mut records, &document.row.to_string());
        }
        for (word, posted) in &words {
            places.push(size(&records)?);
            put_text(&mut records, word);
            put(&mut records, size(&postings)?);
            put(&mut records, posted.count);
            put(&mut records, size(&posted.bytes)?);
            postings.extend(&posted.bytes);
        }
        let mut file = BufWriter::new(NewFile::in_directory(&parent_of(path), ".segment")?);
        let numbers = [MAGIC, size(&self.sessions)?, size(&self.documents)?, words.len() as u32];
        numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
        let mut hashes: Vec<u64> = self.sessions.iter().map(|key| hash(key.as_str())).collect();
        hashes.sort_unstable();
        hashes.iter().try_for_each(|hash| file.write_all(&hash.to_le_bytes()))?;
        for (document, _) in &self.documents {
            file.write_all(&document.name().to_le_bytes())?;
        }
        let lengths: Vec<u8> = self.documents.iter().map(|(_, step)| *step).collect();
        file.write_all(&lengths)?;
        places.iter().try_for_each(|place| file.write_all(&place.to_le_bytes()))?;
        for number in [size(&records)?, size(&postings)?] {
            file.write_all(&number.to_le_bytes())?;
        }
        file.write_all(&records)?;
        file.write_all(&postings)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.put_at(path, Durability::Unsynced).map(drop)
    }
}

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    /// The sessions, as hashes in order.
    sessions: Vec<u64>,
    lengths: Vec<u8>,
    average: f32,
    names_at: u64,
    places_at: u64,
    words: u32,
    records_at: u64,
    postings_at: u64,
    end: u64,
}

impl Segment {
    /// # Errors
    /// It cannot be read, or it is damaged.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let end = file.metadata()?.len();
        let numbers = Numbers(read(&file, 0, 16, end)?);
        let (sessions, documents, words) = (numbers.u32(1), numbers.u32(2), numbers.u32(3));
        if numbers.u32(0) != MAGIC || end > MAX_BYTES {
            return Err(damaged());
        }
        let names_at = 16 + u64::from(sessions) * 8;
        let lengths_at = names_at + u64::from(documents) * 8;
        let places_at = lengths_at + u64::from(documents);
        let records = u64::from(sessions) + u64::from(documents) + u64::from(words);
        let sizes_at = places_at + records * 4;
        let hashes = Numbers(read(&file, 16, u64::from(sessions) * 8, end)?);
        let lengths = read(&file, lengths_at, u64::from(documents), end)?;
        let sizes = Numbers(read(&file, sizes_at, 8, end)?);
        let records_at = sizes_at + 8;
        let postings_at = records_at + u64::from(sizes.u32(0));
        if postings_at + u64::from(sizes.u32(1)) != end {
            return Err(damaged());
        }
        let sum: f32 = lengths.iter().map(|step| length_of(*step)).sum();
        let average = (sum / lengths.len().max(1) as f32).max(1.0);
        let sessions = (0..sessions as usize).map(|index| hashes.u64(index)).collect();
        Ok(Self {
            file,
            sessions,
            lengths,
            average,
            names_at,
            places_at,
            words,
            records_at,
            postings_at,
            end,
        })
    }

    pub(super) fn documents(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn has(&self, session: &SessionKey) -> bool {
        self.sessions.binary_search(&hash(session.as_str())).is_ok()
    }

    /// The sessions of this segment, as hashes.
    pub(super) fn session_hashes(&self) -> &[u64] {
        &self.sessions
    }

    /// The names of all documents, in their order.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = Name> + use<>> {
        let bytes = read(&self.file, self.names_at, self.lengths.len() as u64 * 8, self.end)?;
        let numbers = Numbers(bytes);
        Ok((0..self.lengths.len()).map(move |index| numbers.u64(index)))
    }

    pub(super) fn document(&self, number: u32) -> io::Result<Document> {
        let record = self.record(self.sessions.len() as u32 + number)?;
        let mut rest = &record[..];
        let session = take(&mut rest).ok_or_else(damaged)?;
        let second = take(&mut rest).ok_or_else(damaged)?;
        let (row, _) = take_text(rest).ok_or_else(damaged)?;
        let key = self.record(session)?;
        let (key, _) = take_text(&key).ok_or_else(damaged)?;
        // It is a whole key, so its agent is not looked at.
        let session = SessionKey::parse_for_agent("", key).map_err(|_| damaged())?;
        Ok(Document { session, row: EntryId::from_text(row), second })
    }

    /// The documents with `word` and how often they have it.
    pub(super) fn postings(&self, word: &str) -> io::Result<Vec<(u32, u32)>> {
        let words_from = (self.sessions.len() + self.lengths.len()) as u32;
        let (mut low, mut high) = (0, self.words);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.record(words_from + middle)?;
            let (found, rest) = take_text(&record).ok_or_else(damaged)?;
            match found.cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.read_postings(rest),
            }
        }
        Ok(Vec::new())
    }

    fn read_postings(&self, record: &[u8]) -> io::Result<Vec<(u32, u32)>> {
        let mut rest = record;
        let mut number = || take(&mut rest).ok_or_else(damaged);
        let (at, count, bytes) = (number()?, number()?, number()?);
        let bytes = read(&self.file, self.postings_at + u64::from(at), u64::from(bytes), self.end)?;
        let mut rest = &bytes[..];
        let mut document = 0_u32;
        let mut postings = Vec::with_capacity((count as usize).min(self.lengths.len()));
        while let Some(posting) = take(&mut rest) {
            document = document.wrapping_add(posting >> 4);
            if document as usize >= self.lengths.len() {
                return Err(damaged());
            }
            postings.push((document, posting & 15));
        }
        Ok(postings)
    }

    /// How much a document that has a word so often gains from it, without the rarity of the word.
    pub(super) fn gain(&self, document: u32, count: u32) -> f32 {
        let length = self.lengths.get(document as usize).map_or(1.0, |step| length_of(*step));
        let count = count as f32;
        count / (count + K1 * (1.0 - B + B * length / self.average))
    }

    fn record(&self, number: u32) -> io::Result<Vec<u8>> {
        let place = Numbers(read(&self.file, self.places_at + u64::from(number) * 4, 4, self.end)?);
        let at = self.records_at + u64::from(place.u32(0));
        let most = self.postings_at.saturating_sub(at).min(RECORD as u64);
        read(&self.file, at, most, self.end)
    }
}

/// Little-endian numbers.
struct Numbers(Vec<u8>);

impl Numbers {
    fn u32(&self, index: usize) -> u32 {
        let bytes = self.0.get(index * 4..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&self, index: usize) -> u64 {
        let bytes = self.0.get(index * 8..).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

fn read(file: &File, at: u64, length: u64, end: u64) -> io::Result<Vec<u8>> {
    // The file says how long its parts are, and it may be damaged.
    if at.checked_add(length).is_none_or(|last| last > end) {
        return Err(damaged());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| damaged())?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a part of the index is damaged")
}

fn size<T>(list: &[T]) -> io::Result<u32> {
    u32::try_from(list.len()).map_err(|_| io::Error::other("the index is too large"))
}

/// Lengths in steps of an eighth part, so that one byte is enough.
fn step_of(length: u32) -> u8 {
    ((length as f32).log2() * 8.0).round().clamp(0.0, 255.0) as u8
}

fn length_of(step: u8) -> f32 {
    (f32::from(step) / 8.0).exp2()
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..).step_by(7).take(5) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u32);
    bytes.extend(text.as_bytes());
}

fn take_text(mut bytes: &[u8]) -> Option<(&str, &[u8])> {
    let length = take(&mut bytes)? as usize;
    let (text, rest) = bytes.split_at_checked(length)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests;
