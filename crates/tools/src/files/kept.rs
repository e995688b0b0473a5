//! The file's own characters in lines that a model wrote: quotes, dashes, kinds of spaces, and how letters are composed.
//!
//! Old and new lines are aligned by words, marks and spaces. What agrees keeps the file's characters; what is new is written
//! as given. The two quotes of a quotation are kept together or not at all.

mod alignment;
mod units;

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use alignment::{Match, aligned};
use myclaw_files::{Folded, Sameness, characters, folded};
use units::{Unit, Units};

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
    let old: Vec<_> = old
        .iter()
        .map(|(file, written)| {
            Old::of(file, written).or_else(|| Old::of(file.trim_end(), written.trim_end()))
        })
        .collect();
    let lines: Vec<_> = new.iter().map(|line| Units::of(line)).collect();
    let quotes = lone_quotes(&old, &lines);
    partners(&old, &lines, deadline)
        .into_iter()
        .zip(&lines)
        .enumerate()
        .map(|(line, (partner, new))| {
            let quotes: Vec<_> = quotes.iter().filter(|quote| quote.line == line).collect();
            match partner.and_then(|partner| old[partner].as_ref()) {
                Some(old) => {
                    let matches = aligned(&old.units, new, deadline);
                    Merge { old, new, quotes: &quotes, matches }.text()
                }
                None => {
                    new.0.iter().enumerate().map(|(at, unit)| given(unit, at, &quotes)).collect()
                }
            }
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
    pair_in_step(&mut partners, old.len());
    partners
}

/// Pairs the lines between two pairs if there are as many old ones as new ones.
fn pair_in_step(partners: &mut [Option<usize>], old: usize) {
    let (mut first, mut first_old) = (0, 0);
    for at in 0..=partners.len() {
        let end = partners.get(at).copied().unwrap_or(Some(old));
        let Some(end) = end else { continue };
        if at - first == end - first_old {
            for (line, partner) in partners[first..at].iter_mut().zip(first_old..) {
                *line = Some(partner);
            }
        }
        (first, first_old) = (at + 1, end + 1);
    }
}

/// The words and marks of a line with their lengths, sorted.
fn parts<'t>(units: &Units<'t>) -> Vec<Cow<'t, str>> {
    let mut parts: Vec<_> = (0..units.0.len())
        .filter(|at| !units.0[*at].text.trim().is_empty())
        .map(|at| units.key(at))
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
    /// For each new unit the old one in its place.
    matches: Vec<Option<Match>>,
}

impl<'m> Merge<'m> {
    /// The new line with the characters of the file where both lines agree.
    fn text(&self) -> String {
        let mut merged = String::new();
        for (at, unit) in self.new.0.iter().enumerate() {
            let kept = match self.matches[at] {
                Some(Match::Word(old)) => self.changed_word(old, at).map(Cow::Owned),
                _ => self.agreed(at).and_then(|old| self.in_file(old)).map(Cow::Borrowed),
            };
            merged.push_str(&kept.unwrap_or_else(|| given(unit, at, self.quotes).into()));
        }
        merged
    }

    fn in_file(&self, old: usize) -> Option<&'m str> {
        self.old.in_file(old..old + 1)
    }

    /// The unit of the old line that says the same.
    fn same(&self, new: usize) -> Option<usize> {
        match self.matches[new] {
            Some(Match::Same(old)) => Some(old),
            Some(Match::Word(_)) | None => None,
        }
    }

    /// The unit of the old line with the characters for this one. Both quotes of a quotation are those of one in the file,
    /// of that which opens in the same place or else closes there.
    fn agreed(&self, new: usize) -> Option<usize> {
        let (old_units, new_units) = (&self.old.units.0, &self.new.0);
        let own = self.same(new);
        let Some(quote) = new_units[new].quote else { return own };
        let partner_of = |old: usize| old_units[old].quote?.partner;
        if let Some(partner) = quote.partner {
            let says_same = |old: &usize| {
                let other = partner_of(*old).map(|other| old_units[other].text);
                old_units[*old].text == new_units[new].text
                    && other == Some(new_units[partner].text)
            };
            let of_partner = self.same(partner).and_then(partner_of);
            let [opening, closing] =
                if quote.opens { [own, of_partner] } else { [of_partner, own] };
            let pair = opening.filter(says_same).or(closing.filter(says_same));
            if pair.is_some() || !quote.is_single() {
                return pair;
            }
        }
        // Equal ones, such as apostrophes, are not told apart by being a pair.
        own.filter(|own| {
            partner_of(*own).is_none_or(|other| self.in_file(other) == self.in_file(*own))
        })
    }

    /// A word for another one: what both have at their ends, such as `'s`, is the file's. `None` if that is nothing.
    fn changed_word(&self, old: usize, new: usize) -> Option<String> {
        let (before, after) = (&self.old.units.0[old], &self.new.0[new]);
        let in_file = self.in_file(old).filter(|in_file| *in_file != before.text)?;
        let [file, before, after] = [in_file, before.text, after.text]
            .map(|word| characters(word, Sameness::Typography).collect::<Vec<_>>());
        if file.len() != before.len() {
            return None;
        }
        let form = |character: &str| folded(character, Sameness::Composition).into_owned();
        let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
            pairs.take_while(|(before, after)| form(before) == form(after)).count()
        };
        let first = same(&mut before.iter().zip(&after));
        let last = same(&mut before[first..].iter().rev().zip(after[first..].iter().rev()));
        let changed = &after[first..after.len() - last];
        Some([&file[..first], changed, &file[file.len() - last..]].concat().concat())
    }
}

/// A unit as the model wrote it, but for quotes of the file whose partner is on another line.
fn given<'t>(unit: &Unit<'t>, at: usize, quotes: &[&LoneQuote<'t>]) -> &'t str {
    quotes.iter().find(|quote| quote.unit == at).map_or(unit.text, |quote| quote.in_file)
}

#[cfg(test)]
mod tests;
