//! What groups of the host do, shown in their chats as for sessions: typing, and previews of replies.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use myclaw_config::HostBinding;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::route::Route;
use parking_lot::Mutex;

use super::{PART, route_to};

/// The groups that are shown.
pub(super) struct Showing {
    delivery: Weak<Delivery>,
    /// The folders of those that work, with what they have written since they said something last. They may write before it is
    /// known where that is shown.
    working: Mutex<HashMap<String, String>>,
}

/// Under which name a group is shown. No session has such a key.
pub(super) fn name(folder: &str) -> String {
    format!("{PART} {folder}")
}

impl Showing {
    pub(super) fn new(delivery: Weak<Delivery>) -> Self {
        Self { delivery, working: Mutex::default() }
    }

    /// Begins to show a group.
    pub(super) fn begin(self: &Arc<Self>, binding: HostBinding) {
        self.working.lock().insert(binding.folder.clone(), String::new());
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Some(delivery) = this.delivery.upgrade() else { return };
            if let Ok(Some(route)) = route_to(&delivery, &binding).await {
                this.go_on(&delivery, &binding, &route);
            }
        });
    }

    /// Shows a group further, if it still works, after something was said in its chat.
    pub(super) fn go_on(&self, delivery: &Delivery, binding: &HostBinding, route: &Route) {
        // Under the lock, so that nothing begins after the group has stopped.
        let working = self.working.lock();
        if let Some(written) = working.get(&binding.folder) {
            let shown = name(&binding.folder);
            delivery.live().begin(&shown, &[(route.clone(), None)]);
            delivery.live().show_text(&shown, written.clone());
        }
    }

    /// Shows what is written.
    pub(super) fn write(&self, binding: &HostBinding, text: String) {
        let mut working = self.working.lock();
        if let Some(written) = working.get_mut(&binding.folder) {
            written.clone_from(&text);
        }
        if let Some(delivery) = self.delivery.upgrade() {
            delivery.live().show_text(&name(&binding.folder), text);
        }
    }

    /// Forgets what was written: it is said now.
    pub(super) fn has_said(&self, binding: &HostBinding) {
        if let Some(written) = self.working.lock().get_mut(&binding.folder) {
            written.clear();
        }
    }

    /// Shows the group no longer. A preview stays until something takes its place.
    pub(super) fn pause(&self, binding: &HostBinding) {
        let mut working = self.working.lock();
        working.remove(&binding.folder);
        if let Some(delivery) = self.delivery.upgrade() {
            delivery.live().pause(&name(&binding.folder));
        }
    }
}
