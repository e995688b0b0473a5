//! Pictures of messages, which are stored apart from their rows: a row is written again when its message is answered, and
//! the pictures stay as they are.

use myclaw_llm::ImageContent;
use myclaw_store::{Blob, Place, StoreError, Version, Write};

use super::{INCOMING, Ledger, OpenMessage};
use crate::DeliveryError;
use crate::rows::{Incoming, MessageId};

/// Bytes of pictures that stay in the row.
const SMALL: usize = 16 * 1024;

/// Gives the pictures of a new row a place of their own, if they are large: the writes for it.
pub(super) fn set_apart(row: &mut Incoming) -> Result<Vec<Write>, DeliveryError> {
    let bytes: usize = row.images.iter().map(|image| image.data.len()).sum();
    if bytes <= SMALL {
        return Ok(Vec::new());
    }
    let json = serde_json::to_vec(&row.images)
        .map_err(|error| DeliveryError::Internal(error.to_string()))?;
    let (blob, writes) = Blob::put(&json)?;
    row.pictures = Some(blob);
    Ok(writes)
}

/// The writes that store a message, without the pictures that have a place of their own.
pub(super) fn put(
    id: &MessageId,
    known: Option<Version>,
    row: &Incoming,
    place: Place,
) -> Result<Vec<Write>, StoreError> {
    if row.pictures.is_none() || row.images.is_empty() {
        return INCOMING.put_any_size(id.as_str(), known, row, place);
    }
    let row = Incoming { images: Vec::new(), ..row.clone() };
    INCOMING.put_any_size(id.as_str(), known, &row, place)
}

impl Ledger {
    /// The message with its pictures. Those that are gone are missing.
    pub(crate) async fn with_pictures(
        &self,
        mut message: OpenMessage,
    ) -> Result<OpenMessage, DeliveryError> {
        let Some(blob) = &message.row.pictures else { return Ok(message) };
        if let Some(json) = blob.read(self.store()).await? {
            let images: Result<Vec<ImageContent>, _> = serde_json::from_slice(&json);
            message.row.images =
                images.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests;
