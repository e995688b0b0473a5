//! Finds a block of lines in a text, exactly or with the small deviations that models make.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};

use myclaw_files::{Sameness, folded};

use super::{Lines, Shift};
use crate::support::Budget;

/// Most places that are counted: far more than an error lists or one call should replace.
pub(crate) const MAX_BLOCKS: usize = 100_000;

/// The differences that two equal lines may have. Each level also allows those of the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tolerance {
    /// Nothing but how characters are composed (line endings are never compared).
    Exact,
    /// Whitespace at the end.
    TrailingWhitespace,
    /// Typographic quotes, dashes and spaces for plain ones, and invisible characters.
    Typography,
    /// Indentation, if it differs in the same way on every line.
    Indentation,
    /// The amount of whitespace, wherever there is some.
    Whitespace,
}

/// A place where a block of lines was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Index of the first line, from 0.
    pub first: usize,
    /// How the indentation differs there.
    pub shift: Shift,
}

impl Tolerance {
    /// All levels, strictest first.
    pub(crate) const ALL: [Self; 5] = [
        Self::Exact,
        Self::TrailingWhitespace,
        Self::Typography,
        Self::Indentation,
        Self::Whitespace,
    ];

    /// The tolerated difference, for a report to the model; `None` for an exact match.
    pub(crate) fn overlooked(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::TrailingWhitespace => Some("whitespace at line ends"),
            Self::Typography => {
                Some("typographic quotes, dashes or spaces, or invisible characters")
            }
            Self::Indentation => Some("indentation"),
            Self::Whitespace => Some("whitespace"),
        }
    }

    /// The part of `line` that is compared at this level.
    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => folded(line, Sameness::Composition),
            Self::TrailingWhitespace => folded(line.trim_end(), Sameness::Composition),
            Self::Typography => folded(line.trim_end(), Sameness::Typography),
            Self::Indentation => folded(line.trim(), Sameness::Typography),
            Self::Whitespace => {
                let plain = folded(line, Sameness::Typography);
                Cow::Owned(plain.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// Finds blocks of lines in one text. The lines are indexed by hash when a level is first used, so the cost of a search
/// depends on the number of wanted lines and not on the size of the text.
pub(crate) struct BlockFinder<'t> {
    pub lines: &'t Lines<'t>,
    pub budget: &'t Budget,
    indexes: [OnceCell<Index>; Tolerance::ALL.len()],
}

/// The lines of a text at one level.
struct Index {
    hasher: RandomState,
    /// The hash of each line's key.
    hashes: Vec<u64>,
    /// Indexes of all lines, ordered by hash, then by place.
    by_hash: Vec<u32>,
}

impl<'t> BlockFinder<'t> {
    /// For `lines`, within `budget`.
    pub(crate) fn new(lines: &'t Lines<'t>, budget: &'t Budget) -> Self {
        Self { lines, budget, indexes: Default::default() }
    }

    /// Every place where the lines of the text are those of `wanted` at this level, in order; overlapping ones too, up
    /// to [`MAX_BLOCKS`]. Nothing is found for an empty block. Incomplete once the budget is used up.
    pub(crate) fn find(&self, wanted: &[&str], tolerance: Tolerance) -> Vec<Block> {
        if wanted.is_empty() || wanted.len() > self.lines.len() || !self.budget.spend(wanted.len())
        {
            return Vec::new();
        }
        let index = self.index(tolerance);
        let keys: Vec<Cow<'_, str>> = wanted.iter().map(|line| tolerance.key(line)).collect();
        let hashes: Vec<u64> = keys.iter().map(|key| index.hasher.hash_one(key)).collect();
        let rarest = hashes
            .iter()
            .enumerate()
            .map(|(offset, hash)| (offset, index.places(*hash)))
            .min_by_key(|(_, places)| places.len());
        let Some((offset, places)) = rarest else { return Vec::new() };
        let mut blocks = Vec::new();
        for place in places {
            // A comparison of hashes is much cheaper than a step of the budget, unless all hashes are equal.
            if blocks.len() == MAX_BLOCKS || !self.budget.spend(1 + wanted.len() / 16) {
                break;
            }
            let Some(first) = (*place as usize).checked_sub(offset) else { continue };
            let range = first..first + wanted.len();
            if index.hashes.get(range.clone()) != Some(hashes.as_slice())
                || !self.budget.spend(wanted.len())
            {
                continue;
            }
            let is_same = |(line, key): (usize, &Cow<'_, str>)| {
                tolerance.key(self.lines.content(line)) == *key
            };
            if range.zip(&keys).all(is_same) {
                let shift = shift_at(self.lines, first, wanted, tolerance);
                blocks.extend(shift.map(|shift| Block { first, shift }));
            }
        }
        blocks
    }

    fn index(&self, tolerance: Tolerance) -> &Index {
        self.indexes[tolerance as usize].get_or_init(|| {
            let hasher = RandomState::new();
            let mut hashes = Vec::with_capacity(self.lines.len());
            for line in self.lines.contents() {
                // A text that is not indexed to its end is not searched: the caller sees that the budget is used up.
                if !self.budget.spend(1 + line.len() / 64) {
                    break;
                }
                hashes.push(hasher.hash_one(tolerance.key(line)));
            }
            let mut by_hash: Vec<u32> = (0..hashes.len() as u32).collect();
            by_hash.sort_unstable_by_key(|line| (hashes[*line as usize], *line));
            Index { hasher, hashes, by_hash }
        })
    }
}

impl Index {
    /// The lines whose key has this hash, in order.
    fn places(&self, hash: u64) -> &[u32] {
        let hash_of = |line: &u32| self.hashes[*line as usize];
        let start = self.by_hash.partition_point(|line| hash_of(line) < hash);
        let length = self.by_hash[start..].partition_point(|line| hash_of(line) == hash);
        &self.by_hash[start..start + length]
    }
}

/// `None` if the indentation does not differ in the same way on every line.
fn shift_at(
    text: &Lines<'_>,
    first: usize,
    wanted: &[&str],
    tolerance: Tolerance,
) -> Option<Shift> {
    if tolerance < Tolerance::Indentation {
        return Some(Shift::None);
    }
    let found: Vec<&str> = (first..first + wanted.len()).map(|index| text.content(index)).collect();
    let shift = Shift::between(wanted, &found);
    match tolerance {
        Tolerance::Whitespace => Some(shift.unwrap_or(Shift::None)),
        _ => shift,
    }
}

#[cfg(test)]
mod tests;
