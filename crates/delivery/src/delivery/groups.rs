//! Messages of groups that were not addressed to the agent: they are kept, and shown to the model with the next one that is.
//!
//! Each group has one record with the newest of them. A message is added to it in the transaction that stores the message as
//! dropped, and the record is removed in the transaction that stores the message with which they are shown, or the answer to
//! `/new`. So each is shown at most once, whatever is killed when.

use myclaw_store::{Change, Place, Records, StoreError, Stored, Version, Write};
use serde::{Deserialize, Serialize};

use super::Delivery;
use crate::DeliveryError;
use crate::ledger::{OVER, now_ms};
use crate::route::Route;
use crate::rows::{Incoming, MessageId, hash};

const GROUPS: Records<Kept> = Records::new("group-context");
/// Most bytes of the messages of a group. The oldest give way.
const MOST_BYTES: usize = 64 * 1024;
/// How often a change of a record is tried again because another message came between.
const MOST_RACES: usize = 5;

/// The newest messages of a group, the oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    messages: Vec<KeptMessage>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptMessage {
    id: MessageId,
    /// As the model is shown it.
    text: String,
}

/// A message that is kept.
#[derive(Debug, Clone)]
pub(crate) struct GroupMessage {
    /// As the model is shown it.
    pub(crate) text: String,
    /// The message of which it is a later version.
    pub(crate) replaces: Option<MessageId>,
    /// How many messages of the group are kept.
    pub(crate) most: usize,
}

impl Kept {
    fn forget(&mut self, id: &MessageId) -> bool {
        let before = self.messages.len();
        self.messages.retain(|message| message.id != *id);
        self.messages.len() < before
    }

    fn add(&mut self, id: MessageId, new: &GroupMessage) {
        self.messages.push(KeptMessage { id, text: new.text.clone() });
        let bytes = |messages: &[KeptMessage]| -> usize {
            messages.iter().map(|message| message.text.len()).sum()
        };
        let mut from = self.messages.len().saturating_sub(new.most);
        while bytes(&self.messages[from..]) > MOST_BYTES {
            from += 1;
        }
        self.messages.drain(..from);
    }
}

impl Delivery {
    /// Stores a message of a group as dropped, and keeps it for the next one that is addressed to the agent.
    pub(super) async fn keep(
        &self,
        id: &MessageId,
        row: &Incoming,
        new: &GroupMessage,
    ) -> Result<Incoming, DeliveryError> {
        for _ in 0..MOST_RACES {
            let known = GROUPS.get(self.ledger().store(), &key(&row.route)).await?;
            let (version, mut kept): (Option<Version>, Kept) =
                known.map_or_else(Default::default, |it| (Some(it.version), it.row));
            if let Some(original) = &new.replaces {
                kept.forget(original);
            }
            kept.add(id.clone(), new);
            // What nobody adds to for a month is removed with everything that is over.
            let write = GROUPS.put(&key(&row.route), version, &kept, Place::new(OVER, now_ms()))?;
            let stored =
                self.ledger().store_with(id.clone(), row.clone(), Vec::new(), &[], vec![write]);
            if let Some(accepted) = stored.await? {
                return Ok(accepted.into_row());
            }
        }
        Err(StoreError::Contended(GROUPS.id(&key(&row.route)).to_string()).into())
    }

    /// What the model is shown with the next message of a group, and the write that forgets it.
    pub(crate) async fn take_kept(
        &self,
        route: &Route,
    ) -> Result<Option<(String, Write)>, DeliveryError> {
        let known = GROUPS.get(self.ledger().store(), &key(route)).await?;
        let Some(Stored { version, row: kept, .. }) = known else { return Ok(None) };
        if kept.messages.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = kept.messages.iter().map(|message| message.text.as_str()).collect();
        let shown = format!(
            "[Earlier messages of this group, which were not addressed to you]\n{}\n[End of the earlier messages]",
            texts.join("\n")
        );
        Ok(Some((shown, GROUPS.remove(&key(route), version))))
    }

    /// Forgets a message whose later version is addressed to the agent.
    pub(crate) async fn forget_kept(
        &self,
        route: &Route,
        id: &MessageId,
    ) -> Result<(), DeliveryError> {
        let forget = |kept: Option<Kept>| {
            let mut kept = kept.unwrap_or_default();
            match kept.forget(id) {
                true => Change::put(kept, Place::new(OVER, now_ms())),
                false => Change::Keep,
            }
        };
        GROUPS.update(self.ledger().store(), &key(route), forget).await?;
        Ok(())
    }
}

fn key(route: &Route) -> String {
    hash("g", &[&route.channel, &route.account, &route.chat])
}
