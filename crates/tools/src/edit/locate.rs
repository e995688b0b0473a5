//! Where `oldText` is in a file.

use std::borrow::Cow;
use std::ops::Range;

use myclaw_engine::ToolError;

use super::Arguments;
use super::numbered::without_line_numbers;
use crate::files::{Lines, Shift, Tolerance, find_blocks};

/// Levels that are tried where the text itself is not found.
const TOLERANCES: [Tolerance; 4] = [
    Tolerance::Exact,
    Tolerance::TrailingWhitespace,
    Tolerance::Typography,
    Tolerance::Indentation,
];

/// One stretch of the file that `oldText` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    /// Where the text between its line endings lies: one range for each piece of [`Located::old`].
    pub pieces: Vec<Range<usize>>,
    /// How its indentation differs from that of `oldText`.
    pub shift: Shift,
}

impl Region {
    pub(super) fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.start)
    }

    fn end(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.end)
    }
}

/// All places, with what they were found by.
#[derive(Debug)]
pub(super) struct Located {
    /// In order, not overlapping if all are to be replaced.
    pub regions: Vec<Region>,
    /// `oldText` between its newlines, as it was found.
    pub old: Vec<String>,
    /// `newText` between its newlines.
    pub new: Vec<String>,
    /// What `oldText` and the file differ in.
    pub tolerance: Tolerance,
    /// Whether line numbers in front of `oldText` were not part of the file.
    pub numbers_removed: bool,
}

/// Finds every place of `oldText`, the strictest way that finds any; `None` if there is none.
///
/// # Errors
/// If `oldText` was found without its line numbers, but `newText` has them on some lines only.
pub(super) fn locate(
    text: &str,
    lines: &Lines<'_>,
    arguments: &Arguments,
) -> Result<Option<Located>, ToolError> {
    let old = pieces(&arguments.old_text);
    let new = pieces(&arguments.new_text);
    let mut regions = substrings(text, &arguments.old_text);
    if regions.is_empty() {
        regions = folded_substrings(text, &old);
    }
    let found = if regions.is_empty() {
        whole_lines(lines, old, new)
    } else {
        Some(Located { regions, old, new, tolerance: Tolerance::Exact, numbers_removed: false })
    };
    let found = match found {
        Some(found) => Some(found),
        None => without_numbers(lines, arguments)?,
    };
    Ok(found.map(|mut found| {
        if arguments.all {
            drop_overlapping(&mut found.regions);
        }
        found
    }))
}

fn without_numbers(lines: &Lines<'_>, arguments: &Arguments) -> Result<Option<Located>, ToolError> {
    let Some(old) = without_line_numbers(&pieces(&arguments.old_text)) else { return Ok(None) };
    let new = pieces(&arguments.new_text);
    let bare_new = without_line_numbers(&new);
    let has_some_numbers = bare_new.is_none()
        && new.iter().any(|line| without_line_numbers(std::slice::from_ref(line)).is_some());
    let Some(found) = whole_lines(lines, old, bare_new.unwrap_or(new)) else { return Ok(None) };
    if has_some_numbers {
        return Err(ToolError::Failed(
            "oldText has line numbers in front that are not in the file, and newText has them on some lines only. \
             Call again without line numbers"
                .to_owned(),
        ));
    }
    Ok(Some(Located { numbers_removed: true, ..found }))
}

/// A text between its newlines.
fn pieces(text: &str) -> Vec<String> {
    text.split('\n').map(|piece| piece.strip_suffix('\r').unwrap_or(piece).to_owned()).collect()
}

/// Places where the file has these very characters, line endings included.
fn substrings(text: &str, old: &str) -> Vec<Region> {
    let splits_an_ending = |offset: usize| {
        offset > 0
            && text.as_bytes()[offset - 1] == b'\r'
            && text.as_bytes().get(offset) == Some(&b'\n')
    };
    occurrences(text, old)
        .map(|start| start..start + old.len())
        .filter(|range| !splits_an_ending(range.start) && !splits_an_ending(range.end))
        .map(|range| Region { pieces: piece_ranges(text, range), shift: Shift::None })
        .collect()
}

/// Places where the file has these characters with any line endings between them.
fn folded_substrings(text: &str, old: &[String]) -> Vec<Region> {
    let folded: Cow<'_, str> = if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    // Offsets in the folded text of the newlines that lost their return.
    let mut shortened = Vec::new();
    for (offset, _) in text.match_indices("\r\n") {
        shortened.push(offset - shortened.len());
    }
    let unfolded = |offset: usize| offset + shortened.partition_point(|newline| *newline < offset);
    let old = old.join("\n");
    occurrences(&folded, &old)
        .map(|start| unfolded(start)..unfolded(start + old.len()))
        .map(|range| Region { pieces: piece_ranges(text, range), shift: Shift::None })
        .collect()
}

/// Every offset of `old` in `text`, overlapping ones too: "aa" is in "aaa" twice, so it names no one place there.
fn occurrences<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        if old.is_empty() {
            return None;
        }
        let offset = from + text.get(from..)?.find(old)?;
        from = offset + step;
        Some(offset)
    })
}

fn piece_ranges(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = range.start;
    for newline in memchr::memchr_iter(b'\n', &text.as_bytes()[range.clone()]) {
        let newline = range.start + newline;
        let has_return = newline > start && text.as_bytes()[newline - 1] == b'\r';
        ranges.push(start..newline - usize::from(has_return));
        start = newline + 1;
    }
    ranges.push(start..range.end);
    ranges
}

/// Places where whole lines of the file are those of `old`, but for what a tolerance overlooks.
fn whole_lines(lines: &Lines<'_>, mut old: Vec<String>, mut new: Vec<String>) -> Option<Located> {
    let ends_with_newline = old.last().is_some_and(String::is_empty);
    let wanted: Vec<&str> =
        old[..old.len() - usize::from(ends_with_newline)].iter().map(String::as_str).collect();
    let (tolerance, blocks) = TOLERANCES
        .into_iter()
        .map(|tolerance| (tolerance, find_blocks(lines, &wanted, tolerance)))
        .find(|(_, blocks)| !blocks.is_empty())?;
    let count = wanted.len();
    // Whole lines are replaced by whole lines, even if only oldText has a newline behind the last one.
    let joins_lines = new.last().is_some_and(|last| !last.is_empty());
    // A file whose last line has no newline keeps it so, whatever stands behind the last line of oldText.
    let is_unended = |first: usize| lines.ending(first + count - 1).is_none();
    let drops_final_piece =
        ends_with_newline && (joins_lines || blocks.iter().all(|block| is_unended(block.first)));
    let keeps_final_piece = ends_with_newline && !drops_final_piece;
    let regions = blocks
        .into_iter()
        .filter(|block| !keeps_final_piece || !is_unended(block.first))
        .map(|block| {
            let end = block.first + count;
            let mut pieces: Vec<_> =
                (block.first..end).map(|index| lines.content_range(index)).collect();
            if keeps_final_piece {
                pieces.push(lines.start(end)..lines.start(end));
            }
            Region { pieces, shift: block.shift }
        })
        .collect();
    if drops_final_piece {
        old.pop();
        if new.len() > 1 && new.last().is_some_and(String::is_empty) {
            new.pop();
        }
    }
    Some(Located { regions, old, new, tolerance, numbers_removed: false })
}

fn drop_overlapping(regions: &mut Vec<Region>) {
    let mut end = 0;
    regions.retain(|region| {
        let keep = region.start() >= end;
        if keep {
            end = region.end().max(region.start() + 1);
        }
        keep
    });
}
