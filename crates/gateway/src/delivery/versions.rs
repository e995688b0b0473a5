//! Later versions of messages: for each message that its writer edited, the version that came last.

use myclaw_store::Place;
use serde::{Deserialize, Serialize};

use super::Delivery;
use crate::GatewayError;
use crate::ledger::{OVER, now_ms};
use crate::rows::MessageId;

/// Kind of the records. The key is that of the first version.
const KIND: &str = "newest-version";

#[derive(Debug, Serialize, Deserialize)]
struct Newest {
    id: MessageId,
}

impl Delivery {
    /// The newest version of a message that is known here.
    pub(crate) async fn newest_version(
        &self,
        first: &MessageId,
    ) -> Result<MessageId, GatewayError> {
        let known = self.ledger.record::<Newest>(KIND, first.as_str()).await?;
        Ok(known.map_or_else(|| first.clone(), |(_, newest)| newest.id))
    }

    /// Notes a version that was stored. It is forgotten with everything that is over.
    pub(crate) async fn note_version(
        &self,
        first: &MessageId,
        version: &MessageId,
    ) -> Result<(), GatewayError> {
        let known = self.ledger.record::<Newest>(KIND, first.as_str()).await?;
        let expected = match known {
            Some((_, newest)) if newest.id == *version => return Ok(()),
            known => known.map(|(expected, _)| expected),
        };
        let newest = Newest { id: version.clone() };
        let place = Some(Place::new(OVER, now_ms()));
        self.ledger.put(KIND, first.as_str(), &newest, expected, place).await.map(|_| ())
    }
}
