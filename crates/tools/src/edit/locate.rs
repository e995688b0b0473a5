//! Where `oldText` is in a file.

use std::ops::Range;

use myclaw_engine::ToolError;
use myclaw_files::{Folded, Sameness, folded};

use super::Arguments;
use super::numbered::without_line_numbers;
use crate::files::{Block, BlockFinder, Lines, MAX_BLOCKS, Shift, Tolerance};
use crate::support::Budget;

/// The levels of tolerance at which whole lines are compared if the text itself is not found.
const LINES_FIRST: [Tolerance; 2] = [Tolerance::Exact, Tolerance::TrailingWhitespace];
/// Those that are tried after the text was not found with other quotes, dashes and spaces either.
const LINES_LAST: [Tolerance; 2] = [Tolerance::Typography, Tolerance::Indentation];

/// Most places that one call replaces.
const MAX_PLACES: usize = MAX_BLOCKS;
/// Most places that are counted if only one may be replaced: they may overlap, so each can cost as much as `oldText`.
pub(super) const MAX_COUNTED: usize = 1_000;
/// Most bytes of all copies of `newText` together.
const MAX_NEW_BYTES: usize = 64 * 1024 * 1024;

/// A range of the file that `oldText` matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    /// The ranges of the text between its line endings, one for each piece of [`Located::old`].
    pub pieces: Vec<Range<usize>>,
    /// How its indentation differs from that of `oldText`.
    pub shift: Shift,
}

impl Region {
    pub(super) fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.start)
    }
}

/// All places, and how they were found.
#[derive(Debug)]
pub(super) struct Located {
    /// In order; without overlaps if all are to be replaced.
    pub regions: Vec<Region>,
    /// The lines of `oldText`, in the form that was found.
    pub old: Vec<String>,
    /// The lines of `newText`.
    pub new: Vec<String>,
    /// The kind of difference between `oldText` and the file.
    pub tolerance: Tolerance,
    /// Whether line numbers in front of `oldText` were not part of the file.
    pub numbers_removed: bool,
}

/// A search for `oldText`.
pub(super) struct Search<'a> {
    pub text: &'a str,
    pub lines: &'a Lines<'a>,
    pub arguments: &'a Arguments,
    pub budget: &'a Budget,
}

