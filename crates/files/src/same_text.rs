//! When two texts are the same for a person: the same characters, composed or decomposed, and plain characters for
//! typographic ones.

use std::borrow::Cow;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// Most entries of a directory that are compared with a name.
const MAX_ENTRIES_COMPARED: usize = 10_000;

/// What two texts may differ in and still be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// How a character is composed: "é" is one code point, or "e" with an accent after it.
    Composition,
    /// Also quotes, dashes, ellipses and kinds of spaces, and characters that nobody sees.
    Typography,
}

/// `text` with every character composed (NFC).
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// The form in which texts are compared: two texts are the same if their forms are.
pub fn folded(text: &str, sameness: Sameness) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    match sameness {
        Sameness::Composition => decomposed,
        Sameness::Typography => {
            let mut plain = String::with_capacity(decomposed.len());
            decomposed.chars().for_each(|char| push_plain(char, &mut plain));
            Cow::Owned(plain)
        }
    }
}

/// The plain characters that models and keyboards write for a typographic one; nothing for an invisible one.
fn push_plain(char: char, plain: &mut String) {
    match char {
        '\u{2026}' => plain.push_str("..."),
        _ if is_invisible(char) => {}
        _ if char.is_ascii() => plain.push(char),
        _ => plain.push(*spellings(char).first().unwrap_or(&char)),
    }
}

/// The characters, the plain one first, that [`Sameness::Typography`] takes for the same as this one.
pub fn spellings(char: char) -> &'static [char] {
    const SINGLE: &[char] = &['\'', '\u{2018}', '\u{2019}', '\u{201A}', '\u{201B}', '\u{2032}'];
    const DOUBLE: &[char] = &['"', '\u{201C}', '\u{201D}', '\u{201E}', '\u{201F}', '\u{2033}'];
    const DASH: &[char] =
        &['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'];
    const SPACE: &[char] = &[
        ' ', '\u{00A0}', '\u{2000}', '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}',
        '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200A}', '\u{202F}', '\u{205F}',
        '\u{3000}',
    ];
    [SINGLE, DOUBLE, DASH, SPACE].into_iter().find(|all| all.contains(&char)).unwrap_or_default()
}

/// Characters without a picture of their own: marks of direction, joiners, and selectors of variants.
pub fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
    )
}

/// Whether `char` belongs to the character before it.
fn extends(char: char, sameness: Sameness) -> bool {
    char >= '\u{AD}'
        && (CanonicalCombiningClassMapBorrowed::new().get_u8(char) != 0
            || matches!(char, '\u{1160}'..='\u{11FF}')
            || sameness == Sameness::Typography && is_invisible(char))
}

/// The characters of `text` as a person counts them: each code point with those that belong to it.
pub fn characters(text: &str, sameness: Sameness) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest.char_indices();
        chars.next()?;
        let end =
            chars.find(|(_, char)| !extends(*char, sameness)).map_or(rest.len(), |(at, _)| at);
        let (character, others) = rest.split_at(end);
        rest = others;
        Some(character)
    })
}

/// A text in the form in which it is compared, and where each part of it comes from.
#[derive(Debug)]
pub struct Folded<'t> {
    original: &'t str,
    sameness: Sameness,
    text: Cow<'t, str>,
    /// The parts that differ, in order: where each is in the form, and in the text.
    changed: Vec<(Range<usize>, Range<usize>)>,
}

impl<'t> Folded<'t> {
    /// `joins_endings` also makes a newline of every `\r\n`.
    pub fn new(original: &'t str, sameness: Sameness, joins_endings: bool) -> Self {
        let joins_endings = joins_endings && original.contains("\r\n");
        if original.is_ascii() && !joins_endings {
            let text = Cow::Borrowed(original);
            return Self { original, sameness, text, changed: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut changed = Vec::new();
        let mut at = 0;
        for character in characters(original, sameness) {
            let (from, start) = (text.len(), at);
            at += character.len();
            if joins_endings && character == "\r" && original[at..].starts_with('\n') {
                changed.push((from..from, start..at));
                continue;
            }
            text.push_str(&folded(character, sameness));
            if text[from..] != *character {
                changed.push((from..text.len(), start..at));
            }
        }
        Self { original, sameness, text: Cow::Owned(text), changed }
    }

    /// The form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The part of the original that became `range` of the form; `None` if it would begin or end inside a character.
    pub fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        Some(self.offset(range.start)?..self.offset(range.end)?)
    }

    fn offset(&self, at: usize) -> Option<usize> {
        // The return of an ending, which became nothing, belongs to the newline after it.
        let is_before = |folded: &Range<usize>| folded.end < at + usize::from(!folded.is_empty());
        let before = self.changed.partition_point(|(folded, _)| is_before(folded));
        if self.changed.get(before).is_some_and(|(folded, _)| folded.start < at && at < folded.end)
        {
            return None;
        }
        let offset = match before.checked_sub(1).map(|last| &self.changed[last]) {
            Some((folded, original)) => original.end + (at - folded.end),
            None => at,
        };
        let next = self.original.get(offset..)?.chars().next();
        let is_inside = offset > 0 && next.is_some_and(|char| extends(char, self.sameness));
        (!is_inside).then_some(offset)
    }
}

/// The path that exists under another spelling of the same names; `None` if each name is there as written, if one is
/// missing in every spelling, or if several entries have the same name.
pub fn respelled(path: &Path, sameness: Sameness) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    let mut is_other = false;
    for part in path.components() {
        let next = found.join(part);
        found = match part {
            Component::Normal(name) if next.symlink_metadata().is_err() => {
                is_other = true;
                found.join(entry_like(&found, name.to_str()?, sameness)?)
            }
            _ => next,
        };
    }
    is_other.then_some(found)
}

fn entry_like(directory: &Path, name: &str, sameness: Sameness) -> Option<PathBuf> {
    let may_differ = |char: char| {
        !char.is_ascii()
            || sameness == Sameness::Typography && (char == '.' || !spellings(char).is_empty())
    };
    if !name.chars().any(may_differ) {
        return None;
    }
    let wanted = folded(name, sameness);
    let mut same = fs::read_dir(directory)
        .ok()?
        .take(MAX_ENTRIES_COMPARED)
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|entry| folded(entry, sameness) == wanted);
    let only = same.next()?;
    same.next().is_none().then(|| PathBuf::from(only))
}

#[cfg(test)]
mod tests;
