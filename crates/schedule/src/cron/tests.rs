use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use proptest::prelude::*;

use super::Cron;
use crate::zone_named;

/// The year whose changes of clocks are walked through, in zones with an hour, an hour and half an hour.
const ZONES: [&str; 3] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
const MINUTE: u64 = 60_000;

fn cron(text: &str) -> Cron {
    text.parse().unwrap()
}

fn ms(text: &str) -> u64 {
    text.parse::<Timestamp>().unwrap().as_millisecond().try_into().unwrap()
}

/// All due times from `from` to before `to`, as local times with their offset.
fn due_times(text: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let (cron, zone) = (cron(text), zone_named(zone).unwrap());
    let end = ms(to);
    std::iter::successors(cron.next_after(ms(from) - 1, &zone), |due| cron.next_after(*due, &zone))
        .take_while(|due| *due < end)
        .map(|due| {
            let at = Timestamp::from_millisecond(due.try_into().unwrap()).unwrap();
            at.to_zoned(zone.clone()).strftime("%m-%d %H:%M %:z").to_string()
        })
        .collect()
}

#[test]
fn a_time_that_does_not_exist_is_due_after_the_change_and_one_that_occurs_twice_once() {
    let spring =
        due_times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z");
    assert_eq!(spring, ["03-28 02:30 +01:00", "03-29 03:00 +02:00", "03-30 02:30 +02:00"]);
    let autumn =
        due_times("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", "2026-10-26T22:00:00Z");
    assert_eq!(autumn, ["10-24 02:30 +02:00", "10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
    // Half an hour: 02:00 to 02:30 does not exist on 4 October, 01:30 to 02:00 occurs twice on 5 April.
    let zone = "Australia/Lord_Howe";
    let spring = due_times("15 2 * * *", zone, "2026-10-02T16:00:00Z", "2026-10-05T00:00:00Z");
    assert_eq!(spring, ["10-04 02:30 +11:00", "10-05 02:15 +11:00"]);
    let autumn = due_times("45 1 * * *", zone, "2026-04-03T18:00:00Z", "2026-04-06T00:00:00Z");
    assert_eq!(autumn, ["04-05 01:45 +11:00", "04-06 01:45 +10:30"]);
}

#[test]
fn an_expression_for_every_hour_follows_the_clock() {
    let autumn =
        due_times("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z");
    let expected = [
        "10-25 01:30 +02:00",
        "10-25 02:00 +02:00",
        "10-25 02:30 +02:00",
        "10-25 02:00 +01:00",
        "10-25 02:30 +01:00",
    ];
    assert_eq!(autumn, expected);
    let spring =
        due_times("15 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z");
    assert_eq!(spring, ["03-29 01:15 +01:00", "03-29 03:15 +02:00"]);
}

#[test]
fn a_year_has_each_local_time_once() {
    for name in ZONES {
        let zone = zone_named(name).unwrap();
        for hour in 0..24 {
            for minute in [0, 15, 30, 59] {
                let text = format!("{minute} {hour} * * *");
                let (from, to) = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
                let times = due_times(&text, name, from, to);
                // The year of the zone begins at another instant, so the first and the last day may count or not.
                let mut days: Vec<&str> = times.iter().map(|time| &time[..5]).collect();
                let count = days.len();
                days.dedup();
                assert_eq!(days.len(), count, "{text} in {name} is due twice on a day");
                assert!((365..=366).contains(&count), "{text} in {name} is due {count} times");
                let wanted = format!("{hour:02}:{minute:02}");
                let moved: Vec<&String> =
                    times.iter().filter(|time| time[6..11] != wanted).collect();
                let in_gap = times_in_gaps(&zone, &wanted);
                assert_eq!(moved.len(), in_gap, "{text} in {name} is due at {moved:?}");
            }
        }
    }
}

/// On how many days of 2026 a local time does not exist.
fn times_in_gaps(zone: &TimeZone, time: &str) -> usize {
    let first: DateTime = format!("2026-01-01T{time}").parse().unwrap();
    let days = (0..365).map(|day| first.checked_add(Span::new().days(day)).unwrap());
    days.filter(|local| {
        let kind = zone.to_ambiguous_timestamp(*local).offset();
        matches!(kind, jiff::tz::AmbiguousOffset::Gap { .. })
    })
    .count()
}

#[test]
fn days_names_steps_and_rare_dates_are_found() {
    let next = |text: &str, after: &str| {
        let due = cron(text).next_after(ms(after), &TimeZone::UTC).unwrap();
        Timestamp::from_millisecond(due.try_into().unwrap()).unwrap().to_string()
    };
    assert_eq!(next("0 9 * * mon-fri", "2026-11-20T09:00:00Z"), "2026-11-23T09:00:00Z");
    assert_eq!(next("0 0 29 2 *", "2096-03-01T00:00:00Z"), "2104-02-29T00:00:00Z");
    // Either day, as in other crons.
    assert_eq!(next("0 0 13 * 5", "2026-11-01T00:00:00Z"), "2026-11-06T00:00:00Z");
    assert_eq!(next("0 0 */2 * 5", "2026-11-01T00:00:00Z"), "2026-11-13T00:00:00Z");
    assert_eq!(next("0 0 * * 7", "2026-11-01T00:00:00Z"), "2026-11-08T00:00:00Z");
    assert_eq!(next("@MONTHLY", "2026-11-01T00:00:00Z"), "2026-12-01T00:00:00Z");
    assert_eq!(next("5/20 10 1 JAN,jul ?", "2026-11-01T00:00:00Z"), "2027-01-01T10:05:00Z");
    assert_eq!(next("*/20 59 23 * * *", "2026-11-01T00:00:00Z"), "2026-11-01T23:59:00Z");
    assert_eq!(next("* * * * * *", "2026-11-01T00:00:00Z"), "2026-11-01T00:00:01Z");
}

#[test]
fn each_mistake_has_one_message() {
    let problem = |text: &str| text.parse::<Cron>().unwrap_err().to_string();
    for (text, says) in [
        ("", "has 0"),
        ("* * * *", "has 4"),
        ("* * * * * * *", "has 7"),
        ("60 * * * *", "numbers from 0 to 59"),
        ("* 24 * * *", "the hour `24`"),
        ("* * 0 * *", "numbers from 1 to 31"),
        ("* * * 13 *", "or jan to dec"),
        ("* * * * 8", "or sun to sat"),
        ("*/0 * * * *", "at least 1"),
        ("*/+5 * * * *", "at least 1"),
        ("5-1 * * * *", "runs backwards"),
        ("1,,2 * * * *", "numbers from 0 to 59"),
        ("* * L * *", "the day of month `L`"),
        ("@reboot", "has 1"),
    ] {
        let message = problem(text);
        assert!(message.contains(says), "{text}: {message}");
    }
    let long = format!("{} * * * *", ["1"; 70].join(","));
    assert!(problem(&long).contains("at most 60"), "{}", problem(&long));
    assert_eq!(cron("0 0 31 2 *").next_after(0, &TimeZone::UTC), None);
}

/// The same by walking through all minutes, which is slow and simple.
fn oracle(text: &str, after: u64, zone: &TimeZone, until: u64) -> Option<u64> {
    let cron = cron(text);
    let local = |at: u64| {
        let at = Timestamp::from_millisecond(at.try_into().unwrap()).unwrap();
        zone.to_datetime(at)
    };
    let names = |at: DateTime| {
        let minute = u32::try_from(at.minute()).unwrap();
        let hour = u32::try_from(at.hour()).unwrap();
        cron.matches(at.date()) && cron.hours.has(hour) && cron.minutes.has(minute)
    };
    let mut at = after - after % MINUTE + MINUTE;
    while at < until {
        let now = local(at);
        let before = local(at - MINUTE);
        let is_due = if cron.hours.is_full() {
            names(now)
        } else {
            // A local time that was there up to four hours ago is here for the second time.
            let is_second = || (1..=240).any(|back| local(at - back * MINUTE) == now);
            let step = now.duration_since(before).as_secs() / 60;
            let skipped = (1..step)
                .any(|minute| names(before.checked_add(Span::new().minutes(minute)).unwrap()));
            (names(now) && !is_second()) || skipped
        };
        if is_due {
            return Some(at);
        }
        at += MINUTE;
    }
    None
}

fn part(range: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = String> {
    let (first, last) = range.into_inner();
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => (first..=last).prop_map(|value| value.to_string()),
        1 => (2..=20_u32).prop_map(|step| format!("*/{step}")),
        2 => (first..=last, first..=last).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (first..=last, first..=last).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_next_due_time_is_the_one_that_a_walk_through_all_minutes_finds(
        minute in part(0..=59),
        hour in part(0..=23),
        weekday in prop_oneof![3 => Just("*".to_owned()), 1 => part(0..=7)],
        zone in prop::sample::select(&[
            "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll", "UTC",
        ][..]),
        // Most of the begins are close to a change.
        begin in prop_oneof![
            prop::sample::select(&[
                "2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z", "2026-03-08T06:00:00Z", "2026-11-01T05:00:00Z",
                "2026-04-04T14:00:00Z", "2026-10-03T15:00:00Z", "2026-02-15T01:00:00Z", "2026-03-22T01:00:00Z",
            ][..]).prop_map(ms),
            1_767_225_600_000..1_798_761_600_000_u64,
        ],
        shift in 0..36 * 60_u64,
    ) {
        let text = format!("{minute} {hour} * * {weekday}");
        let zone = zone_named(zone).unwrap();
        let after = begin - 18 * 60 * MINUTE + shift * MINUTE;
        let until = after + 3 * 24 * 60 * MINUTE;
        let expected = oracle(&text, after, &zone, until);
        let found = cron(&text).next_after(after, &zone).filter(|due| *due < until);
        prop_assert_eq!(found, expected, "{} after {}", text, after);
    }
}
