//! Messages that wait for a session: accepted while a run is active, and taken by it at its next step.
//!
//! The log of a session has one writer. All other senders, in any process, put their messages into the session's inbox.
//! Who changes it holds it, only for the moment of the change, so nobody waits for a run. A message is in exactly one of
//! three states: pending (in the inbox), taken (a row of the log names its id), or settled otherwise (removed, or dropped
//! by a full queue).

mod file;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{Durability, LockWait};
use serde::{Deserialize, Serialize};

use crate::{EntryId, Meta, SessionError};

pub use file::FileInbox;
pub(crate) use file::read_queued;

/// Longest wait for the inbox. A holder writes a few lines to disk and releases it.
pub(crate) const LONGEST_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));
/// Largest inbox. It holds a message of the largest size that the terminal takes, and many usual ones.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// When a waiting message is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedKind {
    /// Before the next model call and before tool calls that have not begun.
    Steer,
    /// At the beginning of the next run; the active run is stopped for it.
    Interrupt,
    /// When the turn would end.
    FollowUp,
    /// When the turn would end and no message has arrived for a moment, together with the others of its kind.
    Collect,
    /// With the next messages of the kinds that wait for the end of the turn: the remainder of a message that a full
    /// queue dropped.
    Overflow,
}

/// Who keeps a message until it is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeper {
    /// The inbox and the log: the message is durable there.
    #[default]
    Inbox,
    /// Its sender too, on disk. It sends the message again when neither the inbox nor the log has it, so a crash of the
    /// machine may take it from both. Where several machines share a session, only the process to which it was sent need
    /// see it before the log has it; then it may be added while somebody holds the inbox.
    Sender,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "queued", rename_all = "camelCase")]
pub struct QueuedMessage {
    /// Unique within the session. The row of the log that records the message as taken names it.
    pub id: EntryId,
    /// When it is taken.
    pub kind: QueuedKind,
    /// Its text.
    pub content: String,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub ts: u64,
    /// Content that is not text, as in a row of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Who keeps it.
    #[serde(default, skip_serializing_if = "Keeper::is_inbox")]
    pub keeper: Keeper,
}

impl QueuedMessage {
    /// What is kept of a dropped message: `content`, its first words. Its id tells a sender that was stopped before it
    /// learned of the drop.
    pub fn remains_of(dropped: &Self, content: String) -> Self {
        Self {
            id: dropped.id.of_remains(),
            kind: QueuedKind::Overflow,
            content,
            ts: dropped.ts,
            meta: None,
            keeper: Keeper::Inbox,
        }
    }
}

/// Called when messages may have been added. It is called from other threads and must not block.
pub type InboxCallback = Arc<dyn Fn() + Send + Sync>;

/// The inbox of one session. It need not exist: the first message creates it.
///
/// All calls block: callers decide on which thread they run.
pub trait Inbox: fmt::Debug + Send + Sync {
    /// Holds the inbox for a change; `None` if it does not exist. Nobody else reads or changes it until the value is
    /// dropped.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if somebody holds it for longer than `wait`; or it cannot be opened.
    fn hold_within(&self, wait: LockWait) -> Result<Option<Box<dyn HeldInbox>>, SessionError>;

    /// Like [`Inbox::hold`], but creates the inbox if it does not exist.
    ///
    /// # Errors
    /// As for [`Inbox::hold`].
    fn hold_or_create(&self) -> Result<Box<dyn HeldInbox>, SessionError>;

    /// The waiting messages, the oldest first.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if somebody holds the inbox for longer than `wait`; or it cannot be read.
    fn pending_within(&self, wait: LockWait) -> Result<Vec<QueuedMessage>, SessionError>;

    /// How many bytes the inbox takes; 0 if nothing waits. Does not wait for a holder, and reads no message.
    fn bytes(&self) -> u64;

    /// Calls `notify` whenever a message may have been added by this process, until the value is dropped; and by another
    /// process from [`InboxWatch::notice_other_processes`] on.
    fn watch(&self, notify: InboxCallback) -> Box<dyn InboxWatch>;

    /// Forgets the messages that their senders keep, if they wait in the memory of this process only: another one has the
    /// session, and they would count here as waiting.
    fn forget_kept(&self) {}

    /// True if messages may wait.
    fn may_hold_messages(&self) -> bool {
        self.bytes() > 0
    }

    /// Like [`Inbox::hold_within`], with a wait that is enough for every change.
    ///
    /// # Errors
    /// As for [`Inbox::hold_within`].
    fn hold(&self) -> Result<Option<Box<dyn HeldInbox>>, SessionError> {
        self.hold_within(LONGEST_WAIT)
    }

