//! Messages whose key has not come. They are kept, the chat gets one notice, and they are handed over when it comes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::event::Event;
use super::super::{Failure, Matrix, Me};
use super::Encryption;
use super::machine::{broken, raw};
use super::rows::{Batch, Key, Result, key};
use crate::Intake;

const KEPT: &str = "kept";
/// Most messages that are kept. Further ones are only written to the log.
const MOST: usize = 1_000;
const TEXT: &str = "I cannot read a message here, because its key did not reach me. I answer it when the key comes. If nothing \
                    happens, send it again.";

/// A message that cannot be decrypted.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    room: String,
    event: Event,
    /// Whether the chat knows.
    is_told: bool,
}

impl Kept {
    fn session(&self) -> &str {
        self.event.content.get("session_id").and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> Key {
        key(KEPT, &self.room, &self.event.event_id)
    }
}

impl Encryption {
    async fn kept(&self) -> Result<Vec<Kept>> {
        let mut all: Vec<Kept> = self.rows.all(KEPT, None).await?;
        all.sort_by_key(|kept| kept.event.time());
        Ok(all)
    }

    /// Keeps a message, and asks other devices of this account for its key.
    pub(super) async fn keep(&self, room: &str, event: &Event, reason: &str) -> Result<()> {
        tracing::warn!(room, message = event.event_id, reason, "a message cannot be decrypted");
        let others = self.kept().await?;
        let mut kept = Kept { room: room.to_owned(), event: event.clone(), is_told: false };
        if others.iter().any(|other| other.room == room && other.event.event_id == event.event_id) {
            return Ok(());
        }
        if others.len() >= MOST {
            tracing::error!(
                room,
                message = event.event_id,
                "too many messages wait for keys; this one is not kept"
            );
            return Ok(());
        }
        let is_same = |other: &&Kept| other.room == room && other.session() == kept.session();
        kept.is_told = others.iter().find(is_same).is_some_and(|other| other.is_told);
        let mut batch = Batch::default();
        batch.put(kept.name(), &kept)?;
        self.rows.write(batch).await?;
        let json = serde_json::to_value(event)?;
        if let (Ok(room), Ok(event)) = (ruma::RoomId::parse(room), raw(&json)) {
            // Sent with the next flush. A failure only means that nobody is asked.
            if let Err(error) = self.machine.request_room_key(&event, &room).await {
                tracing::debug!(%error, "a key is not asked for");
            }
        }
        Ok(())
    }
}

impl Matrix {
    /// Takes the messages whose keys have come: those of `sessions`, or of all at the first call of this process.
    pub(super) async fn take_kept(
        &self,
        encryption: &Encryption,
        sessions: &[String],
        me: &Me,
        intake: &dyn Intake,
    ) -> std::result::Result<(), Failure> {
        let is_first = !self.lock().has_looked;
        if sessions.is_empty() && !is_first {
            return Ok(());
        }
        for kept in encryption.kept().await.map_err(|error| broken(&error))? {
            if !is_first && !sessions.iter().any(|id| id == kept.session()) {
                continue;
            }
            let decrypted = encryption.decrypt(&kept.room, &kept.event).await;
            let Ok(event) = decrypted.map_err(Failure::NotNow)? else { continue };
            self.take_said(&kept.room, &event, me, intake).await.map_err(Failure::NotNow)?;
            let mut batch = Batch::default();
            batch.remove(kept.name());
            encryption.rows.write(batch).await.map_err(|error| broken(&error))?;
        }
        self.lock().has_looked = true;
        Ok(())
    }

    /// Tells the chats of messages that still cannot be decrypted, once for each key.
    pub(super) async fn tell_kept(
        &self,
        encryption: &Encryption,
    ) -> std::result::Result<(), Failure> {
        let mut told: Vec<(String, String)> = Vec::new();
        for mut kept in encryption.kept().await.map_err(|error| broken(&error))? {
            let session = (kept.room.clone(), kept.session().to_owned());
            if kept.is_told {
                continue;
            }
            if !told.contains(&session) {
                let Value::Object(content) = json!({"msgtype": "m.notice", "body": TEXT}) else {
                    continue;
                };
                let content: Map<String, Value> = content;
                let id = format!("myclaw-key-{}", session.1);
                if let Err(failure) = self.put(&kept.room, &id, content).await {
                    tracing::warn!(
                        ?failure,
                        room = kept.room,
                        "a chat does not know yet that a message cannot be read"
                    );
                    continue;
                }
                told.push(session);
            }
            kept.is_told = true;
            let mut batch = Batch::default();
            batch.put(kept.name(), &kept).map_err(|error| broken(&error))?;
            encryption.rows.write(batch).await.map_err(|error| broken(&error))?;
        }
        Ok(())
    }
}
