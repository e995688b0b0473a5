//! Parses a message into the tool calls that it asks for. [`FORMS`] lists everything that is understood.

use serde_json::{Map, Value, json};

/// Most requests that one message may join.
const MAX_REQUESTS: usize = 6;

/// Longest message that is read, in bytes.
const MAX_MESSAGE: usize = 16 * 1024;

/// How questions begin. One about the person who asks is looked for in what is remembered.
const QUESTIONS: [&str; 14] = [
    "what", "when", "where", "who", "whose", "which", "how", "why", "am", "is", "are", "do", "did",
    "does",
];

/// Replaces a quoted word in comparisons. No unquoted word holds a quotation mark.
const QUOTED: &str = "\"";

/// The requests that are understood, for the help text and the documentation.
pub(super) const FORMS: [&str; 8] = [
    "list the files in DIRECTORY",
    "find PATTERN in DIRECTORY",
    "search for TEXT in FILE",
    "read FILE lines FIRST-LAST",
    "run \"COMMAND\"",
    "write \"TEXT\" to FILE",
    "remember that FACT",
    "what do you know about SUBJECT",
];

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedCall {
    pub(super) tool: &'static str,
    pub(super) arguments: Map<String, Value>,
    /// What the call is for: a verb and what it applies to.
    pub(super) purpose: String,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Understood {
    /// One to [`MAX_REQUESTS`] calls, in order.
    Calls(Vec<PlannedCall>),
    /// A command that is not in quotes, so that nobody can tell where it ends.
    UnquotedCommand,
    /// A question about who answers.
    Who,
    /// Anything else.
    Nothing,
}

/// A word, or the text between two quotation marks.
struct Word {
    text: String,
    /// The form for comparisons: the word in lower case, or [`QUOTED`].
    key: String,
}

pub(super) fn understand(message: &str) -> Understood {
    if message.len() > MAX_MESSAGE {
        return Understood::Nothing;
    }
    let words = words(message);
    let keys = |words: &[Word]| words.iter().map(|word| word.key.clone()).collect::<Vec<_>>();
    let has = |wanted: &[&str]| keys(&words).windows(wanted.len()).any(|found| found == wanted);
    if has(&["who", "are", "you"]) || has(&["are", "you", "a"]) || has(&["are", "you", "an"]) {
        return Understood::Who;
    }
    if let Some(call) = of_memory(message) {
        return Understood::Calls(vec![call]);
    }
    let mut calls = Vec::new();
    for part in words.split(|word| word.key == "then") {
        let keys = keys(part);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        match call(&keys, part) {
            Some(call) => calls.push(call),
            None if keys.first() == Some(&"run") && keys.len() > 1 => {
                return Understood::UnquotedCommand;
            }
            None => return Understood::Nothing,
        }
    }
    match calls.len() {
        1..=MAX_REQUESTS => Understood::Calls(calls),
        _ => Understood::Nothing,
    }
}

/// The call for something to remember, or for a question about the person who asks. Both are whole messages.
fn of_memory(message: &str) -> Option<PlannedCall> {
    let message = message.trim();
    let (first, rest) = message.split_once(char::is_whitespace)?;
    let first = first.to_lowercase();
    let rest = rest.trim();
    if first == "remember" {
        let that = rest.get(..5).filter(|that| that.eq_ignore_ascii_case("that "));
        let fact = rest[that.map_or(0, str::len)..].trim();
        let purpose = "remember it".to_owned();
        let is_said = !fact.is_empty() && !fact.ends_with('?');
        return is_said.then(|| planned("memory_write", purpose, [("fact", Some(json!(fact)))]));
    }
    let begins = |words: &str| message.to_lowercase().starts_with(words);
    let of_person = |word: &str| {
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
        matches!(word.as_str(), "i" | "my" | "me" | "mine" | "we" | "our")
    };
    let is_question = QUESTIONS.contains(&first.as_str())
        && rest.ends_with('?')
        && rest.split_whitespace().any(of_person);
    if !is_question && !begins("what do you know about ") && !begins("what do you remember") {
        return None;
    }
    let purpose = "look for it".to_owned();
    Some(planned("memory_search", purpose, [("query", Some(json!(message)))]))
}

/// Splits at white space. Quotation marks of three kinds hold a word together; punctuation at the end of a sentence is
/// not part of its last word.
fn words(message: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = message.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '"' | '\'' | '`')
            .then(|| rest[1..].split_once(first))
            .flatten()
            .filter(|(text, _)| !text.is_empty());
        let behind = match quoted {
            Some((text, behind)) => {
                words.push(Word { text: text.to_owned(), key: QUOTED.to_owned() });
                behind.trim_start_matches(['.', ',', '?', '!'])
            }
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let text = match rest[..end].trim_end_matches(['.', ',', '?', '!']) {
                    "" => &rest[..end],
                    text => text,
                };
                let key = text.to_lowercase().replace(['"', '\'', '`'], "?");
                words.push(Word { text: text.to_owned(), key });
                &rest[end..]
            }
        };
        rest = behind.trim_start();
    }
    words
}

