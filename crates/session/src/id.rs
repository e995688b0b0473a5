//! Ids of entries: short, unique within a file, in the order of writing.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::now_ms;

/// Longest id that is kept as it was written. Enough for a UUID in its usual form, which other writers use.
const MAX_BYTES: usize = 39;
/// How many ids one millisecond can hold before they run ahead of the clock: three base-36 digits.
const TICKS_PER_MS: u64 = 36 * 36 * 36;
/// Base-36 digits of the time part. Twelve digits hold every tick until the year 5188.
const TIME_DIGITS: usize = 12;
/// Base-36 digits of the random part. It separates two processes that write within the same tick.
const RANDOM_DIGITS: usize = 4;
/// Marks an id that is derived from the offset of a line without an id.
const PLACE_MARK: char = '@';
/// Marks an id that replaces one too long to keep.
const LONG_MARK: char = '#';
/// Marks the id of what is kept of a dropped message; the rest is derived from the id of that message.
const REMAINS_MARK: char = '~';

/// Names an entry within its session.
///
/// Generated ids sort by time. Ids that other programs wrote are kept unchanged up to 39 bytes. A longer one is
/// replaced by a short id derived from it, which is the same wherever it is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// Padded with zero bytes, which never occur inside, so that comparing arrays compares texts.
    bytes: [u8; MAX_BYTES],
    length: u8,
}

impl EntryId {
    /// A new id that sorts after every id that this process generated before.
    pub fn generate() -> Self {
        static LAST_TICK: AtomicU64 = AtomicU64::new(0);
        let now = now_ms().saturating_mul(TICKS_PER_MS);
        let after = |last: u64| Some(now.max(last.saturating_add(1)));
        let tick = match LAST_TICK.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after) {
            Ok(last) | Err(last) => now.max(last.saturating_add(1)),
        };
        let random = uuid::Uuid::new_v4().as_u128();
        let time = base36(u128::from(tick), TIME_DIGITS);
        let noise = base36(random, RANDOM_DIGITS);
        Self::from_text(&format!("{time}{noise}"))
    }

    /// The id written as `text`.
    pub fn from_text(text: &str) -> Self {
        if text.is_empty() || text.len() > MAX_BYTES || text.contains('\0') {
            return Self::from_text(&format!(
                "{LONG_MARK}{}",
                base36(fnv1a_128(text.as_bytes()), 25)
            ));
        }
        let mut bytes = [0; MAX_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        // The length fits: a text has at most 39 bytes.
        Self { bytes, length: text.len() as u8 }
    }

    /// The id of a line without an id: its offset in the file, which never changes in a file that only grows.
    pub(crate) fn from_place(offset: u64) -> Self {
        let digits = base36(u128::from(offset), 13);
        Self::from_text(&format!("{PLACE_MARK}{digits}"))
    }

    /// The id of what is kept of the message with this id when a full queue drops it.
    #[must_use]
    pub fn of_remains(self) -> Self {
        Self::from_text(&format!(
            "{REMAINS_MARK}{}",
            base36(fnv1a_128(self.as_str().as_bytes()), 25)
        ))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EntryId({})", self.as_str())
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_text(&String::deserialize(deserializer)?))
    }
}

/// The lowest `digits` base-36 digits of `value`, with leading zeros.
pub(crate) fn base36(mut value: u128, digits: usize) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = vec![b'0'; digits];
    for slot in text.iter_mut().rev() {
        *slot = ALPHABET[(value % 36) as usize];
        value /= 36;
    }
    text.into_iter().map(char::from).collect()
}

/// FNV-1a with 128 bits (the parameters of the algorithm's authors): stable across versions and machines, which the
/// standard library's hasher does not promise. It does not protect against deliberate collisions.
pub(crate) fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests;
