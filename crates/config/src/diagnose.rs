//! Turns what went wrong while loading into a report with places.

use std::path::Path;

use json5::ErrorCode;
use serde_json::Value;

use crate::config_path::ConfigPath;
use crate::load::MAX_ISSUES;
use crate::locate::{Located, Target};
use crate::lookup::SubstitutionLookup;
use crate::substitute::MissingVariable;
use crate::tree::{Fault, MAX_DEPTH, ParseFailure};
use crate::validate::{Finding, validate};
use crate::{ConfigError, Paths, Report, json_schema};

/// Why a key such as `my-key` is not read.
const KEY_CHARACTERS: &str =
    "a key with other characters than letters, digits, `_` and `$` needs quotes";

/// The text is no tree.
pub(crate) fn syntax(file: &Path, text: &str, failure: ParseFailure) -> ConfigError {
    let mut report = Report::new(file, text);
    let offset = offset_of_failure(text, failure);
    let span = Some(offset..offset + text[offset..].chars().next().map_or(0, char::len_utf8));
    match failure.fault {
        Fault::Syntax(_) if text.trim().is_empty() => {
            report.push(
                ConfigPath::default(),
                "the file is empty".to_owned(),
                Some("settings are one object, `{ … }`".to_owned()),
                span,
            );
        }
        Fault::Syntax(code) => {
            let (message, help) = explain(code);
            report.push(ConfigPath::default(), message.to_owned(), help.map(str::to_owned), span);
        }
        Fault::TooDeep => {
            let message = format!("nested deeper than {MAX_DEPTH} objects and lists");
            report.push(ConfigPath::default(), message, None, span);
        }
        Fault::NotFinite => {
            let path = Located::new(text).path_at(offset).unwrap_or_default();
            report.push(path, "expected a finite number".to_owned(), None, span);
        }
        Fault::DuplicateKey => push_duplicates(&mut report, text, span),
    }
    ConfigError::Syntax(Box::new(report))
}

fn push_duplicates(report: &mut Report, text: &str, object: Option<std::ops::Range<usize>>) {
    let duplicates = Located::new(text).duplicate_keys(MAX_ISSUES);
    if duplicates.is_empty() {
        report.push(
            ConfigPath::default(),
            "a key stands twice in this object".to_owned(),
            None,
            object,
        );
    }
    for duplicate in duplicates {
        let line = text[..duplicate.first.start].matches('\n').count() + 1;
        let help = format!("it stands on line {line} already; keep one of the two");
        report.push(
            duplicate.path,
            "this key stands twice".to_owned(),
            Some(help),
            Some(duplicate.span),
        );
    }
}

/// What a syntax error means, and what to do about it.
fn explain(code: Option<ErrorCode>) -> (&'static str, Option<&'static str>) {
    let Some(code) = code else {
        return ("malformed number or escape", None);
    };
    match code {
        ErrorCode::EofParsingArray => ("this list is not closed", Some("a `]` is missing")),
        ErrorCode::EofParsingObject => ("this object is not closed", Some("a `}` is missing")),
        ErrorCode::EofParsingIdentifier => ("the file ends within a key", None),
        ErrorCode::EofParsingComment => ("this comment is not closed", Some("a `*/` is missing")),
        ErrorCode::EofParsingString | ErrorCode::EofParsingEscapeSequence => {
            ("the file ends within a string", Some("the closing quote is missing"))
        }
        ErrorCode::EofParsingBool
        | ErrorCode::EofParsingNull
        | ErrorCode::EofParsingNumber
        | ErrorCode::EofParsingValue => {
            ("the file ends where a value is expected", Some("settings are one object, `{ … }`"))
        }
        ErrorCode::LineTerminatorInString => (
            "the line ends within a string",
            Some("the closing quote is missing; a line end is written `\\n`"),
        ),
        ErrorCode::ExpectedComma => ("expected a comma", Some("is one missing before this?")),
        ErrorCode::ExpectedColon => {
            ("expected a colon between key and value", Some(KEY_CHARACTERS))
        }
        ErrorCode::ExpectedClosingBrace => ("expected `,` or `}`", None),
        ErrorCode::ExpectedClosingBracket => ("expected `,` or `]`", None),
        ErrorCode::ExpectedIdentifier | ErrorCode::InvalidKey => {
            ("expected a key", Some(KEY_CHARACTERS))
        }
        ErrorCode::ExpectedComment => {
            ("expected a comment", Some("comments are `// …` or `/* … */`"))
        }
        ErrorCode::LeadingZero => ("a number may not begin with 0", None),
        ErrorCode::OverflowParsingNumber => ("this number is too large", None),
        ErrorCode::InvalidEscapeSequence | ErrorCode::InvalidBytes => {
            ("unknown escape in a string", Some("a backslash itself is written `\\\\`"))
        }
        ErrorCode::TrailingCharacters => {
            ("expected the end of the file", Some("settings are one object, `{ … }`"))
        }
        ErrorCode::ExpectedBool
        | ErrorCode::ExpectedNull
        | ErrorCode::ExpectedNumber
        | ErrorCode::ExpectedOpeningBrace
        | ErrorCode::ExpectedOpeningBracket
        | ErrorCode::ExpectedString
        | ErrorCode::ExpectedStringOrObject
        | ErrorCode::ExpectedValue => ("expected a value", Some("strings need quotes")),
    }
}

