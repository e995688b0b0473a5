//! `sessions.journal`: changes of the index that `sessions.json` does not hold yet.
//!
//! A turn appends one line to it, under a shared lock, so that turns do not wait for each other and the cost of a turn
//! does not depend on the number of sessions. Readers apply its lines to `sessions.json`. A journal that has grown long
//! is folded into a new `sessions.json`, under the exclusive lock, and removed.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use myclaw_files::{LockKind, LockWait, is_still_at, lock, private_options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::debug;

use super::snapshot::Stamp;
use super::{SessionEntry, UpdatedAt};
use crate::error::{IoContext, SessionError};
use crate::{MetaPatch, PeerKind, SessionKey, micros, now_ms};

/// Name of the journal within the sessions directory.
const JOURNAL_NAME: &str = "sessions.journal";

/// One line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Record {
    /// An entry was made or changed.
    Set(Box<Change>),
    /// The entry of this key was removed.
    Remove(String),
    /// If `sessions.json` has this stamp, it holds everything before this line. Written before the new file gets its
    /// name: if the program is killed before the journal is removed, tokens are not added twice.
    Folded(Stamp),
}

/// A change of an entry, in the form of a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    key: String,
    /// The id of the entry if this line creates it.
    session_id: String,
    /// The directory of the entry if this line creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// More of the entry if this line creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_extra: Option<Map<String, Value>>,
    /// When, in milliseconds since the Unix epoch.
    at: u64,
    /// True if only a new entry gets the time.
    #[serde(default, skip_serializing_if = "is_false")]
    keep_updated_at: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat_type: Option<PeerKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    add_tokens: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    add_micro_dollars: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    add_messages: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_turn: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extra: Option<Map<String, Value>>,
}

/// What the log of a session says about it, for an entry that is made.
#[derive(Debug)]
pub(super) struct MadeFrom {
    pub(super) session_id: String,
    pub(super) directory: Option<String>,
    pub(super) extra: Option<Map<String, Value>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Change {
    /// The line for `patch`. `made` is used only if there is no entry yet.
    pub(super) fn new(key: &SessionKey, made: MadeFrom, patch: MetaPatch) -> Self {
        let MetaPatch { updated_at, last_channel, last_to, chat_type, model, .. } = patch;
        let MetaPatch { add_tokens, add_micro_dollars, add_messages, in_turn, extra, .. } = patch;
        Self {
            key: key.to_string(),
            session_id: made.session_id,
            directory: made.directory,
            made_extra: made.extra,
            at: if let UpdatedAt::At(time) = updated_at { time } else { now_ms() },
            keep_updated_at: updated_at == UpdatedAt::Keep,
            last_channel,
            last_to,
            chat_type,
            model,
            add_tokens,
            add_micro_dollars,
            add_messages,
            in_turn,
            extra,
        }
    }

    /// The entry after this change; `None` if the key is invalid.
    pub(super) fn apply(&self, before: Option<SessionEntry>) -> Option<SessionEntry> {
        let mut entry = match before {
            Some(entry) => entry,
            None => {
                let key = SessionKey::parse_canonical(&self.key)?;
                let directory = self.directory.clone();
                SessionEntry {
                    directory,
                    extra: self.made_extra.clone(),
                    ..SessionEntry::new(&key, self.session_id.clone(), self.at)
                }
            }
        };
        if !self.keep_updated_at {
            entry.updated_at = self.at;
        }
        let replace = |field: &mut Option<String>, new: &Option<String>| {
            if new.is_some() {
                field.clone_from(new);
            }
        };
        replace(&mut entry.last_channel, &self.last_channel);
        replace(&mut entry.last_to, &self.last_to);
        replace(&mut entry.model, &self.model);
        entry.chat_type = self.chat_type.or(entry.chat_type);
        entry.in_turn = self.in_turn.unwrap_or(entry.in_turn);
        let add = |field: &mut Option<u64>, more: u64| {
            if more > 0 {
                *field = Some(field.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut entry.total_tokens, self.add_tokens);
        add(&mut entry.micro_dollars, self.add_micro_dollars);
        add(&mut entry.messages, self.add_messages);
        if let Some(extra) = &self.extra {
            entry.extra.get_or_insert_default().extend(extra.clone());
        }
        Some(entry)
    }
}

impl Record {
    /// The key whose entry it changes.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Set(change) => Some(&change.key),
            Self::Remove(key) => Some(key),
            Self::Folded(_) => None,
        }
    }

    /// The entry of its key after this line.
    pub(super) fn apply(&self, before: Option<SessionEntry>) -> Option<SessionEntry> {
        match self {
            Self::Set(change) => change.apply(before),
            Self::Remove(_) => None,
            Self::Folded(_) => before,
        }
    }
}

/// The content of a journal.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Its lines in order, without those that `sessions.json` already holds.
    pub(super) records: Vec<Record>,
    /// Lines that could not be read.
    pub(super) damaged: usize,
}