impl Search<'_> {
    /// Finds every place of `oldText` at the strictest level that finds any; `None` if there is none.
    ///
    /// # Errors
    /// If `oldText` was found without its line numbers, but `newText` has them on some lines only, or if there are too
    /// many places to replace. The caller must call [`Budget::check`] first, because the result may be incomplete.
    pub(super) fn locate(&self) -> Result<Option<Located>, ToolError> {
        let old = pieces(&self.arguments.old_text);
        let new = pieces(&self.arguments.new_text);
        // A model rarely sees how a line ends, so a line feed alone says nothing about it.
        let any_ending = !self.arguments.old_text.contains('\r');
        let found = self
            .substrings(Sameness::Composition, any_ending)
            .or_else(|| self.substrings(Sameness::Composition, true))
            .or_else(|| self.whole_lines(&old, &new, &LINES_FIRST))
            .or_else(|| self.substrings(Sameness::Typography, true))
            .or_else(|| self.whole_lines(&old, &new, &LINES_LAST));
        let found = match found {
            Some(found) => Some(found),
            None => self.without_numbers()?,
        };
        match found {
            Some(found) if self.arguments.all => self.check_size(found).map(Some),
            found => Ok(found),
        }
    }

    fn check_size(&self, found: Located) -> Result<Located, ToolError> {
        let places = found.regions.len();
        if places < MAX_PLACES
            && places.saturating_mul(self.arguments.new_text.len()) <= MAX_NEW_BYTES
        {
            return Ok(found);
        }
        Err(ToolError::Failed(format!(
            "nothing was changed: oldText occurs {}{places} times, which is too much for one call. Use bash with sed",
            if places < MAX_PLACES { "" } else { "at least " }
        )))
    }

    fn without_numbers(&self) -> Result<Option<Located>, ToolError> {
        let Some(old) = without_line_numbers(&pieces(&self.arguments.old_text)) else {
            return Ok(None);
        };
        let new = pieces(&self.arguments.new_text);
        let bare_new = without_line_numbers(&new);
        let has_some_numbers = bare_new.is_none()
            && new.iter().any(|line| without_line_numbers(std::slice::from_ref(line)).is_some());
        let new = bare_new.unwrap_or(new);
        let found = self.whole_lines(&old, &new, &LINES_FIRST);
        let Some(found) = found.or_else(|| self.whole_lines(&old, &new, &LINES_LAST)) else {
            return Ok(None);
        };
        if has_some_numbers {
            return Err(ToolError::Failed(
                "oldText has line numbers in front that are not in the file, and newText has them on some lines only. \
                 Call again without line numbers"
                    .to_owned(),
            ));
        }
        Ok(Some(Located { numbers_removed: true, ..found }))
    }

    /// Places where the file has the characters of `oldText`, with its line endings or with any.
    fn substrings(&self, sameness: Sameness, any_ending: bool) -> Option<Located> {
        let bytes = self.text.as_bytes();
        let splits_an_ending = |offset: usize| {
            offset > 0 && bytes[offset - 1] == b'\r' && bytes.get(offset) == Some(&b'\n')
        };
        let form = Folded::new(self.text, sameness, any_ending);
        let old = pieces(&self.arguments.old_text);
        let wanted = if any_ending { old.join("\n") } else { self.arguments.old_text.clone() };
        let place = |range: &Range<usize>| {
            let found = form.original(range)?;
            let is_whole = !splits_an_ending(found.start) && !splits_an_ending(found.end);
            is_whole.then_some(found)
        };
        let ranges = self.occurrences(form.text(), &folded(&wanted, sameness), place);
        if ranges.is_empty() {
            return None;
        }
        let is_replaced = self.arguments.all || ranges.len() == 1;
        let region = |range| Region {
            // The pieces are needed only for places that are replaced; overlapping places would have many.
            pieces: if is_replaced { piece_ranges(self.text, range) } else { vec![range] },
            shift: Shift::None,
        };
        Some(Located {
            regions: ranges.into_iter().map(region).collect(),
            old,
            new: pieces(&self.arguments.new_text),
            tolerance: match sameness {
                Sameness::Composition => Tolerance::Exact,
                Sameness::Typography => Tolerance::Typography,
            },
            numbers_removed: false,
        })
    }

    /// The places of `old` in `text`, each as `place` gives it if it counts, up to a limit. If only one may be replaced, these
    /// include overlapping ones: "aa" is in "aaa" twice, so it is not unique there.
    fn occurrences(
        &self,
        text: &str,
        old: &str,
        place: impl Fn(&Range<usize>) -> Option<Range<usize>>,
    ) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let Some(step) = old.chars().next().map(char::len_utf8) else { return ranges };
        let finder = memchr::memmem::Finder::new(old);
        let most = if self.arguments.all { MAX_PLACES } else { MAX_COUNTED };
        let mut from = 0;
        while let Some(offset) = finder.find(&text.as_bytes()[from..]) {
            let range = from + offset..from + offset + old.len();
            let found = place(&range);
            from =
                if found.is_some() && self.arguments.all { range.end } else { range.start + step };
            ranges.extend(found);
            if ranges.len() == most || !self.budget.spend(1 + old.len() / 64) {
                break;
            }
        }
        ranges
    }

    /// Places where whole lines of the file equal those of `old`, at the first of the levels that finds any.
    fn whole_lines(&self, old: &[String], new: &[String], levels: &[Tolerance]) -> Option<Located> {
        let lines = self.lines;
        let (mut old, mut new) = (old.to_vec(), new.to_vec());
        let ends_with_newline = old.last().is_some_and(String::is_empty);
        let wanted: Vec<&str> =
            old[..old.len() - usize::from(ends_with_newline)].iter().map(String::as_str).collect();
        let (tolerance, mut blocks) = levels
            .iter()
            .map(|tolerance| {
                (*tolerance, BlockFinder::new(lines, self.budget).find(&wanted, *tolerance))
            })
            .find(|(_, blocks)| !blocks.is_empty())?;
        let count = wanted.len();
        if self.arguments.all {
            drop_overlapping(&mut blocks, count);
        }
        // Whole lines are replaced by whole lines, even if only oldText ends with a newline.
        let joins_lines = new.last().is_some_and(|last| !last.is_empty());
        // A file whose last line has no newline gets none, even if oldText ends with one.
        let is_unended = |first: usize| lines.ending(first + count - 1).is_none();
        let drops_final_piece = ends_with_newline
            && (joins_lines || blocks.iter().all(|block| is_unended(block.first)));
        let keeps_final_piece = ends_with_newline && !drops_final_piece;
        blocks.retain(|block| !keeps_final_piece || !is_unended(block.first));
        let is_replaced = self.arguments.all || blocks.len() == 1;
        let regions = blocks
            .into_iter()
            .map(|block| {
                let end = block.first + if is_replaced { count } else { 1 };
                let mut pieces: Vec<_> =
                    (block.first..end).map(|index| lines.content_range(index)).collect();
                if keeps_final_piece && is_replaced {
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
}

/// The lines of a text.
fn pieces(text: &str) -> Vec<String> {
    text.split('\n').map(|piece| piece.strip_suffix('\r').unwrap_or(piece).to_owned()).collect()
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

fn drop_overlapping(blocks: &mut Vec<Block>, count: usize) {
    let mut end = 0;
    blocks.retain(|block| {
        let keep = block.first >= end;
        if keep {
            end = block.first + count;
        }
        keep
    });
}
