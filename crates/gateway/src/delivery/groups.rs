//! Messages of groups that were not addressed to the agent: they are kept, and shown to the model with the next one that is.
//!
//! Each group has one record with the newest of them. A message is added to it in the transaction that stores the message as
//! dropped, and the record is removed in the transaction that stores the message with which they are shown, or the answer to
//! `/new`. So each is shown at most once, whatever is killed when.

use myclaw_store::{Place, RecordId, Version, Write};
use serde::{Deserialize, Serialize};

use super::Delivery;
use crate::GatewayError;
use crate::ledger::{OVER, now_ms, write_of};
use crate::rows::{Incoming, MessageId, Route, hash};

/// Kind of the records.
const KIND: &str = "group-context";
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
    ) -> Result<Incoming, GatewayError> {
        for _ in 0..MOST_RACES {
            let (version, mut kept) = self.kept(&row.route).await?;
            if let Some(original) = &new.replaces {
                kept.forget(original);
            }
            kept.add(id.clone(), new);
            let write = replace(&row.route, version, &kept)?;
            let stored =
                self.ledger.store_with(id.clone(), row.clone(), Vec::new(), &[], vec![write]);
            if let Some(accepted) = stored.await? {
                return Ok(accepted.into_row());
            }
        }
        Err(busy())
    }

    /// What the model is shown with the next message of a group, and the write that forgets it.
    pub(crate) async fn take_kept(
        &self,
        route: &Route,
    ) -> Result<Option<(String, Write)>, GatewayError> {
        let (Some(expected), kept) = self.kept(route).await? else { return Ok(None) };
        if kept.messages.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = kept.messages.iter().map(|message| message.text.as_str()).collect();
        let shown = format!(
            "[Earlier messages of this group, which were not addressed to you]\n{}\n[End of the earlier messages]",
            texts.join("\n")
        );
        Ok(Some((shown, Write::Remove { id: RecordId::new(KIND, key(route)), expected })))
    }

    /// Forgets a message whose later version is addressed to the agent.
    pub(crate) async fn forget_kept(
        &self,
        route: &Route,
        id: &MessageId,
    ) -> Result<(), GatewayError> {
        for _ in 0..MOST_RACES {
            let (version, mut kept) = self.kept(route).await?;
            if !kept.forget(id) {
                return Ok(());
            }
            let write = replace(route, version, &kept)?;
            if self.ledger.say_with(Vec::new(), vec![write]).await?.is_some() {
                return Ok(());
            }
        }
        Err(busy())
    }

    async fn kept(&self, route: &Route) -> Result<(Option<Version>, Kept), GatewayError> {
        let known = self.ledger.record::<Kept>(KIND, &key(route)).await?;
        Ok(known.map_or_else(Default::default, |(version, kept)| (Some(version), kept)))
    }
}

/// What nobody adds to for a month is removed with everything that is over.
fn replace(route: &Route, version: Option<Version>, kept: &Kept) -> Result<Write, GatewayError> {
    write_of(KIND, &key(route), kept, version, Some(Place::new(OVER, now_ms())))
}

fn key(route: &Route) -> String {
    hash("g", &[&route.channel, &route.account, &route.chat])
}

fn busy() -> GatewayError {
    GatewayError::Internal("too many messages of one group at the same moment".to_owned())
}
