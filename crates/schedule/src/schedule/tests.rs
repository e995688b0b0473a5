use proptest::prelude::*;

use super::Schedule;
use crate::{ActiveHours, parse_duration, parse_time, write_duration, zone_named};

fn every(every_ms: u64, anchor_ms: u64) -> Schedule {
    Schedule::Every { every_ms, anchor_ms }
}

fn cron(expr: &str, tz: &str) -> Schedule {
    Schedule::Cron { expr: expr.to_owned(), tz: tz.to_owned() }
}

#[test]
fn due_times_come_from_the_anchor_and_not_from_the_question() {
    assert_eq!(every(60_000, 5).next_after(0), Some(5));
    assert_eq!(every(60_000, 5).next_after(5), Some(60_005));
    assert_eq!(every(60_000, 600_005).next_after(100_000), Some(120_005));
    let at = Schedule::At { at_ms: 10 };
    assert_eq!((at.next_after(9), at.next_after(10)), (Some(10), None));
}

#[test]
fn schedules_that_cannot_be_used_are_refused() {
    let problem = |schedule: Schedule| schedule.check().unwrap_err().to_string();
    assert!(problem(every(0, 0)).contains("this one is 0;"), "{}", problem(every(0, 0)));
    assert!(problem(every(999, 0)).contains("999 ms"));
    assert!(problem(every(u64::MAX, 0)).contains("to 10 years"));
    assert!(problem(cron("* * * * *", "Mars/Base")).contains("no time zone `Mars/Base`"));
    assert!(problem(cron("0 0 30 2 *", "UTC")).contains("never matches"));
    assert_eq!(cron("0 0 29 2 *", "UTC").check(), Ok(()));
    assert_eq!(every(1_000, u64::MAX).check(), Ok(()));
}

#[test]
fn a_schedule_is_stored_as_a_tagged_object() {
    let text = serde_json::to_string(&cron("0 9 * * *", "UTC")).unwrap();
    assert_eq!(text, r#"{"kind":"cron","expr":"0 9 * * *","tz":"UTC"}"#);
    assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), cron("0 9 * * *", "UTC"));
}

#[test]
fn durations_and_times_are_read_as_people_write_them() {
    let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs()).ok();
    assert_eq!(seconds("1h30m"), Some(5_400));
    assert_eq!(seconds(" 30 "), Some(1_800));
    assert_eq!((seconds("0m"), seconds("2w")), (Some(0), Some(1_209_600)));
    for text in ["", "m", "5x", "-5m", "1h30", "99999999999999999999s", "1.5h", "h5"] {
        assert_eq!(seconds(text), None, "{text}");
    }
    assert_eq!(write_duration(std::time::Duration::from_secs(90_061)), "1d1h1m1s");
    let berlin = zone_named("Europe/Berlin").unwrap();
    let read = |text: &str| parse_time(text, &berlin, 1_000).ok();
    assert_eq!(read("20m"), Some(1_201_000));
    assert_eq!(read("1795000000000"), Some(1_795_000_000_000));
    assert_eq!(read("2026-07-01T12:00"), read("2026-07-01T10:00:00Z"));
    assert_eq!(read("2026-07-01T12:00:00+02:00"), read("2026-07-01T10:00:00Z"));
    assert_eq!(read("2026-07-01 12:00[Europe/Berlin]"), read("2026-07-01T10:00:00Z"));
    assert_eq!((read("some day"), read(""), read("1969-01-01T00:00:00Z")), (None, None, None));
    // It is one o'clock on the first of January 1970 in Berlin.
    assert_eq!(read("tomorrow"), read("1970-01-02T01:00:01"));
    assert_eq!(read("tomorrow 9:00"), read("1970-01-02T09:00"));
    assert_eq!(read("Tomorrow at 18"), read("1970-01-02T18:00"));
    assert_eq!(read("today 23:30"), read("1970-01-01T23:30"));
    for text in [
        "today",
        "tomorrow 25:00",
        "tomorrow 9:00 sharp",
        "tomorrow morning",
        "today +9:00",
        "tomorrow 9:",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn active_hours_may_go_over_midnight() {
    let utc = zone_named("UTC").unwrap();
    let hours = |start: &str, end: &str| ActiveHours::new(start, end, utc.clone());
    let at = |hour: u64, minute: u64| (hour * 60 + minute) * 60_000;
    let day = hours("08:00", "22:00").unwrap();
    assert!(day.contain(at(8, 0)) && day.contain(at(21, 59)));
    assert!(!day.contain(at(7, 59)) && !day.contain(at(22, 0)));
    let night = hours("22:00", "6:30").unwrap();
    assert!(night.contain(at(23, 0)) && night.contain(at(6, 29)) && !night.contain(at(6, 30)));
    assert!(hours("0:00", "24:00").unwrap().contain(at(23, 59)));
    for (start, end) in [("8", "9:00"), ("08:00", "25:00"), ("08:60", "09:00"), ("+8:00", "9:00")] {
        assert!(hours(start, end).is_err(), "{start} {end}");
    }
    assert!(hours("08:00", "08:00").unwrap_err().to_string().contains("are empty"));
}

proptest! {
    #[test]
    fn the_newest_due_times_are_the_last_of_all(
        pick in 0..3_usize,
        late in 0..3 * 86_400_000_u64,
        most in 1..50_usize,
    ) {
        let begin = 1_774_700_000_000;
        let schedule = [
            every(700_000, 3),
            cron("*/7 1-3 * * *", "Europe/Berlin"),
            cron("30 * * * *", "Australia/Lord_Howe"),
        ][pick].clone();
        let due = schedule.next_after(begin).unwrap();
        let now = due + late;
        let all: Vec<u64> = std::iter::successors(Some(due), |due| schedule.next_after(*due))
            .take_while(|due| *due <= now)
            .collect();
        let expected = all[all.len().saturating_sub(most)..].to_vec();
        prop_assert_eq!(schedule.newest(due, now, most), expected);
    }
}
