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
