//! The file's own characters in lines that a model wrote: quotes, dashes, kinds of spaces, and how letters are composed.
//!
//! Old and new lines are compared by words, marks and whole quotations. What agrees keeps the file's characters; what is
//! new is written as given. The two quotes of a quotation are kept together or not at all.

mod units;

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use myclaw_files::{Folded, Sameness, folded};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use units::Units;

/// Most lines, old or new, that are compared with one another to find which replaces which.
const MAX_COMPARED: usize = 256;
/// A new line replaces an old one if at least one part in this many of the longer one is in both.
const LEAST_SHARED: usize = 3;

/// The lines `new`, which replace `old`: lines as the file has them, and as the model wrote them. What stays is searched
/// for until `deadline`.
pub(crate) fn kept<'f>(
    old: impl Iterator<Item = (&'f str, String)>,
    new: Vec<String>,
    deadline: Instant,
) -> Vec<String> {
    let old: Vec<_> = old.collect();
    if old.iter().all(|(file, written)| file == written && file.is_ascii()) {
        return new;
    }
    let old: Vec<_> =
        old.iter().map(|(file, written)| Old::of(file.trim_end(), written.trim_end())).collect();
    let lines: Vec<_> = new.iter().map(|line| Units::of(line)).collect();
    let quotes = lone_quotes(&old, &lines);
    partners(&old, &lines, deadline)
        .into_iter()
        .zip(&lines)
        .enumerate()
        .map(|(line, (partner, new))| {
            let quotes: Vec<_> = quotes.iter().filter(|quote| quote.line == line).collect();
            let mut merged = String::new();
            match partner.and_then(|partner| old[partner].as_ref()) {
                Some(old) => {
                    let merge = Merge { old, new, quotes: &quotes, deadline };
                    merge.append(0..old.units.0.len(), 0..new.0.len(), &mut merged);
                }
                None => append_given(new, 0..new.0.len(), &quotes, &mut merged),
            }
            merged
        })
        .collect()
}

/// A line that is replaced.
struct Old<'f> {
    file: &'f str,
    form: Folded<'f>,
    /// The line as the model wrote it.
    units: Units<'f>,
    /// Where each unit begins in the form, and the end.
    starts: Vec<usize>,
}

impl<'f> Old<'f> {
    /// `None` if the two differ in more than the spelling of characters.
    fn of(file: &'f str, written: &'f str) -> Option<Self> {
        let form = Folded::new(file, Sameness::Typography, false);
        if form.text() != folded(written, Sameness::Typography) {
            return None;
        }
        let units = Units::of(written);
        let mut end = 0;
        let mut starts = vec![0];
        starts.extend(units.0.iter().map(|unit| {
            end += folded(unit.text, Sameness::Typography).len();
            end
        }));
        Some(Self { file, form, units, starts })
    }

    /// What the file has for these units; `None` if its characters begin or end elsewhere.
    fn in_file(&self, units: Range<usize>) -> Option<&'f str> {
        let range = self.form.original(&(self.starts[units.start]..self.starts[units.end]))?;
        self.file.get(range)
    }
}

/// A quote of the file for one in a new line, whose quotation begins or ends on another line.
struct LoneQuote<'f> {
    line: usize,
    unit: usize,
    in_file: &'f str,
}

