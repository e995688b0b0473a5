//! Unified diffs for user interfaces.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

use super::Lines;
use crate::support::cut_end;

/// Most characters of a diff that are kept with a result.
const MAX_DIFF_CHARS: usize = 20_000;
/// Most bytes of the two texts together for which a diff is made.
const MAX_COMPARED_BYTES: usize = 4 * 1024 * 1024;
/// How long one call searches for the shortest diffs; after that diffs may be longer than necessary.
const SEARCH_TIME: Duration = Duration::from_millis(300);
/// Unchanged lines around each change.
const CONTEXT_LINES: usize = 3;

/// The end of the search for the shortest diffs, for a call that begins now.
pub(crate) fn diff_deadline() -> Instant {
    Instant::now() + SEARCH_TIME
}

/// The part of a diff that is kept with a result.
pub(crate) fn kept_diff(diff: &str) -> String {
    cut_end(diff, MAX_DIFF_CHARS).into_owned()
}

/// The whole difference between `old` and `new` as a unified diff; `None` if the texts are too large to compare. Line endings are left out of the text, but a line whose ending changed counts as changed.
pub(crate) fn unified_diff(
    shown_path: &str,
    old: &str,
    new: &str,
    deadline: Instant,
) -> Option<String> {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let (old_lines, new_lines) = (whole_lines(old), whole_lines(new));
    let diff = TextDiff::configure().deadline(deadline).diff_slices(&old_lines, &new_lines);
    let mut text = format!("--- a/{shown_path}\n+++ b/{shown_path}\n");
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value();
            text.push(sign);
            text.push_str(line.trim_end_matches(['\r', '\n']));
            text.push('\n');
            if !line.ends_with('\n') {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
    Some(text)
}

/// The lines of `text`, each with its line ending.
fn whole_lines(text: &str) -> Vec<&str> {
    let lines = Lines::of(text);
    (0..lines.len()).map(|index| &text[lines.start(index)..lines.start(index + 1)]).collect()
}

#[cfg(test)]
mod tests;