    /// Like [`Inbox::hold_within`], without a wait.
    ///
    /// # Errors
    /// As for [`Inbox::hold_within`].
    fn try_hold(&self) -> Result<Option<Box<dyn HeldInbox>>, SessionError> {
        self.hold_within(LockWait::Fail)
    }

    /// Like [`Inbox::pending_within`], with a wait that is enough for every change.
    ///
    /// # Errors
    /// As for [`Inbox::pending_within`].
    fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        self.pending_within(LONGEST_WAIT)
    }

    /// Like [`Inbox::pending_within`], without a wait.
    ///
    /// # Errors
    /// As for [`Inbox::pending_within`].
    fn try_pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        self.pending_within(LockWait::Fail)
    }

    /// Adds a message. When this returns, the message survives a crash as far as the store promises it, unless its
    /// sender keeps it too.
    ///
    /// # Errors
    /// The message is not in the inbox then. [`SessionError::InboxFull`] if too many messages wait already.
    fn push(&self, message: &QueuedMessage) -> Result<(), SessionError> {
        self.hold_or_create()?.change(std::slice::from_ref(message), &[])
    }

    /// Like [`Inbox::push`], unless a message with this id waits already. Returns whether it was added. It costs reading
    /// the inbox.
    ///
    /// # Errors
    /// As for [`Inbox::push`].
    fn push_once(&self, message: &QueuedMessage) -> Result<bool, SessionError> {
        let mut held = self.hold_or_create()?;
        if held.pending()?.iter().any(|waiting| waiting.id == message.id) {
            return Ok(false);
        }
        held.change(std::slice::from_ref(message), &[])?;
        Ok(true)
    }

    /// Removes a message that has not been taken. Returns whether it was there.
    ///
    /// # Errors
    /// The inbox cannot be read or written; the message still waits then.
    fn remove(&self, id: EntryId) -> Result<bool, SessionError> {
        let Some(mut held) = self.hold()? else { return Ok(false) };
        let is_pending = held.pending()?.iter().any(|message| message.id == id);
        if is_pending {
            held.change(&[], &[id])?;
        }
        Ok(is_pending)
    }
}

/// An inbox that nobody else can read or change meanwhile.
pub trait HeldInbox: fmt::Debug + Send {
    /// The waiting messages, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError>;

    /// Adds `messages` and settles those of `settled`, all or nothing. On disk when it returns if `durability` says so.
    ///
    /// # Errors
    /// Nothing has changed then. [`SessionError::InboxFull`] if too many messages wait already.
    fn write(
        &mut self,
        messages: &[QueuedMessage],
        settled: &[EntryId],
        durability: Durability,
    ) -> Result<(), SessionError>;

    /// Adds `messages` and settles those of `settled`, all or nothing. It is durable when it returns, unless all it does
    /// is to add messages that their senders keep too.
    ///
    /// # Errors
    /// As for [`HeldInbox::write`].
    fn change(
        &mut self,
        messages: &[QueuedMessage],
        settled: &[EntryId],
    ) -> Result<(), SessionError> {
        let are_kept = messages.iter().all(|message| message.keeper == Keeper::Sender);
        let durability = match settled.is_empty() && are_kept {
            true => Durability::Unsynced,
            false => Durability::Synced,
        };
        self.write(messages, settled, durability)
    }

    /// Settles messages that the log names, which is durable unless `pending` shows that their senders keep all of them:
    /// a message that a crash of the machine brings back is found in the log.
    ///
    /// # Errors
    /// As for [`HeldInbox::write`].
    fn settle_taken(
        &mut self,
        pending: &[QueuedMessage],
        taken: &[EntryId],
    ) -> Result<(), SessionError> {
        self.write(&[], taken, durability_of(pending, taken))
    }
}

/// Ends its watch when it is dropped.
pub trait InboxWatch: fmt::Debug + Send + Sync {
    /// Notices messages of other processes too, from now on. What they wrote before is not reported: read the inbox
    /// afterwards.
    fn notice_other_processes(&self);
}

/// What a run has to sync before and when it settles `taken`: nothing if their senders keep all of them.
pub fn durability_of(pending: &[QueuedMessage], taken: &[EntryId]) -> Durability {
    let mut settled = pending.iter().filter(|message| taken.contains(&message.id));
    match settled.all(|message| message.keeper == Keeper::Sender) {
        true => Durability::Unsynced,
        false => Durability::Synced,
    }
}

impl Keeper {
    fn is_inbox(&self) -> bool {
        *self == Self::Inbox
    }
}
