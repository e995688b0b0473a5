//! Ending a child with its descendants: `taskkill` finds them by their parents. A process whose parent has ended is not found, and
//! the trees of killed programs are not found again.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use myclaw_files::portable::process::{Pid, Signal, kill_process};
pub(crate) use myclaw_files::variables::PROCESS_TREE as MARK_VARIABLE;

/// A running child with everything it started.
#[derive(Debug, Clone)]
pub(crate) struct Tree(Option<Pid>);

/// What every member of one tree has in its environment.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

/// A live member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub pid: i32,
    pub name: String,
}

impl Mark {
    /// A mark that no other tree has.
    pub(crate) fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{now}-{count}", std::process::id()))
    }

    /// The mark that was stored as `text`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
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

impl Tree {
    /// The tree of a child.
    pub(crate) fn new(root: Pid, _mark: Mark) -> Self {
        Self(Some(root))
    }

    /// A tree that another process started, which is not found.
    pub(crate) fn traced(_root: Option<(i32, u64)>, _mark: Mark) -> Self {
        Self(None)
    }

    /// It is not known.
    pub(crate) fn group_is_alive(&self) -> bool {
        false
    }

    /// They are not known.
    pub(crate) fn members(&self) -> Vec<Member> {
        Vec::new()
    }

    /// They are not known.
    pub(crate) fn descendants(&self) -> Vec<Member> {
        Vec::new()
    }

    /// Ends all members.
    pub(crate) async fn terminate(&self) {
        let tree = self.clone();
        drop(tokio::task::spawn_blocking(move || tree.kill_now()).await);
    }

    /// Ends all members by force, now. Blocking.
    pub(crate) fn kill_now(&self) {
        if let Some(root) = self.0 {
            // It may have ended.
            drop(kill_process(root, Signal::KILL));
        }
    }
}

/// When a process was started: it is not known.
pub(crate) fn start_of(_pid: i32) -> Option<u64> {
    None
}
