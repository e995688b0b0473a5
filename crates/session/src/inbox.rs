//! Messages that wait for a session: accepted while a run is active, and taken by it at its next step.
//!
//! The log of a session has one writer. All other senders, in any process, write into a small file next to the log: the
//! inbox. A lock on that file is held only for the moment of a change, so nobody waits for a run. A message is in
//! exactly one of three states: pending (in the inbox), taken (a row of the log names its id), or settled otherwise
//! (removed, or dropped by a full queue). When nothing is pending the inbox is empty, so its cost does not depend on
//! the age of the session.

mod watch;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{
    Durability, LockKind, LockWait, create_private_directory, lock, parent_of, private_options,
    sync_directory,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{IoContext, SessionError};
use crate::reader::Positioned;
use crate::{EntryId, Meta};
pub use watch::InboxWatch;

/// Longest wait for the inbox. A holder writes a few lines to disk and releases it.
const LONGEST_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));
/// Largest inbox. It holds a message of the largest size that the terminal takes, and many usual ones.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

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
    /// machine may take it from both.
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

/// Marks messages as no longer waiting.
#[derive(Serialize)]
#[serde(tag = "type", rename = "settled", rename_all = "camelCase")]
struct Settled<'a> {
    ids: &'a [EntryId],
}

/// Any line of the inbox.
#[derive(Deserialize)]
struct InboxLine<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    id: Option<EntryId>,
    kind: Option<QueuedKind>,
    content: Option<String>,
    ts: Option<u64>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    keeper: Keeper,
    #[serde(default)]
    ids: Vec<EntryId>,
}

/// The inbox of one session. Its file need not exist: the first message creates it.
#[derive(Debug, Clone)]
pub struct Inbox {
    path: PathBuf,
}

impl Inbox {
    /// The inbox in the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a message. When this returns, the message survives a crash of the machine, unless its sender keeps it too.
    /// It costs one append and one `fsync`, and one more `fsync` for the name of the file if the message is the session's
    /// first.
    ///
    /// # Errors
    /// The message is not in the inbox then. [`SessionError::InboxFull`] if too many messages wait already.
    pub fn push(&self, message: &QueuedMessage) -> Result<(), SessionError> {
        self.open_or_create()?.change(std::slice::from_ref(message), &[])
    }

    /// Like [`Inbox::push`], unless a message with this id waits already. Returns whether it was added. It costs reading
    /// the inbox.
    ///
    /// # Errors
    /// As for [`Inbox::push`].
    pub fn push_once(&self, message: &QueuedMessage) -> Result<bool, SessionError> {
        let mut open = self.open_or_create()?;
        if open.pending()?.iter().any(|waiting| waiting.id == message.id) {
            return Ok(false);
        }
        open.change(std::slice::from_ref(message), &[])?;
        Ok(true)
    }

    /// True if the inbox may hold messages. Checks only the length of the file.
    pub fn may_hold_messages(&self) -> bool {
        self.bytes() > 0
    }

    /// The length of the file in bytes; 0 for a missing one.
    pub fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Calls `notify` whenever a message may have been added by this process, until the value is dropped; and by another
    /// process from [`InboxWatch::notice_other_processes`] on. It is called from other threads and must not block.
    pub fn watch(&self, notify: impl Fn() + Send + Sync + 'static) -> InboxWatch {
        InboxWatch::new(&self.path, Arc::new(notify))
    }

    /// The waiting messages, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read, or somebody holds it for too long.
    pub fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        self.read(LONGEST_WAIT)
    }

    /// Like [`Inbox::pending`], without waiting for whoever holds the inbox.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if somebody holds it; or the file cannot be read.
    pub fn try_pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        self.read(LockWait::Fail)
    }

    fn read(&self, wait: LockWait) -> Result<Vec<QueuedMessage>, SessionError> {
        // Only for reading: the system reports the end of a file that was open for writing to everybody who watches it,
        // and they would read it again, without end.
        match File::open(&self.path) {
            Ok(file) => self.lock(file, LockKind::Shared, wait)?.pending(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SessionError::from_io("open the inbox", &self.path, error)),
        }
    }

    /// Removes a message that has not been taken. Returns whether it was there.
    ///
    /// # Errors
    /// The file cannot be read or written; the message still waits then.
    pub fn remove(&self, id: EntryId) -> Result<bool, SessionError> {
        let Some(mut open) = self.open()? else { return Ok(false) };
        let is_pending = open.pending()?.iter().any(|message| message.id == id);
        if is_pending {
            open.change(&[], &[id])?;
        }
        Ok(is_pending)
    }

    /// Opens the inbox for a change; `None` if there is no file. Nobody else reads or changes it until the value is
    /// dropped.
    ///
    /// # Errors
    /// The file cannot be opened, or somebody holds it for too long.
    pub fn open(&self) -> Result<Option<OpenInbox>, SessionError> {
        self.open_within(LONGEST_WAIT)
    }

    /// Like [`Inbox::open`], without waiting for whoever holds the inbox.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if somebody holds it; or the file cannot be opened.
    pub fn try_open(&self) -> Result<Option<OpenInbox>, SessionError> {
        self.open_within(LockWait::Fail)
    }

    fn open_within(&self, wait: LockWait) -> Result<Option<OpenInbox>, SessionError> {
        match private_options().read(true).append(true).open(&self.path) {
            Ok(file) => self.lock(file, LockKind::Exclusive, wait).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::from_io("open the inbox", &self.path, error)),
        }
    }

    /// Like [`Inbox::open`], but creates the file if there is none.
    ///
    /// # Errors
    /// As for [`Inbox::open`].
    pub fn open_or_create(&self) -> Result<OpenInbox, SessionError> {
        loop {
            if let Some(open) = self.open()? {
                if open.is_linked()? {
                    return Ok(open);
                }
                continue;
            }
            let directory = parent_of(&self.path);
            create_private_directory(&directory)
                .context("create the sessions directory", &directory)?;
            private_options()
                .append(true)
                .create(true)
                .open(&self.path)
                .and_then(|_| sync_directory(&directory))
                .context("create the inbox", &self.path)?;
        }
    }

    fn lock(&self, file: File, kind: LockKind, wait: LockWait) -> Result<OpenInbox, SessionError> {
        lock(&file, kind, wait).context("lock", &self.path)?;
        let news = News { path: self.path.clone(), are_there: false };
        Ok(OpenInbox { path: self.path.clone(), file, news })
    }
}

