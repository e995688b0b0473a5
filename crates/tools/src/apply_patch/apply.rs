//! The hunks of one file, applied to its text in memory.

use std::ops::Range;
use std::time::Instant;

use super::locate::{Locator, Misfit, Place, changed_lines};
use super::model::{BodyLine, Hunk, Role};
use crate::files::{Document, LineEnding, Lines, Shift, Splice, diff_deadline, kept};
use crate::support::Budget;

/// Most hunks of one file that an error names.
const MAX_MISFITS: usize = 50;

/// The result of applying hunks.
#[derive(Debug)]
pub(super) struct Applied {
    pub bytes: Vec<u8>,
    /// The differences from the patch, one text for each hunk that has any.
    pub remarks: Vec<String>,
}

/// A range of lines and its replacement.
struct Edit<'h> {
    lines: Range<usize>,
    old: Vec<&'h BodyLine>,
    new: Vec<&'h BodyLine>,
    shift: Shift,
    style: EndingStyle,
    final_newline: FinalNewline,
}

/// The line endings that new lines get.
#[derive(Clone, Copy)]
enum EndingStyle {
    /// Those of the patch, whose context lines have the right ones.
    AsInPatch,
    /// Those at the place in the file.
    AsInFile(LineEnding),
}

/// What a hunk does to the newline at the end of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalNewline {
    /// Stays as it is.
    Keep,
    /// It is added if it is missing.
    Add,
    /// It is removed if it is there.
    Remove,
}

/// Applies `hunks`, or returns the reason for each hunk that cannot be applied.
pub(super) fn apply(
    document: &Document,
    hunks: &[Hunk],
    budget: &Budget,
) -> Result<Applied, Vec<Misfit>> {
    let lines = Lines::of(document.text());
    let mut locator = Locator::new(&lines, budget);
    let mut edits = Vec::new();
    let mut remarks = Vec::new();
    let mut misfits = Vec::new();
    for (index, hunk) in hunks.iter().enumerate() {
        if misfits.len() == MAX_MISFITS {
            misfits.push(format!("the {} hunks after it were not checked", hunks.len() - index));
            break;
        }
        if !budget.spend(hunk.body.len()) {
            break;
        }
        match locator.locate(hunk) {
            Ok(place) => {
                remarks.extend(remark(index, hunk, &place));
                edits.extend(edits_of(&lines, hunk, &place));
            }
            Err(misfit) => misfits.push(format!(
                "hunk {} (line {} of the patch): {misfit}",
                index + 1,
                hunk.line
            )),
        }
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    let deadline = diff_deadline();
    let splices: Vec<Splice> = edits.iter().map(|edit| splice(&lines, edit, deadline)).collect();
    let bytes = document.spliced(&splices).map_err(|error| vec![error.to_string()])?;
    Ok(Applied { bytes, remarks })
}

/// The content of a file that did not exist. Only added lines can make one.
pub(super) fn new_content(hunks: &[Hunk]) -> Option<String> {
    let body = || hunks.iter().flat_map(|hunk| &hunk.body);
    if body().any(|line| line.role != Role::Add) {
        return None;
    }
    let mut content = String::new();
    for line in body() {
        content.push_str(&line.raw);
        if !line.no_newline {
            content.push('\n');
        }
    }
    Some(content)
}

fn remark(index: usize, hunk: &Hunk, place: &Place) -> Option<String> {
    let mut parts = Vec::new();
    let expected = hunk.old_start.filter(|_| hunk.old_lines().next().is_some());
    if let Some(expected) = expected.filter(|expected| *expected != place.first + 1) {
        parts.push(format!("at line {} instead of {expected}", place.first + 1));
    }
    if let Some(overlooked) = place.tolerance.overlooked() {
        parts.push(format!("although {overlooked} differed"));
    }
    (!parts.is_empty()).then(|| format!("hunk {} applied {}", index + 1, parts.join(", ")))
}

fn edits_of<'h>(lines: &Lines<'_>, hunk: &'h Hunk, place: &Place) -> Vec<Edit<'h>> {
    let shown = place.first..place.first + hunk.old_lines().count();
    let is_faithful = !shown.is_empty()
        && hunk.old_lines().zip(shown.clone()).all(|(line, index)| {
            lines
                .ending(index)
                .is_none_or(|ending| line.has_return() == (ending == LineEnding::CrLf))
        });
    let style = if is_faithful {
        EndingStyle::AsInPatch
    } else {
        EndingStyle::AsInFile(lines.ending_at(shown))
    };
    let final_newline = final_newline(hunk);
    let runs = hunk.body.split(|line| line.role == Role::Context).filter(|run| !run.is_empty());
    let of = |run: &'h [BodyLine], role| run.iter().filter(|line| line.role == role).collect();
    changed_lines(hunk, place.first)
        .into_iter()
        .zip(runs)
        .map(|(lines, run)| Edit {
            lines,
            old: of(run, Role::Remove),
            new: of(run, Role::Add),
            shift: place.shift.clone(),
            style,
            final_newline,
        })
        .collect()
}

fn final_newline(hunk: &Hunk) -> FinalNewline {
    let lacks = |role| hunk.body.iter().any(|line| line.role == role && line.no_newline);
    match (lacks(Role::Remove), lacks(Role::Add)) {
        (true, false) => FinalNewline::Add,
        (false, true) => FinalNewline::Remove,
        _ => FinalNewline::Keep,
    }
}

fn splice(lines: &Lines<'_>, edit: &Edit<'_>, deadline: Instant) -> Splice {
    let range = lines.start(edit.lines.start)..lines.start(edit.lines.end);
    let mut replacement = String::new();
    let mut last_ending = "";
    let removed = edit.lines.clone().map(|index| lines.content(index));
    let written = edit.old.iter().map(|line| edit.shift.apply(line.text()));
    let given = edit.new.iter().map(|line| edit.shift.apply(line.text())).collect();
    let new = kept(removed.zip(written), given, deadline);
    for (line, text) in edit.new.iter().zip(new) {
        last_ending = match edit.style {
            EndingStyle::AsInPatch if line.has_return() => LineEnding::CrLf.as_str(),
            EndingStyle::AsInPatch => LineEnding::Lf.as_str(),
            EndingStyle::AsInFile(ending) => ending.as_str(),
        };
        replacement.push_str(&text);
        replacement.push_str(last_ending);
    }
    let length = lines.len();
    if edit.lines.end == length && !edit.new.is_empty() {
        let is_unended = length > 0 && lines.ending(length - 1).is_none();
        if is_unended && edit.lines.is_empty() {
            // The former last line gets a newline; the new last line has none, as the former had none.
            replacement.insert_str(0, last_ending);
        }
        let is_dropped = match edit.final_newline {
            FinalNewline::Keep => is_unended,
            FinalNewline::Add => false,
            FinalNewline::Remove => true,
        };
        if is_dropped {
            replacement.truncate(replacement.len() - last_ending.len());
        }
    }
    Splice { range, replacement }
}
