//! BERT's tokenizer: a text to the numbers of its word pieces.
//!
//! It does what the reference tokenizer does for uncased models: control characters go, Chinese characters stand alone,
//! accents and capitals go, words are split at white space and punctuation, and each word becomes the longest pieces of
//! the vocabulary. The names of special tokens in a text, such as `[SEP]`, are text: what a user writes cannot end a
//! sequence.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use myclaw_files::read_regular;

/// Most bytes of a vocabulary; that of the model has 0.2 MB.
const MAX_VOCABULARY_BYTES: u64 = 8 * 1024 * 1024;
/// A word of more characters is unknown, as for the reference tokenizer.
const MAX_WORD_CHARS: usize = 100;
/// Precedes a piece that does not begin a word.
const CONTINUES: &str = "##";

/// The word pieces of a model, by their number.
#[derive(Debug)]
pub struct Vocabulary {
    numbers: HashMap<Box<str>, i32>,
    unknown: i32,
    begin: i32,
    end: i32,
}

/// A vocabulary that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VocabularyError {
    /// The file cannot be read.
    #[error("the vocabulary {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{} is no vocabulary of BERT: {problem}; put the model's own vocab.txt there", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Vocabulary {
    /// Reads a `vocab.txt`: one piece a line, whose number is the line's, from 0.
    ///
    /// # Errors
    /// [`VocabularyError`].
    pub fn load(path: &Path) -> Result<Self, VocabularyError> {
        let bytes = read_regular(path, MAX_VOCABULARY_BYTES)
            .map_err(|source| VocabularyError::Unreadable { path: path.to_owned(), source })?;
        let malformed =
            |problem: String| VocabularyError::Malformed { path: path.to_owned(), problem };
        if bytes.len() as u64 == MAX_VOCABULARY_BYTES {
            return Err(malformed(format!("it is longer than {MAX_VOCABULARY_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8".to_owned()))?;
        let numbers: HashMap<Box<str>, i32> =
            text.lines().map(str::trim_end).map(Box::from).zip(0..).collect();
        let number = |piece: &str| {
            let number = numbers.get(piece).copied();
            number.ok_or_else(|| malformed(format!("it has no line {piece}")))
        };
        let (unknown, begin, end) = (number("[UNK]")?, number("[CLS]")?, number("[SEP]")?);
        Ok(Self { numbers, unknown, begin, end })
    }

    /// The numbers of a text between the marks of begin and end: at most `most`, and the two marks at least.
    pub fn encode(&self, text: &str, most: usize) -> Vec<i32> {
        let mut numbers = vec![self.begin];
        let room = most.saturating_sub(2);
        let mut pieces = Vec::new();
        for word in Words::of(text) {
            if numbers.len() > room {
                break;
            }
            self.split(&word, &mut pieces);
            numbers.append(&mut pieces);
        }
        numbers.truncate(room + 1);
        numbers.push(self.end);
        numbers
    }

    /// Splits a word into the longest pieces that the vocabulary has, from its beginning. If a rest has none, the whole
    /// word is unknown.
    fn split(&self, word: &str, pieces: &mut Vec<i32>) {
        if word.chars().count() > MAX_WORD_CHARS {
            pieces.push(self.unknown);
            return;
        }
        let mut rest = word;
        let mut candidate = String::new();
        while !rest.is_empty() {
            let is_first = rest.len() == word.len();
            let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8()).rev();
            let longest = ends.map(|end| &rest[..end]).find_map(|piece| {
                candidate.clear();
                candidate.push_str(if is_first { "" } else { CONTINUES });
                candidate.push_str(piece);
                Some((piece.len(), *self.numbers.get(candidate.as_str())?))
            });
            let Some((length, number)) = longest else {
                pieces.clear();
                pieces.push(self.unknown);
                return;
            };
            pieces.push(number);
            rest = &rest[length..];
        }
    }
}

/// The words of a text, in the form in which the vocabulary has them.
struct Words<I> {
    chars: I,
    /// A character that ended the word before and is a word itself.
    alone: Option<char>,
}

impl Words<()> {
    fn of(text: &str) -> Words<impl Iterator<Item = char>> {
        let categories = CodePointMapData::<GeneralCategory>::new();
        let kept = text.chars().filter(move |&char| {
            let is_control = matches!(
                categories.get(char),
                GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
            );
            char != '\u{fffd}' && (!is_control || matches!(char, '\t' | '\n' | '\r'))
        });
        let plain = DecomposingNormalizerBorrowed::new_nfd()
            .normalize_iter(kept)
            .filter(move |&char| categories.get(char) != GeneralCategory::NonspacingMark)
            .flat_map(char::to_lowercase);
        Words { chars: plain, alone: None }
    }
}

impl<I: Iterator<Item = char>> Iterator for Words<I> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if let Some(char) = self.alone.take() {
            return Some(char.into());
        }
        let mut word = String::new();
        for char in self.chars.by_ref() {
            if char.is_whitespace() {
                if !word.is_empty() {
                    break;
                }
            } else if is_punctuation(char) || is_chinese(char) {
                if word.is_empty() {
                    return Some(char.into());
                }
                self.alone = Some(char);
                break;
            } else {
                word.push(char);
            }
        }
        Some(word).filter(|word| !word.is_empty())
    }
}

/// Unicode's punctuation, and all signs of ASCII.
fn is_punctuation(char: char) -> bool {
    char.is_ascii_punctuation()
        || !char.is_ascii()
            && GeneralCategoryGroup::Punctuation
                .contains(CodePointMapData::<GeneralCategory>::new().get(char))
}

/// The blocks of CJK ideographs that the reference tokenizer separates. Hangul and kana are not among them.
fn is_chinese(char: char) -> bool {
    matches!(
        u32::from(char),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}

#[cfg(test)]
mod tests;
