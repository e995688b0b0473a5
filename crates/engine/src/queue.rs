//! Queue modes: what happens to a message that arrives while its session is busy.
//!
//! This layer is above the turn. A gateway or terminal that receives messages calls it first and starts a run only for
//! [`Arrival::Idle`].

use myclaw_config::{DropPolicy, QueueConfig, QueueMode};
use myclaw_files::shortened;
use myclaw_llm::{ContentBlock, joined_text};
use myclaw_session::{EntryId, Keeper, QueuedKind, QueuedMessage};

use crate::inbox::{InboxError, SessionInbox, blocking};
use crate::{AgentRunEvent, Notice, PendingMessage, WhenIdle};

/// Characters that are kept of a dropped message: enough for the model to ask for it again.
const KEPT_CHARS: usize = 160;

/// The outcome for a message that arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrival {
    /// No run has the session open: start a run for the message.
    Idle,
    /// The message waits, and this run or a later one answers it.
    Queued {
        /// Id of the message.
        id: EntryId,
        /// Messages that were dropped for it, because too many waited.
        dropped: Vec<PendingMessage>,
    },
    /// The message waits, and the current run, in this process or another, was asked to stop: start a run without a
    /// message, which begins when the current one has ended.
    Interrupting {
        /// Id of the message.
        id: EntryId,
        /// Messages that were dropped for it, because too many waited.
        dropped: Vec<PendingMessage>,
    },
    /// Too many messages wait, and the config refuses new ones. The message does not wait.
    Refused {
        /// Number of waiting messages.
        waiting: usize,
    },
}

impl SessionInbox {
    /// Handles a message according to `queue`. When this returns, a message that waits is on disk.
    ///
    /// # Errors
    /// The message does not wait.
    pub async fn arrive(
        &self,
        content: &[ContentBlock],
        queue: &QueueConfig,
    ) -> Result<Arrival, InboxError> {
        let named = (EntryId::generate(), Keeper::Inbox);
        self.arrives(named, content, queue, WhenIdle::Refuse).await
    }

    /// Like [`SessionInbox::arrive`], with the id that the message has elsewhere, and who keeps it. A message for which a
    /// run has to be started waits too, for that run. A message with this id that waits already is not added again.
    ///
    /// # Errors
    /// The message does not wait.
    pub async fn arrive_as(
        &self,
        named: (EntryId, Keeper),
        content: &[ContentBlock],
        queue: &QueueConfig,
    ) -> Result<Arrival, InboxError> {
        self.arrives(named, content, queue, WhenIdle::Keep).await
    }

    async fn arrives(
        &self,
        (id, keeper): (EntryId, Keeper),
        content: &[ContentBlock],
        queue: &QueueConfig,
        when_idle: WhenIdle,
    ) -> Result<Arrival, InboxError> {
        let message = QueuedMessage { id, keeper, ..self.message(QueuedKind::Steer, content)? };
        let (first, others) = (kinds(queue.mode)[0], &kinds(queue.mode)[1..]);
        let mut messages = vec![QueuedMessage { kind: first, ..message.clone() }];
        messages.extend(others.iter().map(|kind| QueuedMessage {
            id: EntryId::generate(),
            kind: *kind,
            ..message.clone()
        }));
        let (this, rules) = (self.clone(), queue.clone());
        let (arrival, is_kept) = blocking(move || {
            let arrival = this.enqueue(messages, &rules)?;
            let is_kept = arrival == Arrival::Idle
                && when_idle == WhenIdle::Keep
                && this.store.inbox(&this.key).push_once(&message)?;
            Ok((arrival, is_kept))
        })
        .await?;
        if is_kept {
            self.events.emit(AgentRunEvent::Queued { id, kind: QueuedKind::Steer });
        }
        self.report(&arrival, queue);
        Ok(arrival)
    }

