use std::time::UNIX_EPOCH;

use reqwest::header::{HeaderName, HeaderValue};

use super::*;

fn asked(name: &'static str, value: &str, now: u64) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    retry_after(&headers, UNIX_EPOCH + Duration::from_secs(now))
}

#[test]
fn reads_seconds_and_milliseconds() {
    assert_eq!(asked("retry-after", "20", 0), Some(Duration::from_secs(20)));
    assert_eq!(asked("retry-after", " 1.5 ", 0), Some(Duration::from_millis(1500)));
    assert_eq!(asked("retry-after-ms", "250", 0), Some(Duration::from_millis(250)));
    for nonsense in ["-1", "soon", "inf", "nan", "1e300", ""] {
        assert_eq!(asked("retry-after", nonsense, 0), None, "{nonsense}");
    }
}

#[test]
fn reads_http_dates() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(asked("retry-after", date, 784_111_777 - 90), Some(Duration::from_secs(90)));
    assert_eq!(asked("retry-after", date, 784_111_777 + 90), Some(Duration::ZERO));
    assert_eq!(
        asked("retry-after", "Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_799),
        Some(Duration::from_secs(1))
    );
    assert_eq!(
        asked("retry-after", "Thu, 01 Jan 1970 00:00:05 GMT", 0),
        Some(Duration::from_secs(5))
    );
    for nonsense in [
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 40 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49 GMT",
    ] {
        assert_eq!(asked("retry-after", nonsense, 0), None, "{nonsense}");
    }
}

#[test]
fn a_wait_of_more_than_a_month_is_a_slip() {
    assert_eq!(asked("retry-after", "2678400", 0), Some(Duration::from_secs(31 * 86_400)));
    assert_eq!(asked("retry-after", "2678401", 0), None);
    assert_eq!(asked("retry-after", "1777936568", 0), None);
}

/// The reset that headers name, at second 1,700,000,000.
fn reset_of(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
    let headers: HeaderMap = headers
        .iter()
        .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    limits_reset(&headers, UNIX_EPOCH + Duration::from_secs(1_700_000_000))
}

#[test]
fn only_limits_that_are_used_up_are_waited_for() {
    let openai = |requests, tokens| {
        reset_of(&[
            ("x-ratelimit-remaining-requests", requests),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", tokens),
            ("x-ratelimit-reset-tokens", "20ms"),
        ])
    };
    assert_eq!(openai("0", "0"), Some(Duration::from_secs(360)));
    assert_eq!(openai("12", "0"), Some(Duration::from_millis(20)));
    assert_eq!(openai("12", "9"), None);
}

#[test]
fn resets_come_in_many_forms() {
    for (remaining, reset, value, delay) in [
        (
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
            "2023-11-14T22:14:20Z",
            60_000,
        ),
        ("x-ratelimit-remaining", "x-ratelimit-reset", "1700000060000", 60_000),
        ("x-ratelimit-remaining", "x-ratelimit-reset", "1700000060", 60_000),
        ("x-ratelimit-remaining", "x-ratelimit-reset", "60", 60_000),
        (
            "x-ratelimit-remaining-tokens-minute",
            "x-ratelimit-reset-tokens-minute",
            "11.382648",
            11_382,
        ),
    ] {
        let found = reset_of(&[(remaining, "0"), (reset, value)]);
        assert_eq!(found.map(|delay| delay.as_millis()), Some(delay), "{reset}: {value}");
    }
    assert_eq!(reset_of(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "soon")]), None);
}

#[test]
fn reads_waits_in_words() {
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for (words, seconds) in [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 644ms. Visit", 0.644),
        ("Please try again in 7m12.5s.", 432.5),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please retry after 86400 seconds.", 86_400.0),
        ("please try again after 1 seconds", 1.0),
        ("Try again in 30 minutes.", 1800.0),
        ("try again in 4 days 20 hours 9 minutes", 418_140.0),
        ("resets at 2023-11-14T22:14:20Z (2056)", 60.0),
        ("resets at 2023-11-15T00:14:20.5+02:00", 60.0),
        ("You will regain access on 2023-11-15 at 00:00 UTC.", 6400.0),
        ("You will regain access on 2020-01-01 at 00:00 UTC.", 0.0),
    ] {
        assert_eq!(from_words(words, now), Some(Duration::from_secs_f64(seconds)), "{words}");
    }
    for words in [
        "try again in a moment",
        "retry after 5",
        "try again in 3 months",
        "resets at midnight",
        "reset at 2023-13-99T99:99:99Z",
        "took 20s",
        "try again in 99999999999999999999999s",
        "try again in 1.2.3s",
        "retry in €5",
    ] {
        assert_eq!(from_words(words, now), None, "{words}");
    }
}
