//! Commands that the user has written: Markdown files whose text becomes the message.

use std::ffi::OsStr;
use std::io;

use myclaw_agent::SessionConfig;
use myclaw_agent::files::{SharedDirectory, read_regular};

use super::command::{self, NAMES, Parsed};

/// The directory with the files, in the state directory and in the workspace.
const DIRECTORY: &str = "commands";
/// Stands for everything behind the name of the command.
const ALL_ARGUMENTS: &str = "$ARGUMENTS";
/// Most commands of a directory that are known.
const MOST_NAMES: usize = 500;
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
    let file = format!("{word}.md");
    let mut path = config.home.paths.state_dir().join(DIRECTORY).join(&file);
    let read = match path.exists() {
        true => read_regular(&path, MOST_BYTES),
        false => {
            path = config.agent.workspace.join(DIRECTORY).join(&file);
            in_workspace(config).and_then(|directory| directory.read(&file, MOST_BYTES))
        }
    };
    let text = match read {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            return Some(Parsed::Unknown(format!("{} cannot be read: {error}", path.display())));
        }
    };
    Some(Parsed::Message(filled(&text, arguments.trim())))
}

/// The names of the commands, with the slash.
pub(crate) fn names(config: &SessionConfig) -> Vec<String> {
    let own = SharedDirectory::open(&config.home.paths.state_dir().join(DIRECTORY));
    let mut names: Vec<String> = [own, in_workspace(config)]
        .into_iter()
        .flatten()
        .filter_map(|directory| directory.names(MOST_NAMES, is_command).ok())
        .flat_map(|found| found.names)
        .filter_map(|name| Some(format!("/{}", name.to_str()?.strip_suffix(".md")?)))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn is_command(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.ends_with(".md"))
}

/// The directory in the workspace. Confined tools may have put anything there, so no link is followed.
fn in_workspace(config: &SessionConfig) -> io::Result<SharedDirectory> {
    SharedDirectory::open(&config.agent.workspace)?.directory(DIRECTORY)
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
