//! What a program that searches again and again remembers of the logs: by which of them a text cannot be in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::files::{SearchedFile, files_to_search};
use super::stamp::LogStamp;
use super::{Case, Said, SearchQuery, SearchScope};
use crate::error::SessionError;
use crate::line::{self, Line};
use crate::{Entry, EntryId, Role, SessionStore, TranscriptMessage};

/// Most memory of all filters. The logs that it does not suffice for are read in every search.
const MOST_FILTER_BYTES: usize = 16 << 20;
/// Most bytes of logs that are read to prepare for searches.
const MOST_PREPARED_BYTES: u64 = 64 << 20;
/// Longest log whose messages may be kept, and most bytes that they take: as many as those of a filter of a short log.
const MOST_KEPT_LOG: usize = 8 << 10;
const MOST_KEPT_MESSAGES: usize = 1 << 10;
/// Bits of the smallest and of the largest filter.
const FILTER_BITS: (usize, usize) = (1 << 11, 1 << 17);
/// A filter has a bit for so many bytes of its log. In that of a usual session a third of the bits are set.
const BYTES_PER_BIT: usize = 2;
/// How the first line of a log begins, which no search looks at.
const HEADER: &[u8] = b"{\"type\":\"session\",";
/// Characters outside ASCII that are the same as `s` and `k` if case is ignored. A log with one has no filter.
const LIKE_ASCII: [&str; 2] = ["\u{17f}", "\u{212a}"];

/// What earlier searches have learned of a directory. Each search looks whether it still holds: the state of every log is
/// compared, by its number, length and time of change. Its memory has a limit.
#[derive(Debug, Default)]
pub struct SearchFilters {
    listing: Mutex<Option<Listing>>,
    /// By the log's inode.
    learned: RwLock<HashMap<u64, Filter>>,
    /// Their memory, with that of filters which searches are about to add.
    bytes: AtomicUsize,
}

#[derive(Debug)]
struct Listing {
    /// The state of the directory before it was listed.
    stamp: LogStamp,
    files: Arc<Vec<SearchedFile>>,
}

impl SearchFilters {
    /// The files of all sessions. The directory is listed again only if it has changed.
    pub(super) fn files(
        &self,
        store: &SessionStore,
    ) -> Result<Arc<Vec<SearchedFile>>, SessionError> {
        let mut listing = self.listing.lock();
        let stamp = std::fs::metadata(store.directory()).ok().map(|found| LogStamp::from(&found));
        if let (Some(known), Some(stamp)) = (&*listing, stamp)
            && known.stamp == stamp
        {
            return Ok(Arc::clone(&known.files));
        }
        let stamp = stamp.filter(|stamp| stamp.is_settled());
        let files = Arc::new(files_to_search(store, &SearchScope::default())?);
        *listing = stamp.map(|stamp| Listing { stamp, files: Arc::clone(&files) });
        self.forget_all_but(&files);
        Ok(files)
    }

    /// Learns what the logs hold that nothing is known of yet, before somebody searches. Reads 64 MiB at most; what is left
    /// is learned by searches.
    pub(super) fn prepare(&self, store: &SessionStore) -> Result<(), SessionError> {
        let (mut buffer, mut learned, mut left) = (Vec::new(), Vec::new(), MOST_PREPARED_BYTES);
        for file in self.files(store)?.iter() {
            let is_known =
                |stamp| self.learned.read().get(&file.inode).is_some_and(|it| it.stamp == stamp);
            let Ok(stamp) = file.stamp() else { continue };
            if is_known(stamp) {
                continue;
            }
            if stamp.length() > left || self.bytes.load(Ordering::Relaxed) >= MOST_FILTER_BYTES {
                break;
            }
            left -= stamp.length();
            // A file that cannot be read is in the report of the first search.
            let _ = file.learn(self, &mut buffer, &mut learned);
        }
        self.add(learned);
        Ok(())
    }

    fn forget_all_but(&self, files: &[SearchedFile]) {
        let mut learned = self.learned.write();
        if learned.is_empty() {
            return;
        }
        let there: HashSet<u64> = files.iter().map(|file| file.inode).collect();
        learned.retain(|inode, _| there.contains(inode));
        self.count(&learned);
    }

    fn count(&self, learned: &HashMap<u64, Filter>) {
        self.bytes.store(learned.values().map(Filter::bytes).sum(), Ordering::Relaxed);
    }

