//! Finding a block of lines in a text, exactly or with the slips that models make.

use std::borrow::Cow;

use super::{Lines, Shift};

/// Places that are counted before the search stops: far more than an error would list.
const MAX_BLOCKS: usize = 10_000;

/// What two lines may differ in and still count as the same. Each level allows what the one before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tolerance {
    /// Nothing (line endings are never compared).
    Exact,
    /// Whitespace at the end.
    TrailingWhitespace,
    /// Typographic quotes, dashes and spaces for plain ones.
    Typography,
    /// Indentation, if it differs in the same way on every line.
    Indentation,
    /// Any amount of whitespace where there is some.
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

    /// What was overlooked, for a report to the model; `None` for an exact match.
    pub(crate) fn overlooked(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::TrailingWhitespace => Some("whitespace at line ends"),
            Self::Typography => Some("typographic quotes, dashes or spaces"),
            Self::Indentation => Some("indentation"),
            Self::Whitespace => Some("whitespace"),
        }
    }

    /// `line` reduced to what is compared at this level.
    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::TrailingWhitespace => Cow::Borrowed(line.trim_end()),
            Self::Typography => plain_typography(line.trim_end()),
            Self::Indentation => plain_typography(line.trim()),
            Self::Whitespace => {
                let plain = plain_typography(line);
                Cow::Owned(plain.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// Every place where the lines of `text` are those of `wanted` at this level, in order; overlapping ones too.
/// Nothing is found for an empty block.
pub(crate) fn find_blocks(text: &Lines<'_>, wanted: &[&str], tolerance: Tolerance) -> Vec<Block> {
    if wanted.is_empty() || wanted.len() > text.len() {
        return Vec::new();
    }
    let wanted_keys: Vec<Cow<'_, str>> = wanted.iter().map(|line| tolerance.key(line)).collect();
    let keys: Vec<Cow<'_, str>> = text.contents().map(|line| tolerance.key(line)).collect();
    keys.windows(wanted_keys.len())
        .enumerate()
        .filter(|(_, window)| *window == wanted_keys.as_slice())
        .filter_map(|(first, _)| {
            Some(Block { first, shift: shift_at(text, first, wanted, tolerance)? })
        })
        .take(MAX_BLOCKS)
        .collect()
}

/// `None` if the place does not count because its indentation is not off by the same on every line.
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

/// Typographic characters replaced by the plain ones that models (and keyboards) write for them.
fn plain_typography(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{2018}'..='\u{201B}' | '\u{2032}' => plain.push('\''),
            '\u{201C}'..='\u{201F}' | '\u{2033}' => plain.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => {
                plain.push(' ')
            }
            '\u{2026}' => plain.push_str("..."),
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests;
