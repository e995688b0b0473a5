//! Queue modes: what becomes of a message that arrives while its session is busy.
//!
//! This stands above the turn. Whoever receives messages, a gateway or a terminal, asks here first and starts a run
//! only for [`Arrival::Idle`].

use myclaw_config::{DropPolicy, QueueConfig, QueueMode};
use myclaw_llm::{ContentBlock, joined_text};
use myclaw_session::{EntryId, OpenInbox, QueuedKind, QueuedMessage};

use crate::inbox::{InboxError, SessionInbox, blocking};
use crate::{AgentRunEvent, Notice, PendingMessage};

/// Characters that are kept of a message that is dropped: enough to ask for it again.
const KEPT_CHARS: usize = 160;

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrival {
    /// Nobody runs the session: start a run for it.
    Idle,
    /// It waits, and the run or a later one answers it.
    Queued {
        /// Names it.
        id: EntryId,
        /// Those that were dropped for it, because too many waited.
        dropped: Vec<PendingMessage>,
    },
    /// It waits, and the run was told to stop for it, whichever process that is in: start a run without a message, which
    /// begins when that one has ended.
    Interrupting {
        /// Names it.
        id: EntryId,
        /// Those that were dropped for it, because too many waited.
        dropped: Vec<PendingMessage>,
    },
    /// Too many wait, and the settings say that new ones are refused. It does not wait.
    Refused {
        /// How many wait.
        waiting: usize,
    },
}

impl SessionInbox {
    /// Receives a message as `queue` says. When this returns, a message that waits is on disk.
    ///
    /// # Errors
    /// The message does not wait.
    pub async fn arrive(
        &self,
        content: Vec<ContentBlock>,
        queue: &QueueConfig,
    ) -> Result<Arrival, InboxError> {
        let message = self.message(QueuedKind::Steer, &content)?;
        let messages = kinds(queue.mode)
            .iter()
            .map(|kind| QueuedMessage { id: EntryId::generate(), kind: *kind, ..message.clone() })
            .collect();
        let (this, settings) = (self.clone(), queue.clone());
        let arrival = blocking(move || this.enqueue(messages, &settings)).await?;
        self.report(&arrival, queue);
        if let Arrival::Interrupting { .. } = arrival {
            self.abort();
        }
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
        let mut open = inbox.open_or_create()?;
        let waiting = waiting(&open)?;
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
        let dropped_ids: Vec<EntryId> = dropped.iter().flat_map(Waiting::ids).collect();
        open.change(&messages, &dropped_ids)?;
        drop(open);
        // As for a steering message: the run may have ended before the message was there.
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

/// How a mode has its messages taken.
fn kinds(mode: QueueMode) -> &'static [QueuedKind] {
    match mode {
        QueueMode::Steer => &[QueuedKind::Steer],
        // The run that was told to stop leaves it to the next one, which takes it first.
        QueueMode::Interrupt => &[QueuedKind::Interrupt],
        QueueMode::Followup => &[QueuedKind::FollowUp],
        QueueMode::Collect => &[QueuedKind::Collect],
        QueueMode::SteerBacklog => &[QueuedKind::Steer, QueuedKind::FollowUp],
    }
}

/// A message that counts against the cap.
struct Waiting {
    message: QueuedMessage,
    /// The same message, to be taken again when the turn would end ([`QueueMode::SteerBacklog`]).
    again: Option<EntryId>,
}

impl Waiting {
    fn ids(&self) -> impl Iterator<Item = EntryId> {
        std::iter::once(self.message.id).chain(self.again)
    }

    /// Whether `next`, which came right behind, is the same message once more.
    fn is_said_again_by(&self, next: &QueuedMessage) -> bool {
        let first = &self.message;
        first.kind == QueuedKind::Steer
            && next.kind == QueuedKind::FollowUp
            && self.again.is_none()
            && (first.ts, &first.content, &first.meta) == (next.ts, &next.content, &next.meta)
    }
}

/// What counts against the cap, the oldest first.
fn waiting(open: &OpenInbox) -> Result<Vec<Waiting>, InboxError> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for message in open.pending()? {
        match waiting.last_mut() {
            _ if message.kind == QueuedKind::Overflow => {}
            Some(last) if last.is_said_again_by(&message) => last.again = Some(message.id),
            _ => waiting.push(Waiting { message, again: None }),
        }
    }
    Ok(waiting)
}

/// What a dropped message leaves behind.
fn remains(dropped: &QueuedMessage) -> QueuedMessage {
    QueuedMessage {
        id: EntryId::generate(),
        kind: QueuedKind::Overflow,
        content: first_words(&dropped.content),
        ts: dropped.ts,
        meta: None,
    }
}

fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(KEPT_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
