//! What was said in a thread before the bot was called into it.

use serde::Deserialize;
use serde_json::json;

use super::api::Token;
use super::event::Event;
use super::{MOST_NAMED, Me, Slack};
use crate::{Arrival, Earlier, Intake, Passage, Sender};

/// Most messages that are asked for at once, and how often.
const PAGE: usize = 200;
const MOST_PAGES: usize = 5;
/// The newest messages that are shown, besides the first one of the thread.
const MOST_SHOWN: usize = 20;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Replies {
    messages: Vec<Event>,
    response_metadata: Cursor,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cursor {
    next_cursor: String,
}

impl Slack {
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
        let Some(thread) = event.thread() else { return Ok(()) };
        let name = format!("{}:{thread}", event.channel);
        let is_known = self.memory.lock().threads.get(&name).is_some();
        if is_known || !intake.wants_files(arrival).await.map_err(|refusal| refusal.to_string())? {
            return Ok(());
        }
        match self.earlier(event, thread).await {
            Ok(earlier) => {
                let passages = self.shown(earlier, event, me).await;
                arrival.passages.splice(..0, passages);
                self.memory.lock().threads.put(&name, ());
            }
            // The message counts more than what was before it.
            Err(reason) => tracing::warn!(%reason, "the thread of a message cannot be read"),
        }
        Ok(())
    }

    async fn earlier(&self, event: &Event, thread: &str) -> Result<Vec<Event>, String> {
        let mut found: Vec<Event> = Vec::new();
        let mut cursor = String::new();
        for _ in 0..MOST_PAGES {
            let mut params = json!({
                "channel": event.channel, "ts": thread, "latest": event.ts, "limit": PAGE,
            });
            if !cursor.is_empty() {
                params["cursor"] = json!(cursor);
            }
            let page: Replies = self
                .api
                .call(Token::Bot, "conversations.replies", &params)
                .await
                .map_err(|error| error.to_string())?;
            found.extend(page.messages);
            cursor = page.response_metadata.next_cursor;
            if cursor.is_empty() {
                break;
            }
        }
        found.retain(|message| message.ts < event.ts);
        Ok(found)
    }

    async fn shown(&self, mut earlier: Vec<Event>, event: &Event, me: &Me) -> Vec<Passage> {
        let is_root = |message: &Event| message.thread().is_none();
        // What the bot said in the thread is in its session.
        earlier.retain(|message| {
            is_root(message) || message.user.as_deref() != Some(me.user_id.as_str())
        });
        let over = earlier.len().saturating_sub(MOST_SHOWN + 1);
        let first = usize::from(earlier.first().is_some_and(is_root));
        earlier.drain(first..(first + over).min(earlier.len()));
        let mut people: Vec<String> = earlier.iter().flat_map(Event::people).collect();
        people.extend(earlier.iter().filter_map(|message| message.user.clone()));
        people.sort();
        people.dedup();
        for person in people.into_iter().take(MOST_NAMED) {
            self.name_of(&person).await;
        }
        let known = |id: &str| self.memory.lock().names.get(id).cloned().flatten();
        let passages = earlier.into_iter().filter_map(|message| {
            let id = message.user.clone().unwrap_or_default();
            let shares = message.passages(&known).into_iter().map(|passage| passage.text);
            let files = message.all_files().into_iter();
            let files = files.map(|(_, file)| file.name.unwrap_or_default());
            let texts = std::iter::once(message.text("", &known)).chain(shares);
            let author = known(&id).or(Some(id.clone()).filter(|id| !id.is_empty()));
            let source_id = format!("{}:{}:{}", me.team_id, event.channel, message.ts);
            let sender = Sender { id, ..Sender::default() };
            Passage::of_thread(author, texts, files, Earlier { source_id, sender })
        });
        passages.collect()
    }
}