/// An inbox that nobody else can read or change meanwhile.
#[derive(Debug)]
pub struct OpenInbox {
    path: PathBuf,
    /// Locked while it is open.
    file: File,
    /// Declared after the file: those who are notified find it unlocked.
    news: News,
}

/// Notifies the watchers of an inbox when it is dropped, if there are new messages.
#[derive(Debug)]
struct News {
    path: PathBuf,
    are_there: bool,
}

impl Drop for News {
    fn drop(&mut self) {
        if self.are_there {
            watch::notify(&self.path);
        }
    }
}

impl OpenInbox {
    /// The waiting messages, the oldest first. Lines that do not belong in an inbox are skipped: a line that a crash
    /// cut short was never acknowledged.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut Positioned::new(&self.file), &mut bytes)
            .context("read the inbox", &self.path)?;
        let mut pending: Vec<QueuedMessage> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<InboxLine<'_>>(line) else { continue };
            match &*line.r#type {
                "queued" => pending.extend(line.into_message()),
                "settled" => pending.retain(|message| !line.ids.contains(&message.id)),
                _ => {}
            }
        }
        Ok(pending)
    }

    /// Adds `messages` and settles those of `settled`, in one write. It is durable when it returns, unless all it does is
    /// to add messages that their senders keep too. The file is emptied if nothing waits any more.
    ///
    /// # Errors
    /// Nothing has changed then. [`SessionError::InboxFull`] if too many messages wait already.
    pub fn change(
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
    /// As for [`OpenInbox::change`].
    pub fn settle_taken(
        &mut self,
        pending: &[QueuedMessage],
        taken: &[EntryId],
    ) -> Result<(), SessionError> {
        self.write(&[], taken, durability_of(pending, taken))
    }

    fn write(
        &mut self,
        messages: &[QueuedMessage],
        settled: &[EntryId],
        durability: Durability,
    ) -> Result<(), SessionError> {
        let sync = |file: &File| match durability {
            Durability::Synced => file.sync_data(),
            Durability::Unsynced => Ok(()),
        };
        if messages.is_empty() && self.would_be_empty(settled)? {
            return self
                .file
                .set_len(0)
                .and_then(|()| sync(&self.file))
                .context("empty the inbox", &self.path);
        }
        let length = self.length()?;
        let mut lines = Vec::new();
        if !self.ends_with_whole_line(length)? {
            lines.push(b'\n');
        }
        for message in messages {
            self.encode(message, &mut lines)?;
        }
        if !settled.is_empty() {
            self.encode(&Settled { ids: settled }, &mut lines)?;
        }
        // Settling must always succeed, so only new messages count against the limit.
        if !messages.is_empty() && length + lines.len() as u64 > MAX_BYTES {
            return Err(SessionError::InboxFull { path: self.path.clone(), limit: MAX_BYTES });
        }
        let written = (&self.file).write_all(&lines).and_then(|()| sync(&self.file));
        written.map_err(|source| {
            // The sender gets an error for this message, so it must not be answered later.
            let _ = self.file.set_len(length);
            SessionError::from_io("write to the inbox", &self.path, source)
        })?;
        self.news.are_there |= !messages.is_empty();
        Ok(())
    }

    fn would_be_empty(&self, settled: &[EntryId]) -> Result<bool, SessionError> {
        Ok(self.pending()?.iter().all(|message| settled.contains(&message.id)))
    }

    fn length(&self) -> Result<u64, SessionError> {
        Ok(self.file.metadata().context("check the inbox", &self.path)?.len())
    }

    fn ends_with_whole_line(&self, length: u64) -> Result<bool, SessionError> {
        if length == 0 {
            return Ok(true);
        }
        let mut last = [0];
        self.file.read_exact_at(&mut last, length - 1).context("read the inbox", &self.path)?;
        Ok(last == *b"\n")
    }

    /// True if the file still has its name. It does not if the session was deleted meanwhile.
    fn is_linked(&self) -> Result<bool, SessionError> {
        Ok(self.file.metadata().context("check the inbox", &self.path)?.nlink() > 0)
    }

    fn encode(&self, value: &impl Serialize, lines: &mut Vec<u8>) -> Result<(), SessionError> {
        serde_json::to_writer(&mut *lines, value)
            .map_err(|source| SessionError::Encode { path: self.path.clone(), source })?;
        lines.push(b'\n');
        Ok(())
    }
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

impl InboxLine<'_> {
    fn into_message(self) -> Option<QueuedMessage> {
        Some(QueuedMessage {
            id: self.id?,
            kind: self.kind?,
            content: self.content?,
            ts: self.ts.unwrap_or(0),
            meta: self.meta.and_then(Meta::from_raw),
            keeper: self.keeper,
        })
    }
}