/// The journal, open and locked until this is dropped.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal in `directory` for a change, and creates it if needed.
    pub(super) fn open(
        directory: &Path,
        kind: LockKind,
        wait: LockWait,
    ) -> Result<Self, SessionError> {
        let path = directory.join(JOURNAL_NAME);
        loop {
            let file = private_options()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)
                .context("open the session index", &path)?;
            if let Some(journal) = Self::locked(&path, file, kind, wait)? {
                return Ok(journal);
            }
        }
    }

    /// Opens the journal in `directory` for reading; `None` if there is none.
    pub(super) fn open_existing(
        directory: &Path,
        wait: LockWait,
    ) -> Result<Option<Self>, SessionError> {
        let path = directory.join(JOURNAL_NAME);
        match File::open(&path) {
            Ok(file) => Self::locked(&path, file, LockKind::Shared, wait),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::from_io("open the session index", &path, error)),
        }
    }

    /// `None` if the file was folded and removed before it was locked.
    fn locked(
        path: &Path,
        file: File,
        kind: LockKind,
        wait: LockWait,
    ) -> Result<Option<Self>, SessionError> {
        let begun = Instant::now();
        lock(&file, kind, wait).context("lock", path).map_err(SessionError::of_index)?;
        debug!(?kind, waited_us = micros(begun), "locked the session index");
        let is_current = is_still_at(&file, path).context("check the session index", path)?;
        Ok(is_current.then(|| Self { path: path.to_path_buf(), file }))
    }

    /// Its length and identity.
    pub(super) fn stamp(&self) -> Result<Stamp, SessionError> {
        let metadata = self.file.metadata().context("check the session index", &self.path)?;
        Ok(Stamp::from(&metadata))
    }

    /// Its length in bytes.
    pub(super) fn length(&self) -> Result<u64, SessionError> {
        Ok(self.file.metadata().context("check the session index", &self.path)?.len())
    }

    /// Appends a line in one write. The write begins with a line feed too, so that the line stays whole after one that
    /// a full disk cut short: under a shared lock nobody may truncate the file.
    pub(super) fn append(&self, record: &Record) -> Result<(), SessionError> {
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, record)
            .map_err(|source| SessionError::Encode { path: self.path.clone(), source })?;
        line.push(b'\n');
        (&self.file).write_all(&line).context("write the session index", &self.path)
    }

    /// Reads the lines that `sessions.json`, which has the stamp `snapshot`, does not hold yet.
    pub(super) fn read(&self, snapshot: Option<Stamp>) -> Result<Records, SessionError> {
        let mut text = Vec::new();
        let mut file = &self.file;
        // An append has moved to the end.
        file.rewind()
            .and_then(|()| file.read_to_end(&mut text))
            .context("read the session index", &self.path)?;
        let mut found = Records::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Record::Folded(stamp)) if Some(stamp) == snapshot => found = Records::default(),
                Ok(Record::Folded(_)) => {}
                Ok(record) => found.records.push(record),
                Err(_) => found.damaged += 1,
            }
        }
        Ok(found)
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, whose content is now in `sessions.json`. Needs the exclusive lock.
    pub(super) fn remove(self) -> Result<(), SessionError> {
        std::fs::remove_file(&self.path).context("delete", &self.path)
    }
}
