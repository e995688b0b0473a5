//! One search over many files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grep_matcher::LineTerminator;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use myclaw_engine::ToolError;
use myclaw_files::{ClosedNow, open_real};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::MAX_PATTERN_CHARS;
use super::matcher::LineMatcher;
use crate::support::{Listing, cut_line, shown_below};

/// Most characters of a line that are shown.
const MAX_LINE_CHARS: usize = 500;
/// Most memory for the lines of one file: a file of one endless line is skipped instead of loaded.
const MAX_BUFFER_BYTES: usize = 16 * 1024 * 1024;

/// A search and what it has found so far.
pub(super) struct Search {
    matcher: LineMatcher,
    searcher: Searcher,
    closed: ClosedNow,
    cancel: CancellationToken,
    limit: usize,
    lines_around: usize,
    found: Found,
}

struct Found {
    listing: Listing,
    matches: usize,
    files: usize,
    binary: usize,
    unreadable: usize,
    closed: Option<String>,
    stopped: Option<Stopped>,
}

/// Why not everything was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// More matches than requested were found.
    AtLimit,
    /// The result has its maximum length.
    Full,
}

/// Whether the search continues with another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// All of the file was searched, or it was skipped.
    Complete,
    /// The result is complete.
    Early,
}

impl Search {
    pub(super) fn new(
        matcher: LineMatcher,
        lines_around: usize,
        limit: usize,
        max_chars: usize,
        closed: ClosedNow,
        cancel: CancellationToken,
    ) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(lines_around)
            .after_context(lines_around)
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let found = Found {
            listing: Listing::new(max_chars),
            matches: 0,
            files: 0,
            binary: 0,
            unreadable: 0,
            closed: None,
            stopped: None,
        };
        Self { matcher, searcher, closed, cancel, limit, lines_around, found }
    }

    /// Searches one file. Files that cannot be read are counted, not reported as failures.
    ///
    /// # Errors
    /// [`ToolError::Aborted`] once the run is cancelled.
    pub(super) fn file(&mut self, path: &Path, root: &Path) -> Result<Ending, ToolError> {
        let matches_before = self.found.matches;
        let mut sink = FileSink {
            shown: shown_below(path, root),
            limit: self.limit,
            shows_groups: self.lines_around > 0,
            separator_is_due: self.lines_around > 0 && !self.found.listing.is_empty(),
            found: &mut self.found,
        };
        let cancel = &self.cancel;
        let searched = open_real(path).and_then(|file| {
            if self.closed.is_closed_file(&file.metadata()?) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.searcher.search_reader(&self.matcher, Cancellable { file, cancel }, &mut sink)
        });
        self.found.files += usize::from(self.found.matches > matches_before);
        if self.cancel.is_cancelled() {
            return Err(ToolError::Aborted(format!(
                "aborted after {} matches",
                self.found.matches
            )));
        }
        if searched.is_err() {
            self.found.unreadable += 1;
        }
        Ok(if self.found.stopped.is_some() { Ending::Early } else { Ending::Complete })
    }

    /// Notes the directories that could not be read, and what is closed to tools.
    pub(super) fn left_out(&mut self, unreadable: usize, closed: Option<String>) {
        self.found.unreadable += unreadable;
        self.found.closed = closed;
    }

    /// Number of matching lines so far.
    pub(super) fn matches(&self) -> usize {
        self.found.matches
    }

    /// For user interfaces.
    pub(super) fn details(&self) -> Value {
        json!({
            "matches": self.found.matches,
            "files": self.found.files,
            "truncated": self.found.stopped.is_some(),
        })
    }

    /// The text of the result.
    pub(super) fn finish(self, pattern: &str, place: &str, is_exact: bool) -> String {
        let found = self.found;
        let mut notes = Vec::new();
        if !is_exact {
            notes.push(
                "these lines differ from the pattern in typographic quotes, dashes or spaces; none has the pattern's own"
                    .to_owned(),
            );
        }
        match found.stopped {
            Some(Stopped::AtLimit) => notes.push(format!(
                "{} matches shown, there are more; narrow by path or glob, or raise limit",
                found.matches
            )),
            Some(Stopped::Full) => notes.push(format!(
                "cut after {} matches because the result is full; narrow by path, glob or pattern",
                found.matches
            )),
            None => {}
        }
        if found.binary > 0 && found.matches == 0 {
            notes.push(format!("binary files skipped: {}", found.binary));
        }
        if found.unreadable > 0 {
            notes.push(format!(
                "files and directories that could not be read: {}",
                found.unreadable
            ));
        }
        if self.matcher.skipped() > 0 {
            notes.push(format!(
                "long lines not searched, because the pattern is too large for them: {}; shorten the pattern",
                self.matcher.skipped()
            ));
        }
        notes.extend(found.closed);
        let pattern = cut_line(pattern, MAX_PATTERN_CHARS);
        let nothing = format!(
            "no match for {pattern:?} in {place} (ignored and binary files are not searched)"
        );
        found.listing.finish(&nothing, &notes)
    }
}

/// Takes what is found in one file.
struct FileSink<'a> {
    shown: String,
    limit: usize,
    shows_groups: bool,
    /// Whether a line of dashes comes before the next line of this file.
    separator_is_due: bool,
    found: &'a mut Found,
}

impl FileSink<'_> {
    /// Adds a line, marked by `mark` as a match or as one around it. Returns whether to go on.
    fn push(&mut self, mark: char, number: Option<u64>, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = cut_line(line.trim_end_matches(['\r', '\n']), MAX_LINE_CHARS);
        let number = number.unwrap_or_default();
        let separator = if std::mem::take(&mut self.separator_is_due) { "--\n" } else { "" };
        let text = format!("{separator}{}{mark}{number}{mark} {line}", self.shown);
        if self.found.listing.push_line(&text).is_err() {
            self.found.stopped = Some(Stopped::Full);
        }
        self.found.stopped.is_none()
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.found.matches == self.limit {
            self.found.stopped = Some(Stopped::AtLimit);
            return Ok(false);
        }
        let goes_on = self.push(':', found.line_number(), found.bytes());
        self.found.matches += usize::from(goes_on);
        Ok(goes_on)
    }

    fn context(
        &mut self,
        _searcher: &Searcher,
        context: &SinkContext<'_>,
    ) -> Result<bool, io::Error> {
        // Context before a match that is not shown is not shown either.
        if self.found.matches == self.limit && *context.kind() == SinkContextKind::Before {
            return Ok(true);
        }
        Ok(self.push('-', context.line_number(), context.bytes()))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        self.separator_is_due = self.shows_groups;
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> Result<bool, io::Error> {
        self.found.binary += 1;
        Ok(false)
    }
}

/// A file whose reading ends when the run is cancelled: one file can be many gigabytes.
struct Cancellable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
