//! Times in a form for people.

pub use myclaw_agent::export::{local_minute, local_second};
pub use myclaw_files::now_ms;

/// A name for a new session: the time, and a number where that is taken.
pub fn new_session_name(is_taken: impl Fn(&str) -> bool) -> String {
    let name = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    std::iter::once(name.clone())
        .chain((2..).map(|number| format!("{name}-{number}")))
        .find(|name| !is_taken(name))
        .unwrap_or(name)
}
