//! The inbox of a session: messages that a run takes at its next step.
//!
//! A message is acknowledged once it is on disk, in the session's inbox. From then on the current run or the next one
//! answers it, together with others or on its own, or it is reported as dropped. Each happens exactly once, even if
//! processes are killed. The row of the log that takes a message in names its id, and opening a session compares the
//! two files.

use std::sync::Arc;

use myclaw_llm::{ContentBlock, Message, UserMessage};
use myclaw_session::{
    EntryId, Keeper, QueuedKind, QueuedMessage, SessionError, SessionKey, Sessions,
    TranscriptMessage,
};
use tokio_util::sync::CancellationToken;

use crate::event::Events;
use crate::transcript::{message_to_row, row_to_blocks};
use crate::{AgentRunEvent, Clock, EventCallback, RunParams};

/// The inbox of a session, for every sender.
#[derive(Clone)]
pub struct SessionInbox {
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) key: SessionKey,
    clock: Arc<dyn Clock>,
    pub(crate) events: Events,
    cancel: Option<CancellationToken>,
}

/// What happens to a message when no run has the session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    /// The message is refused; it should be sent as the message of a run.
    Refuse,
    /// The message waits for the next run.
    Keep,
}

/// A waiting message.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingMessage {
    /// Id of the message, also in the row of the log that takes it in.
    pub id: EntryId,
    /// When the run is to take it.
    pub kind: QueuedKind,
    /// Text and image blocks.
    pub content: Vec<ContentBlock>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub ts: u64,
}

/// A message that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// No run has the session open.
    #[error("no run is active in session {session}; send the message as a new one instead")]
    NotRunning {
        /// Its key.
        session: String,
    },
    /// The message is empty.
    #[error("the message is empty; say something")]
    Empty,
    /// The inbox could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An internal failure that should not happen.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}

impl SessionInbox {
    /// Opens the inbox of a session, whether this process, another or none runs it.
    pub fn new(store: Arc<dyn Sessions>, key: SessionKey, clock: Arc<dyn Clock>) -> Self {
        let events =
            Events { session: Arc::new(key.clone()), run: None, mode: None, callback: None };
        Self { store, key, clock, events, cancel: None }
    }

    /// Returns the inbox with a callback for acknowledged and dropped messages.
    #[must_use]
    pub fn with_events(self, on_event: EventCallback) -> Self {
        Self { events: Events { callback: Some(on_event), ..self.events }, ..self }
    }

    /// Opens the inbox of the session of a run with `params`. It can abort that run, and it reports acknowledged
    /// messages to the run's callback.
    pub fn of_run(params: &RunParams) -> Self {
        Self {
            store: params.stores.sessions.clone(),
            key: params.session_key.clone(),
            clock: Arc::clone(&params.clock),
            events: params.events(),
            cancel: Some(params.cancel.clone()),
        }
    }

    /// Sends a message that the run takes before its next model call. Tool calls that have not begun are skipped.
    ///
    /// # Errors
    /// [`InboxError::NotRunning`] if no run has the session open. After any error the message is not on disk.
    pub async fn steer(&self, content: Vec<ContentBlock>) -> Result<EntryId, InboxError> {
        self.send(QueuedKind::Steer, content, WhenIdle::Refuse).await
    }

    /// Sends a message that the run takes when it would otherwise end.
    ///
    /// # Errors
    /// As for [`SessionInbox::steer`].
    pub async fn follow_up(&self, content: Vec<ContentBlock>) -> Result<EntryId, InboxError> {
        self.send(QueuedKind::FollowUp, content, WhenIdle::Refuse).await
    }

    /// Sends a message of any kind. When this returns, the message is on disk.
    ///
    /// # Errors
    /// The message does not wait. With [`WhenIdle::Refuse`] the reason may be that no run has the session open.
    pub async fn send(
        &self,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
        when_idle: WhenIdle,
    ) -> Result<EntryId, InboxError> {
        let message = self.message(kind, &content)?;
        let id = message.id;
        let this = self.clone();
        blocking(move || this.push(&message, when_idle)).await?;
        self.events.emit(AgentRunEvent::Queued { id, kind });
        Ok(id)
    }

    fn push(&self, message: &QueuedMessage, when_idle: WhenIdle) -> Result<(), InboxError> {
        let inbox = self.store.inbox(&self.key);
        match when_idle {
            WhenIdle::Keep => Ok(inbox.push(message)?),
            WhenIdle::Refuse if !self.store.is_in_use(&self.key)? => Err(self.not_running()),
            WhenIdle::Refuse => {
                inbox.push(message)?;
                // The run may have made its last look before the message was there. If so, the message is still in the
                // inbox.
                match !self.store.is_in_use(&self.key)? && inbox.remove(message.id)? {
                    true => Err(self.not_running()),
                    false => Ok(()),
                }
            }
        }
    }

    /// The waiting messages, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending(&self) -> Result<Vec<PendingMessage>, InboxError> {
        let inbox = self.store.inbox(&self.key);
        let pending = blocking(move || Ok(inbox.pending()?)).await?;
        Ok(pending.into_iter().map(PendingMessage::from).collect())
    }

    /// Removes a waiting message; returns whether it was still there.
    ///
    /// # Errors
    /// The inbox cannot be read or written; the message then still waits.
    pub async fn remove(&self, id: EntryId) -> Result<bool, InboxError> {
        let inbox = self.store.inbox(&self.key);
        blocking(move || Ok(inbox.remove(id)?)).await
    }

    /// Aborts the run that this inbox was made for. Waiting messages stay for the next run.
    pub fn abort(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    pub(crate) fn not_running(&self) -> InboxError {
        InboxError::NotRunning { session: self.key.to_string() }
    }

    /// Builds the stored form of a message, with a new id.
    pub(crate) fn message(
        &self,
        kind: QueuedKind,
        content: &[ContentBlock],
    ) -> Result<QueuedMessage, InboxError> {
        let is_blank = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty());
        if content.iter().all(is_blank) {
            return Err(InboxError::Empty);
        }
        let user = UserMessage {
            content: content.to_vec(),
            annotation: None,
            timestamp: self.clock.now_ms(),
        };
        let TranscriptMessage { id, content, ts, meta, .. } = message_to_row(&Message::User(user));
        Ok(QueuedMessage { id, kind, content, ts, meta, keeper: Keeper::Inbox })
    }
}

impl From<QueuedMessage> for PendingMessage {
    fn from(message: QueuedMessage) -> Self {
        let QueuedMessage { id, kind, content, ts, meta, .. } = message;
        Self { id, kind, content: row_to_blocks(content, meta.as_ref()), ts }
    }
}

/// Runs file work off the async thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InboxError> + Send + 'static,
) -> Result<T, InboxError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| InboxError::Internal(error.to_string()))?
}
