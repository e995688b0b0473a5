//! A tool call that has ended, as lines: edits as diffs, commands with the beginning and the end of their output.

use std::time::Duration;

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::outputs::StyledLine;
use crate::terminal::{Style, escaped, format_elapsed, truncated};

/// Lines of diffs that one call shows.
const DIFF_LINES: usize = 40;
/// Lines of the beginning of an output.
const FIRST_LINES: usize = 2;
/// Lines of the end of an output.
const LAST_LINES: usize = 3;
/// Lines of the end of the output of a call that failed: what went wrong mostly stands there.
const LAST_LINES_OF_FAILURE: usize = 12;
/// Before each line of an output.
const INDENT: &str = "  ";
/// Tools whose output is shown: that of the others is for the model.
const TALKATIVE: [&str; 2] = ["bash", "process"];

/// A call that has ended.
pub(super) struct EndedCall<'a> {
    pub(super) tool: &'a str,
    /// What it was about, in one line.
    pub(super) about: &'a str,
    pub(super) took: Duration,
    pub(super) is_error: bool,
    /// What the model reads.
    pub(super) text: &'a str,
    /// For user interfaces.
    pub(super) details: Option<&'a Value>,
}

/// The lines of a call: those that are shown, and all of them.
pub(super) struct ToolLines {
    pub(super) shown: Vec<StyledLine>,
    pub(super) all: Vec<StyledLine>,
}

impl EndedCall<'_> {
    /// Its lines, the shown ones in at most `columns` columns.
    pub(super) fn lines(&self, columns: usize) -> ToolLines {
        let diffs = self.diffs();
        let body = match diffs.as_slice() {
            [] => self.output(),
            [diff] if self.detail("path").is_some() => diff.lines.clone(),
            diffs => diffs.iter().flat_map(FileDiff::with_heading).collect(),
        };
        let head = self.head(&diffs, columns);
        let mut all = vec![(head.0, self.head(&diffs, usize::MAX).1)];
        let is_shown = self.is_error || !diffs.is_empty() || TALKATIVE.contains(&self.tool);
        let (first, last) = match (diffs.is_empty(), self.is_error) {
            (false, _) => (DIFF_LINES, 0),
            (true, false) => (FIRST_LINES, LAST_LINES),
            (true, true) => (FIRST_LINES, LAST_LINES_OF_FAILURE),
        };
        let mut shown = vec![head];
        if is_shown {
            let room = columns.saturating_sub(INDENT.len());
            let fits = |(style, line): &StyledLine| {
                (*style, format!("{INDENT}{}", truncated(line, room)).trim_end().to_owned())
            };
            // One line would only be replaced by another one.
            if body.len() <= first + last + 1 {
                shown.extend(body.iter().map(fits));
            } else {
                shown.extend(body[..first].iter().map(fits));
                let hidden = body.len() - first - last;
                let remark = (Style::Dim, format!("… {hidden} more lines (Ctrl-O)"));
                shown.push(fits(&remark));
                shown.extend(body[body.len() - last..].iter().map(fits));
            }
        }
        all.extend(body);
        ToolLines { shown, all }
    }

    fn detail(&self, name: &str) -> Option<&Value> {
        self.details?.get(name).filter(|value| !value.is_null())
    }

    /// `✓ bash cargo test  exit 0, 5.2 s`.
    fn head(&self, diffs: &[FileDiff], columns: usize) -> StyledLine {
        let (mark, style) = if self.is_error { ('✗', Style::Bad) } else { ('✓', Style::Dim) };
        let mut outcome: Vec<String> = Vec::new();
        if diffs.len() > 1 {
            outcome.push(format!("{} files", diffs.len()));
        }
        if !diffs.is_empty() {
            let sum = |count: fn(&FileDiff) -> usize| diffs.iter().map(count).sum::<usize>();
            outcome.push(format!("+{} -{}", sum(|diff| diff.added), sum(|diff| diff.removed)));
        }
        outcome.extend(self.ending());
        outcome.push(format_elapsed(self.took));
        let outcome = outcome.join(", ");
        let call =
            escaped(format!("{} {}", self.tool, self.about).trim_end()).replace(['\n', '\t'], " ");
        let room = columns.saturating_sub(outcome.width() + 4);
        (style, format!("{mark} {}  {outcome}", truncated(&call, room)))
    }

    /// How a command ended.
    fn ending(&self) -> Option<String> {
        if self.detail("timedOut") == Some(&Value::Bool(true)) {
            return Some("timed out".to_owned());
        }
        if self.detail("running") == Some(&Value::Bool(true)) {
            return Some("goes on in the background".to_owned());
        }
        let number = |name: &str| self.detail(name)?.as_i64();
        let code = number("exitCode").map(|code| format!("exit {code}"));
        code.or_else(|| number("signal").map(|signal| format!("signal {signal}")))
    }

    /// The lines of its output.
    fn output(&self) -> Vec<StyledLine> {
        let style =
            if self.is_error && !TALKATIVE.contains(&self.tool) { Style::Bad } else { Style::Dim };
        let text = self.text.strip_prefix("(no output)").unwrap_or(self.text);
        let mut lines: Vec<StyledLine> =
            text.trim_matches('\n').lines().map(|line| (style, shown_code(line))).collect();
        // The heading says it already.
        if self.ending().is_some()
            && lines.last().is_some_and(|(_, line)| line.starts_with("[exit code "))
        {
            lines.pop();
        }
        if text.trim().is_empty() {
            lines.clear();
        }
        lines
    }

    fn diffs(&self) -> Vec<FileDiff> {
        let of = |value: &Value| {
            let path = value["path"].as_str().unwrap_or_default();
            FileDiff::parse(path, value["diff"].as_str().unwrap_or_default())
        };
        match (self.detail("diffs").and_then(Value::as_array), self.details) {
            (Some(diffs), _) => diffs.iter().map(of).collect(),
            (None, Some(details)) if self.detail("diff").is_some() => vec![of(details)],
            _ => Vec::new(),
        }
    }
}

