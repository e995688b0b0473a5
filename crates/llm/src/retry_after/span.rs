//! Lengths of time as servers write them: `644ms`, `4.77s`, `6m0s`, `1h2m3s`, `86400 seconds`.

use std::time::Duration;

/// Units by every name in use, in seconds. Longer names stand before those that they begin with.
const UNITS: &[(&str, f64)] = &[
    ("milliseconds", 0.001),
    ("minutes", 60.0),
    ("minute", 60.0),
    ("seconds", 1.0),
    ("second", 1.0),
    ("hours", 3600.0),
    ("hour", 3600.0),
    ("days", 86_400.0),
    ("day", 86_400.0),
    ("mins", 60.0),
    ("min", 60.0),
    ("secs", 1.0),
    ("sec", 1.0),
    ("ms", 0.001),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("d", 86_400.0),
];

/// The length of time that all of `text` is.
pub(super) fn whole(text: &str) -> Option<Duration> {
    let (span, rest) = read(text)?;
    rest.is_empty().then_some(span)
}

/// The length of time that `text`, in lower case, begins with.
pub(super) fn leading(text: &str) -> Option<Duration> {
    read(text).map(|(span, _)| span)
}

/// Reads numbers with units for as long as there are some.
fn read(text: &str) -> Option<(Duration, &str)> {
    let mut seconds = 0.0;
    let mut rest = text;
    let mut parts = 0;
    while let Some((part, behind)) = read_part(rest.trim_start_matches([' ', ','])) {
        seconds += part;
        rest = behind;
        parts += 1;
    }
    (parts > 0).then(|| Some((Duration::try_from_secs_f64(seconds).ok()?, rest)))?
}

/// One number with its unit, in seconds.
fn read_part(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let behind = text[digits..].trim_start_matches(' ');
    UNITS.iter().find_map(|(name, seconds)| {
        let rest = behind.strip_prefix(name)?;
        // `3 months` is not `3 m`.
        (!rest.starts_with(|c: char| c.is_ascii_alphabetic())).then_some((number * seconds, rest))
    })
}
