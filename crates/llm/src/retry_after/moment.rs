//! Points in time as servers write them: HTTP dates, RFC 3339, and numbers since the Unix epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The names of the months in an HTTP date.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Numbers from here on are seconds since the epoch (2001 and later); below it they count from now.
const FIRST_EPOCH_SECOND: f64 = 1e9;

/// Numbers from here on are milliseconds since the epoch (the same year).
const FIRST_EPOCH_MILLISECOND: f64 = 1e12;

/// How long it is from `now` until `moment`; nothing if that has passed.
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
pub(super) fn http_date(text: &str) -> Option<SystemTime> {
    let (_, date) = text.split_once(", ")?;
    let mut parts = date.split(' ');
    let day: u64 = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let month = 1 + MONTHS.iter().position(|&month| month == name)? as u64;
    let year: u64 = parts.next()?.parse().ok()?;
    let mut clock = parts.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let clock = (clock.next()??, clock.next()??, clock.next()??);
    if parts.next() != Some("GMT") {
        return None;
    }
    at((year, month, day), clock)
}

/// The date that `text`, in lower case, begins with: `2026-05-15t15:00:00z`, `2026-05-15 15:00:00.25+02:00`,
/// `2026-04-01 at 00:00 utc`. Without a zone it is UTC.
pub(super) fn leading_date(text: &str) -> Option<SystemTime> {
    let digits = |range: std::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let date = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let separator = [" at ", "t", " "].into_iter().find(|mark| text[10..].starts_with(mark))?;
    let start = 10 + separator.len();
    let (hour, minute) = (digits(start..start + 2)?, digits(start + 3..start + 5)?);
    let mut rest = &text[start + 5..];
    let mut second = 0;
    if let Some(behind) = rest.strip_prefix(':') {
        second = behind.get(..2)?.parse().ok()?;
        rest = behind[2..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    }
    let moment = at(date, (hour, minute, second))?;
    match rest.as_bytes().first() {
        Some(b'+') => moment.checked_sub(zone(&rest[1..])?),
        Some(b'-') => moment.checked_add(zone(&rest[1..])?),
        _ => Some(moment),
    }
}

/// A distance from UTC such as `02:00`.
fn zone(text: &str) -> Option<Duration> {
    let hours: u64 = text.get(..2)?.parse().ok()?;
    let minutes: u64 = text.get(3..5)?.parse().ok()?;
    Some(Duration::from_secs(hours * 3600 + minutes * 60))
}

fn at(
    (year, month, day): (u64, u64, u64),
    (hour, minute, second): (u64, u64, u64),
) -> Option<SystemTime> {
    let is_date = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    let seconds = is_date.then(|| {
        days_since_epoch(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second
    })?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, with years that begin in March so that the leap day
/// is their last.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_EPOCH
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: u64 = 719_468;