    /// True if nothing of the log needs to be read: no message in it can match, or all of them are known, of which each is
    /// passed to `look`.
    pub(super) fn answers_for(
        &self,
        file: &SearchedFile,
        query: &SearchQuery,
        mut look: impl FnMut(Said<'_>),
    ) -> bool {
        let learned = self.learned.read();
        let Some(filter) = learned.get(&file.inode) else { return false };
        let is_current = || file.stamp().is_ok_and(|stamp| stamp == filter.stamp);
        match &filter.known {
            Known::Bits(bits) => !bits.may_match(query) && is_current(),
            Known::Messages(_) if !is_current() => false,
            Known::Messages(messages) => {
                messages.iter().for_each(|message| look(message.into()));
                true
            }
        }
    }

    /// Learns what `content` holds, which is all that the log with this state has, and puts that into `learned`, for
    /// [`SearchFilters::add`]. False if no message in it can match `query`.
    pub(super) fn learn(
        &self,
        (inode, stamp, content): (u64, LogStamp, &[u8]),
        query: Option<&SearchQuery>,
        learned: &mut Vec<(u64, Filter)>,
    ) -> bool {
        let is_known = |filter: &Filter| filter.stamp == stamp;
        if stamp.inode != inode
            || stamp.length != content.len() as u64
            // Its filter was asked before the log was read.
            || self.learned.read().get(&inode).is_some_and(is_known)
        {
            return true;
        }
        let Some(filter) = Filter::of(stamp, content) else { return true };
        let may_match = query.is_none_or(|query| match &filter.known {
            Known::Bits(bits) => bits.may_match(query),
            Known::Messages(messages) => !messages.is_empty(),
        });
        let before = self.learned.read().get(&inode).map_or(0, Filter::bytes);
        let more = filter.bytes().saturating_sub(before);
        if self.bytes.fetch_add(more, Ordering::Relaxed) + more <= MOST_FILTER_BYTES {
            learned.push((inode, filter));
        } else {
            self.bytes.fetch_sub(more, Ordering::Relaxed);
        }
        may_match
    }

    /// Remembers what was learned.
    pub(super) fn add(&self, new: Vec<(u64, Filter)>) {
        if new.is_empty() {
            return;
        }
        let mut learned = self.learned.write();
        learned.extend(new);
        self.count(&learned);
    }
}

/// Whether the content has one of [`LIKE_ASCII`].
fn has_like_ascii(content: &[u8]) -> bool {
    let [one, other] = LIKE_ASCII.map(|text| text.as_bytes());
    memchr::memchr2_iter(one[0], other[0], content)
        .any(|at| content[at..].starts_with(one) || content[at..].starts_with(other))
}

/// What is known of a log in some state.
#[derive(Debug)]
pub(super) struct Filter {
    stamp: LogStamp,
    known: Known,
}

#[derive(Debug)]
enum Known {
    /// All messages of a short log: most sessions are short, and opening a file costs more than searching its text.
    Messages(Box<[KeptMessage]>),
    /// What a longer one may hold.
    Bits(Bits),
}

#[derive(Debug)]
struct KeptMessage {
    id: EntryId,
    role: Role,
    ts: u64,
    text: Box<str>,
}

impl<'m> From<&'m KeptMessage> for Said<'m> {
    fn from(KeptMessage { id, role, ts, text }: &'m KeptMessage) -> Self {
        Self { id: *id, role: *role, ts: *ts, text }
    }
}

/// Says of three bytes whether a log may hold them in this order, or surely does not. ASCII letters are small.
#[derive(Debug)]
struct Bits {
    /// Whether some characters outside ASCII are written as `\uXXXX`.
    is_escaped: bool,
    /// The bit of three bytes is set if they occur; others may have the same bit.
    bits: Box<[u64]>,
}

impl Filter {
    /// `None` if nothing can be said of the log.
    fn of(stamp: LogStamp, content: &[u8]) -> Option<Self> {
        let known = kept_messages(content).map(Known::Messages);
        let bits = || (!has_like_ascii(content)).then(|| Known::Bits(Bits::of(content)));
        Some(Self { stamp, known: known.or_else(bits)? })
    }

    fn bytes(&self) -> usize {
        let known = match &self.known {
            Known::Messages(messages) => {
                size_of_val(&**messages) + messages.iter().map(|it| it.text.len()).sum::<usize>()
            }
            Known::Bits(bits) => size_of_val(&*bits.bits),
        };
        known + size_of::<Self>()
    }
}

