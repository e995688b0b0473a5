//! Later versions of messages: which of them say something new.

use myclaw_channels::Arrival;

use super::wording::{Worded, edited};
use super::{Receipt, Router, route_of, wording};
use crate::DeliveryError;
use crate::route::Route;
use crate::rows::{Incoming, MessageId, MessageState};

/// Why a version with unchanged text is dropped. Channels report reactions and previews of links as edits.
const UNCHANGED: &str = "the edit changes nothing";
const UNKNOWN: &str = "the edited message is not known";

/// What the gateway knows of a message that its writer has edited.
enum Original {
    /// The agent knows it.
    Answered,
    /// The agent has not seen it.
    Dropped,
    /// The agent knows it, and the later version says the same.
    Unchanged,
    /// The gateway does not have it.
    Unknown,
}

impl Router {
    /// Routes a message, and notes it as the newest version of the one that it edits.
    pub(super) async fn route(&self, arrival: Arrival) -> Result<Receipt, DeliveryError> {
        let route = route_of(&arrival);
        let version = arrival
            .edits
            .as_ref()
            .map(|first| (MessageId::of(&route, first), MessageId::of(&route, &arrival.source_id)));
        let receipt = self.route_version(arrival).await?;
        if let Some((first, version)) = version.filter(|_| receipt.dropped.is_none()) {
            self.delivery.note_version(&first, &version).await?;
        }
        Ok(receipt)
    }

    /// What the model is shown of a message; the reason if it is a later version that is not for the agent.
    pub(super) async fn worded(
        &self,
        arrival: &Arrival,
        route: &Route,
    ) -> Result<Result<Worded, String>, DeliveryError> {
        let worded = wording::text(arrival);
        let Some(original) = &arrival.edits else { return Ok(Ok(worded)) };
        Ok(match self.original(route, original, &worded.text).await? {
            Original::Answered => Ok(worded.edited()),
            // It was not meant for the agent, and is now.
            Original::Dropped => {
                let original = MessageId::of(route, original);
                let original = self.delivery.newest_version(&original).await?;
                self.delivery.forget_kept(route, &original).await?;
                Ok(worded)
            }
            Original::Unchanged => Err(UNCHANGED.to_owned()),
            Original::Unknown => Err(UNKNOWN.to_owned()),
        })
    }

    /// What is known of the message whose later version is `text`.
    async fn original(
        &self,
        route: &Route,
        source_id: &str,
        text: &str,
    ) -> Result<Original, DeliveryError> {
        let first = MessageId::of(route, source_id);
        let Some(original) = self.delivery.ledger().message(&first).await? else {
            return Ok(Original::Unknown);
        };
        let newest = self.delivery.newest_version(&first).await?;
        let newest = match newest == first {
            true => None,
            false => self.delivery.ledger().message(&newest).await?,
        };
        let is_dropped = |row: &Incoming| matches!(row.state, MessageState::Dropped { .. });
        let last = newest.as_ref().unwrap_or(&original);
        Ok(match is_dropped(last) {
            false if says(&last.text, text) => Original::Unchanged,
            true if is_dropped(&original) => Original::Dropped,
            _ => Original::Answered,
        })
    }

    /// Why an edited message that is a command is not obeyed: its earlier version was the same command.
    pub(super) async fn unchanged_command(
        &self,
        arrival: &Arrival,
        route: &Route,
    ) -> Result<Option<String>, DeliveryError> {
        let Some(first) = &arrival.edits else { return Ok(None) };
        let original = self.original(route, first, &arrival.text).await?;
        Ok(matches!(original, Original::Unchanged).then(|| UNCHANGED.to_owned()))
    }
}

/// Whether a stored message says `text`, as a first version or as a later one.
pub fn says(stored: &str, text: &str) -> bool {
    stored == text || stored == edited(text)
}