/// If the old and the new lines have the same quotes without a partner, the new ones are the old ones.
fn lone_quotes<'f>(old: &[Option<Old<'f>>], new: &[Units<'_>]) -> Vec<LoneQuote<'f>> {
    let of_old: Vec<_> = old
        .iter()
        .flatten()
        .flat_map(|line| line.units.lone_quotes().map(move |unit| (line, unit)))
        .collect();
    let of_new: Vec<_> = new
        .iter()
        .enumerate()
        .flat_map(|(line, units)| units.lone_quotes().map(move |unit| (line, unit)))
        .collect();
    let is_same = of_old.len() == of_new.len()
        && of_old.iter().zip(&of_new).all(|((old, at), (line, unit))| {
            let (old, new) = (&old.units.0[*at], &new[*line].0[*unit]);
            old.text == new.text
                && old.quote.map(|quote| quote.opens) == new.quote.map(|quote| quote.opens)
        });
    if !is_same {
        return Vec::new();
    }
    of_old
        .into_iter()
        .zip(of_new)
        .filter_map(|((old, at), (line, unit))| {
            Some(LoneQuote { line, unit, in_file: old.in_file(at..at + 1)? })
        })
        .collect()
}

/// For each new line the old one that it replaces, if there is one. Both are in order.
fn partners(old: &[Option<Old<'_>>], new: &[Units<'_>], deadline: Instant) -> Vec<Option<usize>> {
    if old.len().max(new.len()) > MAX_COMPARED || old.len() == 1 && new.len() == 1 {
        let is_in_step = old.len() == new.len();
        return (0..new.len()).map(|line| Some(line).filter(|_| is_in_step)).collect();
    }
    let of_old: Vec<_> =
        old.iter().map(|line| line.as_ref().map(|line| parts(&line.units))).collect();
    let of_new: Vec<_> = new.iter().map(parts).collect();
    // For each pair of numbers of first lines: the most that these lines share.
    let mut most = vec![vec![0; new.len() + 1]; old.len() + 1];
    let mut shared = vec![vec![0; new.len()]; old.len()];
    for (row, old) in of_old.iter().enumerate() {
        for (column, new) in of_new.iter().enumerate() {
            if let Some(old) = old.as_ref().filter(|_| Instant::now() < deadline) {
                shared[row][column] = in_both(old, new);
            }
            let paired = most[row][column] + shared[row][column];
            most[row + 1][column + 1] =
                paired.max(most[row][column + 1]).max(most[row + 1][column]);
        }
    }
    let mut partners = vec![None; new.len()];
    let (mut row, mut column) = (old.len(), new.len());
    while row > 0 && column > 0 {
        if most[row][column] == most[row][column - 1] {
            column -= 1;
        } else if most[row][column] == most[row - 1][column] {
            row -= 1;
        } else {
            (row, column) = (row - 1, column - 1);
            partners[column] = Some(row);
        }
    }
    partners
}

/// The words and marks of a line with their lengths, sorted.
fn parts<'t>(units: &Units<'t>) -> Vec<Cow<'t, str>> {
    let mut parts: Vec<_> = (0..units.0.len())
        .filter(|at| !units.0[*at].text.trim().is_empty())
        .map(|at| units.key(&(at..at + 1)))
        .collect();
    parts.sort_unstable();
    parts
}

/// The number of bytes that both lines have in the same words and marks; 0 if that is only a small part of them.
fn in_both(old: &[Cow<'_, str>], new: &[Cow<'_, str>]) -> usize {
    let length = |parts: &[Cow<'_, str>]| parts.iter().map(|part| part.len()).sum::<usize>();
    let longer = length(old).max(length(new));
    let (mut shared, mut rest) = (0, new);
    for part in old {
        rest = &rest[rest.partition_point(|other| other < part)..];
        if let Some((_, others)) = rest.split_first().filter(|(other, _)| *other == part) {
            shared += part.len();
            rest = others;
        }
    }
    if shared * LEAST_SHARED < longer { 0 } else { shared }
}

/// One new line and the line that it replaces.
struct Merge<'m> {
    old: &'m Old<'m>,
    new: &'m Units<'m>,
    /// Those of this line.
    quotes: &'m [&'m LoneQuote<'m>],
    deadline: Instant,
}

