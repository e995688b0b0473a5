//! What was said in a thread before the bot was called into it.

use super::api::ApiError;
use super::event::Message;
use super::{Discord, Me};
use crate::{Arrival, Earlier, Intake, Passage};

/// The newest messages that are shown, and the first one of the thread.
const MOST_SHOWN: usize = 20;

impl Discord {
    /// Adds the earlier messages of its thread to a message that is answered, the first time that one of the thread is.
    ///
    /// # Errors
    /// The message has to be tried again.
    pub(super) async fn add_thread(
        &self,
        arrival: &mut Arrival,
        message: &Message,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        let Some(thread) = arrival.chat.thread.clone() else { return Ok(()) };
        let is_known = self.memory.lock().threads.get(&thread).is_some();
        if is_known || !intake.wants_files(arrival).await.map_err(|refusal| refusal.to_string())? {
            return Ok(());
        }
        match self.earlier(&thread, message).await {
            Ok(earlier) => {
                arrival.passages.splice(..0, shown(&earlier, &thread, me));
                self.memory.lock().threads.put(&thread, ());
            }
            // The message counts more than what was before it.
            Err(error) => tracing::warn!(%error, "the thread of a message cannot be read"),
        }
        Ok(())
    }

    /// The newest messages of a thread before this one, below the first one.
    async fn earlier(&self, thread: &str, message: &Message) -> Result<Vec<Message>, ApiError> {
        let list = format!("/channels/{thread}/messages");
        let newest = format!("{list}?limit={MOST_SHOWN}&before={}", message.id);
        let mut earlier: Vec<Message> = self.api.get(&newest).await?;
        if earlier.len() == MOST_SHOWN {
            let first: Vec<Message> = self.api.get(&format!("{list}?limit=1&after=0")).await?;
            let is_new = |first: &Message| earlier.iter().all(|one| one.id != first.id);
            let first = first.into_iter().find(is_new);
            earlier.extend(first);
        }
        earlier.reverse();
        Ok(earlier)
    }
}

fn shown(earlier: &[Message], thread: &str, me: &Me) -> Vec<Passage> {
    let passages = earlier.iter().filter_map(|message| {
        // A thread below a message begins with a note that holds it. In a forum, the first message has the id of the thread.
        let root = message.begins_thread();
        let is_root = root.is_some() || message.id == thread;
        let message = root.unwrap_or(message);
        // What the bot said in the thread is in its session.
        if !message.is_said() || (message.author.id == me.id && !is_root) {
            return None;
        }
        let files = message.files().into_iter();
        let files = files.map(|(file, _)| file.filename.clone());
        let of = Earlier { source_id: message.source_id(), sender: message.sender() };
        let author = of.sender.name.clone().or(Some(of.sender.id.clone()));
        let texts = std::iter::once(message.described(&me.id));
        Passage::of_thread(author, texts, files, of)
    });
    passages.collect()
}
