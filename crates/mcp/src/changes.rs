//! What a server has said that changes: its lists, and resources that were read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::watch;

use crate::watched::Watched;

/// What a server has said that has changed.
#[derive(Default)]
pub(crate) struct Changes {
    of_tools: AtomicBool,
    /// Of the list of resources or prompts.
    of_names: AtomicBool,
    /// How many requests to say what changes were acknowledged.
    acknowledged: watch::Sender<usize>,
    /// Notes resources that change.
    watched: OnceLock<Arc<Watched>>,
}

impl Changes {
    /// Whether the server has said since the last question that its list of tools is another one.
    pub(crate) fn take_of_tools(&self) -> bool {
        self.of_tools.swap(false, Ordering::Relaxed)
    }

    /// Whether it has said so of its resources or prompts.
    pub(crate) fn take_of_names(&self) -> bool {
        self.of_names.swap(false, Ordering::Relaxed)
    }

    /// Notes in `watched` the resources that change.
    pub(crate) fn report_to(&self, watched: &Arc<Watched>) {
        self.watched.get_or_init(|| Arc::clone(watched));
    }

    /// Notes acknowledgements from now on.
    pub(crate) fn acknowledgements(&self) -> watch::Receiver<usize> {
        self.acknowledged.subscribe()
    }

    /// Takes a message of the server that has no answer.
    pub(crate) fn take(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.of_tools.store(true, Ordering::Relaxed),
            "notifications/resources/list_changed" | "notifications/prompts/list_changed" => {
                self.of_names.store(true, Ordering::Relaxed);
            }
            "notifications/resources/updated" => {
                if let (Some(uri), Some(watched)) = (params["uri"].as_str(), self.watched.get()) {
                    watched.note(uri);
                }
            }
            "notifications/subscriptions/acknowledged" => {
                self.acknowledged.send_modify(|count| *count += 1);
            }
            _ => {}
        }
    }
}
