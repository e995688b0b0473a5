//! Ages on the command line: `30d`, `12h`, `8w`.

use std::str::FromStr;
use std::time::Duration;

/// An age of at least one second, written as a whole number and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Duration);

/// The units, with their seconds.
const UNITS: [(char, u64); 5] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || {
            format!(
                "`{text}` is not an age: write a whole number and a unit (s, m, h, d or w), such as 30d"
            )
        };
        let unit = text.chars().next_back().ok_or_else(malformed)?;
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let digits = &text[..text.len() - unit.len_utf8()];
        // `parse` alone would take a sign.
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed());
        }
        let count: u64 = digits.parse().map_err(|_| malformed())?;
        let total = count.checked_mul(*seconds).ok_or_else(malformed)?;
        if total == 0 {
            return Err(format!("`{text}` is no time at all: give an age of at least 1s"));
        }
        Ok(Self(Duration::from_secs(total)))
    }
}

#[cfg(test)]
mod tests;
