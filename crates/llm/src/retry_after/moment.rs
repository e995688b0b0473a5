//! Points in time as servers write them: HTTP dates, RFC 3339, and numbers since the Unix epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Numbers from here on are seconds since the epoch (2001 and later); below it they count from now.
const FIRST_EPOCH_SECOND: f64 = 1e9;

/// Numbers from here on are milliseconds since the epoch (the same year).
const FIRST_EPOCH_MILLISECOND: f64 = 1e12;

/// The time from `now` until `moment`; zero if that has passed.
pub(super) fn until(moment: SystemTime, now: SystemTime) -> Duration {
    moment.duration_since(now).unwrap_or_default()
}

/// The moment that a number of seconds or milliseconds since the epoch means; `None` where it is too small for one.
pub(super) fn epoch(number: f64) -> Option<SystemTime> {
    let seconds = match number {
        milliseconds if milliseconds >= FIRST_EPOCH_MILLISECOND => milliseconds / 1000.0,
        seconds if seconds >= FIRST_EPOCH_SECOND => seconds,
        _ => return None,
    };
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

/// Reads the one form of date that servers may send in a header today, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(text: &str) -> Option<SystemTime> {
    DateTimeParser::new().parse_timestamp(text).ok().map(SystemTime::from)
}

/// The date that `text`, in lower case, begins with: `2026-05-15t15:00:00z`, `2026-05-15 15:00:00.25+02:00`,
/// `2026-04-01 at 00:00 utc`. Without a zone it is UTC.
pub(super) fn leading_date(text: &str) -> Option<SystemTime> {
    let (date, behind) = text.split_at_checked(10)?;
    let behind = [" at ", "t", " "].into_iter().find_map(|mark| behind.strip_prefix(mark))?;
    let is_clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
    let end = behind.find(|c: char| !is_clock(c)).unwrap_or(behind.len());
    let (clock, zone) = behind.split_at(end);
    let zone = match zone.get(..6) {
        Some(zone) if zone.starts_with(['+', '-']) => zone,
        _ => "z",
    };
    // No server means parts of a second, and a `.` may end the sentence.
    let clock = clock.split('.').next().unwrap_or_default();
    format!("{date}t{clock}{zone}").parse::<Timestamp>().ok().map(SystemTime::from)
}
