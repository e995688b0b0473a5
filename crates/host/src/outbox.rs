//! Parts that go out.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::host::{Shared, ended_with};
use crate::ledger::Stored;
use crate::rows::OutgoingPart;
use crate::{HostError, Messenger, speech};

/// How long an undelivered part waits at first and at most. The wait is doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Delivers the parts of each chat in their order, each until it succeeds. A chat that cannot be reached, or for which
/// something is being spoken, does not hold up the others.
pub(crate) async fn deliver(
    shared: Arc<Shared>,
    messenger: Arc<dyn Messenger>,
) -> Result<(), HostError> {
    let mut pause = FIRST_PAUSE;
    // The chats to which something is being delivered, and those that wait for the next attempt.
    let mut busy = HashSet::new();
    let mut waiting = HashSet::new();
    let mut deliveries = JoinSet::new();
    loop {
        let mut chats: BTreeMap<String, Vec<Stored<OutgoingPart>>> = BTreeMap::new();
        for part in shared.ledger.unsent().await? {
            let chat = &part.row.outbound.chat;
            if !busy.contains(chat) && !waiting.contains(chat) {
                chats.entry(chat.clone()).or_default().push(part);
            }
        }
        for (chat, parts) in chats {
            busy.insert(chat.clone());
            let (shared, messenger) = (Arc::clone(&shared), Arc::clone(&messenger));
            deliveries.spawn(async move {
                let delivered = deliver_to(&shared, &*messenger, parts).await?;
                Ok((chat, delivered))
            });
        }
        tokio::select! {
            Some(ended) = deliveries.join_next() => {
                let (chat, delivered) = ended_with(ended)?;
                busy.remove(&chat);
                match delivered {
                    Delivered::All => pause = FIRST_PAUSE,
                    Delivered::UpToAFailure => drop(waiting.insert(chat)),
                }
            }
            () = shared.outbox.notified() => waiting.clear(),
            () = tokio::time::sleep(pause), if !waiting.is_empty() => {
                pause = (pause * 2).min(LONGEST_PAUSE);
                waiting.clear();
            }
        }
    }
}

enum Delivered {
    All,
    UpToAFailure,
}

/// Delivers parts of one chat in their order, until one is not delivered.
async fn deliver_to(
    shared: &Shared,
    messenger: &dyn Messenger,
    parts: Vec<Stored<OutgoingPart>>,
) -> Result<Delivered, HostError> {
    for part in parts {
        let outbound = speech::spoken(shared, &part.row.outbound).await;
        if let Err(problem) = messenger.deliver(&outbound).await {
            shared.say(&format!("a message for {} waits, because {problem}", outbound.chat));
            return Ok(Delivered::UpToAFailure);
        }
        shared.ledger.sent(&part).await?;
    }
    Ok(Delivered::All)
}