impl Merge<'_> {
    fn append(&self, old: Range<usize>, new: Range<usize>, merged: &mut String) {
        let (old, new) = (self.old.units.tokens(old), self.new.tokens(new));
        let old_keys: Vec<_> = old.iter().map(|token| self.old.units.key(token)).collect();
        let new_keys: Vec<_> = new.iter().map(|token| self.new.key(token)).collect();
        let operations = capture_diff_slices_deadline(
            Algorithm::Myers,
            &old_keys,
            &new_keys,
            Some(self.deadline),
        );
        for operation in operations {
            let (old_range, new_range) = (operation.old_range(), operation.new_range());
            if matches!(operation, DiffOp::Equal { .. }) {
                let is_at_end = old_range.end == old.len() && new_range.end == new.len();
                let is_at_start = old_range.start == 0 && new_range.start == 0;
                let (old, new) = (&old[old_range], &new[new_range]);
                self.append_same(old, new, is_at_start || is_at_end, merged);
            } else {
                self.append_changed(&old[old_range], &new[new_range], merged);
            }
        }
    }

    /// Tokens that agree. Marks and spaces alone, between words that differ, only look the same.
    fn append_same(
        &self,
        old: &[Range<usize>],
        new: &[Range<usize>],
        is_at_an_end: bool,
        merged: &mut String,
    ) {
        let units = &self.old.units;
        let says_something =
            |token: &Range<usize>| units.is_quotation(token) || units.0[token.start].is_word;
        let is_kept = is_at_an_end || old.iter().any(says_something);
        for (old, new) in old.iter().zip(new) {
            let in_file = if is_kept || units.is_lone_quote(old) {
                self.old.in_file(old.clone())
            } else {
                None
            };
            match in_file {
                Some(in_file) => merged.push_str(in_file),
                None => append_given(self.new, new.clone(), self.quotes, merged),
            }
        }
    }

    /// A word for another one: what both have at their ends, such as `'s`, is the file's. `None` if that is nothing.
    fn changed_word(&self, old: &Range<usize>, new: &Range<usize>) -> Option<String> {
        let (before, after) = (&self.old.units.0[old.start], &self.new.0[new.start]);
        if !before.is_word || !after.is_word {
            return None;
        }
        let in_file = self.old.in_file(old.clone())?;
        let file: Vec<char> = in_file.chars().collect();
        let before: Vec<char> = before.text.chars().collect();
        let after: Vec<char> = after.text.chars().collect();
        if file == before || file.len() != before.len() {
            return None;
        }
        let same = |pairs: &mut dyn Iterator<Item = (&char, &char)>| {
            pairs.take_while(|(before, after)| before == after).count()
        };
        let first = same(&mut before.iter().zip(&after));
        let last = same(&mut before[first..].iter().rev().zip(after[first..].iter().rev()));
        let changed = &after[first..after.len() - last];
        Some([&file[..first], changed, &file[file.len() - last..]].concat().into_iter().collect())
    }

    /// Tokens that differ. If there are as many quotations in both, each stays a quotation of the file with other words.
    fn append_changed(&self, old: &[Range<usize>], new: &[Range<usize>], merged: &mut String) {
        let of_old: Vec<_> =
            old.iter().filter(|token| self.old.units.is_quotation(token)).collect();
        let of_new: Vec<_> = new.iter().filter(|token| self.new.is_quotation(token)).collect();
        let has_same_quotes = of_old.len() == of_new.len()
            && of_old.iter().zip(&of_new).all(|(old, new)| {
                let (old_units, new_units) = (&self.old.units.0, &self.new.0);
                old_units[old.start].text == new_units[new.start].text
                    && old_units[old.end - 1].text == new_units[new.end - 1].text
            });
        let mut quotations = of_old.into_iter();
        let is_in_step = old.len() == new.len();
        for (at, token) in new.iter().enumerate() {
            if let Some(old) = old.get(at).filter(|_| is_in_step)
                && let Some(word) = self.changed_word(old, token)
            {
                merged.push_str(&word);
                continue;
            }
            let quotation = if has_same_quotes && self.new.is_quotation(token) {
                quotations.next()
            } else {
                None
            };
            let quotes = quotation.and_then(|old| {
                let first = self.old.in_file(old.start..old.start + 1)?;
                Some((old, first, self.old.in_file(old.end - 1..old.end)?))
            });
            match quotes {
                Some((old, first, last)) => {
                    merged.push_str(first);
                    self.append(old.start + 1..old.end - 1, token.start + 1..token.end - 1, merged);
                    merged.push_str(last);
                }
                None => append_given(self.new, token.clone(), self.quotes, merged),
            }
        }
    }
}

fn append_given(
    new: &Units<'_>,
    range: Range<usize>,
    quotes: &[&LoneQuote<'_>],
    merged: &mut String,
) {
    for at in range {
        let in_file = quotes.iter().find(|quote| quote.unit == at).map(|quote| quote.in_file);
        merged.push_str(in_file.unwrap_or(new.0[at].text));
    }
}

#[cfg(test)]
mod tests;
