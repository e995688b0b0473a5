//! Waiting for changes of a queue.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::QueueId;

/// Queues that are watched before those that nobody watches any more are forgotten.
const MOST_UNUSED: usize = 64;

/// Waits for changes of a queue. It may wake without a change; what changed is read from the queue.
#[derive(Debug)]
pub struct QueueWatch {
    changes: watch::Receiver<()>,
    poll: Option<Duration>,
}

/// The watches of a store, for those who implement one.
#[derive(Debug, Default)]
pub struct Watches {
    senders: Mutex<HashMap<QueueId, watch::Sender<()>>>,
    poll: Option<Duration>,
}

impl QueueWatch {
    /// Waits until the queue has changed since the last call, or since the watch was made.
    pub async fn changed(&mut self) {
        let Self { changes, poll } = self;
        let changed = async {
            if changes.changed().await.is_err() {
                // The store is closed. Who waits for it is told by the next call.
                std::future::pending::<()>().await;
            }
        };
        match poll {
            Some(poll) => drop(tokio::time::timeout(*poll, changed).await),
            None => changed.await,
        }
    }
}

impl Watches {
    /// Watches that wake after this time in any case, for a store that others write without a word to this process.
    pub fn polling(poll: Duration) -> Self {
        Self { senders: Mutex::default(), poll: Some(poll) }
    }

    /// Watches a queue.
    pub fn watch(&self, queue: QueueId) -> QueueWatch {
        let mut senders = self.senders.lock();
        if senders.len() >= MOST_UNUSED {
            senders.retain(|_, sender| sender.receiver_count() > 0);
        }
        let sender = senders.entry(queue).or_insert_with(|| watch::Sender::new(()));
        QueueWatch { changes: sender.subscribe(), poll: self.poll }
    }

    /// Whether nobody watches anything.
    pub fn is_empty(&self) -> bool {
        self.senders.lock().is_empty()
    }

    /// Wakes those who watch one of these queues.
    pub fn wake<'q>(&self, queues: impl IntoIterator<Item = &'q QueueId>) {
        let senders = self.senders.lock();
        for sender in queues.into_iter().filter_map(|queue| senders.get(queue)) {
            sender.send_replace(());
        }
    }
}