    fn enqueue(
        &self,
        mut messages: Vec<QueuedMessage>,
        queue: &QueueConfig,
    ) -> Result<Arrival, InboxError> {
        if !self.store.is_in_use(&self.key)? {
            return Ok(Arrival::Idle);
        }
        let inbox = self.store.inbox(&self.key);
        let mut held = inbox.hold_or_create()?;
        let pending = held.pending()?;
        let given = messages[0].id;
        let waiting = waiting(pending);
        if waiting.iter().any(|other| other.message.id == given) {
            return Ok(Arrival::Queued { id: given, dropped: Vec::new() });
        }
        let excess = (waiting.len() + 1).saturating_sub(queue.cap);
        if excess > 0 && queue.drop == DropPolicy::New {
            return Ok(Arrival::Refused { waiting: waiting.len() });
        }
        let new_ids: Vec<EntryId> = messages.iter().map(|message| message.id).collect();
        let dropped: Vec<Waiting> = waiting.into_iter().take(excess).collect();
        if queue.drop == DropPolicy::Summarize {
            let remains = dropped.iter().map(|waiting| remains(&waiting.message));
            messages.splice(0..0, remains);
        }
        let settled: Vec<EntryId> = dropped.iter().flat_map(Waiting::ids).collect();
        held.change(&messages, &settled)?;
        drop(held);
        // The run may have ended before the message was stored, as with a steering message.
        if !self.store.is_in_use(&self.key)? {
            let mut withdrawn = false;
            for id in &new_ids {
                withdrawn |= inbox.remove(*id)?;
            }
            if withdrawn {
                return Ok(Arrival::Idle);
            }
        }
        let id = new_ids.first().copied().unwrap_or_else(EntryId::generate);
        let dropped =
            dropped.into_iter().map(|waiting| PendingMessage::from(waiting.message)).collect();
        Ok(match queue.mode {
            QueueMode::Interrupt => Arrival::Interrupting { id, dropped },
            _ => Arrival::Queued { id, dropped },
        })
    }

    fn report(&self, arrival: &Arrival, queue: &QueueConfig) {
        match arrival {
            Arrival::Idle => {}
            Arrival::Refused { waiting } => {
                self.events.notice(Notice::MessageRefused { waiting: *waiting });
            }
            Arrival::Queued { id, dropped } | Arrival::Interrupting { id, dropped } => {
                for message in dropped {
                    let text = first_words(&joined_text(&message.content, " "));
                    self.events.notice(Notice::MessageDropped { cap: queue.cap, text });
                }
                let kind = kinds(queue.mode)[0];
                self.events.emit(AgentRunEvent::Queued { id: *id, kind });
            }
        }
    }
}

/// The kinds under which a mode queues a message.
fn kinds(mode: QueueMode) -> &'static [QueuedKind] {
    match mode {
        QueueMode::Steer => &[QueuedKind::Steer],
        // The interrupted run leaves the message to the next run, which takes it first.
        QueueMode::Interrupt => &[QueuedKind::Interrupt],
        QueueMode::Followup => &[QueuedKind::FollowUp],
        QueueMode::Collect => &[QueuedKind::Collect],
        QueueMode::SteerBacklog => &[QueuedKind::Steer, QueuedKind::FollowUp],
    }
}

/// A message that counts against the cap.
struct Waiting {
    message: QueuedMessage,
    /// The copy to be taken when the turn would end ([`QueueMode::SteerBacklog`]).
    again: Option<EntryId>,
}

impl Waiting {
    fn ids(&self) -> impl Iterator<Item = EntryId> {
        std::iter::once(self.message.id).chain(self.again)
    }

    /// Whether `next`, which directly follows, is the copy of this message.
    fn is_said_again_by(&self, next: &QueuedMessage) -> bool {
        let first = &self.message;
        first.kind == QueuedKind::Steer
            && next.kind == QueuedKind::FollowUp
            && self.again.is_none()
            && (first.ts, &first.content, &first.meta) == (next.ts, &next.content, &next.meta)
    }
}

/// The messages that count against the cap, the oldest first.
fn waiting(pending: Vec<QueuedMessage>) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for message in pending {
        match waiting.last_mut() {
            _ if message.kind == QueuedKind::Overflow => {}
            Some(last) if last.is_said_again_by(&message) => last.again = Some(message.id),
            _ => waiting.push(Waiting { message, again: None }),
        }
    }
    waiting
}

/// The part of a dropped message that is kept.
fn remains(dropped: &QueuedMessage) -> QueuedMessage {
    QueuedMessage::remains_of(dropped, first_words(&dropped.content))
}

fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&line, KEPT_CHARS).into_owned()
}
