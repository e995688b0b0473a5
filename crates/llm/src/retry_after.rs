//! How long a server asks to wait.
//!
//! Servers say it in a header of its own, in the headers of a limit that is used up, in a field of the error body, or
//! only in the words of the error. This module reads all of them; the classifier decides whether waiting helps.

mod moment;
mod span;

pub use moment::http_date;

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// Longest plausible wait: a month, the longest window of any known quota. A longer one is a mistake (such as
/// milliseconds for seconds) and is ignored.
const LONGEST_DELAY: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// Words in front of a length of time.
const SPAN_MARKERS: [&str; 9] = [
    "try again in ",
    "try again after ",
    "retry after ",
    "retry in ",
    "reset in ",
    "resets in ",
    "reset after ",
    "or wait ",
    "please wait ",
];

/// Words in front of a point in time.
const MOMENT_MARKERS: [&str; 4] = ["resets at ", "reset at ", "try again at ", "regain access on "];

/// The wait that the headers ask for: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date. A date that
/// has passed means not to wait.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(milliseconds) =
        text(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok())
    {
        return believable(Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?);
    }
    let value = text(headers, "retry-after")?;
    let delay = match value.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => moment::until(moment::http_date(value)?, now),
    };
    believable(delay)
}

/// The time until the used-up limits are reset, from headers such as `x-ratelimit-reset-tokens` besides
/// `x-ratelimit-remaining-tokens: 0`; the last of them counts. A limit that is not used up is ignored: the server
/// refused for another reason.
pub(crate) fn limits_reset(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let of_limits = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        if !name.contains("ratelimit") || !name.contains("reset") {
            return None;
        }
        let remaining: f64 = text(headers, &name.replace("reset", "remaining"))?.parse().ok()?;
        (remaining <= 0.0).then(|| reset(value.to_str().ok()?.trim(), now))?
    });
    of_limits.max().and_then(believable)
}

/// The same for headers that a gateway repeats in its error body.
pub(crate) fn limits_reset_in_body(
    headers: &Map<String, Value>,
    now: SystemTime,
) -> Option<Duration> {
    let headers: HeaderMap = headers
        .iter()
        .filter_map(|(name, value)| {
            let name = HeaderName::try_from(name.as_str()).ok()?;
            Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
        })
        .collect();
    retry_after(&headers, now).or_else(|| limits_reset(&headers, now))
}

/// A field that says in how many seconds, or at which second since the Unix epoch.
pub(crate) fn from_fields(
    in_seconds: &Value,
    at_second: &Value,
    now: SystemTime,
) -> Option<Duration> {
    let delay = match in_seconds.as_f64() {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        None => moment::until(moment::epoch(at_second.as_f64()?)?, now),
    };
    believable(delay)
}

/// A length of time as Google writes it, such as `34.5s`.
pub(crate) fn from_span(text: &str) -> Option<Duration> {
    believable(span::whole(text)?)
}

/// The wait that the words of an error ask for, such as `Please try again in 6m0s` or `Please retry after 9 seconds`.
pub(crate) fn from_words(words: &str, now: SystemTime) -> Option<Duration> {
    // ASCII folding keeps every offset.
    let folded = words.to_ascii_lowercase();
    let behind = |markers: &'static [&'static str]| {
        markers.iter().filter_map(|marker| Some(&folded[folded.find(marker)? + marker.len()..]))
    };
    let delay = behind(&SPAN_MARKERS).find_map(span::leading).or_else(|| {
        behind(&MOMENT_MARKERS)
            .find_map(moment::leading_date)
            .map(|moment| moment::until(moment, now))
    });
    delay.and_then(believable)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// A reset in any of the forms in use: `6m0s`, a date, a second or millisecond since the epoch, or seconds from now.
fn reset(value: &str, now: SystemTime) -> Option<Duration> {
    match value.parse::<f64>() {
        Ok(number) => match moment::epoch(number) {
            Some(moment) => Some(moment::until(moment, now)),
            None => Duration::try_from_secs_f64(number).ok(),
        },
        Err(_) => span::whole(value).or_else(|| {
            Some(moment::until(moment::leading_date(&value.to_ascii_lowercase())?, now))
        }),
    }
}

fn believable(delay: Duration) -> Option<Duration> {
    (delay <= LONGEST_DELAY).then_some(delay)
}

#[cfg(test)]
mod tests;
