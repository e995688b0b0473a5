//! From requests and their results to text. Everything said comes from the results; what was cut off is said to be.

mod layout;
mod results;

use super::calls::note_path;
use super::parse::Request;
use crate::ToolResultMessage;
use layout::{Keep, block, code, counted, list};
use results::{Body, Matches};

/// Most characters of a tool's error that are repeated.
const MAX_ERROR_CHARS: usize = 1_000;

/// What the shell tool returns for a command that printed nothing.
const NO_OUTPUT: &str = "(no output)";

/// Why the planner answers now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everything is done.
    Complete,
    /// The last result is an error.
    Failed,
    /// The next request needs a tool that is not there.
    NotOnOffer(&'static str),
}

/// What is said before the call that does a request.
pub(super) fn lead(request: &Request) -> String {
    match request {
        Request::List { folder } => format!("I list {}.", place(folder.as_deref())),
        Request::Find { glob, folder } | Request::CountNamed { glob, folder } => {
            format!("I look in {} for files named {}.", place(folder.as_deref()), code(glob))
        }
        Request::Search { text, place: at } | Request::CountMatches { text, place: at } => {
            format!("I search {} for {}.", place(at.as_deref()), code(text))
        }
        Request::Read { file, lines: None } => format!("I read {}.", code(file)),
        Request::Read { file, lines: Some((first, last)) } if first == last => {
            format!("I read line {first} of {}.", code(file))
        }
        Request::Read { file, lines: Some((first, last)) } => {
            format!("I read lines {first} to {last} of {}.", code(file))
        }
        Request::CountEntries { folder } => {
            format!("I count what is in {}.", place(folder.as_deref()))
        }
        Request::CountLines { file } => format!("I count the lines of {}.", code(file)),
        Request::CountWords { file } => format!("I count the words of {}.", code(file)),
        Request::Run { command, .. } => format!("I run {}.", code(command)),
        Request::Write { file, .. } => format!("I write {}.", code(file)),
        Request::WriteNote { content } => {
            format!("I write a note to {}.", code(&note_path(content)))
        }
    }
}

/// The whole answer: a paragraph for each request that has a result, and why it ends where it does.
pub(super) fn report(steps: &[Request], results: &[&ToolResultMessage], ending: Ending) -> String {
    let mut paragraphs: Vec<String> =
        steps.iter().zip(results).map(|(request, result)| paragraph(request, result)).collect();
    let undone = steps.len().saturating_sub(results.len());
    match ending {
        Ending::Complete => {}
        Ending::Failed if undone == 0 => {}
        Ending::Failed => {
            let requests = counted(undone, "request", "requests");
            paragraphs.push(format!(
                "I stopped there; {requests} behind it {} not done.",
                if undone == 1 { "was" } else { "were" }
            ));
        }
        Ending::NotOnOffer(tool) => paragraphs.push(format!(
            "For {} I need the tool `{tool}`, which is not on offer in this conversation.",
            if paragraphs.is_empty() { "this" } else { "the next request" }
        )),
    }
    paragraphs.join("\n\n")
}

fn paragraph(request: &Request, result: &ToolResultMessage) -> String {
    let text = result.text();
    if result.is_error {
        return failure(request, &text);
    }
    let body = Body::of(&text);
    match request {
        Request::List { folder } => entries(folder.as_deref(), &body),
        Request::CountEntries { folder } => entry_count(folder.as_deref(), &body),
        Request::Find { glob, folder } => found(glob, folder.as_deref(), &body),
        Request::CountNamed { glob, folder } => found_count(glob, folder.as_deref(), &body),
        Request::Search { text: wanted, place } => matches(wanted, place.as_deref(), &body),
        Request::CountMatches { text: wanted, place } => {
            match_count(wanted, place.as_deref(), &body)
        }
        Request::Read { file, lines } => contents(file, *lines, &text),
        Request::CountLines { file } => number(file, "line", "lines", &text),
        Request::CountWords { file } => number(file, "word", "words", &text),
        Request::Run { command, .. } => output(command, &text),
        Request::Write { file, content } => written(file, content),
        Request::WriteNote { content } => written(&note_path(content), content),
    }
}

fn failure(request: &Request, error: &str) -> String {
    let attempt = match request {
        Request::Run { command, .. } => format!("The command {} failed", code(command)),
        Request::List { folder } | Request::CountEntries { folder } => {
            format!("I could not list {}", place(folder.as_deref()))
        }
        Request::Find { folder, .. } | Request::CountNamed { folder, .. } => {
            format!("I could not look for files in {}", place(folder.as_deref()))
        }
        Request::Search { place: at, .. } | Request::CountMatches { place: at, .. } => {
            format!("I could not search {}", place(at.as_deref()))
        }
        Request::Read { file, .. } => format!("I could not read {}", code(file)),
        Request::CountLines { file } => format!("I could not count the lines of {}", code(file)),
        Request::CountWords { file } => format!("I could not count the words of {}", code(file)),
        Request::Write { file, .. } => format!("I could not write {}", code(file)),
        Request::WriteNote { content } => {
            format!("I could not write {}", code(&note_path(content)))
        }
    };
    let error = error.trim();
    if error.is_empty() {
        return format!("{attempt}, and the tool did not say why.");
    }
    let cut: String = error.chars().take(MAX_ERROR_CHARS).collect();
    format!("{attempt}. The tool says:\n\n{}", block(&cut, Keep::End))
}

