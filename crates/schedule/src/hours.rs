//! The hours of a day in which something may happen.

use jiff::tz::TimeZone;

use crate::ScheduleError;
use crate::zone::instant;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// From one local time of day to another, which may be on the next day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveHours {
    start: u16,
    end: u16,
    zone: TimeZone,
}

impl ActiveHours {
    /// From `start` (included) to `end` (not included), each like `08:00`; `24:00` is the end of the day. With an end
    /// before the start they go over midnight.
    ///
    /// # Errors
    /// A time is written in another way, or both are the same.
    pub fn new(start: &str, end: &str, zone: TimeZone) -> Result<Self, ScheduleError> {
        let (from, to) = (minute_of_day(start)?, minute_of_day(end)?);
        if from % DAY == to % DAY && (from, to) != (0, DAY) {
            return Err(ScheduleError::EmptyHours(start.trim().to_owned()));
        }
        Ok(Self { start: from % DAY, end: to, zone })
    }

    /// Whether the time, in milliseconds since the Unix epoch, is within the hours.
    pub fn contain(&self, ms: u64) -> bool {
        let local = self.zone.to_datetime(instant(ms));
        let minute = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute()));
        let minute = minute.unwrap_or_default();
        if self.start < self.end {
            (self.start..self.end).contains(&minute)
        } else {
            minute >= self.start || minute < self.end
        }
    }
}

fn minute_of_day(text: &str) -> Result<u16, ScheduleError> {
    let text = text.trim();
    let read = || {
        let (hour, minute) = text.split_once(':')?;
        let is_plain = |part: &str| {
            (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_plain(hour) || !is_plain(minute) || minute.len() != 2 {
            return None;
        }
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        let total = hour * 60 + minute;
        (minute < 60 && total <= DAY).then_some(total)
    };
    read().ok_or_else(|| ScheduleError::TimeOfDay(text.to_owned()))
}
