//! Times in a form for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

pub use myclaw_agent::export::{local_minute, local_second};

/// A name for a new session: the time, and a number where that is taken.
pub fn new_session_name(is_taken: impl Fn(&str) -> bool) -> String {
    let name = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    std::iter::once(name.clone())
        .chain((2..).map(|number| format!("{name}-{number}")))
        .find(|name| !is_taken(name))
        .unwrap_or(name)
}
