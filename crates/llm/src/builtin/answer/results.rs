//! Reading what the tools return: lines of names or matches, with notes in brackets behind them.

use std::collections::HashSet;

use super::layout::counted;

/// A result of a tool that lists something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body<'t> {
    /// What it lists; empty if it found nothing.
    pub(super) lines: Vec<&'t str>,
    /// How the tool says that it found nothing, with what it did not look at.
    excuse: Option<&'t str>,
    /// What the tool adds about its own limits.
    notes: Vec<&'t str>,
}

impl<'t> Body<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let entries = lines.iter().rposition(|line| !is_note(line)).map_or(0, |last| last + 1);
        let notes = lines.split_off(entries);
        // A lone sentence says that there is nothing; names of files have no such words in front.
        let excuse = match lines.as_slice() {
            [only] if says_nothing(only) => lines.pop(),
            _ => None,
        };
        Self { lines, excuse, notes }
    }

    /// How many of the lines are files and how many are folders, in words; folders only if there are any.
    pub(super) fn kinds(&self) -> String {
        let folders = self.lines.iter().filter(|line| is_folder(line)).count();
        let files = counted(self.lines.len() - folders, "file", "files");
        if folders == 0 {
            files
        } else {
            format!("{files} and {}", counted(folders, "folder", "folders"))
        }
    }

    /// The tool's own words for finding nothing, and its notes, as a paragraph.
    pub(super) fn excused(&self) -> String {
        let excuse =
            self.excuse.map_or_else(String::new, |excuse| format!(" The tool says: {excuse}"));
        excuse + &self.noted()
    }

    /// `at least ` if the tool did not return everything.
    pub(super) fn at_least(&self) -> &'static str {
        if self.notes.is_empty() { "" } else { "at least " }
    }

    /// The tool's notes as a paragraph, if there are any.
    pub(super) fn noted(&self) -> String {
        if self.notes.is_empty() { String::new() } else { format!("\n\n{}", self.notes.join("\n")) }
    }
}

/// `docs/`, and `docs/ -> elsewhere` for a link to a folder.
fn is_folder(line: &str) -> bool {
    line.split(" -> ").next().is_some_and(|name| name.ends_with('/'))
}

/// `[Some words]`, as opposed to a file named `[id]`.
fn is_note(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') && line.ends_with(']') && line.contains(' ')
}

fn says_nothing(line: &str) -> bool {
    let line = line.trim().trim_start_matches('(').to_ascii_lowercase();
    line.starts_with("no ")
        || line.starts_with("nothing ")
        || line.starts_with("empty")
        || line.ends_with(" is empty")
}

/// How much a search found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Matches {
    pub(super) lines: usize,
    pub(super) files: usize,
}

impl Matches {
    /// Counts `path:line: text`; where the lines have no such form, every line counts as one of a single file.
    pub(super) fn of(body: &Body<'_>) -> Self {
        let matched: Vec<&str> = body.lines.iter().filter_map(|line| path_of(line)).collect();
        if matched.is_empty() {
            return Self { lines: body.lines.len(), files: usize::from(!body.lines.is_empty()) };
        }
        let files: HashSet<&str> = matched.iter().copied().collect();
        Self { lines: matched.len(), files: files.len() }
    }
}

/// What stands before the first `:number:`.
fn path_of(line: &str) -> Option<&str> {
    line.match_indices(':').find_map(|(colon, _)| {
        let digits = line[colon + 1..].split(':').next()?;
        let behind = line[colon + 1 + digits.len()..].starts_with(':');
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (behind && is_number).then(|| &line[..colon])
    })
}
