//! For errors: finds the place that is most similar to lines that were not found.

use std::collections::HashSet;
use std::ops::Range;

use super::Lines;
use crate::support::{Budget, cut_line};

/// Most lines of a file that an error shows.
const MAX_LINES_SHOWN: usize = 12;
/// Most characters of each.
const MAX_LINE_CHARS: usize = 160;
/// Most lines of a file that are compared; the search is for an error message and must be fast.
const MAX_LINES_COMPARED: usize = 20_000;
/// Most lines of the wanted block that are compared.
const MAX_WANTED_COMPARED: usize = 12;
/// The cost of comparing two lines by their pairs of characters, in steps.
const STEPS_PER_COMPARISON: usize = 16;
/// Smallest similarity of a place that is shown.
const LEAST_LIKENESS: f64 = 0.3;

/// Lines `range` of `text` (indexes from 0) with their numbers, cut to a bounded size.
pub(crate) fn show_lines(text: &Lines<'_>, range: Range<usize>) -> String {
    let end = range.end.min(text.len());
    let shown_end = end.min(range.start + MAX_LINES_SHOWN);
    let mut shown: Vec<String> = (range.start..shown_end)
        .map(|index| {
            format!("{:>6} | {}", index + 1, cut_line(text.content(index), MAX_LINE_CHARS))
        })
        .collect();
    if shown_end < end {
        shown.push(format!("       ... and {} more lines", end - shown_end));
    }
    shown.join("\n")
}

/// The lines of `text` that are most similar to `wanted`, as text for an error; `None` if no lines are similar, or if
/// the budget is nearly used up.
pub(crate) fn describe_nearest(
    text: &Lines<'_>,
    wanted: &[&str],
    budget: &Budget,
) -> Option<String> {
    let compared = text.len().min(MAX_LINES_COMPARED) * wanted.len().min(MAX_WANTED_COMPARED);
    let first = if budget.spend_spare(compared * STEPS_PER_COMPARISON) {
        nearest(text, wanted, budget)?
    } else {
        return None;
    };
    let range = first..(first + wanted.len()).min(text.len());
    let hidden = hidden_difference(text, first, wanted).unwrap_or_default();
    Some(format!("The closest place is line {}:\n{}{hidden}", first + 1, show_lines(text, range)))
}

/// Names the first difference between the lines from `first` and `wanted` if it cannot be seen, as between letters of two
/// scripts, or a tab and spaces.
fn hidden_difference(text: &Lines<'_>, first: usize, wanted: &[&str]) -> Option<String> {
    let lines = (first..text.len()).zip(wanted);
    let (index, own, given) = lines
        .filter_map(|(index, given)| {
            let own = text.content(index).trim_end().chars();
            let (own, given) =
                own.zip(given.trim_end().chars()).find(|(own, given)| own != given)?;
            Some((index, own, given))
        })
        .next()?;
    let looks_alike = !own.is_ascii() && given.is_ascii()
        || own.is_ascii() && !given.is_ascii()
        || own.is_whitespace() && given.is_whitespace();
    let named = |char: char| match char {
        '\t' => "a tab".to_owned(),
        ' ' => "a space".to_owned(),
        char => format!("{} (U+{:04X})", char.escape_debug(), u32::from(char)),
    };
    looks_alike.then(|| {
        format!(
            "\nThe first difference is in line {}: the file has {} where you wrote {}.",
            index + 1,
            named(own),
            named(given)
        )
    })
}

/// Index of the first line of the window whose lines are most similar to those of `wanted`.
fn nearest(text: &Lines<'_>, wanted: &[&str], budget: &Budget) -> Option<usize> {
    let start = wanted.iter().position(|line| !line.trim().is_empty())?;
    let wanted: Vec<Likeness> =
        wanted[start..].iter().take(MAX_WANTED_COMPARED).map(|line| Likeness::of(line)).collect();
    let lines: Vec<Likeness> = text.contents().take(MAX_LINES_COMPARED).map(Likeness::of).collect();
    let mut best = (LEAST_LIKENESS, None);
    for first in 0..lines.len() {
        if !budget.spend(1) {
            return None;
        }
        // Most windows are ruled out by their first lines; the rest of the block is then not compared.
        let head = wanted[0].with(&lines[first]);
        let second = wanted.get(1).zip(lines.get(first + 1)).map_or(head, |(a, b)| a.with(b));
        if head + second < LEAST_LIKENESS {
            continue;
        }
        let total: f64 = wanted.iter().zip(&lines[first..]).map(|(a, b)| a.with(b)).sum();
        let score = total / wanted.len() as f64;
        if score > best.0 {
            best = (score, Some(first.saturating_sub(start)));
        }
    }
    best.1
}

/// The features of a line by which similarity is measured.
struct Likeness {
    pairs: HashSet<(char, char)>,
}

impl Likeness {
    fn of(line: &str) -> Self {
        let characters =
            || line.chars().take(MAX_LINE_CHARS).filter(|character| !character.is_whitespace());
        Self { pairs: characters().zip(characters().skip(1)).collect() }
    }

    /// 1 for the same pairs of neighbouring characters, 0 for none in common.
    fn with(&self, other: &Self) -> f64 {
        let total = self.pairs.len() + other.pairs.len();
        if total == 0 {
            return 1.0;
        }
        2.0 * self.pairs.intersection(&other.pairs).count() as f64 / total as f64
    }
}

#[cfg(test)]
mod tests;
