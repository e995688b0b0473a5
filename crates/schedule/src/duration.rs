//! Durations as people write them: `30m`, `1h30m`, `90s`.

use std::time::Duration;

use crate::ScheduleError;

/// The units, the longest first, with their seconds.
const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Reads whole numbers with units; a number alone counts minutes. `0` is a duration of nothing.
///
/// # Errors
/// It is written in another way, or is too long to be a number.
pub fn parse_duration(text: &str) -> Result<Duration, ScheduleError> {
    let text = text.trim();
    let malformed = || ScheduleError::Duration(text.to_owned());
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let owned;
    let mut rest = if is_number {
        owned = format!("{text}m");
        owned.as_str()
    } else {
        text
    };
    let mut seconds: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| malformed())?;
        let unit = rest[digits..].chars().next().ok_or_else(malformed)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let part = number.checked_mul(*factor).ok_or_else(malformed)?;
        seconds = seconds.checked_add(part).ok_or_else(malformed)?;
        rest = &rest[digits + unit.len_utf8()..];
    }
    if text.is_empty() { Err(malformed()) } else { Ok(Duration::from_secs(seconds)) }
}

/// Writes a duration with the units that [`parse_duration`] reads. Parts of a second are left out.
pub fn write_duration(duration: Duration) -> String {
    let mut seconds = duration.as_secs();
    let mut text = String::new();
    // Weeks are read, and days are easier to compare.
    for (unit, factor) in UNITS.into_iter().skip(1) {
        if seconds >= factor {
            text.push_str(&format!("{}{unit}", seconds / factor));
            seconds %= factor;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
