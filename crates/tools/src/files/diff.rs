//! Unified diffs for user interfaces.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, group_diff_ops};

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

/// How two lists differ. A search that takes longer than `deadline` may find more differences than necessary.
pub(crate) fn differences<'a, T: Eq + Hash>(
    old: &'a [T],
    new: &'a [T],
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    // The search is long code, which is compiled for each type of items: all are compared as numbers.
    let mut numbers = HashMap::new();
    let mut numbered = |items: &'a [T]| -> Vec<usize> {
        let number = |item| {
            let next = numbers.len();
            *numbers.entry(item).or_insert(next)
        };
        items.iter().map(number).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    let mut found = Compact::new(Replace::new(Capture::new()), &old, &new);
    let Ok(()) = myers::diff_deadline(&mut found, &old, 0..old.len(), &new, 0..new.len(), deadline);
    found.into_inner().into_inner().into_ops()
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
    let operations = differences(&old_lines, &new_lines, Some(deadline));
    let mut text = format!("--- a/{shown_path}\n+++ b/{shown_path}\n");
    for hunk in group_diff_ops(operations, CONTEXT_LINES) {
        text.push_str(&format!("{}\n", UnifiedHunkHeader::new(&hunk)));
        for change in
            hunk.iter().flat_map(|operation| operation.iter_changes(&old_lines, &new_lines))
        {
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
