use jiff::civil::date;
use jiff::tz::TimeZone;

use super::*;

const ZONE: &str = "Europe/Berlin";

/// Monday, 23 November 2026, 10:00 in Berlin.
fn now() -> u64 {
    let zone = zone_named(ZONE).unwrap();
    let local = date(2026, 11, 23).at(10, 0, 0, 0).to_zoned(zone).unwrap();
    milliseconds(local.timestamp())
}

/// What is understood: a local time, an expression, or an interval with its first time.
fn understood(text: &str) -> String {
    let zone: TimeZone = zone_named(ZONE).unwrap();
    let local = |ms: u64| instant(ms).to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    match parse_when(text, ZONE, now()) {
        Ok(Schedule::At { at_ms }) => local(at_ms),
        Ok(Schedule::Cron { expr, tz }) => {
            assert_eq!(tz, ZONE);
            expr
        }
        Ok(Schedule::Every { every_ms, anchor_ms }) => {
            format!("{} min from {}", every_ms / 60_000, local(anchor_ms))
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn one_time_is_understood() {
    for (text, expected) in [
        ("in 20 minutes", "2026-11-23 10:20"),
        ("In an hour and a half", "2026-11-23 11:30"),
        ("in an hour and 30 minutes", "2026-11-23 11:30"),
        ("in half an hour", "2026-11-23 10:30"),
        ("in 2h", "2026-11-23 12:00"),
        ("in 1.5 hours", "2026-11-23 11:30"),
        ("in 2.25h", "2026-11-23 12:15"),
        ("in 0.5 hours", "2026-11-23 10:30"),
        ("in 1.5 days", "2026-11-24 22:00"),
        ("in two and a half hours", "2026-11-23 12:30"),
        ("in a quarter of an hour", "2026-11-23 10:15"),
        ("2.5 hours from now", "2026-11-23 12:30"),
        ("in two weeks", "2026-12-07 10:00"),
        ("in a month", "2026-12-23 10:00"),
        ("tomorrow at nine", "2026-11-24 09:00"),
        ("tomorrow", "2026-11-24 09:00"),
        ("tomorrow evening", "2026-11-24 18:00"),
        ("tomorrow evening at 8", "2026-11-24 20:00"),
        ("tomorrow at 8 in the evening", "2026-11-24 20:00"),
        ("the day after tomorrow at noon", "2026-11-25 12:00"),
        ("today at half past eight", "2026-11-23 08:30"),
        ("tonight", "2026-11-23 21:00"),
        ("this evening", "2026-11-23 18:00"),
        ("this afternoon at 4", "2026-11-23 16:00"),
        ("20 minutes from now", "2026-11-23 10:20"),
        ("an hour from now", "2026-11-23 11:00"),
        ("at 18:30", "2026-11-23 18:30"),
        ("at 9", "2026-11-24 09:00"),
        ("9pm", "2026-11-23 21:00"),
        ("at quarter to 7 pm", "2026-11-23 18:45"),
        ("at nine thirty tomorrow", "2026-11-24 09:30"),
        ("12 am", "2026-11-24 00:00"),
        ("on Friday", "2026-11-27 09:00"),
        ("monday at 11", "2026-11-23 11:00"),
        ("monday at 9", "2026-11-30 09:00"),
        ("next monday at 11", "2026-11-30 11:00"),
        ("thu, 14:00", "2026-11-26 14:00"),
        ("next week", "2026-11-30 09:00"),
        ("on 24 December at 18:00", "2026-12-24 18:00"),
        ("December 24th at 6pm", "2026-12-24 18:00"),
        ("on the 3rd of march", "2027-03-03 09:00"),
        ("1 jan 2028 at midnight", "2028-01-01 00:00"),
        ("on the 15th", "2026-12-15 09:00"),
        ("29 february", "2028-02-29 09:00"),
        ("2026-12-24", "2026-12-24 09:00"),
        ("on 2026-12-24 at 18:00", "2026-12-24 18:00"),
        ("2026-12-24 6pm", "2026-12-24 18:00"),
        ("in 3 days at 9", "2026-11-26 09:00"),
        ("in two weeks at noon", "2026-12-07 12:00"),
        ("on the first", "2026-12-01 09:00"),
        ("on the second of May at 8", "2027-05-02 08:00"),
    ] {
        assert!(understood(text).starts_with(expected), "{text}: {}", understood(text));
    }
}

#[test]
fn what_comes_again_is_understood() {
    for (text, expected) in [
        ("every weekday at 8", "0 8 * * 1-5"),
        ("weekdays at 8:15", "15 8 * * 1-5"),
        ("every day at noon", "0 12 * * *"),
        ("daily at 7am", "0 7 * * *"),
        ("every day at 9 and 17", "0 9,17 * * *"),
        ("every day at 17:30, 12:30 and at 9:30", "30 9,12,17 * * *"),
        ("weekdays at 9am and 5pm", "0 9,17 * * 1-5"),
        ("every monday at nine and noon", "0 9,12 * * 1"),
        ("every evening at 7 and 10", "0 19,22 * * *"),
        ("on the 1st of every month at 8 and 20", "0 8,20 1 * *"),
        ("every 1.5 hours", "90 min from 2026-11-23 10:00"),
        ("every morning", "0 9 * * *"),
        ("every evening at 7", "0 19 * * *"),
        ("every weekend", "0 9 * * 0,6"),
        ("every monday and friday at 17:00", "0 17 * * 1,5"),
        ("on mondays at nine", "0 9 * * 1"),
        ("every week on tuesday", "0 9 * * 2"),
        ("on the first Monday of the month", "0 9 * * 1#1"),
        ("every last friday of the month at 16:00", "0 16 * * 5L"),
        ("on the 15th of every month at 10", "0 10 15 * *"),
        ("every month on the 1st", "0 9 1 * *"),
        ("on the first of the month at 8", "0 8 1 * *"),
        ("every first of the month", "0 9 1 * *"),
        ("every year on 1 May", "0 9 1 5 *"),
        ("every year on the 24th of December at 18:00", "0 18 24 12 *"),
        ("every May 1st", "0 9 1 5 *"),
        ("every other day at 8", "2880 min from 2026-11-24 08:00"),
        ("every other tuesday", "20160 min from 2026-11-24 09:00"),
        ("every other week", "20160 min from 2026-11-23 10:00"),
        ("every 30 minutes", "30 min from 2026-11-23 10:00"),
        ("every half hour", "30 min from 2026-11-23 10:00"),
        ("every hour", "60 min from 2026-11-23 10:00"),
        ("hourly", "60 min from 2026-11-23 10:00"),
        ("every 3 days at 9", "4320 min from 2026-11-24 09:00"),
    ] {
        assert_eq!(understood(text), expected, "{text}");
        let schedule = parse_when(text, ZONE, now()).unwrap();
        schedule.check().unwrap();
        assert!(schedule.next_after(now()).is_some(), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_refused_and_never_guessed() {
    for text in [
        "",
        "soon",
        "at",
        "every",
        "in",
        "in minutes ten",
        "tomorrow at 25",
        "tomorrow at 9:75",
        "every second tuesday",
        "every 2 months",
        "every other month",
        "every year on 30 february",
        "2026-13-01",
        "2026-12-24 at 25:00",
        "in 20 minutes at 9",
        "on the 32nd",
        "30 february",
        "every weekday at 8 or so",
        "in 99999999999999999999 minutes",
        "in 1.555 hours",
        "in 0.0 hours",
        "in 1. hours",
        "in 1.5",
        "in 1.5 months",
        "in 0.01 seconds",
        "in 1,5 hours",
        "every day at 9 and",
        "every day at 9:15 and 17:30",
        "every day at 9 and 5pm",
        "every day at 9 and 5 in the afternoon",
        "tomorrow at 9 and 17",
        "month",
        "at a",
    ] {
        assert!(understood(text).contains("is no time"), "{text}: {}", understood(text));
    }
}
