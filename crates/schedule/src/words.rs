//! Times as people say them: `tomorrow at nine`, `in 20 minutes`, `every weekday at 8`, `on the first Monday of the month`.

mod clock;
mod sentence;

use std::collections::BTreeSet;

use jiff::civil::{Date, Time, Weekday};
use jiff::{Span, Zoned};

use crate::zone::{instant, milliseconds};
use crate::{Schedule, ScheduleError, zone_named};
use clock::{DEFAULT, Part, time, times};
use sentence::{Sentence, Unit};

/// Days of the week.
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Their short forms that are not all before `day`.
const SHORT_DAYS: [&str; 5] = ["tue", "wed", "thu", "thur", "sat"];
/// Months, which may be cut after three letters.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Which weekday of a month, as the last field of a cron expression says it.
const ORDINALS: [(&str, &str); 9] = [
    ("first", "#1"),
    ("1st", "#1"),
    ("second", "#2"),
    ("2nd", "#2"),
    ("third", "#3"),
    ("3rd", "#3"),
    ("fourth", "#4"),
    ("4th", "#4"),
    ("last", "L"),
];

/// Reads when something is due, in English. A day without a time means nine in the morning. Times are local to the zone with this
/// name.
///
/// # Errors
/// It is said in another way, or there is no such zone.
pub fn parse_when(text: &str, tz: &str, now: u64) -> Result<Schedule, ScheduleError> {
    let zone = zone_named(tz)?;
    let now = instant(now).to_zoned(zone);
    let mut sentence = Sentence::of(text);
    let reader = Reader { now: &now, tz };
    let read = reader.schedule(&mut sentence).filter(|_| sentence.is_over());
    read.ok_or_else(|| ScheduleError::When(text.trim().to_owned()))
}

struct Reader<'a> {
    now: &'a Zoned,
    tz: &'a str,
}

