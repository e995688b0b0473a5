//! Work in progress, shown in chats: typing, and previews of replies.
//!
//! A preview is a message that is edited while the model writes. Its id is stored before the first edit, so that the
//! reply can take its place also after a crash. It is never the only copy of a reply: the reply is stored and sent in any
//! case.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use myclaw_channels::{Channel, Live as Shows, Target};
use myclaw_engine::AgentRunEvent;
use myclaw_llm::StreamEvent;
use myclaw_store::{Place, Records, Write};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::DeliveryError;
use crate::ledger::{Ledger, now_ms};
use crate::named_files::without_files;
use crate::outbox::Outbox;
use crate::route::Route;

/// The previews that are shown.
const PREVIEWS: Records<Preview> = Records::new("preview");
/// Queue of everything that is over, from where old records are removed.
const QUEUE: &str = "over";
/// How often a shown chat is looked at.
const TICK: Duration = Duration::from_millis(250);
/// How long the end of a preview is waited for. One that takes longer is left as it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of a text that are kept for previews. No channel shows more in one message.
const MOST_BYTES: usize = 16 * 1024;

/// All work in progress, by session.
pub struct Live {
    ledger: Ledger,
    outbox: Arc<Outbox>,
    shown: Mutex<HashMap<String, Shown>>,
    /// How many there are, for events, most of which concern none.
    count: AtomicUsize,
}

/// What is shown of a session.
struct Shown {
    text: Arc<Mutex<String>>,
    stop: CancellationToken,
    tasks: Vec<(Route, JoinHandle<()>)>,
}

/// A preview in a chat.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preview {
    /// The channel's id of the message.
    message: String,
}

impl Live {
    pub(crate) fn new(ledger: Ledger, outbox: Arc<Outbox>) -> Self {
        Self { ledger, outbox, shown: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Begins to show that a session works on messages of these routes. Each has the id that an answer refers to.
    pub fn begin(&self, session: &str, routes: &[(Route, Option<String>)]) {
        let mut all = self.shown.lock();
        if all.get(session).is_some_and(|shown| shown.stop.is_cancelled()) {
            // It was paused, so its task ends; a new entry takes its place.
            all.remove(session);
        }
        for (route, reply_to) in routes {
            let Some(channel) =
                self.outbox.channel(route).filter(|channel| channel.live().is_some())
            else {
                continue;
            };
            let shown = all.entry(session.to_owned()).or_insert_with(|| Shown {
                text: Arc::default(),
                stop: CancellationToken::new(),
                tasks: Vec::new(),
            });
            if shown.tasks.iter().any(|(other, _)| other == route) || !self.outbox.is_mine(route) {
                continue;
            }
            let task = Task {
                ledger: self.ledger.clone(),
                channel: Arc::clone(&channel),
                target: Target::from_text(&route.chat),
                key: key(session, route),
                reply_to: reply_to.clone(),
                text: Arc::clone(&shown.text),
                stop: shown.stop.clone(),
            };
            shown.tasks.push((route.clone(), tokio::spawn(task.run())));
        }
        self.count.store(all.len(), Ordering::Release);
    }

    /// Notes what the model writes.
    pub fn heed(&self, session: &str, event: &AgentRunEvent) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let all = self.shown.lock();
        let Some(shown) = all.get(session) else { return };
        let mut text = shown.text.lock();
        match event {
            // What was said before a tool call is not the reply.
            AgentRunEvent::LlmStart { .. } => text.clear(),
            AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { delta, .. } }
                if text.len() + delta.len() <= MOST_BYTES =>
            {
                text.push_str(delta);
            }
            _ => {}
        }
    }

    /// Notes all of what is written so far.
    pub fn show_text(&self, session: &str, text: String) {
        if let Some(shown) = self.shown.lock().get(session) {
            *shown.text.lock() = text;
        }
    }

    /// Begins no further edit. [`Live::end`] waits for one that was begun.
    pub fn pause(&self, session: &str) {
        if let Some(shown) = self.shown.lock().get(session) {
            shown.stop.cancel();
        }
    }

    /// Stops showing a session. Nothing is edited when this returns. Gives the routes for which that is not certain.
    pub async fn end(&self, session: &str) -> Vec<Route> {
        let removed = {
            let mut all = self.shown.lock();
            let removed = all.remove(session);
            self.count.store(all.len(), Ordering::Release);
            removed
        };
        let Some(shown) = removed else { return Vec::new() };
        shown.stop.cancel();
        let mut unsure = Vec::new();
        for (route, mut task) in shown.tasks {
            if tokio::time::timeout(PATIENCE, &mut task).await.is_err() {
                task.abort();
                unsure.push(route);
            }
        }
        unsure
    }

    /// The preview that a reply takes the place of, and the write that forgets it.
    pub async fn take(
        &self,
        session: &str,
        route: &Route,
    ) -> Result<Option<(String, Write)>, DeliveryError> {
        if self.outbox.channel(route).is_none_or(|channel| channel.live().is_none()) {
            return Ok(None);
        }
        let key = key(session, route);
        let found = PREVIEWS.get(self.ledger.store(), &key).await?;
        Ok(found.map(|preview| (preview.row.message, PREVIEWS.remove(&key, preview.version))))
    }
}

fn key(session: &str, route: &Route) -> String {
    format!("{session} {} {} {}", route.channel, route.account, route.chat)
}

/// Shows a session in one chat.
struct Task {
    ledger: Ledger,
    channel: Arc<dyn Channel>,
    target: Target,
    key: String,
    reply_to: Option<String>,
    text: Arc<Mutex<String>>,
    stop: CancellationToken,
}

impl Task {
    async fn run(self) {
        let channel = Arc::clone(&self.channel);
        let Some(shows) = channel.live() else { return };
        let typing = async {
            loop {
                shows.typing(&self.target).await;
                tokio::time::sleep(shows.typing_pause()).await;
            }
        };
        tokio::select! {
            // An interrupted call of "typing" does no harm.
            () = typing => {}
            () = self.preview(shows) => {}
        }
    }

    /// Shows the text until it ends. A call that was begun is finished.
    async fn preview(&self, shows: &dyn Shows) {
        let known = PREVIEWS.get(self.ledger.store(), &self.key).await;
        let mut message = known.ok().flatten().map(|preview| preview.row.message);
        let mut last = Instant::now();
        let mut seen = String::new();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(TICK) => {}
            }
            if last.elapsed() < shows.edit_pause() {
                continue;
            }
            let text = self.text.lock().clone();
            let text = without_files(&text);
            if text.trim().is_empty() || text == seen {
                continue;
            }
            last = Instant::now();
            match &message {
                Some(id) => shows.edit(&self.target, id, &text).await,
                None => {
                    match shows.begin(&self.target, self.reply_to.as_deref(), &text).await {
                        Ok(Some(id)) => {
                            let preview = Preview { message: id.clone() };
                            let place = Place::new(QUEUE, now_ms());
                            let store = self.ledger.store();
                            let stored = PREVIEWS.insert(store, &self.key, &preview, place).await;
                            if !matches!(stored, Ok(Some(_))) {
                                // The reply will be a message of its own.
                                tracing::warn!(?stored, "a preview is not stored");
                                return;
                            }
                            message = Some(id);
                        }
                        Ok(None) => continue,
                        Err(failure) => {
                            tracing::debug!(?failure, "a preview is not shown");
                            return;
                        }
                    }
                }
            }
            seen = text;
        }
    }
}
