//! Answers that people write as words.

use myclaw_engine::ScopeKind;

/// Words that begin a no. What follows them is the reason for the model.
const REFUSING: [&str; 7] = ["no", "n", "nope", "don't", "dont", "do not", "never"];

/// An answer in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenAnswer {
    /// This call runs.
    Once,
    /// With the scope of this kind, or with the least one.
    Always(Option<ScopeKind>),
    /// With the reason for the model.
    No(Option<String>),
    /// The words that the question wants; empty for none.
    Said(String),
    /// The question is closed without an answer.
    Cancel,
    /// Another command runs in its place.
    Instead(String),
}

/// What stands before a command that runs in the place of that of the call.
pub const INSTEAD: char = '!';

/// The reason of a no that names another command, where only the agent may run it.
pub fn run_instead(command: &str) -> String {
    format!("run this in its place: {command}")
}

/// What is written in place of words for a question that wants some: no, no answer, no words.
pub(super) const DECLINE: &str = "/decline";
pub(super) const CANCEL: &str = "/cancel";
pub(super) const NO_WORDS: &str = "-";

/// The answer that a line gives to a question that wants words. Other commands are none. What stands in quotation marks is
/// taken as it is.
pub(super) fn read_words(line: &str) -> Option<WrittenAnswer> {
    let line = line.trim();
    let quoted = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(words) = quoted.filter(|words| !words.is_empty()) {
        return Some(WrittenAnswer::Said(words.to_owned()));
    }
    match line {
        DECLINE => Some(WrittenAnswer::No(None)),
        CANCEL => Some(WrittenAnswer::Cancel),
        NO_WORDS => Some(WrittenAnswer::Said(String::new())),
        "" => None,
        command if command.starts_with('/') => None,
        words => Some(WrittenAnswer::Said(words.to_owned())),
    }
}

/// The answer that a key or a line gives, if it is one. Only a no may say more.
pub fn read_answer(text: &str) -> Option<WrittenAnswer> {
    let text = text.trim();
    if let Some(command) = text.strip_prefix(INSTEAD) {
        let command = command.trim().to_owned();
        return (!command.is_empty()).then_some(WrittenAnswer::Instead(command));
    }
    match text.to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Some(WrittenAnswer::Once),
        "a" | "always" => Some(WrittenAnswer::Always(None)),
        "d" | "directory" => Some(WrittenAnswer::Always(Some(ScopeKind::Directory))),
        "n" | "no" => Some(WrittenAnswer::No(None)),
        lower => refused(&lower.replace('\u{2019}', "'"), text),
    }
}

/// Reads a no that says more: `no, use git clean`, or `don't do that`.
fn refused(lower: &str, text: &str) -> Option<WrittenAnswer> {
    let begins = |word: &&&str| {
        let rest = lower.strip_prefix(**word);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '\'')
        })
    };
    let word = REFUSING.iter().find(begins)?;
    // The words that say what not to do are part of the reason.
    let reason = match *word {
        "no" | "n" | "nope" => &text[word.len()..],
        _ => text,
    };
    let reason = reason.trim_start_matches(|next: char| !next.is_alphanumeric() && next != '/');
    Some(WrittenAnswer::No(Some(reason.to_owned()).filter(|reason| !reason.is_empty())))
}
