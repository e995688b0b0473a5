//! Ending a child with its descendants: `taskkill` finds them by their parents. A process whose parent has ended is not found, and
//! the trees of killed programs are not found again.

use myclaw_files::portable::process::{Pid, Signal, kill_process};

use crate::mark::Mark;

/// A running child with everything it started.
#[derive(Debug, Clone)]
pub(crate) struct Tree(Option<Pid>);

/// A live member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub pid: i32,
    pub name: String,
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
