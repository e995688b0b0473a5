//! Finds the place of a hunk in a file.

use std::collections::BTreeSet;
use std::ops::Range;

use super::model::{BodyLine, Hunk, Role};
use crate::files::{Block, BlockFinder, Lines, Shift, Tolerance, describe_nearest, show_lines};
use crate::support::Budget;

/// Most places that an error lists.
const MAX_PLACES_LISTED: usize = 8;
/// Of two places, the nearer one is used only if the other is at least this many times as far from the line in the
/// header. Line numbers are often slightly wrong, and often invented.
const CLEARLY_NEARER: usize = 2;

/// Most hunks of one file for which an error shows the closest place, because each search takes a moment.
const MAX_EXPLAINED: usize = 5;

/// The place of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the first line of the file that the hunk shows.
    pub first: usize,
    /// How the file's indentation differs from the hunk's.
    pub shift: Shift,
    pub tolerance: Tolerance,
}

/// Why a hunk has no place: text for the model.
pub(super) type Misfit = String;

/// Finds the places of the hunks of one file, one after the other.
pub(super) struct Locator<'l> {
    lines: &'l Lines<'l>,
    finder: BlockFinder<'l>,
    budget: &'l Budget,
    /// Lines that earlier hunks change.
    taken: Taken,
    /// How far the last hunk was from the line in its header.
    drift: isize,
    /// Hunks that were not found so far.
    lost: usize,
}

impl<'l> Locator<'l> {
    pub(super) fn new(lines: &'l Lines<'l>, budget: &'l Budget) -> Self {
        let finder = BlockFinder::new(lines, budget);
        Self { lines, finder, budget, taken: Taken::default(), drift: 0, lost: 0 }
    }

    /// The only place where `hunk` fits.
    ///
    /// # Errors
    /// There is no such place, or more than one and no rule decides between them.
    pub(super) fn locate(&mut self, hunk: &Hunk) -> Result<Place, Misfit> {
        let wanted: Vec<&str> = hunk.old_lines().map(BodyLine::text).collect();
        let place =
            if wanted.is_empty() { self.insertion_point(hunk)? } else { self.find(hunk, &wanted)? };
        if let Some(expected) = expected(hunk) {
            self.drift = place.first as isize - expected as isize;
        }
        for range in changed_lines(hunk, place.first) {
            self.taken.add(&range);
        }
        Ok(place)
    }

    fn find(&mut self, hunk: &Hunk, wanted: &[&str]) -> Result<Place, Misfit> {
        if let Some(first) = self.where_it_says(hunk, wanted) {
            return Ok(Place { first, shift: Shift::None, tolerance: Tolerance::Exact });
        }
        for tolerance in Tolerance::ALL {
            let blocks = self.candidates(hunk, wanted, tolerance);
            if let Some(block) = self.choose(hunk, wanted.len(), &blocks) {
                let shift = sure_shift(&block.shift);
                return Ok(Place { first: block.first, shift, tolerance });
            }
            if !blocks.is_empty() {
                return Err(ambiguous(&blocks));
            }
        }
        self.lost += 1;
        Err(self.not_found(hunk, wanted))
    }

    /// The line that the header names, if the hunk fits there exactly. This is the usual case, and no other place is
    /// better.
    fn where_it_says(&self, hunk: &Hunk, wanted: &[&str]) -> Option<usize> {
        let first = expected(hunk)?.saturating_add_signed(self.drift);
        let fits = !hunk.at_end
            && first + wanted.len() <= self.lines.len()
            && wanted
                .iter()
                .enumerate()
                .all(|(offset, line)| self.lines.content(first + offset) == *line)
            && self.is_behind(hunk, first);
        fits.then_some(first)
    }

