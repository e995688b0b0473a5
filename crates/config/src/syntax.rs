//! Explains where and why text is not JSON5.
//!
//! The parser of [`crate::tree`] reports that it failed, but not what it expected. So the tokens up to that point are
//! read again, and the position in the grammar determines the message.

use std::ops::Range;

use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{ParseStringErrorKind, Scanner, ScannerOptions};

use crate::tree::{Fault, MAX_DEPTH, ParseFailure};

/// Why a key such as `my-key` is not accepted.
const KEY_CHARACTERS: &str =
    "a key with other characters than letters, digits, `_` and `$` needs quotes";
const JSON5_FORM: &str =
    "write it as one object, such as `{ agents: { defaults: { model: \"provider/model\" } } }`";
const ONE_OBJECT: &str = "the config is one object, `{ … }`";

/// A mistake in the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyntaxError {
    OpenList,
    OpenObject,
    OpenComment,
    OpenString,
    LineEndInString,
    BadEscape,
    LeadingZero,
    BadNumber,
    ExpectedComma,
    ExpectedColon,
    ExpectedKey,
    ExpectedValue,
    EndBeforeValue,
    TextAfterValue,
    Toml,
    Yaml,
}

impl SyntaxError {
    /// The problem, and what to do about it.
    pub(crate) fn message(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::OpenList => ("this list is not closed", Some("a `]` is missing")),
            Self::OpenObject => ("this object is not closed", Some("a `}` is missing")),
            Self::OpenComment => ("this comment is not closed", Some("a `*/` is missing")),
            Self::OpenString => {
                ("the file ends within a string", Some("the closing quote is missing"))
            }
            Self::LineEndInString => (
                "the line ends within a string",
                Some("the closing quote is missing; a line end is written `\\n`"),
            ),
            Self::BadEscape => {
                ("unknown escape in a string", Some("a backslash itself is written `\\\\`"))
            }
            Self::LeadingZero => ("a number may not begin with 0", None),
            Self::BadNumber => ("malformed number or escape", None),
            Self::ExpectedComma => ("expected a comma", Some("is one missing before this?")),
            Self::ExpectedColon => ("expected a colon between key and value", Some(KEY_CHARACTERS)),
            Self::ExpectedKey => ("expected a key", Some(KEY_CHARACTERS)),
            Self::ExpectedValue => ("expected a value", Some("strings need quotes")),
            Self::EndBeforeValue => ("the file ends where a value is expected", Some(ONE_OBJECT)),
            Self::TextAfterValue => ("expected the end of the file", Some(ONE_OBJECT)),
            Self::Toml => ("this is TOML, and the config is JSON5", Some(JSON5_FORM)),
            Self::Yaml => ("this is YAML, and the config is JSON5", Some(JSON5_FORM)),
        }
    }
}

/// Finds the first mistake in a text that the reader refused.
pub(crate) fn explain(text: &str) -> ParseFailure {
    if let Some(other) = other_format(text) {
        return syntax(other);
    }
    Grammar { text, open: Vec::new(), expected: Expected::Value, number: None }.first_failure()
}

/// Recognises TOML and YAML by their first line that says something.
fn other_format(text: &str) -> Option<(SyntaxError, usize)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_name = |text: &str| {
            let text = text.trim().trim_matches(['"', '\'']);
            let is_name_character =
                |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
            !text.is_empty() && text.chars().all(is_name_character)
        };
        let section = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let is_section = section.is_some_and(|(name, after)| {
            is_name(name.trim_matches(['[', ']'])) && !after.contains(',')
        });
        let key = |mark: &str| line.split_once(mark).is_some_and(|(name, _)| is_name(name));
        let error = if line == "---" || key(": ") || line.strip_suffix(':').is_some_and(is_name) {
            SyntaxError::Yaml
        } else if is_section || key("=") {
            SyntaxError::Toml
        } else {
            return None;
        };
        return Some((error, start));
    }
    None
}

