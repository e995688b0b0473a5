//! Talking to a session while it runs: messages that the run takes at its next step.
//!
//! A message is acknowledged once it is on disk, in the session's inbox. From then on it is answered by the run that
//! goes on or by the next one, together with others or on its own, or it is reported as dropped; each exactly once,
//! whatever is killed and when. The row of the log that takes a message in names its id, and a session that is opened
//! compares the two files.

use std::sync::Arc;

use myclaw_llm::{ContentBlock, Message, UserMessage};
use myclaw_session::{
    EntryId, QueuedKind, QueuedMessage, SessionError, SessionKey, Sessions, TranscriptMessage,
};
use tokio_util::sync::CancellationToken;

use crate::event::Events;
use crate::transcript::{message_to_row, row_to_blocks};
use crate::{AgentRunEvent, Clock, EventCallback, RunParams};

/// The inbox of a session, for everybody who has something to say to it.
#[derive(Clone)]
pub struct SessionInbox {
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) key: SessionKey,
    clock: Arc<dyn Clock>,
    pub(crate) events: Events,
    cancel: Option<CancellationToken>,
}

/// What happens to a message for a session that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    /// It is refused: it should be sent as the message of a run.
    Refuse,
    /// It waits for the next run.
    Keep,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingMessage {
    /// Names it, also in the row of the log that takes it in.
    pub id: EntryId,
    /// When it is to be taken.
    pub kind: QueuedKind,
    /// Text and image blocks.
    pub content: Vec<ContentBlock>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub ts: u64,
}

/// A message that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// Nobody runs the session.
    #[error(
        "nothing runs in session {session} that could be steered; send the message as a new one instead"
    )]
    NotRunning {
        /// Its key.
        session: String,
    },
    /// There is nothing in it.
    #[error("the message is empty; say something")]
    Empty,
    /// The inbox could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A part of the program failed that should not.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}

impl SessionInbox {
    /// The inbox of a session, whoever runs it: this process, another, or nobody.
    pub fn new(store: Arc<dyn Sessions>, key: SessionKey, clock: Arc<dyn Clock>) -> Self {
        let events = Events { session: Arc::new(key.clone()), run: None, callback: None };
        Self { store, key, clock, events, cancel: None }
    }

    /// The same inbox, which tells `on_event` what it acknowledges and what it drops.
    #[must_use]
    pub fn with_events(self, on_event: EventCallback) -> Self {
        Self { events: Events { callback: Some(on_event), ..self.events }, ..self }
    }

    /// The inbox of the session that a run of `params` is for: it can abort that run, and tells its callback what it
    /// acknowledges.
    pub fn of_run(params: &RunParams) -> Self {
        Self {
            store: params.stores.sessions.clone(),
            key: params.session_key.clone(),
            clock: Arc::clone(&params.clock),
            events: params.events(),
            cancel: Some(params.cancel.clone()),
        }
    }

    /// Sends a message that the run takes before its next model call, in front of tool calls that have not begun.
    ///
    /// # Errors
    /// [`InboxError::NotRunning`] if nobody runs the session; otherwise the message is not on disk.
    pub async fn steer(&self, content: Vec<ContentBlock>) -> Result<EntryId, InboxError> {
        self.send(QueuedKind::Steer, content, WhenIdle::Refuse).await
    }

    /// Sends a message that the run takes when it would end.
    ///
    /// # Errors
    /// As for [`SessionInbox::steer`].
    pub async fn follow_up(&self, content: Vec<ContentBlock>) -> Result<EntryId, InboxError> {
        self.send(QueuedKind::FollowUp, content, WhenIdle::Refuse).await
    }

    /// Sends a message of any kind. When this returns, the message is on disk.
    ///
    /// # Errors
    /// The message does not wait. With [`WhenIdle::Refuse`] that may be because nobody runs the session.
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
                // The run may have looked for the last time before the message was there. If so, nobody has taken it.
                match !self.store.is_in_use(&self.key)? && inbox.remove(message.id)? {
                    true => Err(self.not_running()),
                    false => Ok(()),
                }
            }
        }
    }

    /// What waits, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending(&self) -> Result<Vec<PendingMessage>, InboxError> {
        let inbox = self.store.inbox(&self.key);
        let pending = blocking(move || Ok(inbox.pending()?)).await?;
        Ok(pending.into_iter().map(PendingMessage::from).collect())
    }

    /// Takes a message back that nobody has taken yet; whether it was there.
    ///
    /// # Errors
    /// The inbox cannot be read or written; the message still waits then.
    pub async fn remove(&self, id: EntryId) -> Result<bool, InboxError> {
        let inbox = self.store.inbox(&self.key);
        blocking(move || Ok(inbox.remove(id)?)).await
    }

    /// Aborts the run that this inbox was made for. What waits stays there for the next one.
    pub fn abort(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    pub(crate) fn not_running(&self) -> InboxError {
        InboxError::NotRunning { session: self.key.to_string() }
    }

    /// The message as it is stored, with a new id.
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
        Ok(QueuedMessage { id, kind, content, ts, meta })
    }
}

impl From<QueuedMessage> for PendingMessage {
    fn from(message: QueuedMessage) -> Self {
        let QueuedMessage { id, kind, content, ts, meta } = message;
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