/// The changes of a file.
#[derive(Debug)]
struct FileDiff {
    path: String,
    added: usize,
    removed: usize,
    lines: Vec<StyledLine>,
}

impl FileDiff {
    /// Reads a unified diff.
    fn parse(path: &str, diff: &str) -> Self {
        let mut parsed = Self { path: path.to_owned(), added: 0, removed: 0, lines: Vec::new() };
        let (mut old, mut new) = (0, 0);
        let mut is_in_hunk = false;
        for line in diff.lines() {
            if let Some(starts) = hunk_starts(line) {
                if is_in_hunk {
                    parsed.lines.push((Style::Dim, "      ⋮".to_owned()));
                }
                ((old, new), is_in_hunk) = (starts, true);
                continue;
            }
            if !is_in_hunk {
                continue;
            }
            let text = shown_code(line.get(1..).unwrap_or_default());
            let (style, number, sign) = match line.as_bytes().first() {
                Some(b'+') => {
                    parsed.added += 1;
                    new += 1;
                    (Style::Good, new - 1, '+')
                }
                Some(b'-') => {
                    parsed.removed += 1;
                    old += 1;
                    (Style::Bad, old - 1, '-')
                }
                Some(b'\\') => {
                    parsed.lines.push((Style::Dim, format!("      {text}")));
                    continue;
                }
                _ => {
                    (old, new) = (old + 1, new + 1);
                    (Style::Dim, new - 1, ' ')
                }
            };
            parsed.lines.push((style, format!("{number:>5} {sign} {text}")));
        }
        parsed
    }

    fn with_heading(&self) -> Vec<StyledLine> {
        let counts = format!("{}  +{} -{}", escaped(&self.path), self.added, self.removed);
        let mut lines = vec![(Style::Bold, counts.replace(['\n', '\t'], " "))];
        lines.extend(self.lines.iter().cloned());
        lines
    }
}

/// The line numbers in `@@ -12,5 +12,6 @@`.
fn hunk_starts(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let start = |range: &str| range.split(',').next().and_then(|number| number.parse().ok());
    Some((start(old)?, start(new)?))
}

/// A line of a file or of an output: its indentation stays.
pub(super) fn shown_code(line: &str) -> String {
    escaped(line).replace('\t', "    ")
}

#[cfg(test)]
mod tests;
