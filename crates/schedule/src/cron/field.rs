//! One field of an expression.

use jiff::civil::Date;

use crate::ScheduleError;

/// Longest list of a field.
const MOST_ITEMS: usize = 60;

/// A kind of field.
pub(super) struct Kind {
    name: &'static str,
    first: u32,
    last: u32,
    /// Names of the values from the first on.
    names: &'static [&'static str],
}

pub(super) const SECONDS: Kind = Kind { name: "second", first: 0, last: 59, names: &[] };
pub(super) const MINUTES: Kind = Kind { name: "minute", first: 0, last: 59, names: &[] };
pub(super) const HOURS: Kind = Kind { name: "hour", first: 0, last: 23, names: &[] };
pub(super) const DAYS: Kind = Kind { name: "day of month", first: 1, last: 31, names: &[] };
pub(super) const MONTHS: Kind = Kind {
    name: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// 7 is Sunday, as 0 is.
pub(super) const WEEKDAYS: Kind = Kind {
    name: "day of week",
    first: 0,
    last: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    /// Whether it begins with a star, so that it does not restrict the day.
    pub(super) is_star: bool,
    /// How many values the kind has.
    size: u32,
}

/// One day of the week in each month: `mon#1` is the first Monday, `5L` the last Friday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InMonth {
    weekday: u32,
    /// The first is 1; `None` is the last.
    nth: Option<i8>,
}

impl InMonth {
    /// Reads these days, and gives the rest of the field.
    pub(super) fn apart(text: &str) -> Result<(Vec<Self>, String), ScheduleError> {
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        for item in text.split(',') {
            let (day, nth) = match (item.split_once('#'), item.strip_suffix(['L', 'l'])) {
                (Some((day, nth)), _) => (day, Some(nth)),
                (None, Some(day)) => (day, None),
                (None, None) => {
                    rest.push(item);
                    continue;
                }
            };
            let wrong = |problem: String| ScheduleError::Field {
                field: WEEKDAYS.name,
                text: text.to_owned(),
                problem,
            };
            let weekday = WEEKDAYS.value(day).map_err(wrong)? % 7;
            let nth = match nth.map(str::parse::<i8>) {
                None => None,
                Some(Ok(nth @ 1..=5)) => Some(nth),
                Some(_) => {
                    let problem = "the number after # says which one of the month, from 1 to 5";
                    return Err(wrong(problem.to_owned()));
                }
            };
            found.push(Self { weekday, nth });
        }
        Ok((found, rest.join(",")))
    }

    /// Whether the date is such a day.
    pub(super) fn is(self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let is_one = match self.nth {
            Some(nth) => (date.day() - 1) / 7 + 1 == nth,
            None => date.day() + 7 > date.days_in_month(),
        };
        u32::from(weekday.unsigned_abs()) == self.weekday && is_one
    }
}

impl Field {
    /// No value.
    pub(super) const EMPTY: Self = Self { bits: 0, is_star: false, size: 7 };

    /// Reads a list of values, ranges and steps.
    pub(super) fn parse(kind: &Kind, text: &str) -> Result<Self, ScheduleError> {
        let wrong = |problem: String| ScheduleError::Field {
            field: kind.name,
            text: text.to_owned(),
            problem,
        };
        let mut bits = 0;
        for (number, item) in text.split(',').enumerate() {
            if number >= MOST_ITEMS {
                return Err(wrong(format!("write at most {MOST_ITEMS} values")));
            }
            bits |= kind.item(item).map_err(wrong)?;
        }
        let mut size = kind.last - kind.first + 1;
        if kind.last == WEEKDAYS.last {
            // Both numbers of Sunday.
            bits = (bits | (bits >> 7)) & 0x7f;
            size = 7;
        }
        Ok(Self { bits, is_star: text.starts_with(['*', '?']), size })
    }

    pub(super) fn has(self, value: u32) -> bool {
        self.bits & (1 << value) != 0
    }

    /// Whether all values are in it.
    pub(super) fn is_full(self) -> bool {
        self.bits.count_ones() == self.size
    }

    /// The values in their order.
    pub(super) fn values(self) -> impl Iterator<Item = i8> {
        (0..60_i8).filter(move |value| self.bits & (1 << value) != 0)
    }
}

impl Kind {
    /// One item of the list, such as `5`, `1-5`, `*/15`, `mon-fri`.
    fn item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let (first, last) = match range {
            "*" | "?" => (self.first, self.last),
            _ => match range.split_once('-') {
                Some((first, last)) => (self.value(first)?, self.value(last)?),
                None => {
                    let value = self.value(range)?;
                    // `5/15` counts from 5 to the end.
                    (value, if step.is_some() { self.last } else { value })
                }
            },
        };
        if first > last {
            return Err(format!(
                "the range {range} runs backwards; write it as two, such as `22-23,0-4`"
            ));
        }
        let step = match step {
            None => 1,
            Some(text) => match text.parse::<u32>() {
                Ok(step) if step > 0 && !text.starts_with('+') => step,
                _ => return Err("the number after / must be at least 1".to_owned()),
            },
        };
        let values = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        Ok(values.fold(0, |bits, value| bits | (1 << value)))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named.and_then(|index| u32::try_from(index).ok()) {
            Some(index) => Some(self.first + index),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            None => None,
        };
        number.filter(|number| (self.first..=self.last).contains(number)).ok_or_else(|| {
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            format!(
                "write numbers from {} to {}{names}, `*`, ranges like 1-5, steps like */15, and commas between them",
                self.first, self.last
            )
        })
    }
}
