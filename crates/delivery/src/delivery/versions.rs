//! Later versions of messages: for each message that its writer edited, the version that came last.

use myclaw_store::{Change, Place, Records};
use serde::{Deserialize, Serialize};

use super::Delivery;
use crate::DeliveryError;
use crate::ledger::{OVER, now_ms};
use crate::rows::MessageId;

/// Kind of the records. The key is that of the first version.
const NEWEST: Records<Newest> = Records::new("newest-version");

#[derive(Debug, Serialize, Deserialize)]
struct Newest {
    id: MessageId,
}

impl Delivery {
    /// The newest version of a message that is known here.
    pub async fn newest_version(&self, first: &MessageId) -> Result<MessageId, DeliveryError> {
        let known = NEWEST.get(self.ledger().store(), first.as_str()).await?;
        Ok(known.map_or_else(|| first.clone(), |newest| newest.row.id))
    }

    /// Notes a version that was stored. It is forgotten with everything that is over.
    pub(crate) async fn note_version(
        &self,
        first: &MessageId,
        version: &MessageId,
    ) -> Result<(), DeliveryError> {
        let note = |known: Option<Newest>| match known {
            Some(newest) if newest.id == *version => Change::Keep,
            _ => Change::put(Newest { id: version.clone() }, Place::new(OVER, now_ms())),
        };
        NEWEST.update(self.ledger().store(), first.as_str(), note).await?;
        Ok(())
    }
}
