//! Removes words from files: each letter becomes a star, in its place.
//!
//! Files keep their lengths, so a session log keeps its rows with their ids, its forks, and everything that points into it. A
//! file of JSON stays one: only letters within texts change, never names of fields. Each write can be repeated, so work that
//! was killed half-way is done again from the beginning.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use aho_corasick::{AhoCorasick, MatchKind};
use myclaw_files::portable::{FileExt, O_NOFOLLOW, O_NONBLOCK, OpenOptionsExt};
use myclaw_files::read_regular;

/// Stands for each byte of a word.
const STAR: u8 = b'*';
/// Largest file that is looked at. Logs of sessions are smaller.
const MAX_BYTES: u64 = 1 << 30;
/// How deep directories are walked.
const MAX_DEPTH: usize = 24;
/// Words of fewer characters are in too many others.
const SHORTEST_WORD: usize = 3;
/// From this length on, or with a digit, a word is removed from within longer ones too.
const TELLING_LENGTH: usize = 8;
/// Words that stand in every log. They say nothing about a person.
const STRUCTURE: &str = " user users assistant system tool tools message messages text content role session sessions memory \
                         memory_write memory_search remember remembered forgot fact facts true false null type name model \
                         the and for are with that this from have has had was were not you your yours her his their our its \
                         who what when where which whom whose how why can will would should could does did been being likes \
                         like wants want owner agent called calls call says said asked about into than then them they she \
                         every each other some any all one two use uses used new old der die das und ist mit von für nicht \
                         ich hat eine einen ";

/// Words to remove.
#[derive(Debug)]
pub struct Mask {
    words: Vec<String>,
    patterns: Vec<Pattern>,
    automaton: AhoCorasick,
}

#[derive(Debug)]
struct Pattern {
    /// Only where it is a word of its own.
    is_bounded: bool,
}

/// The words of a fact by which it can be recognised.
pub fn telling_words(fact: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in fact.split_whitespace() {
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric());
        let is_telling = word.chars().count() >= SHORTEST_WORD
            && !STRUCTURE.contains(&format!(" {} ", word.to_lowercase()));
        if is_telling && !words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            words.push(word.to_owned());
        }
    }
    words
}

impl Mask {
    /// Removes these words, whatever their case.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(words: &[String]) -> Result<Self, String> {
        let (mut texts, mut patterns): (Vec<String>, _) = (Vec::new(), Vec::new());
        for word in words.iter().filter(|word| !word.trim().is_empty()) {
            let is_telling = word.chars().count() >= TELLING_LENGTH
                || word.chars().any(|sign| sign.is_numeric() || sign.is_whitespace());
            let mut spellings = vec![word.clone(), word.to_lowercase(), word.to_uppercase()];
            spellings.extend(spellings.clone().iter().flat_map(|text| as_json(text)));
            spellings.sort();
            spellings.dedup();
            for text in spellings {
                patterns.push(Pattern { is_bounded: !is_telling });
                texts.push(text);
            }
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .map_err(|error| error.to_string())?;
        Ok(Self { words: words.to_owned(), patterns, automaton })
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Where the words are in `bytes`.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let found = self.automaton.find_iter(bytes).filter(|found| {
            let is_bounded = self.patterns[found.pattern().as_usize()].is_bounded;
            let place = found.range();
            let is_part = is_within_number(bytes, place.clone())
                || is_bounded && is_within_word(bytes, place.clone());
            !is_part && !is_field_name(bytes, place)
        });
        found.map(|found| found.range()).collect()
    }

    /// Whether one of the words is in `bytes`.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        !self.places(bytes).is_empty()
    }

    /// Removes the words from `bytes`. Whether there were any.
    pub fn apply(&self, bytes: &mut [u8]) -> bool {
        let places = self.places(bytes);
        for place in &places {
            bytes[place.clone()].fill(STAR);
        }
        !places.is_empty()
    }

    /// Removes the words from a file in its place. Whether there were any.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn apply_to_file(&self, path: &Path) -> io::Result<bool> {
        // A sandboxed session can change its side files, so a link is not followed, and what was read is what is written.
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let found = file.metadata()?;
        if !found.is_file() || found.len() > MAX_BYTES {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes)?;
        let places = self.places(&bytes);
        for place in &places {
            file.write_all_at(&vec![STAR; place.len()], place.start as u64)?;
        }
        if !places.is_empty() {
            file.sync_data()?;
        }
        Ok(!places.is_empty())
    }

    /// The regular files below `directory` for which `is_wanted` holds and that have one of the words. No link is followed.
    /// Directories are asked about too.
    pub fn files_with(&self, directory: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.walk(directory, is_wanted, 0, &mut found);
        found.sort();
        found
    }

    fn walk(
        &self,
        directory: &Path,
        is_wanted: &dyn Fn(&Path) -> bool,
        depth: usize,
        found: &mut Vec<PathBuf>,
    ) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten().filter(|entry| is_wanted(&entry.path())) {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < MAX_DEPTH {
                self.walk(&entry.path(), is_wanted, depth + 1, found);
            } else if kind.is_file()
                && read_regular(&entry.path(), MAX_BYTES).is_ok_and(|bytes| self.is_in(&bytes))
            {
                found.push(entry.path());
            }
        }
    }
}

/// The ways in which JSON may write a text with other signs than those of ASCII, or with quotation marks.
fn as_json(text: &str) -> Vec<String> {
    let written = |is_upper: bool| -> String {
        let mut written = String::new();
        for sign in text.chars() {
            match sign {
                '"' | '\\' => written.extend(['\\', sign]),
                ' '..='~' => written.push(sign),
                _ => {
                    for unit in sign.encode_utf16(&mut [0; 2]) {
                        written.push_str(&match is_upper {
                            true => format!("\\u{unit:04X}"),
                            false => format!("\\u{unit:04x}"),
                        });
                    }
                }
            }
        }
        written
    };
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    vec![written(true), written(false), quoted]
}

/// Whether letters or digits touch the word. An escape of JSON before it, such as a line end, is none.
fn is_within_word(bytes: &[u8], place: Range<usize>) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_';
    let before = &bytes[..place.start];
    let is_escape = before.len() >= 2
        && before[before.len() - 2] == b'\\'
        && matches!(before[before.len() - 1], b'n' | b'r' | b't' | b'b' | b'f');
    let after = bytes.get(place.end).is_some_and(is_letter);
    after || !is_escape && before.last().is_some_and(is_letter)
}

/// Whether the word begins or ends within a number: `room 12` is not in `room 123`.
fn is_within_number(bytes: &[u8], place: Range<usize>) -> bool {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let before = place.start.checked_sub(1).is_some_and(is_digit);
    before && is_digit(place.start) || is_digit(place.end - 1) && is_digit(place.end)
}

/// Whether the word is the name of a field of JSON.
fn is_field_name(bytes: &[u8], place: Range<usize>) -> bool {
    bytes[..place.start].ends_with(b"\"") && bytes[place.end..].starts_with(b"\":")
}

#[cfg(test)]
mod tests;
