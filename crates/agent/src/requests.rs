//! Requests that the program words for the user: commands whose text is the message. A file of the user with the same name comes
//! first.

use crate::command_text::filled;

/// The commands, and the text of each.
const REQUESTS: [(&str, &str); 2] =
    [("init", include_str!("requests/init.md")), ("review", include_str!("requests/review.md"))];

/// The names of the commands, with the slash.
pub fn names() -> impl Iterator<Item = String> {
    REQUESTS.iter().map(|(name, _)| format!("/{name}"))
}

/// The text of the command with this name, which has places for arguments.
fn text(name: &str) -> Option<&'static str> {
    REQUESTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The message that a line asks for, if its first word is one of these commands.
pub fn expand(line: &str) -> Option<String> {
    let line = line.trim_end();
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let text = text(name.strip_prefix('/')?)?;
    Some(filled(text, arguments.trim()).trim_end().to_owned())
}
