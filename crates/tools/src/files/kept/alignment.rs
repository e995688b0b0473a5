//! Which units of a new line agree with which of the old one.

use std::time::Instant;

use super::super::diff::differences;
use super::units::Units;

/// Most pairs of units that are weighed. Of longer lines, equal runs are searched for.
const MAX_PAIRS: usize = 1_000_000;

/// What a run of units costs that only one of the lines has. So what agrees stays next to what agrees.
const GAP: i32 = 1;
const NEVER: i32 = i32::MIN / 2;

/// What a unit of the new line is to one of the old line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The same.
    Same(usize),
    /// Another word in the place of this one.
    Word(usize),
}

/// How the best alignment of two beginnings ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a unit of each.
    Both = 0,
    /// With a unit that only the old line has.
    Old = 1,
    /// With a unit that only the new line has.
    New = 2,
}

const ENDS: [End; 3] = [End::Both, End::Old, End::New];

/// For each unit of `new` the unit of `old` in its place. Both are in order. The words that agree weigh most, then marks,
/// then spaces.
pub(super) fn aligned(old: &Units<'_>, new: &Units<'_>, deadline: Instant) -> Vec<Option<Match>> {
    let old_keys: Vec<_> = (0..old.0.len()).map(|at| old.key(at)).collect();
    let new_keys: Vec<_> = (0..new.0.len()).map(|at| new.key(at)).collect();
    let mut matches = vec![None; new_keys.len()];
    let pairs = old_keys.len().saturating_mul(new_keys.len());
    if pairs > 0 && pairs <= MAX_PAIRS && Instant::now() < deadline {
        let weight = |at_old: usize, at_new: usize| {
            let is_same = old_keys[at_old] == new_keys[at_new];
            weight(old, at_old, new, at_new, is_same)
        };
        for (at_old, at_new) in paired(old_keys.len(), new_keys.len(), weight) {
            matches[at_new] = Some(match old_keys[at_old] == new_keys[at_new] {
                true => Match::Same(at_old),
                false => Match::Word(at_old),
            });
        }
        return matches;
    }
    for operation in differences(&old_keys, &new_keys, Some(deadline)) {
        let (old, new) = (operation.old_range(), operation.new_range());
        // A replaced run is in step if it is as long as before.
        if old.len() == new.len() {
            for (at_old, at_new) in old.zip(new) {
                let is_same = old_keys[at_old] == new_keys[at_new];
                matches[at_new] =
                    Some(if is_same { Match::Same(at_old) } else { Match::Word(at_old) });
            }
        }
    }
    matches
}

/// How much speaks for two units in the same place; `None` if they cannot be.
fn weight(
    old: &Units<'_>,
    at_old: usize,
    new: &Units<'_>,
    at_new: usize,
    is_same: bool,
) -> Option<i32> {
    let (before, after) = (&old.0[at_old], &new.0[at_new]);
    if !is_same {
        return (before.is_word && after.is_word).then(|| {
            let same = |(before, after): &(char, char)| before == after;
            let from_start = before.text.chars().zip(after.text.chars());
            let from_end = before.text.chars().rev().zip(after.text.chars().rev());
            (from_start.take_while(same).count() + from_end.take_while(same).count()).min(4) as i32
        });
    }
    Some(match (before.quote, after.quote) {
        (Some(old), Some(new)) if old.opens != new.opens => 2,
        (Some(_), Some(_)) if is_same_quotation(old, at_old, new, at_new) => 6,
        _ if before.is_word => 8 + 2 * before.text.len().min(16) as i32,
        _ if before.text.trim().is_empty() => 2,
        _ => 4,
    })
}

/// Whether two quotes belong to quotations of the same words.
fn is_same_quotation(old: &Units<'_>, at_old: usize, new: &Units<'_>, at_new: usize) -> bool {
    let inside = |units: &Units<'_>, at: usize| {
        let partner = units.0[at].quote?.partner?;
        Some(at.min(partner)..at.max(partner))
    };
    let (Some(old_range), Some(new_range)) = (inside(old, at_old), inside(new, at_new)) else {
        return false;
    };
    old_range.len() == new_range.len()
        && old_range.zip(new_range).all(|(at_old, at_new)| old.key(at_old) == new.key(at_new))
}

/// The pairs of the alignment with the largest weight, from the last to the first (Gotoh's algorithm).
fn paired(
    old: usize,
    new: usize,
    weight: impl Fn(usize, usize) -> Option<i32>,
) -> Vec<(usize, usize)> {
    let width = new + 1;
    // For each pair of lengths and each end: the end of what is before it.
    let mut before = vec![[End::Both; 3]; (old + 1) * width];
    let mut above = vec![[NEVER; 3]; width];
    above[0][0] = 0;
    for at_new in 1..width {
        above[at_new][End::New as usize] = -GAP;
        before[at_new][End::New as usize] = if at_new == 1 { End::Both } else { End::New };
    }
    let best = |from: &[i32; 3], staying: Option<End>| {
        let cost = |end: End| match staying {
            Some(staying) if staying != end => GAP,
            _ => 0,
        };
        let scores = ENDS.map(|end| (from[end as usize] - cost(end), end));
        let [first, second, third] = scores;
        let better = if second.0 > first.0 { second } else { first };
        if third.0 > better.0 { third } else { better }
    };
    for at_old in 1..=old {
        let mut row = vec![[NEVER; 3]; width];
        for at_new in 0..width {
            let place = at_old * width + at_new;
            let (score, end) = best(&above[at_new], Some(End::Old));
            (row[at_new][1], before[place][1]) = (score, end);
            if at_new > 0 {
                let (score, end) = best(&row[at_new - 1], Some(End::New));
                (row[at_new][2], before[place][2]) = (score, end);
                if let Some(weight) = weight(at_old - 1, at_new - 1) {
                    let (score, end) = best(&above[at_new - 1], None);
                    (row[at_new][0], before[place][0]) = (score + weight, end);
                }
            }
        }
        above = row;
    }
    let (mut at_old, mut at_new) = (old, new);
    let (_, mut end) = best(&above[new], None);
    let mut pairs = Vec::new();
    while at_old > 0 || at_new > 0 {
        let next = before[at_old * width + at_new][end as usize];
        match end {
            End::Both => {
                (at_old, at_new) = (at_old - 1, at_new - 1);
                pairs.push((at_old, at_new));
            }
            End::Old => at_old -= 1,
            End::New => at_new -= 1,
        }
        end = next;
    }
    pairs
}
