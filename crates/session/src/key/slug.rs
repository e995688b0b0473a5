//! Keys as file names, and back.
//!
//! A colon becomes two underscores. So that the way back is clear, an underscore before a colon or another underscore
//! becomes a tilde. Then a run of underscores stands for colons, two for each, and an odd last one for itself. A
//! single underscore between other characters, by far the usual case, stays as it is.

use super::HASH_DIGITS;
use crate::id::{base36, fnv1a_128};

/// What a colon becomes.
const SEPARATOR: &str = "__";
/// What an underscore becomes where it could be taken for a separator. No key holds it.
const ESCAPED_UNDERSCORE: char = '~';
/// Before the hash of a shortened slug. Neither a key nor an escape holds it.
const HASH_MARK: char = '=';
/// Longest slug in bytes: a file name has 255, and extensions and names of side files need some.
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

/// Whether the slug ends in a hash instead of the rest of its key.
pub(super) fn is_shortened(slug: &str) -> bool {
    slug.contains(HASH_MARK)
}

/// The key's text that has this slug, if it was not shortened.
pub(super) fn decode(slug: &str) -> Option<String> {
    (!is_shortened(slug)).then(|| slug.replace(SEPARATOR, ":").replace(ESCAPED_UNDERSCORE, "_"))
}