/// The messages of a log; `None` if they take more than is kept.
fn kept_messages(content: &[u8]) -> Option<Box<[KeptMessage]>> {
    if content.len() > MOST_KEPT_LOG {
        return None;
    }
    let (mut kept, mut bytes, mut offset) = (Vec::new(), 0, 0);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if let Line::Entry(Entry::Message(message)) = line::decode(line, offset) {
            let TranscriptMessage { id, role, ts, content, .. } = message;
            bytes += size_of::<KeptMessage>() + content.len();
            if bytes > MOST_KEPT_MESSAGES {
                return None;
            }
            kept.push(KeptMessage { id, role, ts, text: content.into_boxed_str() });
        }
        offset += line.len() as u64;
    }
    Some(kept.into_boxed_slice())
}

impl Bits {
    fn of(content: &[u8]) -> Self {
        let (least, most) = FILTER_BITS;
        let count = (content.len() / BYTES_PER_BIT).next_power_of_two().clamp(least, most);
        let mut bits = vec![0_u64; count / 64].into_boxed_slice();
        let mut last = 0;
        for byte in without_header(content) {
            last = next(last, *byte);
            let place = place(last, count);
            bits[place / 64] |= 1 << (place % 64);
        }
        let is_escaped = memchr::memchr_iter(b'\\', content).any(|at| {
            let escape = content[at + 1..].strip_prefix(b"u");
            // Control characters are always escaped.
            escape.is_some_and(|code| !code.starts_with(b"000") && !code.starts_with(b"001"))
        });
        Self { is_escaped, bits }
    }

    fn may_match(&self, query: &SearchQuery) -> bool {
        let required = query.required();
        required.is_empty() || required.iter().any(|required| self.may_hold(required))
    }

    fn may_hold(&self, required: &Required) -> bool {
        let count = self.bits.len() * 64;
        let holds = |three: &u32| {
            let place = place(*three, count);
            self.bits[place / 64] & (1 << (place % 64)) != 0
        };
        required.ascii.iter().all(holds) && (self.is_escaped || required.other.iter().all(holds))
    }
}

/// The lines of a log that may be messages.
fn without_header(content: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', content) {
        Some(end) if content.starts_with(HEADER) => &content[end..],
        _ => content,
    }
}

/// The last three bytes after one more.
fn next(last: u32, byte: u8) -> u32 {
    (last << 8 | u32::from(byte.to_ascii_lowercase())) & 0xff_ffff
}

/// The bit of three bytes in a filter of `count` bits, a power of two.
fn place(three: u32, count: usize) -> usize {
    // Fibonacci hashing: the upper bits of the product with the golden ratio.
    (three.wrapping_mul(0x9e37_79b1) >> (32 - count.trailing_zeros())) as usize
}

/// Triples of bytes that occur in every log with a match.
#[derive(Debug, Clone, Default)]
pub(super) struct Required {
    /// Those of ASCII characters that JSON writes in one way only.
    ascii: Vec<u32>,
    /// Those with other characters, which occur unless the log has escapes.
    other: Vec<u32>,
}

impl Required {
    /// One for each of `texts`; none at all if anything can be said of one of them only.
    pub(super) fn any_of<T: AsRef<str>>(texts: &[T], case: Case) -> Vec<Self> {
        let all: Vec<Self> = texts.iter().map(|text| Self::of(text.as_ref(), case)).collect();
        let is_useless = |required: &Self| required.ascii.is_empty() && required.other.is_empty();
        if all.iter().any(is_useless) { Vec::new() } else { all }
    }

    fn of(text: &str, case: Case) -> Self {
        let mut required = Self::default();
        let mut run: Vec<u8> = Vec::new();
        for character in text.chars() {
            if !is_written_in_one_way(character, case) {
                run.clear();
                continue;
            }
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                run.push(byte);
                let Some(three) = run.last_chunk::<3>() else { continue };
                let number = three.iter().fold(0, |last, byte| next(last, *byte));
                match three.is_ascii() {
                    true => required.ascii.push(number),
                    false => required.other.push(number),
                }
            }
        }
        required
    }
}

/// Whether a log that has this character, and no escapes outside ASCII, has its bytes; ASCII letters in any case.
fn is_written_in_one_way(character: char, case: Case) -> bool {
    match character {
        '"' | '\\' | '/' => false,
        ' '..='~' => true,
        _ if character.is_ascii() => false,
        _ => case == Case::Sensitive || !has_other_case(character),
    }
}

fn has_other_case(character: char) -> bool {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    let folded = class.try_case_fold_simple();
    folded.is_err() || class.ranges().len() != 1 || class.ranges()[0].len() != 1
}

#[cfg(test)]
mod tests;