fn place(path: Option<&str>) -> String {
    path.map_or_else(|| "the workspace".to_owned(), code)
}

fn entries(folder: Option<&str>, body: &Body<'_>) -> String {
    if body.lines.is_empty() {
        return format!("There is nothing in {}.", place(folder));
    }
    format!("{}:\n\n{}", entry_sentence(folder, body), list(&body.lines)) + &body.noted()
}

fn entry_count(folder: Option<&str>, body: &Body<'_>) -> String {
    format!("{}, not counting what is inside the folders.", entry_sentence(folder, body))
        + &body.noted()
}

fn entry_sentence(folder: Option<&str>, body: &Body<'_>) -> String {
    let holder = folder.map_or_else(|| "The workspace".to_owned(), code);
    format!("{holder} holds {}{}", body.at_least(), body.kinds())
}

fn found(glob: &str, folder: Option<&str>, body: &Body<'_>) -> String {
    if body.lines.is_empty() {
        return none_found(glob, folder, body);
    }
    format!("{}:\n\n{}", found_sentence(glob, folder, body), list(&body.lines)) + &body.noted()
}

fn none_found(glob: &str, folder: Option<&str>, body: &Body<'_>) -> String {
    format!("I found no file named {} in {}.", code(glob), place(folder)) + &body.excused()
}

fn found_count(glob: &str, folder: Option<&str>, body: &Body<'_>) -> String {
    if body.lines.is_empty() {
        return none_found(glob, folder, body);
    }
    format!("{}, folders inside included.", found_sentence(glob, folder, body)) + &body.noted()
}

fn found_sentence(glob: &str, folder: Option<&str>, body: &Body<'_>) -> String {
    format!("I found {}{} named {} in {}", body.at_least(), body.kinds(), code(glob), place(folder))
}

fn matches(wanted: &str, at: Option<&str>, body: &Body<'_>) -> String {
    if body.lines.is_empty() {
        return no_match(wanted, at, body);
    }
    format!(
        "{}:\n\n{}",
        match_sentence(wanted, at, body),
        block(&body.lines.join("\n"), Keep::Start)
    ) + &body.noted()
}

fn match_count(wanted: &str, at: Option<&str>, body: &Body<'_>) -> String {
    if body.lines.is_empty() {
        return no_match(wanted, at, body);
    }
    match_sentence(wanted, at, body) + "." + &body.noted()
}

fn no_match(wanted: &str, at: Option<&str>, body: &Body<'_>) -> String {
    format!("I found no line in {} that holds {}.", place(at), code(wanted)) + &body.excused()
}

fn match_sentence(wanted: &str, at: Option<&str>, body: &Body<'_>) -> String {
    let Matches { lines, files } = Matches::of(body);
    let lines = counted(lines, "line", "lines");
    let files = counted(files, "file", "files");
    format!("In {}, {} is on {}{lines} of {files}", place(at), code(wanted), body.at_least())
}

fn contents(file: &str, lines: Option<(u64, u64)>, text: &str) -> String {
    let what = match lines {
        None => code(file),
        Some((first, last)) if first == last => format!("line {first} of {}", code(file)),
        Some((first, last)) => format!("lines {first} to {last} of {}", code(file)),
    };
    if text.trim().is_empty() {
        return format!("I read {what}; the tool returned no text.");
    }
    format!("This is {what}:\n\n{}", block(text, Keep::Start))
}

fn number(file: &str, one: &str, many: &str, text: &str) -> String {
    match text.split_whitespace().next().and_then(|word| word.parse().ok()) {
        Some(number) => format!("{} has {}.", code(file), counted(number, one, many)),
        None => format!(
            "I asked for the {many} of {}, and got this:\n\n{}",
            code(file),
            block(text, Keep::Start)
        ),
    }
}

fn output(command: &str, text: &str) -> String {
    if text.trim().is_empty() || text.trim() == NO_OUTPUT {
        return format!("The command {} succeeded and printed nothing.", code(command));
    }
    format!("The command {} succeeded and printed:\n\n{}", code(command), block(text, Keep::End))
}

fn written(file: &str, content: &str) -> String {
    let lines = counted(content.lines().count(), "line", "lines");
    format!("I wrote {} ({lines}).", code(file))
}

#[cfg(test)]
mod tests;