impl Reader<'_> {
    fn schedule(&self, words: &mut Sentence) -> Option<Schedule> {
        if words.take("in") {
            return self.later(words);
        }
        if words.take_any(&["every", "each"]) {
            return self.repeated(words);
        }
        if words.take("hourly") {
            return self.interval(Span::new().hours(1), None);
        }
        if words.take("daily") {
            return self.cron(words, "* * *", None);
        }
        if let Some(days) = plural_days(words) {
            return self.cron(words, &format!("* * {days}"), None);
        }
        words.take("on");
        let begin = words.position();
        words.take("the");
        if words.take_all(&["day", "after", "tomorrow"]) {
            return self.on(self.now.date().checked_add(Span::new().days(2)).ok()?, words);
        }
        words.back_to(begin);
        if words.take("the") {
            return self.of_month(words);
        }
        if let Some(span) = words.span()
            && words.take_all(&["from", "now"])
        {
            return Self::at(&self.now.checked_add(span).ok()?);
        }
        words.back_to(begin);
        self.once(words)
    }

    /// After `in`.
    fn later(&self, words: &mut Sentence) -> Option<Schedule> {
        let (count, unit) = words.counted()?;
        let mut span = unit.times(count)?;
        while words.take("and") {
            let more = match unit == Unit::Hour && words.take_all(&["a", "half"]) {
                true => Span::new().minutes(30),
                false => words.span()?,
            };
            span = span.checked_add((more, self.now.date())).ok()?;
        }
        let begin = words.position();
        if unit >= Unit::Day
            && let Some(time) = time(words, None)
        {
            return self.local(self.now.date().checked_add(span).ok()?, time);
        }
        words.back_to(begin);
        Self::at(&self.now.checked_add(span).ok()?)
    }

    /// After `every`.
    fn repeated(&self, words: &mut Sentence) -> Option<Schedule> {
        let begin = words.position();
        if let Some(days) = days(words) {
            return self.cron(words, &format!("* * {days}"), None);
        }
        if let Some(part) = Part::of_day(words) {
            return self.cron(words, "* * *", Some(part));
        }
        if let Some(nth) = ordinal(words)
            && let Some(day) = weekday(words)
        {
            month_ends(words)?;
            return self.cron(words, &format!("* * {}{nth}", cron_day(day)), None);
        }
        words.back_to(begin);
        if words.take("other") {
            return self.every_other(words);
        }
        if words.take("year") {
            words.take("on");
            return self.yearly(words);
        }
        if let Some(yearly) = self.yearly(words) {
            return Some(yearly);
        }
        words.back_to(begin);
        if let Some(day) = words.day_of_month()
            && month_ends(words).is_some()
        {
            return self.cron(words, &format!("{day} * *"), None);
        }
        words.back_to(begin);
        let (count, unit) = words.counted()?;
        match (count, unit) {
            (1, Unit::Day) => self.cron(words, "* * *", None),
            (1, Unit::Week) if words.take("on") => {
                let day = cron_day(weekday(words)?);
                self.cron(words, &format!("* * {day}"), None)
            }
            (1, Unit::Month) => {
                let day = match words.take("on") {
                    true => {
                        words.take("the");
                        words.day_of_month()?
                    }
                    false => self.now.date().day(),
                };
                self.cron(words, &format!("{day} * *"), None)
            }
            (_, Unit::Month) => None,
            (count, unit) => {
                let time = if unit >= Unit::Day { time(words, None) } else { None };
                self.interval(unit.times(count)?, time)
            }
        }
    }

    /// After `every other`.
    fn every_other(&self, words: &mut Sentence) -> Option<Schedule> {
        if let Some(day) = weekday(words) {
            let time = time(words, None).unwrap_or(DEFAULT);
            let date = next_weekday(self.now.date(), day)?;
            let zone = self.now.time_zone().clone();
            let first = date.to_datetime(time).to_zoned(zone).ok()?;
            return Self::every(Span::new().weeks(2), &first);
        }
        let (count, unit) = words.counted()?;
        let time = if unit >= Unit::Day { time(words, None) } else { None };
        let is_one = count == 1 && unit != Unit::Month;
        is_one.then(|| self.interval(unit.times(2)?, time)).flatten()
    }

    /// `1 May`, `the first of May`, `December 24`: each year.
    fn yearly(&self, words: &mut Sentence) -> Option<Schedule> {
        words.take("the");
        let date = match month(words) {
            Some(month) => (words.day_of_month()?, month),
            None => {
                let day = words.day_of_month()?;
                words.take("of");
                (day, month(words)?)
            }
        };
        // In a leap year each day is there.
        Date::new(2_024, date.1, date.0).ok()?;
        self.cron(words, &format!("{} {} *", date.0, date.1), None)
    }

    /// After `on the`: a day of each month, or of this or the next one.
    fn of_month(&self, words: &mut Sentence) -> Option<Schedule> {
        let begin = words.position();
        if let Some(nth) = ordinal(words)
            && let Some(day) = weekday(words)
        {
            month_ends(words)?;
            return self.cron(words, &format!("* * {}{nth}", cron_day(day)), None);
        }
        words.back_to(begin);
        let day = words.day_of_month()?;
        if words.take("of") {
            if words.take_any(&["the", "every", "each"]) {
                words.take("month").then_some(())?;
                return self.cron(words, &format!("{day} * *"), None);
            }
            let date = self.date_of(day, month(words)?, words.year())?;
            return self.on(date, words);
        }
        if let Some(month) = month(words) {
            let date = self.date_of(day, month, words.year())?;
            return self.on(date, words);
        }
        let today = self.now.date();
        let first = today.first_of_month();
        let candidates = (0..12).filter_map(|later| {
            let month = first.checked_add(Span::new().months(later)).ok()?;
            Date::new(month.year(), month.month(), day).ok()
        });
        let date = candidates.into_iter().find(|date| *date > today)?;
        self.on(date, words)
    }

    /// One time.
    fn once(&self, words: &mut Sentence) -> Option<Schedule> {
        let today = self.now.date();
        let tomorrow = today.tomorrow().ok()?;
        if words.take("today") {
            return self.on(today, words);
        }
        if words.take("tonight") {
            return self.on_in(today, words, Some(Part::Night));
        }
        if words.take("tomorrow") {
            return self.on(tomorrow, words);
        }
        if let Some(date) = words.date() {
            return self.on(date, words);
        }
        let begin = words.position();
        let is_next = words.take("next");
        if !is_next && words.take("this") && Part::of_day(words).is_some() {
            words.back_to(begin + 1);
            return self.on(today, words);
        }
        if let Some(day) = weekday(words) {
            let part = Part::of_day(words);
            let at = time(words, part);
            let is_still_to_come =
                today.weekday() == day && !is_next && at.is_some_and(|time| time > self.now.time());
            let date = if is_still_to_come { today } else { next_weekday(today, day)? };
            return self.local(date, at.unwrap_or(part.map_or(DEFAULT, Part::usual)));
        }
        if is_next && words.take("week") {
            return self.on(today.checked_add(Span::new().weeks(1)).ok()?, words);
        }
        words.back_to(begin);
        if let Some(month) = month(words) {
            let day = words.day_of_month()?;
            let date = self.date_of(day, month, words.year())?;
            return self.on(date, words);
        }
        if let Some(date) = self.day_and_month(words) {
            return self.on(date, words);
        }
        words.back_to(begin);
        let at = time(words, None)?;
        let date = match words.take("tomorrow") {
            true => tomorrow,
            false => {
                words.take("today");
                if at > self.now.time() { today } else { tomorrow }
            }
        };
        self.local(date, at)
    }

    /// `24 December`.
    fn day_and_month(&self, words: &mut Sentence) -> Option<Date> {
        let day = words.day_of_month()?;
        words.take("of");
        let month = month(words)?;
        self.date_of(day, month, words.year())
    }

    /// The date in the given year, or the next one.
    fn date_of(&self, day: i8, month: i8, year: Option<i16>) -> Option<Date> {
        let today = self.now.date();
        if let Some(year) = year {
            return Date::new(year, month, day).ok();
        }
        (0..8)
            .filter_map(|later| Date::new(today.year() + later, month, day).ok())
            .find(|date| *date >= today)
    }

    fn on(&self, date: Date, words: &mut Sentence) -> Option<Schedule> {
        let part = Part::of_day(words);
        self.on_in(date, words, part)
    }

    fn on_in(&self, date: Date, words: &mut Sentence, part: Option<Part>) -> Option<Schedule> {
        let usual = part.map_or(DEFAULT, Part::usual);
        self.local(date, time(words, part).unwrap_or(usual))
    }

    fn local(&self, date: Date, time: Time) -> Option<Schedule> {
        let zone = self.now.time_zone().clone();
        Self::at(&date.to_datetime(time).to_zoned(zone).ok()?)
    }

    fn at(time: &Zoned) -> Option<Schedule> {
        Some(Schedule::At { at_ms: milliseconds(time.timestamp()) })
    }

    /// An interval from now on, or from the next time of day on.
    fn interval(&self, every: Span, time: Option<Time>) -> Option<Schedule> {
        let begin = match time {
            None => self.now.clone(),
            Some(time) => {
                let today = self.now.with().time(time).build().ok()?;
                if today > *self.now { today } else { today.tomorrow().ok()? }
            }
        };
        Self::every(every, &begin)
    }

    fn every(every: Span, begin: &Zoned) -> Option<Schedule> {
        let total = every.total((jiff::Unit::Millisecond, begin.date())).ok()?;
        let anchor_ms = milliseconds(begin.timestamp());
        Some(Schedule::Every { every_ms: total as u64, anchor_ms })
    }

    /// One or more times of day on the days of the last three fields of a cron expression.
    fn cron(&self, words: &mut Sentence, days: &str, part: Option<Part>) -> Option<Schedule> {
        let part = part.or_else(|| Part::of_day(words));
        let times = times(words, part)?;
        let usual = part.map_or(DEFAULT, Part::usual);
        let minute = times.first().unwrap_or(&usual).minute();
        // One expression has all hours with all minutes.
        times.iter().all(|time| time.minute() == minute).then_some(())?;
        let hours: BTreeSet<i8> = match times.is_empty() {
            true => [usual.hour()].into(),
            false => times.iter().map(|time| time.hour()).collect(),
        };
        let hours: Vec<String> = hours.iter().map(i8::to_string).collect();
        let expr = format!("{minute} {} {days}", hours.join(","));
        Some(Schedule::Cron { expr, tz: self.tz.to_owned() })
    }
}

