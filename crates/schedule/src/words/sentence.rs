//! The words of a sentence, read from the first to the last.

use jiff::Span;
use jiff::civil::Date;

/// Numbers as words.
const NUMBERS: [(&str, i64); 19] = [
    ("a", 1),
    ("an", 1),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty-five", 45),
    ("ninety", 90),
];
/// Days of a month as words, from the first on.
const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
/// Most of a unit: ten years of seconds are refused by the schedule, not here.
const MOST: i64 = 1_000_000;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

impl Unit {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" => Self::Month,
            _ => return None,
        })
    }

    /// So many hundredths of it in seconds, if they are a whole number and more than none.
    fn hundredths(self, count: i64) -> Option<i64> {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 604_800,
            Self::Month => return None,
        };
        let hundredths = count.checked_mul(seconds)?;
        (hundredths > 0 && hundredths % 100 == 0).then_some(hundredths / 100)
    }

    pub(super) fn times(self, count: i64) -> Option<Span> {
        let span = Span::new();
        match self {
            Self::Second => span.try_seconds(count),
            Self::Minute => span.try_minutes(count),
            Self::Hour => span.try_hours(count),
            Self::Day => span.try_days(count),
            Self::Week => span.try_weeks(count),
            Self::Month => span.try_months(count),
        }
        .ok()
    }
}

pub(super) struct Sentence {
    words: Vec<String>,
    at: usize,
}

impl Sentence {
    pub(super) fn of(text: &str) -> Self {
        let lower = text.to_lowercase().replace(',', " ").replace("o'clock", " ");
        Self { words: lower.split_whitespace().map(str::to_owned).collect(), at: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at == self.words.len()
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The words from a position to the next one.
    pub(super) fn since(&self, position: usize) -> &[String] {
        self.words.get(position..self.at).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Reads this word, if it is the next one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn take_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.take(word))
    }

    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let begin = self.at;
        let is_read = words.iter().all(|word| self.take(word));
        if !is_read {
            self.at = begin;
        }
        is_read
    }

    /// A whole number, in digits or as a word.
    pub(super) fn number(&mut self) -> Option<i64> {
        let word = self.peek()?;
        let named = NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        let number = named.or_else(|| whole(word))?;
        self.skip();
        Some(number)
    }

    /// A number and its unit: `20 minutes`, `an hour`, `2h`, `half an hour`, `1.5 hours`; a unit alone counts once.
    pub(super) fn counted(&mut self) -> Option<(i64, Unit)> {
        if self.take("half") {
            self.take_any(&["a", "an"]);
            return self.take("hour").then_some((30, Unit::Minute));
        }
        let begin = self.at;
        if self.take_all(&["a", "quarter", "of", "an", "hour"]) {
            return Some((15, Unit::Minute));
        }
        if let Some(seconds) = self.hundredths().and_then(|(count, unit)| unit.hundredths(count)) {
            return Some((seconds, Unit::Second));
        }
        self.at = begin;
        if let Some(word) = self.peek() {
            let digits = word.bytes().take_while(u8::is_ascii_digit).count();
            if let (Some(count), Some(unit)) = (whole(&word[..digits]), Unit::of(&word[digits..])) {
                self.skip();
                return Some((count, unit));
            }
        }
        let count = self.number().unwrap_or(1);
        match self.peek().and_then(Unit::of) {
            Some(unit) if count > 0 => {
                self.skip();
                Some((count, unit))
            }
            _ => {
                self.at = begin;
                None
            }
        }
    }

    /// A number that is not whole, in hundredths, and its unit: `1.5 hours`, `2.25h`, `two and a half days`.
    fn hundredths(&mut self) -> Option<(i64, Unit)> {
        let word = self.peek()?;
        let number = word.trim_end_matches(|end: char| end.is_ascii_alphabetic());
        let unit = Unit::of(&word[number.len()..]);
        let hundredths = match number.split_once('.') {
            Some((before, after)) if (1..=2).contains(&after.len()) => {
                let number = whole(before)?.checked_mul(100)? + whole(&format!("{after:0<2}"))?;
                self.skip();
                number
            }
            Some(_) => return None,
            None => {
                let number = self.number()?.checked_mul(100)?;
                self.take_all(&["and", "a", "half"]).then_some(number + 50)?
            }
        };
        let unit = match unit {
            Some(unit) => unit,
            None => {
                let unit = self.peek().and_then(Unit::of)?;
                self.skip();
                unit
            }
        };
        Some((hundredths, unit))
    }

    pub(super) fn span(&mut self) -> Option<Span> {
        let (count, unit) = self.counted()?;
        unit.times(count)
    }

    /// `15`, `15th`, `first`.
    pub(super) fn day_of_month(&mut self) -> Option<i8> {
        let word = self.peek()?;
        if let Some(day) = ORDINALS.iter().position(|name| *name == word) {
            self.skip();
            return i8::try_from(day + 1).ok();
        }
        let digits = word.trim_end_matches(|end: char| end.is_ascii_alphabetic());
        let is_day = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
        let day = whole(digits).filter(|day| is_day && (1..=31).contains(day))?;
        self.skip();
        i8::try_from(day).ok()
    }

    /// `2026-12-24`.
    pub(super) fn date(&mut self) -> Option<Date> {
        let date = self.peek().filter(|word| word.len() == 10)?.parse().ok()?;
        self.skip();
        Some(date)
    }

    pub(super) fn year(&mut self) -> Option<i16> {
        let year = whole(self.peek()?).filter(|year| (2_000..10_000).contains(year))?;
        self.skip();
        i16::try_from(year).ok()
    }
}

fn whole(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    text.parse().ok().filter(|number| *number <= MOST)
}
