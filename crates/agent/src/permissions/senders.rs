//! The people whose messages a session works on, and the sessions on whose behalf it works.

use std::sync::Arc;

use myclaw_session::SessionKey;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Everybody whose messages a session works on, as `channel:id`, for the rules of `tools.bySender`. Clones share the
/// list. A front-end adds a sender before it hands over a message and removes it when the message is answered, so the
/// rules for a sender hold in every run that may read the message, also if it joins a run of somebody else.
#[derive(Debug, Clone, Default)]
pub struct Senders(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    /// One entry for each message.
    names: Vec<String>,
    are_used: bool,
}

impl Senders {
    /// Adds the sender of a message.
    pub fn add(&self, sender: &str) {
        let mut list = self.0.lock();
        list.are_used = true;
        list.names.push(sender.to_owned());
    }

    /// Removes the sender of a message that is answered.
    pub fn remove(&self, sender: &str) {
        let mut list = self.0.lock();
        if let Some(at) = list.names.iter().position(|name| name == sender) {
            list.names.swap_remove(at);
        }
    }

    /// Each sender once.
    pub(super) fn get(&self) -> Vec<String> {
        let mut names = self.0.lock().names.clone();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether any message had a sender.
    pub(super) fn are_used(&self) -> bool {
        self.0.lock().are_used
    }
}

/// A session on whose behalf another one works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Its key.
    pub session: SessionKey,
    /// Whose messages it worked on when it gave the work away, as `channel:id`.
    pub senders: Vec<String>,
}