    /// The places that fit, in order: those after the earlier hunks, or, if there are none, those between them.
    fn candidates(&self, hunk: &Hunk, wanted: &[&str], tolerance: Tolerance) -> Vec<Block> {
        let mut blocks = self.finder.find(wanted, tolerance);
        blocks.retain(|block| {
            self.budget.spend(hunk.body.len())
                && changed_lines(hunk, block.first).iter().all(|own| self.taken.is_free(own))
        });
        if blocks.iter().any(|block| self.is_behind(hunk, block.first)) {
            blocks.retain(|block| self.is_behind(hunk, block.first));
        }
        blocks
    }

    /// True if everything that `hunk` changes at `first` is after the changes of the hunks before it.
    fn is_behind(&self, hunk: &Hunk, first: usize) -> bool {
        changed_lines(hunk, first).first().is_none_or(|own| own.start >= self.taken.end)
    }

    fn choose<'b>(&self, hunk: &Hunk, length: usize, blocks: &'b [Block]) -> Option<&'b Block> {
        let at_end: Vec<&Block> =
            blocks.iter().filter(|block| block.first + length == self.lines.len()).collect();
        if let (true, [only]) = (hunk.at_end, at_end.as_slice()) {
            return Some(only);
        }
        if let [only] = blocks {
            return Some(only);
        }
        self.nearest(hunk, blocks).or_else(|| self.below_anchors(hunk, blocks))
    }

    fn nearest<'b>(&self, hunk: &Hunk, blocks: &'b [Block]) -> Option<&'b Block> {
        let expected = expected(hunk)?.saturating_add_signed(self.drift);
        let mut by_distance: Vec<(usize, &Block)> =
            blocks.iter().map(|block| (block.first.abs_diff(expected), block)).collect();
        by_distance.sort_by_key(|(distance, _)| *distance);
        match by_distance.as_slice() {
            [(0, block), ..] => Some(block),
            [(near, block), (far, _), ..] if near.saturating_mul(CLEARLY_NEARER) <= *far => {
                Some(block)
            }
            _ => None,
        }
    }

    fn below_anchors<'b>(&self, hunk: &Hunk, blocks: &'b [Block]) -> Option<&'b Block> {
        if hunk.anchors.is_empty() {
            return None;
        }
        let anchor = self.anchor(hunk)?;
        blocks.iter().find(|block| block.first + 1 > anchor)
    }

    /// The line of the innermost anchor, if it is unique.
    fn anchor(&self, hunk: &Hunk) -> Option<usize> {
        let mut from = 0;
        let mut found = None;
        for anchor in &hunk.anchors {
            if !self.budget.spend(self.lines.len()) {
                return None;
            }
            let wanted = anchor.trim();
            let lines = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
                (from..self.lines.len())
                    .filter(|index| is_it(self.lines.content(*index).trim()))
                    .collect()
            };
            let mut matches = lines(&|line| line == wanted);
            if matches.is_empty() {
                matches = lines(&|line| line.contains(wanted));
            }
            let [only] = matches.as_slice() else { return None };
            found = Some(*only);
            from = only + 1;
        }
        found
    }

    /// The place of a hunk that shows no line of the file.
    fn insertion_point(&self, hunk: &Hunk) -> Result<Place, Misfit> {
        let length = self.lines.len();
        let place = |first| Ok(Place { first, shift: Shift::None, tolerance: Tolerance::Exact });
        if length == 0 || hunk.at_end {
            return place(length);
        }
        // The header of such a hunk names the line after which it adds.
        if let Some(line) = hunk.old_start {
            let line = line.saturating_add_signed(self.drift);
            if line <= length {
                return place(line);
            }
            return Err(format!(
                "it adds lines after line {line}, but the file has {length}. Show the lines around the place with a \
                 space in front"
            ));
        }
        match self.anchor(hunk) {
            Some(anchor) => place(anchor + 1),
            None => Err("it only adds lines and does not say where. Show the lines around the place with a space in \
                         front"
                .to_owned()),
        }
    }

    fn not_found(&self, hunk: &Hunk, wanted: &[&str]) -> Misfit {
        let text = wanted.join("\n");
        let expected = Lines::of(&text);
        let mut misfit = format!(
            "these lines are not in the file:\n{}",
            show_lines(&expected, 0..expected.len())
        );
        if let Some(line) = self.result_of(hunk) {
            misfit.push_str(&format!(
                "\nWhat they would become is there already, at line {line}: was the patch applied before?"
            ));
        } else if self.lost <= MAX_EXPLAINED {
            match describe_nearest(self.lines, wanted, self.budget) {
                Some(nearest) => misfit.push_str(&format!("\n{nearest}")),
                None => misfit.push_str("\nNothing in the file is like them."),
            }
        }
        misfit
    }

    /// The line (from 1) at which the file has the lines that `hunk` would produce.
    fn result_of(&self, hunk: &Hunk) -> Option<usize> {
        let result: Vec<&str> =
            hunk.body.iter().filter(|line| line.role != Role::Remove).map(BodyLine::text).collect();
        let says_something =
            hunk.body.iter().any(|line| line.role == Role::Add && !line.text().trim().is_empty());
        let found = self.finder.find(&result, Tolerance::TrailingWhitespace);
        found.first().filter(|_| says_something).map(|block| block.first + 1)
    }
}

