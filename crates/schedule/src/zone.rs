//! Time zones, and times as people write them.

use std::time::Duration;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::{ScheduleError, parse_duration};

/// The zone of this name.
///
/// # Errors
/// There is none.
pub fn zone_named(name: &str) -> Result<TimeZone, ScheduleError> {
    TimeZone::get(name.trim()).map_err(|_| ScheduleError::Zone(name.trim().to_owned()))
}

/// The name of this machine's zone; `UTC` if it has no name.
pub fn local_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

/// Reads a time: milliseconds since the Unix epoch, a duration from `now`, a time with an offset, a local time in `zone`, or
/// `today 18:00` and `tomorrow 9:00`; `tomorrow` alone is this time of the next day. A local time that does not exist is read
/// as the same time before the change, which is later; one that occurs twice is the first.
///
/// # Errors
/// It is written in another way.
pub fn parse_time(text: &str, zone: &TimeZone, now: u64) -> Result<u64, ScheduleError> {
    let text = text.trim();
    let unknown = || ScheduleError::Time(text.to_owned());
    if text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| unknown());
    }
    let is_duration = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_alphabetic() && c != 'Z');
    if is_duration && let Ok(wait) = parse_duration(text) {
        let wait: Duration = wait;
        return Ok(now.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    let local = |local: DateTime| {
        let ambiguous = zone.to_ambiguous_timestamp(local);
        ambiguous.compatible().map_err(|_| unknown())
    };
    let instant = if let Some(read) = near_day(text, &instant(now).to_zoned(zone.clone())) {
        local(read.ok_or_else(unknown)?)?
    } else if let Ok(zoned) = text.parse::<Zoned>() {
        zoned.timestamp()
    } else if let Ok(instant) = text.parse::<Timestamp>() {
        instant
    } else {
        local(text.parse().map_err(|_| unknown())?)?
    };
    u64::try_from(instant.as_millisecond()).map_err(|_| unknown())
}

/// The time of a text that begins with `today` or `tomorrow`; `Some(None)` if the rest is no time of day.
fn near_day(text: &str, now: &Zoned) -> Option<Option<DateTime>> {
    let text = text.to_lowercase();
    let mut words = text.split_whitespace().filter(|word| *word != "at");
    let date = match words.next()? {
        "today" => now.date(),
        "tomorrow" => now.date().tomorrow().ok()?,
        _ => return None,
    };
    let time = match (words.next(), words.next()) {
        (None, None) if date > now.date() => Some(now.time()),
        (Some(time), None) => {
            let (hour, minute) = time.split_once(':').unwrap_or((time, "0"));
            let is_number = |part: &str| {
                (1..=2).contains(&part.len()) && part.bytes().all(|it| it.is_ascii_digit())
            };
            let read = || Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok();
            if is_number(hour) && is_number(minute) { read() } else { None }
        }
        _ => None,
    };
    Some(time.map(|time| date.to_datetime(time)))
}

/// The time as an instant. Times after the year 9999 count as the last instant of it.
pub(crate) fn instant(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// The instant as milliseconds.
pub(crate) fn milliseconds(instant: Timestamp) -> u64 {
    u64::try_from(instant.as_millisecond()).unwrap_or_default()
}
