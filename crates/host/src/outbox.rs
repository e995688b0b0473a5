//! Parts that go out.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::host::Shared;
use crate::{HostError, Messenger};

/// How long an undelivered part waits at first and at most. The wait is doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Delivers the parts of each chat in their order, each until it succeeds.
pub(crate) async fn deliver(
    shared: Arc<Shared>,
    messenger: Arc<dyn Messenger>,
) -> Result<(), HostError> {
    let mut pause = FIRST_PAUSE;
    loop {
        // One chat that cannot be reached does not hold up the others.
        let mut waiting = HashSet::new();
        for part in shared.ledger.unsent().await? {
            let outbound = &part.row.outbound;
            if waiting.contains(&outbound.chat) {
                continue;
            }
            match messenger.deliver(outbound).await {
                Ok(()) => shared.ledger.sent(&part).await?,
                Err(problem) => {
                    shared
                        .say(&format!("a message for {} waits, because {problem}", outbound.chat));
                    waiting.insert(outbound.chat.clone());
                }
            }
        }
        if waiting.is_empty() {
            pause = FIRST_PAUSE;
            shared.outbox.notified().await;
            continue;
        }
        tokio::select! {
            () = shared.outbox.notified() => {}
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}
