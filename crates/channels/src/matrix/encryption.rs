//! Encrypted rooms, with the Matrix project's own library.
//!
//! The order that a crash does not break: keys of a sync are in the database before its messages are read, a message that
//! cannot be decrypted yet is in it before the sync point is stored, and an index of a key is used up in it before the text
//! that was encrypted with it is sent.

mod kept;
mod keys;
mod machine;
mod requests;
mod rows;

use std::io::{Cursor, Read as _};
use std::sync::Arc;

use matrix_sdk_crypto::{AttachmentDecryptor, AttachmentEncryptor, OlmMachine};
use ruma::RoomId;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OnceCell};

use super::event::{Event, Sync};
use super::send::text_content;
use super::{Failure, Matrix, Me};
use crate::{Intake, PartKind, SendFailure};
use rows::Rows;

/// The notice that an encrypted room gets once when somebody writes without encryption.
const PLAIN: &str = "A message here was not encrypted, though the room is. I do not read such messages, because the                      server could have written them.";

/// The keys of an account, once they are open.
pub(super) type Cell = OnceCell<Arc<Encryption>>;

/// The keys of an account.
pub(super) struct Encryption {
    machine: OlmMachine,
    rows: Rows,
    /// Requests of the machine are sent by one caller at a time, and so is a room's key.
    turn: Mutex<()>,
}

/// Whether this program can read encrypted rooms.
pub(super) const fn is_built() -> bool {
    true
}

impl Matrix {
    /// Opens the keys, and publishes them at the first time.
    pub(super) async fn begin_encryption(&self, me: &Me) -> Result<(), Failure> {
        let encryption = self.encryption(me).await?;
        let _turn = encryption.turn.lock().await;
        self.flush(&encryption).await?;
        self.sign_device(&encryption, me).await
    }

    /// Takes what a sync says about keys, and then the messages that were waiting for one.
    pub(super) async fn take_keys(
        &self,
        sync: &mut Sync,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), Failure> {
        let encryption = self.encryption(me).await?;
        let sessions = encryption.receive(std::mem::take(&mut sync.keys), &sync.next_batch).await?;
        {
            let _turn = encryption.turn.lock().await;
            self.flush(&encryption).await?;
        }
        self.take_kept(&encryption, &sessions, me, intake).await?;
        self.tell_kept(&encryption).await
    }

    /// The content of an encrypted event for a room.
    pub(super) async fn encrypt(
        &self,
        room: &str,
        kind: &str,
        content: Map<String, Value>,
    ) -> Result<Map<String, Value>, SendFailure> {
        let encrypted = self.encrypt_for_members(room, kind, content).await;
        encrypted.map_err(|failure| match failure {
            Failure::Call(error) => self.failure(error),
            Failure::NotNow(reason) => SendFailure::Later { after: None, reason },
            // The owner may mend it; the reply is not lost until then.
            Failure::Stop(reason) => SendFailure::Later { after: Some(super::OWNER_PAUSE), reason },
        })
    }

    /// What an encrypted event says. `None` if it cannot be decrypted; then it is kept until it can.
    ///
    /// # Errors
    /// It has to be tried again.
    pub(super) async fn open_event(
        &self,
        room: &str,
        event: &Event,
        me: &Me,
    ) -> Result<Option<Event>, String> {
        let encryption = self.encryption(me).await.map_err(|failure| failure.to_string())?;
        match encryption.decrypt(room, event).await? {
            Ok(event) => Ok(Some(event)),
            Err(reason) => {
                encryption.keep(room, event, &reason).await.map_err(|error| error.to_string())?;
                Ok(None)
            }
        }
    }

    /// An event that is only looked at, decrypted if that is possible.
    pub(super) async fn look_into(&self, room: &str, event: Event) -> Event {
        let Some(encryption) = self.encryption.get() else { return event };
        match encryption.decrypt(room, &event).await {
            Ok(Ok(decrypted)) => decrypted,
            _ => event,
        }
    }

    /// Says once that messages without encryption are not read.
    pub(super) async fn refuse_plain(&self, room: &str) {
        if !self.is_first_notice(room) {
            return;
        }
        tracing::warn!(room, "a message without encryption in an encrypted room is not read");
        let content = text_content(PLAIN, PartKind::Report);
        let id = format!("myclaw-plain-{}", uuid::Uuid::new_v4());
        if let Err(failure) = self.put(room, &id, content).await {
            tracing::warn!(?failure, "the notice about encryption was not sent");
        }
    }

    /// Notes forever that a room is encrypted, with the content of the event that says so.
    pub(super) async fn note_settings(&self, room: &str, content: &Value) {
        let (Some(encryption), Ok(room)) = (self.encryption.get(), RoomId::parse(room)) else {
            return;
        };
        let settings = machine::settings_of(content);
        if let Err(error) = encryption.machine.set_room_settings(&room, &settings).await {
            tracing::warn!(%room, %error, "other settings of encryption are not taken");
        }
    }

    /// Whether a room is known to be encrypted.
    pub(super) async fn has_settings(&self, room: &str) -> bool {
        let (Some(encryption), Ok(room)) = (self.encryption.get(), RoomId::parse(room)) else {
            return false;
        };
        match encryption.machine.room_settings(&room).await {
            Ok(settings) => settings.is_some(),
            // Better no answer than one that everybody can read.
            Err(_) => true,
        }
    }
}

/// Encrypts a file; also gives what a reader needs, except its address.
pub(super) fn encrypt_file(bytes: &[u8]) -> Result<(Vec<u8>, Map<String, Value>), String> {
    let mut input = Cursor::new(bytes);
    let mut encryptor = AttachmentEncryptor::new(&mut input);
    let mut encrypted = Vec::with_capacity(bytes.len());
    encryptor.read_to_end(&mut encrypted).map_err(|error| error.to_string())?;
    match serde_json::to_value(encryptor.finish()) {
        Ok(Value::Object(info)) => Ok((encrypted, info)),
        other => Err(format!("the key of the file is no object: {other:?}")),
    }
}

/// Decrypts a file and checks that it is the one that was sent.
pub(super) fn decrypt_file(bytes: &[u8], info: &Value) -> Result<Vec<u8>, String> {
    let info = serde_json::from_value(info.clone())
        .map_err(|error| format!("the key of the file cannot be read: {error}"))?;
    let mut input = Cursor::new(bytes);
    let mut decrypted = Vec::with_capacity(bytes.len());
    let mut decryptor = AttachmentDecryptor::new(&mut input, info)
        .map_err(|error| format!("the file cannot be decrypted: {error}"))?;
    match decryptor.read_to_end(&mut decrypted) {
        Ok(_) => Ok(decrypted),
        Err(error) => Err(format!("the file is not the one that was sent: {error}")),
    }
}
