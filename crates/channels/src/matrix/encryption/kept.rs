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
const NOTICE: &str = "notice";
/// The sort of the rows of notices that were not sent yet.
const UNSENT: &str = "unsent";
/// Most messages that are kept. Further ones are only written to the log.
const MOST: usize = 1_000;
const TEXT: &str = "I cannot read a message here, because its key did not reach me. I answer it when the key comes. If nothing \
                    happens, send it again.";

/// A message that cannot be decrypted. It is found by its key.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    room: String,
    event: Event,
}

impl Kept {
    fn session(&self) -> &str {
        self.event.content.get("session_id").and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> Key {
        key(KEPT, &self.room, &self.event.event_id)
    }
}

/// What a chat gets once for each key that is missing.
#[derive(Debug, Serialize, Deserialize)]
struct Notice {
    room: String,
    session: String,
}

impl Notice {
    fn name(&self) -> Key {
        key(NOTICE, &self.room, &self.session)
    }
}

impl Encryption {
    /// Keeps a message, and asks other devices of this account for its key.
    pub(super) async fn keep(&self, room: &str, event: &Event, reason: &str) -> Result<()> {
        tracing::warn!(room, message = event.event_id, reason, "a message cannot be decrypted");
        let kept = Kept { room: room.to_owned(), event: event.clone() };
        if self.rows.get::<Kept>(kept.name()).await?.is_some() {
            return Ok(());
        }
        if self.rows.count(KEPT).await? >= MOST {
            tracing::error!(
                room,
                message = event.event_id,
                "too many messages wait for keys; this one is not kept"
            );
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.put_sorted(kept.name(), kept.session().to_owned(), &kept)?;
        let notice = Notice { room: room.to_owned(), session: kept.session().to_owned() };
        if self.rows.get::<Notice>(notice.name()).await?.is_none() {
            batch.put_sorted(notice.name(), UNSENT.to_owned(), &notice)?;
        }
        self.rows.write(batch).await?;
        let json = serde_json::to_value(event)?;
        if let (Ok(room), Ok(event)) = (ruma::RoomId::parse(room), raw(&json)) {
            // Sent with the next flush. A failure only means that other devices are not asked for the key.
            if let Err(error) = self.machine.request_room_key(&event, &room).await {
                tracing::debug!(%error, "a key is not asked for");
            }
        }
        Ok(())
    }

    /// The messages that wait for the keys `sessions`, or for any, the oldest first.
    async fn kept(&self, sessions: Option<&[String]>) -> Result<Vec<Kept>> {
        let mut found: Vec<Kept> = Vec::new();
        match sessions {
            None => found = self.rows.all(KEPT, None).await?,
            Some(sessions) => {
                for session in sessions {
                    found.extend(self.rows.sorted(KEPT, session.clone(), None, MOST).await?);
                }
            }
        }
        found.sort_by_key(|kept| kept.event.time());
        Ok(found)
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
        let sessions = self.lock().has_looked.then_some(sessions);
        for kept in encryption.kept(sessions).await.map_err(|error| broken(&error))? {
            let decrypted = encryption.decrypt(&kept.room, &kept.event).await;
            let Ok(event) = decrypted.map_err(Failure::NotNow)? else { continue };
            self.take_said(&kept.room, &event, me, intake).await.map_err(Failure::NotNow)?;
            let mut batch = Batch::default();
            batch.remove(kept.name());
            batch.remove(key(NOTICE, &kept.room, kept.session()));
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
        let unsent = encryption.rows.sorted(NOTICE, UNSENT.to_owned(), None, MOST).await;
        let unsent: Vec<Notice> = unsent.map_err(|error| broken(&error))?;
        for notice in unsent {
            let mut content = Map::new();
            content.insert("msgtype".to_owned(), json!("m.notice"));
            content.insert("body".to_owned(), json!(TEXT));
            let id = format!("myclaw-key-{}", notice.session);
            if let Err(failure) = self.put(&notice.room, &id, content).await {
                tracing::warn!(
                    ?failure,
                    room = notice.room,
                    "a chat does not know yet that a message cannot be read"
                );
                continue;
            }
            let mut batch = Batch::default();
            batch.put(notice.name(), &notice).map_err(|error| broken(&error))?;
            encryption.rows.write(batch).await.map_err(|error| broken(&error))?;
        }
        Ok(())
    }
}
