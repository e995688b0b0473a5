//! Cron expressions, and the local times that they name.
//!
//! Due times are local. Where the clocks of the zone are changed, these rules hold:
//!
//! - An expression that names hours is due once for each local time that it names. A time that does not exist is due at
//!   the first instant after the change; a time that occurs twice is due the first time.
//! - An expression for every hour follows the clock: it is due in both passes of a time that occurs twice, and not for
//!   times that do not exist. So `*/30 * * * *` has no pause when the clocks go back.
//!
//! No instant is due twice.

mod field;

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use crate::ScheduleError;
use crate::zone::{instant, milliseconds};
use field::{DAYS, Field, HOURS, InMonth, MINUTES, MONTHS, SECONDS, WEEKDAYS};

/// Days that are searched for the next due time. 29 February is at most eight years away.
const MOST_DAYS: i32 = 12 * 366;
/// Hours before a time at which a local time can begin that still occurs a second time after it: more than the largest
/// change since 1970.
const LOOK_BACK_HOURS: i64 = 4;
/// Longest expression, in bytes.
const MAX_BYTES: usize = 256;
/// Names of common expressions.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron expression: minute, hour, day of month, month and day of week, optionally with seconds before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    /// Days of the week of which only one in a month is meant.
    in_month: Vec<InMonth>,
}

impl FromStr for Cron {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let text = text.trim();
        let named = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let expression = named.map_or(text, |(_, expression)| expression);
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let (seconds, rest) = match fields.as_slice() {
            _ if text.len() > MAX_BYTES => ("", [""; 5].as_slice()),
            [seconds, rest @ ..] if rest.len() == 5 => (*seconds, rest),
            rest => ("0", rest),
        };
        let [minutes, hours, days, months, weekdays] = rest else {
            let expression = text.to_owned();
            return Err(ScheduleError::Fields { expression, fields: fields.len() });
        };
        let (in_month, weekdays) = InMonth::apart(weekdays)?;
        Ok(Self {
            seconds: Field::parse(&SECONDS, seconds)?,
            minutes: Field::parse(&MINUTES, minutes)?,
            hours: Field::parse(&HOURS, hours)?,
            days: Field::parse(&DAYS, days)?,
            months: Field::parse(&MONTHS, months)?,
            weekdays: match weekdays.as_str() {
                "" if !in_month.is_empty() => Field::EMPTY,
                weekdays => Field::parse(&WEEKDAYS, weekdays)?,
            },
            in_month,
        })
    }
}

/// When a local time is due: at one instant, at two, or never.
struct Due {
    first: Option<Timestamp>,
    second: Option<Timestamp>,
}

impl Cron {
    /// The first due time after `ms` in `zone`; `None` if there is none in the next twelve years.
    pub fn next_after(&self, ms: u64, zone: &TimeZone) -> Option<u64> {
        let after = instant(ms);
        let begin = zone.to_datetime(after).checked_sub(Span::new().hours(LOOK_BACK_HOURS)).ok()?;
        let mut second_pass: Option<Timestamp> = None;
        let mut date = begin.date();
        for _ in 0..MOST_DAYS {
            if self.matches(date) {
                let from = if date == begin.date() { begin.time() } else { Time::midnight() };
                // First passes come in the order of local times, so nothing after the first hit is earlier.
                for time in self.times(from) {
                    let due = self.due(DateTime::from_parts(date, time), zone)?;
                    let again = due.second.filter(|second| *second > after);
                    second_pass = second_pass.into_iter().chain(again).min();
                    if let Some(first) = due.first.filter(|first| *first > after) {
                        return Some(milliseconds(second_pass.map_or(first, |at| at.min(first))));
                    }
                }
            }
            date = date.tomorrow().ok()?;
        }
        second_pass.map(milliseconds)
    }

    /// Whether something is due on the date. As in other crons, either of the two days matches if both are given.
    fn matches(&self, date: Date) -> bool {
        let number = |value: i8| u32::from(value.unsigned_abs());
        let day = self.days.has(number(date.day()));
        let weekday = self.weekdays.has(number(date.weekday().to_sunday_zero_offset()))
            || self.in_month.iter().any(|one| one.is(date));
        let is_day = match self.days.is_star || self.weekdays.is_star {
            true => day && weekday,
            false => day || weekday,
        };
        is_day && self.months.has(number(date.month()))
    }

    /// The times of a day from `from` on.
    fn times(&self, from: Time) -> impl Iterator<Item = Time> + '_ {
        let all = self.hours.values().flat_map(move |hour| {
            self.minutes.values().flat_map(move |minute| {
                self.seconds.values().map(move |second| (hour, minute, second))
            })
        });
        let first = (from.hour(), from.minute(), from.second());
        all.skip_while(move |time| *time < first)
            .filter_map(|(hour, minute, second)| Time::new(hour, minute, second, 0).ok())
    }

    /// When a local time is due.
    fn due(&self, local: DateTime, zone: &TimeZone) -> Option<Due> {
        let follows_clock = self.hours.is_full();
        let at = |offset: jiff::tz::Offset| offset.to_timestamp(local).ok();
        Some(match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                Due { first: Some(at(offset)?), second: None }
            }
            AmbiguousOffset::Gap { .. } if follows_clock => Due { first: None, second: None },
            AmbiguousOffset::Gap { before, .. } => {
                // With the offset of before the change, the time lies after the change.
                let inside = at(before)?.checked_add(Span::new().nanoseconds(1)).ok()?;
                let change = zone.preceding(inside).next()?.timestamp();
                Due { first: Some(change), second: None }
            }
            AmbiguousOffset::Fold { before, after } => {
                let second = if follows_clock { at(after) } else { None };
                Due { first: Some(at(before)?), second }
            }
        })
    }
}

#[cfg(test)]
mod tests;
