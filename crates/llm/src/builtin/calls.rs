//! From a request to the tool call that does it.

use serde_json::{Map, Value, json};

use super::fingerprint::Fingerprint;
use super::parse::Request;

/// Folder of notes that were given no name.
const NOTES_FOLDER: &str = "notes";

/// Words of a note that go into its file's name.
const NAME_WORDS: usize = 6;

/// Longest such name without the ending, in characters.
const NAME_LENGTH: usize = 48;

/// Matches asked for when they are to be counted; a count that reaches it says "at least".
const COUNT_LIMIT: u64 = 1_000;

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedCall {
    pub(super) tool: &'static str,
    pub(super) arguments: Map<String, Value>,
}

/// The call for a request.
pub(super) fn call_for(request: &Request) -> PlannedCall {
    match request {
        Request::List { folder } | Request::CountEntries { folder } => {
            call("ls", &[("path", folder.as_ref().map(|folder| json!(folder)))])
        }
        Request::Find { glob, folder } => call(
            "find",
            &[
                ("pattern", Some(json!(glob))),
                ("path", folder.as_ref().map(|folder| json!(folder))),
            ],
        ),
        Request::CountNamed { glob, folder } => call(
            "find",
            &[
                ("pattern", Some(json!(glob))),
                ("path", folder.as_ref().map(|folder| json!(folder))),
                ("limit", Some(json!(COUNT_LIMIT))),
            ],
        ),
        Request::Search { text, place } => search(text, place.as_deref(), None),
        Request::CountMatches { text, place } => search(text, place.as_deref(), Some(COUNT_LIMIT)),
        Request::Read { file, lines } => call(
            "read",
            &[
                ("path", Some(json!(file))),
                ("startLine", lines.map(|(first, _)| json!(first))),
                ("endLine", lines.map(|(_, last)| json!(last))),
            ],
        ),
        // `wc -l` counts line ends, so it would miss a last line without one.
        Request::CountLines { file } => {
            shell(&format!("awk 'END {{ print NR }}' < {}", shell_quoted(file)), None)
        }
        Request::CountWords { file } => shell(&format!("wc -w < {}", shell_quoted(file)), None),
        Request::Run { command, timeout_seconds } => shell(command, *timeout_seconds),
        Request::Write { file, content } => write(file, content),
        Request::WriteNote { content } => write(&note_path(content), content),
    }
}

fn search(text: &str, place: Option<&str>, limit: Option<u64>) -> PlannedCall {
    // As many search tools do: capitals in the text mean that they matter.
    let ignores_case = !text.chars().any(char::is_uppercase);
    call(
        "grep",
        &[
            ("pattern", Some(json!(text))),
            ("path", place.map(|place| json!(place))),
            ("literal", Some(json!(true))),
            ("ignoreCase", ignores_case.then(|| json!(true))),
            ("limit", limit.map(|limit| json!(limit))),
        ],
    )
}

fn shell(command: &str, timeout_seconds: Option<u64>) -> PlannedCall {
    call(
        "bash",
        &[
            ("command", Some(json!(command))),
            ("timeout", timeout_seconds.map(|seconds| json!(seconds))),
        ],
    )
}

fn write(file: &str, content: &str) -> PlannedCall {
    call(
        "write",
        &[("path", Some(json!(file))), ("content", Some(json!(ending_in_newline(content))))],
    )
}

fn call(tool: &'static str, arguments: &[(&str, Option<Value>)]) -> PlannedCall {
    let given =
        arguments.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    PlannedCall { tool, arguments: given.collect() }
}

fn ending_in_newline(content: &str) -> String {
    if content.ends_with('\n') { content.to_owned() } else { format!("{content}\n") }
}

/// One word to a POSIX shell, whatever is in it.
fn shell_quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Where a note without a file name goes: named by its first words, and by a fingerprint of all of it where those words
/// do not tell it from another note.
pub(super) fn note_path(content: &str) -> String {
    let words: Vec<String> = content
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(NAME_WORDS)
        .map(str::to_lowercase)
        .collect();
    let name: String = words.join("-").chars().take(NAME_LENGTH).collect();
    if !name.is_empty() && name == content.trim().to_lowercase().replace(' ', "-") {
        return format!("{NOTES_FOLDER}/{name}.md");
    }
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(content.as_bytes());
    let mark = format!("{:08x}", fingerprint.value() >> 32);
    let stem = if name.is_empty() { mark } else { format!("{name}-{mark}") };
    format!("{NOTES_FOLDER}/{stem}.md")
}
