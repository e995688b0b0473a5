//! What a program that searches again and again remembers of the logs: by which of them a text cannot be in.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::files::{SearchedFile, files_to_search};
use super::{Case, SearchQuery, SearchScope};
use crate::SessionStore;
use crate::error::SessionError;

/// Most memory of all filters. The logs that it does not suffice for are read in every search.
const MOST_FILTER_BYTES: usize = 16 << 20;
/// Bits of the smallest and of the largest filter.
const FILTER_BITS: (usize, usize) = (1 << 11, 1 << 17);
/// A filter has a bit for so many bytes of its log. In that of a usual session a third of the bits are set.
const BYTES_PER_BIT: usize = 2;
/// A list of the directory that is younger than its last change by less may lack files: clocks of file systems are coarse.
const SETTLED: Duration = Duration::from_millis(100);
/// Characters outside ASCII that are the same as `s` and `k` if case is ignored. A log with one has no filter.
const LIKE_ASCII: [&str; 2] = ["\u{17f}", "\u{212a}"];

/// What earlier searches have learned of a directory. Each search looks whether it still holds: the state of every log is
/// compared, by its number, length and time of change. Its memory has a limit.
#[derive(Debug, Default)]
pub struct SearchFilters {
    listing: Mutex<Option<Listing>>,
    learned: RwLock<Learned>,
}

#[derive(Debug)]
struct Listing {
    /// The state of the directory before it was listed.
    stamp: LogStamp,
    files: Arc<Vec<SearchedFile>>,
}

#[derive(Debug, Default)]
struct Learned {
    /// By the log's inode.
    filters: HashMap<u64, Filter>,
    bytes: usize,
}

/// A state of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogStamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl From<&Metadata> for LogStamp {
    fn from(found: &Metadata) -> Self {
        let changed = (found.ctime(), found.ctime_nsec());
        Self { inode: found.ino(), length: found.len(), changed }
    }
}

impl LogStamp {
    /// Whether the file was last changed a while before now, so that another change has another time.
    fn is_settled(self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let changed = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX))
            .saturating_add(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        changed.saturating_add(SETTLED) < now
    }
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

    fn forget_all_but(&self, files: &[SearchedFile]) {
        let mut learned = self.learned.write();
        if learned.filters.is_empty() {
            return;
        }
        let there: HashSet<u64> = files.iter().map(|file| file.inode).collect();
        learned.filters.retain(|inode, _| there.contains(inode));
        learned.bytes = learned.filters.values().map(Filter::bytes).sum();
    }

    /// True if no message in the log at `path` can match.
    pub(super) fn rules_out(&self, path: &Path, inode: u64, query: &SearchQuery) -> bool {
        if query.required().is_empty() {
            return false;
        }
        let learned = self.learned.read();
        let Some(filter) = learned.filters.get(&inode) else { return false };
        !query.required().iter().any(|required| filter.may_hold(required))
            && std::fs::symlink_metadata(path)
                .is_ok_and(|found| LogStamp::from(&found) == filter.stamp)
    }

    /// Remembers what `content` holds, which is all that the log with this state has.
    pub(super) fn learn(&self, inode: u64, stamp: LogStamp, content: &[u8]) {
        let is_there = |text: &&str| memchr::memmem::find(content, text.as_bytes()).is_some();
        if stamp.inode != inode
            || stamp.length != content.len() as u64
            || LIKE_ASCII.iter().any(is_there)
        {
            return;
        }
        let filter = Filter::of(stamp, content);
        let mut learned = self.learned.write();
        let before = learned.filters.get(&inode).map_or(0, Filter::bytes);
        if learned.bytes - before + filter.bytes() <= MOST_FILTER_BYTES {
            learned.bytes = learned.bytes - before + filter.bytes();
            learned.filters.insert(inode, filter);
        }
    }
}

/// Says of three bytes whether a log may hold them in this order, or surely does not. ASCII letters are small.
#[derive(Debug)]
struct Filter {
    stamp: LogStamp,
    /// Whether some characters outside ASCII are written as `\uXXXX`.
    is_escaped: bool,
    /// The bit of three bytes is set if they occur; others may have the same bit.
    bits: Box<[u64]>,
}

impl Filter {
    fn of(stamp: LogStamp, content: &[u8]) -> Self {
        let (least, most) = FILTER_BITS;
        let count = (content.len() / BYTES_PER_BIT).next_power_of_two().clamp(least, most);
        let mut bits = vec![0_u64; count / 64].into_boxed_slice();
        let mut last = 0;
        for byte in content {
            last = next(last, *byte);
            let place = place(last, count);
            bits[place / 64] |= 1 << (place % 64);
        }
        let is_escaped = memchr::memmem::find_iter(content, b"\\u").any(|at| {
            // Control characters are always escaped.
            !content[at + 2..].starts_with(b"000") && !content[at + 2..].starts_with(b"001")
        });
        Self { stamp, is_escaped, bits }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.bits) + size_of::<Self>()
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