/// The days of a week, as the last field of a cron expression: `weekday`, `monday and friday`.
fn days(words: &mut Sentence) -> Option<String> {
    if words.take_any(&["weekday", "workday"]) || words.take_all(&["working", "day"]) {
        return Some("1-5".to_owned());
    }
    if words.take("weekend") {
        return Some("0,6".to_owned());
    }
    let mut days = vec![cron_day(weekday(words)?)];
    loop {
        let begin = words.position();
        words.take("and");
        match weekday(words) {
            Some(day) => days.push(cron_day(day)),
            None => {
                words.back_to(begin);
                return Some(days.iter().map(i8::to_string).collect::<Vec<_>>().join(","));
            }
        }
    }
}

/// The same in the plural, which needs no `every`: `weekdays`, `mondays`.
fn plural_days(words: &mut Sentence) -> Option<String> {
    let begin = words.position();
    words.take("on");
    if words.take_any(&["weekdays", "workdays"]) {
        return Some("1-5".to_owned());
    }
    if words.take("weekends") {
        return Some("0,6".to_owned());
    }
    if words.peek().is_some_and(|word| word.ends_with("days"))
        && let Some(days) = days(words)
    {
        return Some(days);
    }
    words.back_to(begin);
    None
}

fn cron_day(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

fn weekday(words: &mut Sentence) -> Option<Weekday> {
    let word = words.peek()?;
    let singular = word.strip_suffix('s').unwrap_or(word);
    let is_name = |name: &str| {
        name == singular
            || name.strip_suffix("day") == Some(word)
            || SHORT_DAYS.contains(&word) && name.starts_with(word)
    };
    let (_, day) = WEEKDAYS.iter().find(|(name, _)| is_name(name))?;
    words.skip();
    Some(*day)
}

fn month(words: &mut Sentence) -> Option<i8> {
    let word = words.peek()?;
    let number = MONTHS.iter().position(|name| word.len() >= 3 && name.starts_with(word))?;
    words.skip();
    i8::try_from(number + 1).ok()
}

fn ordinal(words: &mut Sentence) -> Option<&'static str> {
    let word = words.peek()?;
    let (_, nth) = ORDINALS.iter().find(|(name, _)| *name == word)?;
    words.skip();
    Some(nth)
}

/// `of the month`, `of every month`.
fn month_ends(words: &mut Sentence) -> Option<()> {
    let is_read = words.take_any(&["of", "in"])
        && words.take_any(&["the", "every", "each", "a"])
        && words.take("month");
    is_read.then_some(())
}

/// The first such day after `today`.
fn next_weekday(today: Date, day: Weekday) -> Option<Date> {
    today.nth_weekday(1, day).ok()
}

#[cfg(test)]
mod tests;
