//! The mark of a tree of processes.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use myclaw_files::variables::PROCESS_TREE as MARK_VARIABLE;

/// What every member of one tree has in its environment.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

impl Mark {
    /// A mark that no other tree has.
    pub(crate) fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{now}-{count}", std::process::id()))
    }

    /// The mark that was stored as `text`; `None` if the text is invalid, so that a damaged record matches no process.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let is_number =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (parts.len() == 3 && parts.iter().all(is_number)).then(|| Self(text.to_owned()))
    }

    /// The form in which it is stored.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The variable as the child gets it.
    pub(crate) fn variable(&self) -> OsString {
        format!("{MARK_VARIABLE}={}", self.0).into()
    }
}