/// Where to point. A bracket that is never closed is what must be seen, other early ends are at the end.
fn offset_of_failure(text: &str, failure: ParseFailure) -> usize {
    let end = text.trim_end().len();
    match (failure.fault, failure.position) {
        (Fault::Syntax(Some(ErrorCode::EofParsingComment)), _) => text.rfind("/*").unwrap_or(end),
        (Fault::Syntax(Some(code)), Some(position)) if !ends_early_in_value(code) => {
            offset_of(text, position)
        }
        (Fault::Syntax(Some(_)), _) | (_, None) => end,
        (_, Some(position)) => offset_of(text, position),
    }
}

/// Whether the file ends within a value that is neither object nor list.
fn ends_early_in_value(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::EofParsingBool
            | ErrorCode::EofParsingEscapeSequence
            | ErrorCode::EofParsingIdentifier
            | ErrorCode::EofParsingNull
            | ErrorCode::EofParsingNumber
            | ErrorCode::EofParsingString
            | ErrorCode::EofParsingValue
    )
}

/// The byte offset of a reader's position. Its lines end at CR, LF, CRLF and the two Unicode line ends.
fn offset_of(text: &str, position: json5::Position) -> usize {
    let (mut line, mut column) = (0, 0);
    let mut characters = text.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        if (line, column) == (position.line, position.column) {
            return offset;
        }
        if json5::char::is_json5_line_terminator(character) {
            if character == '\r' && characters.peek().is_some_and(|&(_, next)| next == '\n') {
                characters.next();
            }
            (line, column) = (line + 1, 0);
        } else {
            column += 1;
        }
    }
    text.len()
}

/// References found nothing.
pub(crate) fn missing_variables(
    first: &MissingVariable,
    missing: &[MissingVariable],
    file: &Path,
    text: &str,
    paths: &Paths,
    lookup: &SubstitutionLookup<'_>,
) -> ConfigError {
    let located = Located::new(text);
    let mut report = Report::new(file, text);
    let dotenv = paths.state_dir().join(crate::environment::DOTENV_FILE);
    for MissingVariable { name, path } in missing {
        let mut help = format!("set it in the environment or in {}", dotenv.display());
        if lookup.passed_over_current_dir() {
            help.push_str("; `.env` of the current folder is not read, since an agent works there");
        }
        let span = located.span(path, Target::Value);
        report.push(
            path.clone(),
            format!("the variable `{name}` is not set, or empty"),
            Some(help),
            span,
        );
    }
    report.sort();
    ConfigError::MissingEnvVar {
        var: first.name.clone(),
        config_path: first.path.clone(),
        report: Box::new(report),
    }
}

/// The tree does not fit the schema.
pub(crate) fn invalid(
    file: &Path,
    text: &str,
    tree: &Value,
    failure: &serde_path_to_error::Error<serde_json::Error>,
) -> ConfigError {
    let found = validate(&json_schema(), tree, MAX_ISSUES);
    if !found.is_empty() {
        return findings(file, text, found);
    }
    // The types refuse what the schema allows. Their own words may quote a value, so only the place is given.
    let mut path = ConfigPath::default();
    for segment in failure.path() {
        match segment {
            serde_path_to_error::Segment::Map { key } => path.push_key(key),
            serde_path_to_error::Segment::Seq { index } => path.push_index(*index),
            _ => {}
        }
    }
    let message = "this value is not one that is expected here".to_owned();
    findings(file, text, vec![Finding { path, target: Target::Value, message, help: None }])
}

/// There are mistakes in the settings.
pub(crate) fn findings(file: &Path, text: &str, findings: Vec<Finding>) -> ConfigError {
    let located = Located::new(text);
    let mut report = Report::new(file, text);
    for finding in findings.into_iter().take(MAX_ISSUES) {
        let span = located.span(&finding.path, finding.target);
        report.push(finding.path, finding.message, finding.help, span);
    }
    report.sort();
    ConfigError::Invalid(Box::new(report))
}