/// Position of a line end in a string written as `literal`, quotes included, that is not escaped.
pub(crate) fn line_end_in_string(literal: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in literal.bytes().enumerate() {
        match byte {
            // A carriage return and a line feed are one escaped line end.
            b'\n' | b'\r' if !escaped && !literal[..at].ends_with("\\\r") => return Some(at),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// What the grammar allows next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Key,
    Colon,
    Value,
    /// After a value: a comma or the end of what is open.
    Comma,
}

/// The position in the grammar after the tokens so far.
struct Grammar<'t> {
    text: &'t str,
    /// The offsets of the open brackets, from the outside in.
    open: Vec<usize>,
    expected: Expected,
    /// The last value, if it is a number.
    number: Option<Range<usize>>,
}

impl Grammar<'_> {
    fn first_failure(mut self) -> ParseFailure {
        let text = self.text;
        let mut scanner = Scanner::new(text, &ScannerOptions::default());
        loop {
            let token = scanner.scan();
            let start = scanner.token_start();
            let is_token =
                !matches!(token, Ok(None | Some(Token::CommentLine(_) | Token::CommentBlock(_))));
            let has_open_comment = matches!(&token, Err(error) if matches!(error.kind(), ParseErrorKind::UnterminatedCommentBlock));
            // Anything after the complete value is wrong.
            let is_done = self.open.is_empty() && self.expected == Expected::Comma;
            if is_done && is_token && !has_open_comment {
                return syntax(
                    self.number_fault(start).unwrap_or((SyntaxError::TextAfterValue, start)),
                );
            }
            let failure = match token {
                Err(error) => Some(self.unreadable(&error, start)),
                Ok(None) => return syntax(self.early_end()),
                Ok(Some(Token::CommentLine(_) | Token::CommentBlock(_))) => None,
                Ok(Some(token)) => self.step(&token, start, scanner.token_end()),
            };
            if let Some(failure) = failure {
                return failure;
            }
        }
    }

    /// Processes one token.
    fn step(&mut self, token: &Token<'_>, start: usize, end: usize) -> Option<ParseFailure> {
        if matches!(token, Token::String(_))
            && let Some(at) = line_end_in_string(&self.text[start..end])
        {
            return Some(syntax((SyntaxError::LineEndInString, start + at)));
        }
        let is_in_object = self.is_within('{');
        let is_in_list = self.is_within('[');
        let is_name = matches!(
            token,
            Token::String(_) | Token::Word(_) | Token::Number(_) | Token::Boolean(_) | Token::Null
        );
        match (self.expected, token) {
            (Expected::Value, Token::OpenBrace | Token::OpenBracket) => {
                if self.open.len() == MAX_DEPTH {
                    return Some(ParseFailure { fault: Fault::TooDeep, offset: start });
                }
                self.open.push(start);
                let is_object = matches!(token, Token::OpenBrace);
                self.expected = if is_object { Expected::Key } else { Expected::Value };
            }
            // A trailing comma is allowed.
            (Expected::Key | Expected::Comma, Token::CloseBrace) if is_in_object => self.close(),
            (Expected::Value | Expected::Comma, Token::CloseBracket) if is_in_list => self.close(),
            (Expected::Value, Token::Word(_)) => {
                return Some(syntax((SyntaxError::ExpectedValue, start)));
            }
            (Expected::Value, token) if is_name => {
                self.number = matches!(token, Token::Number(_)).then_some(start..end);
                self.expected = Expected::Comma;
            }
            (Expected::Key, _) if is_name => self.expected = Expected::Colon,
            (Expected::Colon, Token::Colon) => self.expected = Expected::Value,
            (Expected::Comma, Token::Comma) => {
                self.expected = if is_in_object { Expected::Key } else { Expected::Value };
            }
            _ => return Some(syntax(self.missing(start))),
        }
        None
    }

    fn close(&mut self) {
        self.open.pop();
        self.expected = Expected::Comma;
    }

    /// Whether the innermost open bracket is `bracket`.
    fn is_within(&self, bracket: char) -> bool {
        self.open.last().is_some_and(|open| self.text[*open..].starts_with(bracket))
    }

    /// What was expected at `start`.
    fn missing(&self, start: usize) -> (SyntaxError, usize) {
        let error = match self.expected {
            Expected::Key => SyntaxError::ExpectedKey,
            Expected::Colon => SyntaxError::ExpectedColon,
            Expected::Value => SyntaxError::ExpectedValue,
            Expected::Comma => SyntaxError::ExpectedComma,
        };
        self.number_fault(start).unwrap_or((error, start))
    }

    /// Text directly after a number belongs to it: `012` is read as `0` and `12`, `1.2.3` as `1.2` and `.3`.
    fn number_fault(&self, start: usize) -> Option<(SyntaxError, usize)> {
        let number = self.number.as_ref().filter(|number| number.end == start)?;
        let digits = self.text[number.start..].trim_start_matches(['+', '-']).as_bytes();
        let error = match digits {
            [b'0', b'0'..=b'9', ..] => SyntaxError::LeadingZero,
            _ => SyntaxError::BadNumber,
        };
        Some((error, number.start))
    }

    /// A character that begins no token, or an incomplete token.
    fn unreadable(&self, error: &ParseError, start: usize) -> ParseFailure {
        syntax(match error.kind() {
            ParseErrorKind::UnterminatedCommentBlock => (SyntaxError::OpenComment, start),
            ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
                match line_end_in_string(&self.text[start..]) {
                    Some(at) => (SyntaxError::LineEndInString, start + at),
                    None => (SyntaxError::OpenString, self.end()),
                }
            }
            ParseErrorKind::String(_) => (SyntaxError::BadEscape, error.range().start),
            // A word that is interrupted by a character that keys may not contain.
            ParseErrorKind::UnexpectedToken
                if self.expected == Expected::Key
                    && self.text[start..].starts_with(is_word_character) =>
            {
                let word = self.text[start..].find(|c| !is_word_character(c));
                (SyntaxError::ExpectedColon, word.map_or(start, |length| start + length))
            }
            ParseErrorKind::UnexpectedToken => self.missing(start),
            _ => (SyntaxError::BadNumber, start),
        })
    }

    /// The text ends while a bracket is open.
    fn early_end(&self) -> (SyntaxError, usize) {
        match self.open.last() {
            Some(open) if self.is_within('{') => (SyntaxError::OpenObject, *open),
            Some(open) => (SyntaxError::OpenList, *open),
            None => (SyntaxError::EndBeforeValue, self.end()),
        }
    }

    fn end(&self) -> usize {
        self.text.trim_end().len()
    }
}

/// Whether a key may have this character without quotes.
pub(crate) fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn syntax((error, offset): (SyntaxError, usize)) -> ParseFailure {
    ParseFailure { fault: Fault::Syntax(error), offset }
}
