//! Messages that are no activity of a session, such as heartbeats.

use std::collections::HashSet;
use std::sync::Arc;

use myclaw_session::EntryId;
use parking_lot::Mutex;

/// The ids of messages that are no activity: a run that takes no others leaves the time at which the session was used
/// last as it is. Clones share the ids.
#[derive(Debug, Clone, Default)]
pub struct QuietMessages(Arc<Mutex<HashSet<EntryId>>>);

impl QuietMessages {
    /// Adds a message.
    pub fn add(&self, id: EntryId) {
        self.0.lock().insert(id);
    }

    /// Forgets a message that is answered.
    pub fn forget(&self, id: EntryId) {
        self.0.lock().remove(&id);
    }

    /// True if it holds no message.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Whether all of `ids` are among them.
    pub(crate) fn hold_all(&self, ids: &[EntryId]) -> bool {
        let quiet = self.0.lock();
        ids.iter().all(|id| quiet.contains(id))
    }
}
