//! Threads: who began one, and what was said in it before.

use serde::Deserialize;

use super::api::encode;
use super::event::Event;
use super::{CALL_TIME, Matrix, Me};
use crate::{Arrival, Earlier, Intake, Passage, Sender};

/// The newest messages of a thread that are shown, besides its first one.
const MOST_SHOWN: &str = "20";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Relations {
    chunk: Vec<Event>,
}

impl Matrix {
    /// Whether a message is in a thread below a message of this account.
    pub(super) async fn is_own_thread(&self, room: &str, event: &Event, me: &Me) -> bool {
        let Some(root) = event.thread() else { return false };
        let name = format!("{room} {root}");
        let known = self.memory.lock().roots.get(&name).cloned();
        let sender = match known {
            Some(sender) => sender,
            None => {
                let Some(root) = self.event(room, root).await else { return false };
                self.memory.lock().roots.put(&name, root.sender.clone());
                root.sender
            }
        };
        sender == me.id
    }

    /// Adds the earlier messages of its thread to a message that is answered, the first time that one of the thread is.
    ///
    /// # Errors
    /// The message has to be tried again.
    pub(super) async fn add_thread(
        &self,
        arrival: &mut Arrival,
        event: &Event,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        let (room, Some(root)) = (arrival.chat.id.clone(), event.thread()) else { return Ok(()) };
        let name = format!("{room} {root}");
        let is_known = self.memory.lock().threads.get(&name).is_some();
        if is_known || !intake.wants_files(arrival).await.map_err(|refusal| refusal.to_string())? {
            return Ok(());
        }
        let (place, root_id) = (encode(&room), encode(root));
        let path = format!("/_matrix/client/v1/rooms/{place}/relations/{root_id}/m.thread");
        let asked = self.api.get::<Relations>(&path, &[("limit", MOST_SHOWN)], CALL_TIME).await;
        let relations = match asked {
            Ok(relations) => relations.chunk,
            // The message counts more than what was before it.
            Err(error) => {
                tracing::warn!(%error, "the thread of a message cannot be read");
                return Ok(());
            }
        };
        let mut earlier: Vec<Event> = self.event(&room, root).await.into_iter().collect();
        // The newest come first; the message itself is one of them. What this account said is in the session.
        for older in relations.into_iter().rev() {
            if older.event_id == event.event_id {
                break;
            }
            if older.sender != me.id {
                earlier.push(self.look_into(&room, older).await);
            }
        }
        let known = self.room(&room).await.map_err(|error| error.to_string())?;
        let passages = earlier.into_iter().filter_map(|earlier| {
            let files = earlier.files();
            let files = files.iter().map(|file| file.name.to_owned());
            let people = known.people.as_ref();
            let author = people.and_then(|people| people.get(&earlier.sender).cloned().flatten());
            let sender = Sender { id: earlier.sender.clone(), ..Sender::default() };
            let author = author.or(Some(earlier.sender.clone()));
            let texts = std::iter::once(earlier.described());
            let of = Earlier { source_id: earlier.event_id.clone(), sender };
            Passage::of_thread(author, texts, files, of)
        });
        arrival.passages.splice(..0, passages.collect::<Vec<_>>());
        self.memory.lock().threads.put(&name, ());
        Ok(())
    }
}
