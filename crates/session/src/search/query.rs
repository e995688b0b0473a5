//! The pattern of a search, for the bytes of a line and for the text of a message.

use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex::{Regex, RegexBuilder};

use super::filters::Required;
use super::literals::required_literals;

/// Memory that a compiled pattern may take: the `regex` crate's own default, which is plenty for what a person types.
const PATTERN_BYTES: usize = 10 << 20;

/// Shortest text that says something about a row: indexes of databases have groups of three characters.
const SHORTEST_PIECE: usize = 3;

/// Whether upper and lower case differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Sensitive,
    /// Upper and lower case are the same, in every script.
    Ignored,
}

/// Why a search cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The text or pattern is empty.
    #[error("the text to look for is empty")]
    Empty,
    /// The pattern is not a valid regular expression.
    #[error("not a regular expression: {0}")]
    Pattern(#[from] Box<regex::Error>),
    /// The pattern made from the text is too large.
    #[error("the text to look for is too long: {0}")]
    TooLong(#[from] Box<grep_regex::Error>),
}

/// A text or a pattern to look for.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Matches every line whose message matches, and perhaps others.
    prefilter: RegexMatcher,
    /// Decides whether a message matches.
    pattern: Regex,
    /// What the bytes of each file hold that has a match: all of one of these. Without any, nothing is known.
    required: Vec<Required>,
    /// The same for a database, which is asked for rows.
    pieces: Vec<Vec<String>>,
    /// Whether no text is in every match, so that the prefilter only finds messages.
    is_shapeless: bool,
}

impl SearchQuery {
    /// Searches for `text` literally.
    ///
    /// # Errors
    /// The text is empty or extremely long.
    pub fn text(text: &str, case: Case) -> Result<Self, SearchError> {
        if text.is_empty() {
            return Err(SearchError::Empty);
        }
        let pattern = pattern(&regex::escape(text), case)?;
        let required = Required::any_of(&[text], case);
        Ok(Self {
            prefilter: line_matcher(&as_json(text), case)?,
            pattern,
            required,
            pieces: pieces_of(&[text]),
            is_shapeless: false,
        })
    }

    /// Searches for a regular expression, in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// The expression is empty or invalid, or would take too much memory.
    pub fn regex(expression: &str, case: Case) -> Result<Self, SearchError> {
        if expression.is_empty() {
            return Err(SearchError::Empty);
        }
        let pattern = pattern(expression, case)?;
        // JSON may write a match differently, and the anchors refer to the text, not to the line. So a line is decoded
        // if it contains a text that every match contains; without such texts, if it contains any text.
        let literals = required_literals(expression);
        let is_shapeless = literals.is_none();
        let pieces = literals.as_deref().map(pieces_of).unwrap_or_default();
        let (prefilter, required) = match literals {
            Some(literals) => {
                let written: Vec<String> = literals.iter().map(|text| as_json(text)).collect();
                (line_matcher(&written.join("|"), case)?, Required::any_of(&literals, case))
            }
            None => (line_matcher("\"content\"", Case::Sensitive)?, Vec::new()),
        };
        Ok(Self { prefilter, pattern, required, pieces, is_shapeless })
    }

    /// The first match in the text of a message.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.pattern.find(text).map(|found| found.range())
    }

    /// True if `text`, which is no JSON, matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.pattern.is_match(text)
    }

    /// True if a text in `json` may match.
    pub(crate) fn may_be_in(&self, json: &[u8]) -> bool {
        self.is_shapeless || self.prefilter.is_match(json).unwrap_or(true)
    }

    /// What the bytes of each file hold that has a match: all of one of these. Empty if nothing is known.
    pub(super) fn required(&self) -> &[Required] {
        &self.required
    }

    /// What the row of each message holds that matches: all texts of one of these, with its ASCII letters in lower case, and
    /// with s and k for the two other characters that are the same letters. Empty if nothing is known.
    pub fn pieces(&self) -> &[Vec<String>] {
        &self.pieces
    }

    pub(super) fn prefilter(&self) -> &RegexMatcher {
        &self.prefilter
    }
}

/// The parts of each of `texts` that JSON writes in one way only; none at all if one of the texts has none.
fn pieces_of<T: AsRef<str>>(texts: &[T]) -> Vec<Vec<String>> {
    let is_plain =
        |character: char| matches!(character, ' '..='~') && !matches!(character, '"' | '\\' | '/');
    let parts = |text: &T| {
        let parts = text.as_ref().split(|character| !is_plain(character));
        let long = parts.filter(|part| part.len() >= SHORTEST_PIECE);
        long.map(str::to_ascii_lowercase).collect::<Vec<String>>()
    };
    let all: Vec<Vec<String>> = texts.iter().map(parts).collect();
    if all.iter().any(Vec::is_empty) { Vec::new() } else { all }
}

fn pattern(expression: &str, case: Case) -> Result<Regex, SearchError> {
    RegexBuilder::new(expression)
        .case_insensitive(case == Case::Ignored)
        .multi_line(true)
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| SearchError::Pattern(Box::new(error)))
}

fn line_matcher(expression: &str, case: Case) -> Result<RegexMatcher, SearchError> {
    RegexMatcherBuilder::new()
        .case_insensitive(case == Case::Ignored)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_BYTES)
        .build(expression)
        .map_err(|error| SearchError::TooLong(Box::new(error)))
}

/// An expression for all the ways in which JSON writers write `text` between quotes. For plain text it is the text
/// itself.
fn as_json(text: &str) -> String {
    let mut expression = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        let short = match character {
            '"' => "\\\\\"",
            '\\' => "\\\\\\\\",
            '/' => "\\\\?/",
            '\n' => "\\\\n",
            '\r' => "\\\\r",
            '\t' => "\\\\t",
            '\u{8}' => "\\\\b",
            '\u{c}' => "\\\\f",
            ' '..='~' => {
                expression.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
                continue;
            }
            _ => "",
        };
        let mut units = [0; 2];
        let escapes: String = character
            .encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\\\u(?i:{unit:04x})"))
            .collect();
        let plain =
            if short.is_empty() { regex::escape(&character.to_string()) } else { short.to_owned() };
        expression.push_str(&format!("(?:{plain}|{escapes})"));
    }
    expression
}

#[cfg(test)]
mod tests;
