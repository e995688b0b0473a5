//! `.env` files: one `NAME=value` a line.
//!
//! Read once into a map; nothing here changes the environment of the process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

/// Largest file that is read; a list of keys has a few hundred bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The variables of a file, and its warnings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DotenvFile {
    /// Variables by name. If a name occurs twice, the later line counts.
    pub(crate) variables: BTreeMap<String, String>,
    /// One line each, for the user; no content is quoted.
    pub(crate) warnings: Vec<String>,
}

/// Reads `path`. A missing file counts as empty; a file that cannot be read gives a warning.
pub(crate) fn read(path: &Path) -> DotenvFile {
    match read_text(path) {
        Ok(Some(text)) => {
            let parsed = parse(&text);
            let warnings = parsed
                .bad_lines
                .iter()
                .map(|bad| format!("{}:{}: {}", path.display(), bad.line, bad.reason))
                .collect();
            DotenvFile { variables: parsed.variables, warnings }
        }
        Ok(None) => DotenvFile::default(),
        Err(reason) => DotenvFile {
            warnings: vec![format!("{}: not read: {reason}", path.display())],
            ..DotenvFile::default()
        },
    }
}

fn read_text(path: &Path) -> Result<Option<String>, String> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_BYTES / 1024));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// The result of [`parse`].
#[derive(Debug, Default, PartialEq, Eq)]
struct Parsed {
    variables: BTreeMap<String, String>,
    bad_lines: Vec<BadLine>,
}

/// A line that gave no variable.
#[derive(Debug, PartialEq, Eq)]
struct BadLine {
    /// From 1.
    line: usize,
    reason: &'static str,
}

/// Reads `NAME=value` lines: `export ` before the name, `#` comments, blanks around `=`, values bare or in single,
/// double or back quotes. Quoted values may span lines; in double quotes `\n`, `\r`, `\t`, `\"` and `\\` are the usual
/// escapes.
fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut line = 1;
    for (range, outcome) in entries(text) {
        match outcome {
            Ok(Some((name, value))) => {
                parsed.variables.insert(name.to_owned(), value);
            }
            Ok(None) => {}
            Err(reason) => parsed.bad_lines.push(BadLine { line, reason }),
        }
        line += text[range].matches('\n').count();
    }
    parsed
}

/// The entries of a text, each with its place, which includes the line end.
fn entries(text: &str) -> impl Iterator<Item = (Range<usize>, Entry<'_>)> {
    let mut at = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let (consumed, outcome) = parse_entry(rest);
        let range = at..at + consumed;
        at = range.end;
        Some((range, outcome))
    })
}

/// The text of a file in which the variable `name` has a value, in the place of those that it had. Everything else stays.
pub fn with_variable(text: &str, name: &str, value: &str) -> String {
    let mut kept = text.to_owned();
    let own = |entry: &Entry<'_>| matches!(entry, Ok(Some((other, _))) if *other == name);
    let places: Vec<_> = entries(text).filter(|(_, entry)| own(entry)).collect();
    for (place, _) in places.into_iter().rev() {
        kept.replace_range(place, "");
    }
    if !matches!(kept.chars().next_back(), None | Some('\n' | '\u{feff}')) {
        kept.push('\n');
    }
    let value = match value.contains(['"', '\'', '`', '\\', '#', '$']) {
        true => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        false => value.to_owned(),
    };
    kept.push_str(&format!("{name}={value}\n"));
    kept
}

type Entry<'a> = Result<Option<(&'a str, String)>, &'static str>;

/// Reads one entry and returns its length in bytes, including the line end.
fn parse_entry(text: &str) -> (usize, Entry<'_>) {
    let line_length = text.find('\n').map_or(text.len(), |end| end + 1);
    let line = text[..line_length].trim_end();
    let content = line.trim_start();
    if content.is_empty() || content.starts_with('#') {
        return (line_length, Ok(None));
    }
    let Some(equals) = line.find('=') else {
        return (line_length, Err("expected NAME=value; the line is ignored"));
    };
    let name = line[..equals].trim();
    let name = name
        .strip_prefix("export")
        .filter(|rest| rest.starts_with([' ', '\t']))
        .map_or(name, str::trim_start);
    if !is_name(name) {
        return (
            line_length,
            Err("the name may hold letters, digits and `_` only; the line is ignored"),
        );
    }
    let value_start = equals + 1;
    let value_text = &text[value_start..];
    let blanks = value_text.len() - value_text.trim_start_matches([' ', '\t']).len();
    let quoted = &value_text[blanks..];
    match quoted.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => match parse_quoted(&quoted[1..], quote) {
            Some((value, length)) => {
                let end = value_start + blanks + 1 + length;
                let tail_length =
                    text[end..].find('\n').map_or(text.len() - end, |newline| newline + 1);
                let tail = text[end..end + tail_length].trim();
                let outcome = if tail.is_empty() || tail.starts_with('#') {
                    Ok(Some((name, value)))
                } else {
                    Err("there is text after the closing quote; the line is ignored")
                };
                (end + tail_length, outcome)
            }
            None => (line_length, Err("the closing quote is missing; the line is ignored")),
        },
        _ => (line_length, Ok(Some((name, bare_value(&line[value_start..]).to_owned())))),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A value without quotes ends at a `#` that follows a blank.
fn bare_value(text: &str) -> &str {
    let comment = text
        .char_indices()
        .find(|&(at, c)| c == '#' && (at == 0 || text[..at].ends_with([' ', '\t'])));
    comment.map_or(text, |(at, _)| &text[..at]).trim()
}

/// The value up to the closing quote, and the bytes read including that quote. `None` if there is no closing quote.
fn parse_quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return Some((value, at + quote.len_utf8())),
            '\\' if quote == '"' => match characters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            // So that a file written on another system gives the same value.
            '\r' if text[at + 1..].starts_with('\n') => {}
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests;
