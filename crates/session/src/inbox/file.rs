//! An inbox in a small file of JSON lines next to the session's log. When nothing is pending the file is empty, so its
//! cost does not depend on the age of the session. A lock on the file holds the inbox.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use myclaw_files::portable::{FileExt, MetadataExt, set_length};
use myclaw_files::{
    Durability, LockKind, LockWait, create_private_directory, lock, parent_of, private_options,
    sync_directory,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::watch::{self, FileWatch};
use super::{
    HeldInbox, Inbox, InboxCallback, InboxWatch, Keeper, LONGEST_WAIT, MAX_BYTES, QueuedKind,
    QueuedMessage,
};
use crate::error::{IoContext, SessionError};
use crate::reader::Positioned;
use crate::{EntryId, Meta};

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

/// An inbox in a file, which the first message creates. A message costs one append and one `fsync`, and one more `fsync`
/// for the name of the file if it is the session's first.
#[derive(Debug, Clone)]
pub struct FileInbox {
    path: PathBuf,
}

impl FileInbox {
    /// The inbox in the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, wait: LockWait) -> Result<Option<HeldFile>, SessionError> {
        match private_options().read(true).append(true).open(&self.path) {
            Ok(file) => self.lock(file, LockKind::Exclusive, wait).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::from_io("open the inbox", &self.path, error)),
        }
    }

    fn lock(&self, file: File, kind: LockKind, wait: LockWait) -> Result<HeldFile, SessionError> {
        lock(&file, kind, wait).context("lock", &self.path)?;
        let news = News { path: self.path.clone(), are_there: false };
        Ok(HeldFile { path: self.path.clone(), file, news })
    }
}

impl Inbox for FileInbox {
    fn hold_within(&self, wait: LockWait) -> Result<Option<Box<dyn HeldInbox>>, SessionError> {
        Ok(self.open(wait)?.map(|held| Box::new(held) as Box<dyn HeldInbox>))
    }

    fn hold_or_create(&self) -> Result<Box<dyn HeldInbox>, SessionError> {
        loop {
            if let Some(open) = self.open(LONGEST_WAIT)? {
                if open.is_linked()? {
                    return Ok(Box::new(open));
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

    fn pending_within(&self, wait: LockWait) -> Result<Vec<QueuedMessage>, SessionError> {
        // Only for reading: the system reports the end of a file that was open for writing to everybody who watches it,
        // and they would read it again, without end.
        match File::open(&self.path) {
            Ok(file) => self.lock(file, LockKind::Shared, wait)?.pending(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SessionError::from_io("open the inbox", &self.path, error)),
        }
    }

    /// The length of the file.
    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    fn watch(&self, notify: InboxCallback) -> Box<dyn InboxWatch> {
        Box::new(FileWatch::new(&self.path, notify))
    }
}

/// The open file of an inbox, locked while it is open.
#[derive(Debug)]
struct HeldFile {
    path: PathBuf,
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

impl HeldInbox for HeldFile {
    /// Lines that do not belong in an inbox are skipped: a line that a crash cut short was never acknowledged.
    fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
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
            return set_length(&self.file, &self.path, 0)
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
            let _ = set_length(&self.file, &self.path, length);
            SessionError::from_io("write to the inbox", &self.path, source)
        })?;
        self.news.are_there |= !messages.is_empty();
        Ok(())
    }
}

impl HeldFile {
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

/// The message of a line that [`QueuedMessage`] was written as; `None` if it is another one.
pub(crate) fn read_queued(line: &[u8]) -> Option<QueuedMessage> {
    let line: InboxLine<'_> = serde_json::from_slice(line).ok()?;
    if line.r#type == "queued" { line.into_message() } else { None }
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
