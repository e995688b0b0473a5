//! Keys as file names, and back.
//!
//! A colon becomes two underscores. To keep this reversible, an underscore before a colon or another underscore becomes
//! a tilde. A run of underscores then means colons, two for each, and an odd last one means itself. A single underscore
//! between other characters, by far the usual case, stays unchanged.

use super::HASH_DIGITS;
use crate::id::{base36, fnv1a_128};

/// Replaces a colon.
const SEPARATOR: &str = "__";
/// Replaces an underscore that could be taken for a separator. It occurs in no key.
const ESCAPED_UNDERSCORE: char = '~';
/// Precedes the hash of a shortened slug. It occurs in no key and no escape.
const HASH_MARK: char = '=';
/// Longest slug in bytes. A file name may have 255, and extensions and names of side files need some of them.
const MAX_SLUG_BYTES: usize = 200;

/// The slug of a canonical key.
pub(super) fn encode(key: &str) -> String {
    let mut slug = String::with_capacity(key.len() + 16);
    let mut characters = key.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            (':', _) => slug.push_str(SEPARATOR),
            ('_', Some(':' | '_')) => slug.push(ESCAPED_UNDERSCORE),
            (other, _) => slug.push(other),
        }
    }
    if slug.len() > MAX_SLUG_BYTES { shorten(&slug, key) } else { slug }
}

fn shorten(slug: &str, key: &str) -> String {
    let kept = slug.floor_char_boundary(MAX_SLUG_BYTES - HASH_DIGITS - HASH_MARK.len_utf8());
    let hash = base36(fnv1a_128(key.as_bytes()), HASH_DIGITS);
    format!("{}{HASH_MARK}{hash}", &slug[..kept])
}

/// True if the slug ends in a hash instead of the end of its key.
pub(super) fn is_shortened(slug: &str) -> bool {
    slug.contains(HASH_MARK)
}

/// The text of the key with this slug, if it was not shortened.
pub(super) fn decode(slug: &str) -> Option<String> {
    (!is_shortened(slug)).then(|| slug.replace(SEPARATOR, ":").replace(ESCAPED_UNDERSCORE, "_"))
}
