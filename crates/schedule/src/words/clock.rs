//! Times of day as people say them.

use jiff::civil::Time;

use super::sentence::Sentence;

/// The time of a day without one.
pub(super) const DEFAULT: Time = Time::constant(9, 0, 0, 0);

/// Ends of words that say which half of the day is meant.
const HALVES: [&str; 8] = ["am", "a.m.", "pm", "p.m.", "morning", "afternoon", "evening", "night"];

/// A part of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
}

impl Part {
    /// `morning`, `in the evening`, `at night`.
    pub(super) fn of_day(words: &mut Sentence) -> Option<Self> {
        let begin = words.position();
        if words.take("in") {
            words.take("the");
        }
        words.take("at");
        let part = match words.peek() {
            Some("morning" | "mornings") => Self::Morning,
            Some("afternoon" | "afternoons") => Self::Afternoon,
            Some("evening" | "evenings") => Self::Evening,
            Some("night" | "nights") => Self::Night,
            _ => {
                words.back_to(begin);
                return None;
            }
        };
        words.skip();
        Some(part)
    }

    /// The time that it means alone.
    pub(super) fn usual(self) -> Time {
        match self {
            Self::Morning => DEFAULT,
            Self::Afternoon => Time::constant(15, 0, 0, 0),
            Self::Evening => Time::constant(18, 0, 0, 0),
            Self::Night => Time::constant(21, 0, 0, 0),
        }
    }
}

/// `at nine`, `9:30`, `half past eight`, `8 pm`, `noon`. An hour up to twelve is one of the part of the day.
pub(super) fn time(words: &mut Sentence, part: Option<Part>) -> Option<Time> {
    let begin = words.position();
    words.take("at");
    let read = named(words).or_else(|| {
        let (hour, minute) =
            past_or_to(words).or_else(|| digits(words)).or_else(|| spoken(words))?;
        let half = half_of_day(words).or_else(|| Part::of_day(words).or(part).map(half_of));
        let hour = match (half, hour) {
            (_, 13..) | (None, _) => hour,
            (Some(Half::Morning), hour) => hour % 12,
            (Some(Half::Afternoon), hour) => hour % 12 + 12,
        };
        Time::new(hour, minute, 0, 0).ok()
    });
    if read.is_none() {
        words.back_to(begin);
    }
    read
}

/// Several times with `and` or a comma between them: `9 and 17`, `9am, 1pm and 5pm`. Empty if there is none; `None` if only some
/// of them say which half of the day is meant.
pub(super) fn times(words: &mut Sentence, part: Option<Part>) -> Option<Vec<Time>> {
    let (mut times, mut halves) = (Vec::new(), Vec::new());
    loop {
        let begin = words.position();
        if !times.is_empty() {
            words.take("and");
        }
        let Some(time) = time(words, part) else {
            words.back_to(begin);
            break;
        };
        let names_half = |word: &String| HALVES.iter().any(|half| word.ends_with(half));
        halves.push((words.since(begin).iter().any(names_half), time.hour()));
        times.push(time);
    }
    let names_some = halves.iter().any(|(names, _)| *names);
    let is_clear = |(names, hour): &(bool, i8)| *names || !(1..=12).contains(hour);
    (!names_some || times.len() == 1 || halves.iter().all(is_clear)).then_some(times)
}

#[derive(Clone, Copy)]
enum Half {
    Morning,
    Afternoon,
}

fn half_of(part: Part) -> Half {
    if part == Part::Morning { Half::Morning } else { Half::Afternoon }
}

fn half_of_day(words: &mut Sentence) -> Option<Half> {
    if words.take_any(&["am", "a.m."]) {
        return Some(Half::Morning);
    }
    words.take_any(&["pm", "p.m."]).then_some(Half::Afternoon)
}

fn named(words: &mut Sentence) -> Option<Time> {
    if words.take_any(&["noon", "midday"]) {
        return Some(Time::constant(12, 0, 0, 0));
    }
    words.take("midnight").then_some(Time::midnight())
}

/// `half past eight`, `quarter to nine`.
fn past_or_to(words: &mut Sentence) -> Option<(i8, i8)> {
    let begin = words.position();
    words.take("a");
    let minutes = match words.take("half") {
        true => 30,
        false if words.take("quarter") => 15,
        false => {
            words.back_to(begin);
            return None;
        }
    };
    let is_past = words.take("past");
    let read = (is_past || words.take("to")).then(|| words.number()).flatten();
    let hour = read.and_then(|hour| i8::try_from(hour).ok()).filter(|hour| (1..=23).contains(hour));
    match hour {
        Some(hour) if is_past => Some((hour, minutes)),
        Some(hour) => Some((hour - 1, 60 - minutes)),
        None => {
            words.back_to(begin);
            None
        }
    }
}

/// `9`, `9:30`, `9.30`, `9am`.
fn digits(words: &mut Sentence) -> Option<(i8, i8)> {
    let word = words.peek()?;
    let letters = word.trim_end_matches(|end: char| end.is_ascii_alphabetic()).len();
    let (clock, suffix) = word.split_at(letters);
    let (hour, minute) = clock.split_once([':', '.']).unwrap_or((clock, "00"));
    let is_two = |part: &str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_two(hour) || minute.len() != 2 || !is_two(minute) {
        return None;
    }
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match suffix {
        "" => hour,
        "am" if (1..=12).contains(&hour) => hour % 12,
        "pm" if (1..=12).contains(&hour) => hour % 12 + 12,
        _ => return None,
    };
    words.skip();
    Some((hour, minute))
}

/// `nine`, `nine thirty`.
fn spoken(words: &mut Sentence) -> Option<(i8, i8)> {
    if matches!(words.peek(), Some("a" | "an")) {
        return None;
    }
    let begin = words.position();
    let hour = words.number().and_then(|hour| i8::try_from(hour).ok());
    let Some(hour) = hour.filter(|hour| (1..=12).contains(hour)) else {
        words.back_to(begin);
        return None;
    };
    let minute_at = words.position();
    let minute = words.number().and_then(|minute| i8::try_from(minute).ok());
    match minute.filter(|minute| [15, 20, 30, 45].contains(minute)) {
        Some(minute) => Some((hour, minute)),
        None => {
            words.back_to(minute_at);
            Some((hour, 0))
        }
    }
}
