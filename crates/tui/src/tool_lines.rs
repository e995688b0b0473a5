//! A tool call that has ended, as lines: edits as diffs, commands with the beginning and the end of their output.

use std::time::Duration;

use myclaw_agent::declaration_of;
use myclaw_engine::ToolKind;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use myclaw_front::terminal::highlight::Highlighter;
use myclaw_front::terminal::{Style, StyledLine, escaped, format_elapsed, truncated, wrapped};

/// Lines of diffs that one call shows.
const DIFF_LINES: usize = 40;
/// Lines of the beginning of an output.
const FIRST_LINES: usize = 2;
/// Lines of the end of an output.
const LAST_LINES: usize = 3;
/// Lines of the end of the output of a call that failed: what went wrong mostly stands there.
const LAST_LINES_OF_FAILURE: usize = 12;
/// Rows that one line of the reason of a failure fills, if its words fit without gaps.
const ROWS_OF_REASON: usize = 4;
/// Lines of a file or of its diff that have the colours of its language.
const MOST_COLOURED: usize = 2_000;
/// How the note for the model begins that a command continues.
const JOB_NOTE: &str = "[background job ";
/// What the model reads of a command that has printed nothing.
const NOTHING_YET: &str = "(no output yet)";
/// Before each line of an output.
const INDENT: &str = "  ";

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
    /// Whether the output is shown: that of most tools is for the model.
    fn is_talkative(&self) -> bool {
        matches!(declaration_of(self.tool).kind, ToolKind::Run | ToolKind::Attend)
    }

    /// Its lines, the shown ones in at most `columns` columns.
    pub(super) fn lines(&self, columns: usize) -> ToolLines {
        let diffs = self.diffs();
        let body = match diffs.as_slice() {
            [] => self.output(),
            [diff] if self.detail("path").is_some() => diff.lines.clone(),
            diffs => diffs.iter().flat_map(FileDiff::with_heading).collect(),
        };
        let head = self.head(&diffs, columns);
        let mut all = vec![self.head(&diffs, usize::MAX)];
        let is_shown = self.is_error || !diffs.is_empty() || self.is_talkative();
        let (first, last) = match (diffs.is_empty(), self.is_error) {
            (false, _) => (DIFF_LINES, 0),
            (true, false) => (FIRST_LINES, LAST_LINES),
            (true, true) => (FIRST_LINES, LAST_LINES_OF_FAILURE),
        };
        let mut shown = vec![head];
        if is_shown {
            let room = columns.saturating_sub(INDENT.len());
            let fits = |line: &StyledLine| self.fitting(line, room);
            // One line would only be replaced by another one.
            if body.len() <= first + last + 1 {
                shown.extend(body.iter().flat_map(fits));
            } else {
                shown.extend(body[..first].iter().flat_map(fits));
                let hidden = body.len() - first - last + self.lines_not_kept();
                let remark = StyledLine::new(Style::Dim, format!("… {hidden} more lines (Ctrl-O)"));
                shown.extend(fits(&remark));
                shown.extend(body[body.len() - last..].iter().flat_map(fits));
            }
        }
        all.extend(body);
        ToolLines { shown, all }
    }

    /// The rows of a line in at most `room` columns: one, but for why a call failed, which is read to its end.
    fn fitting(&self, line: &StyledLine, room: usize) -> Vec<StyledLine> {
        let is_reason = self.is_error && !self.is_talkative();
        if is_reason && line.spans.is_empty() && !line.text.trim().is_empty() {
            let text = truncated(&line.text, room.saturating_mul(ROWS_OF_REASON));
            let rows = wrapped(&text, room).into_iter();
            return rows.map(|row| StyledLine::new(line.style, row).behind(INDENT)).collect();
        }
        let cut = line.truncated(room);
        vec![match cut.text.trim_end().len() {
            0 => StyledLine::new(line.style, ""),
            kept => cut.part(0..kept).behind(INDENT),
        }]
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
        StyledLine::new(style, format!("{mark} {}  {outcome}", truncated(&call, room)))
    }

    /// How a command ended.
    fn ending(&self) -> Option<String> {
        if self.detail("timedOut") == Some(&Value::Bool(true)) {
            return Some("timed out".to_owned());
        }
        if self.detail("running") == Some(&Value::Bool(true)) {
            let id = self.detail("jobId").and_then(Value::as_str).unwrap_or_default();
            return Some(format!("goes on as {id}; /jobs"));
        }
        let number = |name: &str| self.detail(name)?.as_i64();
        let code = number("exitCode").map(|code| format!("exit {code}"));
        code.or_else(|| number("signal").map(|signal| format!("signal {signal}")))
    }

    /// Lines at the beginning of a command's output that were counted and not kept.
    fn lines_not_kept(&self) -> usize {
        let total = self.detail("totalLines").and_then(Value::as_u64);
        let lines: Vec<&str> = self.text.lines().collect();
        let kept = lines.iter().rposition(|line| line.starts_with("[output cut: "));
        let (Some(total), Some(kept)) = (total, kept) else { return 0 };
        usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(kept)
    }

    /// The lines of its output.
    fn output(&self) -> Vec<StyledLine> {
        let style = if self.is_error && !self.is_talkative() { Style::Bad } else { Style::Dim };
        let text = self.text.strip_prefix("(no output)").unwrap_or(self.text);
        let mut lines: Vec<StyledLine> = text
            .trim_matches('\n')
            .lines()
            .map(|line| StyledLine::new(style, shown_code(last_state(line))))
            .collect();
        if declaration_of(self.tool).kind == ToolKind::Read && !self.is_error {
            coloured(self.about, &mut lines);
        }
        // What follows the output is for the model, and the heading says it.
        if self.detail("running") == Some(&Value::Bool(true))
            && let Some(at) = lines.iter().rposition(|line| line.text.starts_with(JOB_NOTE))
        {
            lines.truncate(at);
            lines.retain(|line| line.text != NOTHING_YET);
        }
        // The heading says it already.
        if self.ending().is_some()
            && lines.last().is_some_and(|line| line.text.starts_with("[exit code "))
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
        let (mut colours_of_old, mut colours_of_new) = (None, None);
        for line in diff.lines() {
            if let Some(starts) = hunk_starts(line) {
                if is_in_hunk {
                    parsed.lines.push(StyledLine::new(Style::Dim, "      ⋮"));
                }
                ((old, new), is_in_hunk) = (starts, true);
                // What comes between is not known.
                colours_of_new =
                    Highlighter::of_path(path).filter(|_| parsed.lines.len() < MOST_COLOURED);
                colours_of_old.clone_from(&colours_of_new);
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
                    (Style::Added, new - 1, '+')
                }
                Some(b'-') => {
                    parsed.removed += 1;
                    old += 1;
                    (Style::Removed, old - 1, '-')
                }
                Some(b'\\') => {
                    parsed.lines.push(StyledLine::new(Style::Dim, format!("      {text}")));
                    continue;
                }
                _ => {
                    (old, new) = (old + 1, new + 1);
                    (Style::Dim, new - 1, ' ')
                }
            };
            let colours = |of: &mut Option<Highlighter>| {
                of.as_mut().map(|of| of.line(&text)).unwrap_or_default()
            };
            let spans = match sign {
                '-' => colours(&mut colours_of_old),
                '+' => colours(&mut colours_of_new),
                _ => {
                    colours(&mut colours_of_old);
                    colours(&mut colours_of_new)
                }
            };
            let line = StyledLine { style, text, spans };
            parsed.lines.push(line.behind(&format!("{number:>5} {sign} ")));
        }
        parsed
    }

    fn with_heading(&self) -> Vec<StyledLine> {
        let counts = format!("{}  +{} -{}", escaped(&self.path), self.added, self.removed);
        let mut lines = vec![StyledLine::new(Style::Bold, counts.replace(['\n', '\t'], " "))];
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

/// Gives the lines of a file the colours of its language.
fn coloured(path: &str, lines: &mut [StyledLine]) {
    let Some(mut highlighter) = Highlighter::of_path(path) else { return };
    for line in lines.iter_mut().take(MOST_COLOURED) {
        line.spans = highlighter.line(&line.text);
    }
}

/// What a terminal shows of a line that was written over: its last state.
pub(super) fn last_state(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

/// A line of a file or of an output: its indentation stays.
pub(super) fn shown_code(line: &str) -> String {
    escaped(line).replace('\t', "    ")
}

#[cfg(test)]
mod tests;
