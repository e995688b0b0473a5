//! Commands that the user has written: Markdown files whose text becomes the message.

use std::fs;
use std::path::PathBuf;

use myclaw_agent::SessionConfig;
use myclaw_agent::files::read_regular;

use super::command::{self, NAMES, Parsed};

/// The directory with the files, in the state directory and in the workspace.
const DIRECTORY: &str = "commands";
/// Stands for everything behind the name of the command.
const ALL_ARGUMENTS: &str = "$ARGUMENTS";
/// Largest file, in bytes.
const MOST_BYTES: u64 = 256 * 1024;

/// Reads a line that is not blank. If its first word is the name of such a command, it is the message of that.
pub(super) fn parse(config: &SessionConfig, line: &str) -> Parsed {
    expand(config, line).unwrap_or_else(|| command::parse(line, || names(config)))
}

/// The message that a line asks for, if its first word is the name of such a command.
fn expand(config: &SessionConfig, line: &str) -> Option<Parsed> {
    // A space before the slash makes it a message.
    let line = line.trim_end();
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = name.strip_prefix('/')?;
    let is_name = !word.is_empty()
        && word.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '_'));
    if !is_name || NAMES.contains(&name) {
        return None;
    }
    let path = directories(config)
        .into_iter()
        .map(|directory| directory.join(format!("{word}.md")))
        .find(|path| path.exists())?;
    let text = match read_regular(&path, MOST_BYTES) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            return Some(Parsed::Unknown(format!("{} cannot be read: {error}", path.display())));
        }
    };
    Some(Parsed::Message(filled(&text, arguments.trim())))
}

/// The names of the commands, with the slash.
pub(crate) fn names(config: &SessionConfig) -> Vec<String> {
    let entries = directories(config).into_iter().filter_map(|it| fs::read_dir(it).ok()).flatten();
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(format!("/{}", entry.file_name().to_str()?.strip_suffix(".md")?)))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The user's own ones come first.
fn directories(config: &SessionConfig) -> [PathBuf; 2] {
    [config.home.paths.state_dir().join(DIRECTORY), config.agent.workspace.join(DIRECTORY)]
}

/// `text` with the arguments in their places: `$ARGUMENTS`, and `$1` to `$9` for single words. Without a place they
/// come last.
fn filled(text: &str, arguments: &str) -> String {
    let text = text.trim_end();
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut out = String::with_capacity(text.len() + arguments.len());
    let mut has_place = false;
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let digit = rest[1..].chars().next().and_then(|char| char.to_digit(10));
        let (value, length) = match digit {
            _ if rest.starts_with(ALL_ARGUMENTS) => (arguments, ALL_ARGUMENTS.len()),
            Some(number @ 1..) => (words.get(number as usize - 1).copied().unwrap_or(""), 2),
            _ => ("$", 1),
        };
        has_place |= length > 1;
        out.push_str(value);
        rest = &rest[length..];
    }
    out.push_str(rest);
    if !has_place && !arguments.is_empty() {
        out.push_str("\n\n");
        out.push_str(arguments);
    }
    out
}

#[cfg(test)]
mod tests;
