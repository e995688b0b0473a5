//! Times in a form for people.

pub use myclaw_agent::export::{local_minute, local_second};
pub use myclaw_agent::new_session_name;
pub use myclaw_files::now_ms;