/// The call that one request asks for.
fn call(keys: &[&str], words: &[Word]) -> Option<PlannedCall> {
    let word = |index: usize| words[index].text.as_str();
    match keys {
        ["ls"]
        | ["list", "the", "files"]
        | ["list", "the", "files", "here"]
        | ["list", "the", "files", "in", "my" | "the", "workspace"] => Some(list(None)),
        ["ls", _] => Some(list(Some(word(1)))),
        ["list", "the", "files", "in", _] => Some(list(Some(word(4)))),
        ["find", _] => Some(find(word(1), None)),
        ["find", _, "in", _] => Some(find(word(1), Some(word(3)))),
        ["search", "for", _] => Some(search(word(2), None)),
        ["search", "for", _, "in", _] => Some(search(word(2), Some(word(4)))),
        ["read", _] => Some(read(word(1), None)),
        ["read", _, "lines", range] => {
            let (first, last) = range.split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (1 <= first && first <= last).then(|| read(word(1), Some((first, last))))
        }
        ["run", QUOTED] => Some(planned(
            "bash",
            format!("run {}", code(word(1))),
            [("command", Some(json!(word(1))))],
        )),
        ["write", QUOTED, "to", _] => Some(write(word(3), word(1))),
        ["create", _, "with", QUOTED] => Some(write(word(1), word(3))),
        _ => None,
    }
}

fn list(directory: Option<&str>) -> PlannedCall {
    planned(
        "ls",
        format!("list the files in {}", place(directory)),
        [("path", directory.map(Value::from))],
    )
}

fn find(pattern: &str, directory: Option<&str>) -> PlannedCall {
    planned(
        "find",
        format!("find {} in {}", code(pattern), place(directory)),
        [("pattern", Some(json!(pattern))), ("path", directory.map(Value::from))],
    )
}

fn search(text: &str, path: Option<&str>) -> PlannedCall {
    planned(
        "grep",
        format!("search for {} in {}", code(text), place(path)),
        [
            ("pattern", Some(json!(text))),
            ("path", path.map(Value::from)),
            ("literal", Some(json!(true))),
        ],
    )
}

fn read(file: &str, lines: Option<(u64, u64)>) -> PlannedCall {
    let purpose = match lines {
        None => format!("read {}", code(file)),
        Some((first, last)) => format!("read lines {first} to {last} of {}", code(file)),
    };
    planned(
        "read",
        purpose,
        [
            ("path", Some(json!(file))),
            ("startLine", lines.map(|(first, _)| json!(first))),
            ("endLine", lines.map(|(_, last)| json!(last))),
        ],
    )
}

fn write(file: &str, text: &str) -> PlannedCall {
    let content = format!("{text}\n");
    planned(
        "write",
        format!("write {}", code(file)),
        [("path", Some(json!(file))), ("content", Some(json!(content)))],
    )
}

fn planned<const N: usize>(
    tool: &'static str,
    purpose: String,
    arguments: [(&str, Option<Value>); N],
) -> PlannedCall {
    let arguments =
        arguments.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    PlannedCall { tool, arguments, purpose }
}

fn place(path: Option<&str>) -> String {
    path.map_or_else(|| "the working directory".to_owned(), code)
}

/// As code in Markdown, on one line.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace(char::is_whitespace, " "))
}