/// Index of the first line that the header of `hunk` names.
fn expected(hunk: &Hunk) -> Option<usize> {
    let start = hunk.old_start?;
    if hunk.old_lines().next().is_none() { Some(start) } else { Some(start.saturating_sub(1)) }
}

/// Lines of the file that `hunk` removes if it is at `first`; an empty range if it only adds lines.
pub(super) fn changed_lines(hunk: &Hunk, first: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut index = first;
    let mut is_inside = false;
    for line in &hunk.body {
        match line.role {
            Role::Context => {
                index += 1;
                is_inside = false;
            }
            Role::Remove | Role::Add => {
                if !is_inside {
                    ranges.push(index..index);
                    is_inside = true;
                }
                if line.role == Role::Remove {
                    index += 1;
                    if let Some(last) = ranges.last_mut() {
                        last.end = index;
                    }
                }
            }
        }
    }
    ranges
}

/// Ranges of lines that do not overlap.
#[derive(Debug, Default)]
struct Taken {
    /// Start and end.
    ranges: BTreeSet<(usize, usize)>,
    /// Lines in front of which something is inserted.
    points: BTreeSet<usize>,
    /// The largest end.
    end: usize,
}

impl Taken {
    fn add(&mut self, range: &Range<usize>) {
        self.end = self.end.max(range.end);
        if range.is_empty() {
            self.points.insert(range.start);
        } else {
            self.ranges.insert((range.start, range.end));
        }
    }

    /// Whether `own` overlaps no taken range. Only the last range that begins before its end can overlap it.
    fn is_free(&self, own: &Range<usize>) -> bool {
        let range = self.ranges.range(..(own.end, 0)).next_back();
        let point = self.points.range(..own.end).next_back();
        range.is_none_or(|(_, end)| *end <= own.start) && point.is_none_or(|at| *at <= own.start)
    }
}

/// A difference of one space on every line is not indentation: the model lost the column of signs.
fn sure_shift(shift: &Shift) -> Shift {
    match shift {
        Shift::Deeper(extra) if extra == " " => Shift::None,
        shift => shift.clone(),
    }
}

fn ambiguous(blocks: &[Block]) -> Misfit {
    let numbers: Vec<String> =
        blocks.iter().take(MAX_PLACES_LISTED).map(|block| (block.first + 1).to_string()).collect();
    let more = if blocks.len() > numbers.len() { ", ..." } else { "" };
    format!(
        "it fits in {} places (lines {}{more}). Add context lines until only one fits, or correct the line number in @@",
        blocks.len(),
        numbers.join(", ")
    )
}
