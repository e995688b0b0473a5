//! Encrypted rooms in a program that is built without the feature `matrix-encryption`: they are refused.

use serde_json::{Map, Value, json};

use super::event::{Event, Sync};
use super::{Failure, Matrix, Me};
use crate::{Intake, SendFailure};

/// The notice that an encrypted room gets once, and the reason of every answer that is not sent there.
const REFUSED: &str = "This room is encrypted, and this MyClaw is built without encryption. Use a room without encryption, or \
                       a build with the cargo feature matrix-encryption.";

/// There are no keys.
pub(super) type Cell = ();

/// Whether this program can read encrypted rooms.
pub(super) const fn is_built() -> bool {
    false
}

impl Matrix {
    pub(super) async fn begin_encryption(&self, _me: &Me) -> Result<(), Failure> {
        Ok(())
    }

    pub(super) async fn take_keys(
        &self,
        _sync: &mut Sync,
        _me: &Me,
        _intake: &dyn Intake,
    ) -> Result<(), Failure> {
        Ok(())
    }

    pub(super) async fn encrypt(
        &self,
        _room: &str,
        _kind: &str,
        _content: Map<String, Value>,
    ) -> Result<Map<String, Value>, SendFailure> {
        Err(SendFailure::Never { reason: REFUSED.to_owned() })
    }

    pub(super) async fn open_event(
        &self,
        room: &str,
        _event: &Event,
        _me: &Me,
    ) -> Result<Option<Event>, String> {
        self.refuse_plain(room).await;
        Ok(None)
    }

    /// Says once that nothing is read in the room. The notice says nothing that is not public.
    pub(super) async fn refuse_plain(&self, room: &str) {
        if self.is_first_notice(room) {
            tracing::warn!(room, "{REFUSED}");
            let notice = json!({"msgtype": "m.notice", "body": REFUSED});
            let id = format!("myclaw-encrypted-{room}");
            if let Err(error) = self.put_plain(room, "m.room.message", &id, &notice).await {
                tracing::debug!(%error, "the notice about encryption was not sent");
            }
        }
    }

    pub(super) async fn look_into(&self, _room: &str, event: Event) -> Event {
        event
    }

    pub(super) async fn note_settings(&self, _room: &str, _content: &Value) {}

    pub(super) async fn has_settings(&self, _room: &str) -> bool {
        false
    }
}

pub(super) fn encrypt_file(_bytes: &[u8]) -> Result<(Vec<u8>, Map<String, Value>), String> {
    Err(REFUSED.to_owned())
}

pub(super) fn decrypt_file(_bytes: &[u8], _info: &Value) -> Result<Vec<u8>, String> {
    Err(REFUSED.to_owned())
}
