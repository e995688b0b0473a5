//! From a message to what it asks for.

use std::sync::LazyLock;

use super::forms::{FORMS, JOINERS, Meaning, POLITE_BEFORE, POLITE_BEHIND, QUESTIONS};
use super::pattern::Pattern;
use super::slots::Captures;
use super::tokens::{Token, tokenize};

/// Longest message that is read at all, in bytes: a request is a sentence, and a note of some pages still fits.
const MAX_MESSAGE: usize = 16 * 1024;

/// Most requests in one message.
const MAX_STEPS: usize = 6;

/// Most places at which a message is tried to be split, to bound the work on a long text.
const MAX_JOINERS: usize = 12;

/// Every variant with its pattern read, questions first, in the order in which they are tried.
static PATTERNS: LazyLock<Vec<(Meaning, Pattern)>> = LazyLock::new(|| {
    let variants = QUESTIONS.iter().chain(FORMS.iter().flat_map(|form| form.variants));
    variants
        .filter_map(|variant| Some((variant.meaning, Pattern::read(variant.pattern)?)))
        .collect()
});

/// One thing to do with a tool. A `None` folder is the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    List { folder: Option<String> },
    Find { glob: String, folder: Option<String> },
    Search { text: String, place: Option<String> },
    Read { file: String, lines: Option<(u64, u64)> },
    CountEntries { folder: Option<String> },
    CountNamed { glob: String, folder: Option<String> },
    CountLines { file: String },
    CountWords { file: String },
    CountMatches { text: String, place: Option<String> },
    Run { command: String, timeout_seconds: Option<u64> },
    Write { file: String, content: String },
    WriteNote { content: String },
}

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Understood {
    /// Things to do, one after another; never empty.
    Steps(Vec<Request>),
    /// A command was not in quotes; this is its text.
    UnquotedCommand(String),
    /// Who is answering?
    Who,
    /// What can be asked?
    Help,
    /// Something else.
    Nothing,
}

/// One request, and whether its text ran to the end of the message.
struct Parsed {
    understood: Understood,
    is_open_ended: bool,
}

/// Reads a message.
pub(super) fn understand(message: &str) -> Understood {
    if message.len() > MAX_MESSAGE {
        return Understood::Nothing;
    }
    let tokens = tokenize(message);
    if let Some(steps) = steps(message, &tokens, MAX_STEPS) {
        return Understood::Steps(steps);
    }
    parse_one(message, &tokens).map_or(Understood::Nothing, |parsed| parsed.understood)
}

/// The requests that the tokens are made of: split at the first joining word whose both sides are requests, else taken
/// as one. An unquoted note is never split: its text runs to the end.
fn steps(message: &str, tokens: &[Token<'_>], most: usize) -> Option<Vec<Request>> {
    if most == 0 {
        return None;
    }
    let joiners = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| JOINERS.iter().any(|word| token.is_word(word)));
    for (position, _) in joiners.take(MAX_JOINERS) {
        let Some(Parsed { understood: Understood::Steps(mut left), is_open_ended: false }) =
            parse_one(message, &tokens[..position])
        else {
            continue;
        };
        if let Some(right) = steps(message, &tokens[position + 1..], most - 1) {
            left.extend(right);
            return Some(left);
        }
    }
    match parse_one(message, tokens)?.understood {
        Understood::Steps(one) => Some(one),
        _ => None,
    }
}

/// Reads the tokens as one request or question, with and without the politeness around it.
fn parse_one(message: &str, tokens: &[Token<'_>]) -> Option<Parsed> {
    let bare = without_polite_start(tokens);
    let shorter = without_polite_end(bare);
    // The shorter first: a slot that takes any text would take the politeness as well.
    match_patterns(message, shorter)
        .filter(|parsed| !parsed.is_open_ended)
        .or_else(|| match_patterns(message, bare))
}

fn match_patterns(message: &str, tokens: &[Token<'_>]) -> Option<Parsed> {
    PATTERNS.iter().find_map(|(meaning, pattern)| {
        let captures = pattern.matches(message, tokens)?;
        let is_open_ended = captures.is_open_ended;
        Some(Parsed { understood: meant(*meaning, captures)?, is_open_ended })
    })
}

/// `None` if the slots hold nothing that makes sense, such as line 0.
fn meant(meaning: Meaning, captures: Captures) -> Option<Understood> {
    let Captures { path, glob, text, numbers, .. } = captures;
    let first_number = numbers.first().copied();
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let request = match meaning {
        Meaning::List => Request::List { folder: path },
        Meaning::Find => {
            Request::Find { glob: glob.unwrap_or_else(|| "*".to_owned()), folder: path }
        }
        Meaning::Search => Request::Search { text: said(text)?, place: path },
        Meaning::Read => Request::Read { file: path?, lines: line_range(&numbers)? },
        Meaning::ReadFirst => Request::Read {
            file: path?,
            lines: Some((1, first_number.filter(|count| *count > 0)?)),
        },
        Meaning::ReadOneLine => {
            let line = first_number.filter(|line| *line > 0)?;
            Request::Read { file: path?, lines: Some((line, line)) }
        }
        Meaning::CountEntries => Request::CountEntries { folder: path },
        Meaning::CountNamed => Request::CountNamed { glob: glob?, folder: path },
        Meaning::CountLines => Request::CountLines { file: path? },
        Meaning::CountWords => Request::CountWords { file: path? },
        Meaning::CountMatches => Request::CountMatches { text: said(text)?, place: path },
        Meaning::Run => Request::Run {
            command: said(text)?,
            timeout_seconds: first_number.filter(|seconds| *seconds > 0),
        },
        Meaning::RunUnquoted => return Some(Understood::UnquotedCommand(text?)),
        Meaning::Write => Request::Write { file: path?, content: text? },
        Meaning::WriteNote => Request::WriteNote { content: said(text)? },
        Meaning::AskWho => return Some(Understood::Who),
        Meaning::AskHelp => return Some(Understood::Help),
    };
    Some(Understood::Steps(vec![request]))
}

/// No numbers: the whole file. Two: that range, if it is one.
fn line_range(numbers: &[u64]) -> Option<Option<(u64, u64)>> {
    match numbers {
        [] => Some(None),
        [first, last] if 1 <= *first && first <= last => Some(Some((*first, *last))),
        _ => None,
    }
}

fn without_polite_start<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut rest = tokens;
    while let Some(length) = POLITE_BEFORE.iter().find_map(|phrase| phrase_length(phrase, rest)) {
        rest = &rest[length..];
    }
    rest
}

fn without_polite_end<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut rest = tokens;
    let behind = |rest: &[Token<'_>]| {
        POLITE_BEHIND.iter().find_map(|phrase| {
            let length = phrase.split(' ').count();
            let start = rest.len().checked_sub(length)?;
            phrase_length(phrase, &rest[start..])
        })
    };
    while let Some(length) = behind(rest) {
        rest = &rest[..rest.len() - length];
    }
    rest
}

/// How many tokens the phrase takes, if the tokens begin with it.
fn phrase_length(phrase: &str, tokens: &[Token<'_>]) -> Option<usize> {
    let mut length = 0;
    for word in phrase.split(' ') {
        if !tokens.get(length)?.is_word(word) {
            return None;
        }
        length += 1;
    }
    Some(length)
}

#[cfg(test)]
mod tests;
