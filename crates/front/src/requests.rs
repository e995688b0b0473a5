//! Requests that the program words for the user: commands whose text is the message. A file of the user with the same name comes
//! first.

/// The commands, and the text of each.
const REQUESTS: [(&str, &str); 2] =
    [("init", include_str!("requests/init.md")), ("review", include_str!("requests/review.md"))];

/// The names of the commands, with the slash.
pub fn names() -> impl Iterator<Item = String> {
    REQUESTS.iter().map(|(name, _)| format!("/{name}"))
}

/// The text of the command with this name, which has places for arguments.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    REQUESTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
