//! Messages that are no activity of a session, such as heartbeats.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_session::EntryId;

/// The ids of messages that are no activity: a run that takes no others leaves the time at which the session was used
/// last as it is. Clones share the ids.
#[derive(Debug, Clone, Default)]
pub struct QuietMessages(Arc<Mutex<HashSet<EntryId>>>);

impl QuietMessages {
    /// Adds a message.
    pub fn add(&self, id: EntryId) {
        self.lock().insert(id);
    }

    /// Forgets a message that is answered.
    pub fn forget(&self, id: EntryId) {
        self.lock().remove(&id);
    }

    /// True if it holds no message.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether all of `ids` are among them.
    pub(crate) fn hold_all(&self, ids: &[EntryId]) -> bool {
        let quiet = self.lock();
        ids.iter().all(|id| quiet.contains(id))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<EntryId>> {
        // The set is whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
