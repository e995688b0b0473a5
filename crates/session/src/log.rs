//! A log opened for appending, under its lock.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use myclaw_files::portable::{MetadataExt, set_length};
use myclaw_files::{LockFile, parent_of, private_options, still_at, sync_directory};
use parking_lot::Mutex;
use tracing::debug;

use crate::error::{IoContext, SessionError};
use crate::history::History;
use crate::reader::check_header;
use crate::repair::{MovedAside, Repair, repair_torn_tail};
use crate::tail::{beginning_ms, fill_missing_times, read_tail};
use crate::{
    Entry, LogEnd, SessionHeader, SessionKey, SyncHandle, Tail, TailLimit, micros, next_epoch,
    now_ms,
};

/// A session's log, open for appending. No other process can append to it while this value lives.
#[derive(Debug)]
pub struct SessionLog {
    key: SessionKey,
    path: PathBuf,
    storage: Arc<Storage>,
    /// The beginning of a fork, in other files; empty for all others.
    history: History,
    /// Length up to which the file is known to end with a whole line.
    sound_length: Option<u64>,
    /// Length before a failed append, until what it wrote is removed.
    cut_back_to: Option<u64>,
    repaired_torn_tail: bool,
    moved_aside: Option<MovedAside>,
    /// The directory that the session works in, for the header of a new log.
    work: Option<PathBuf>,
    end: LogEnd,
    /// Declared last, so that everything else is closed before the next writer gets the lock.
    lock: LockFile,
}

/// What a [`SyncHandle`] shares with its log.
#[derive(Debug)]
struct Storage {
    /// `None` until the first append of a new session.
    file: Mutex<Option<Arc<File>>>,
    /// Directories with a new name in them that is not yet synced to disk.
    changed_directories: Mutex<Vec<PathBuf>>,
}

impl SessionLog {
    /// Opens the log at `path` under `lock`. `changed_directories` are those that were changed to create its directory.
    pub(crate) fn open(
        key: SessionKey,
        path: PathBuf,
        lock: LockFile,
        changed_directories: Vec<PathBuf>,
    ) -> Result<Self, SessionError> {
        let file = match private_options().read(true).append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(SessionError::from_io("open the session log", &path, error)),
        };
        let header = match &file {
            Some(file) => check_header(file, &path, &key)?,
            None => None,
        };
        let history = History::open(&path, header.as_ref())?;
        debug!(session = key.as_str(), is_new = file.is_none(), "opened the session log");
        let storage = Arc::new(Storage {
            file: Mutex::new(file.map(Arc::new)),
            changed_directories: Mutex::new(changed_directories),
        });
        Ok(Self {
            key,
            path,
            storage,
            history,
            sound_length: None,
            cut_back_to: None,
            repaired_torn_tail: false,
            moved_aside: None,
            work: None,
            end: LogEnd::of_opening(next_epoch()),
            lock,
        })
    }

    /// Sets the directory that a new session works in.
    pub(crate) fn for_work_in(mut self, work: Option<PathBuf>) -> Self {
        self.work = work;
        self
    }

    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The end of the log, as this owner knows it.
    pub fn end(&self) -> LogEnd {
        self.end
    }

    /// Refuses `after` unless it is the end.
    pub(crate) fn check_end(&self, after: LogEnd) -> Result<(), SessionError> {
        match after == self.end {
            true => Ok(()),
            false => Err(SessionError::Fenced { key: self.key.clone() }),
        }
    }

    /// Appends `entries`, all in one write. The first append of a session creates the file and its header; without
    /// entries nothing is created. When it returns, the entries survive a crash of this program. To survive a crash of
    /// the machine they need [`SyncHandle::sync`].
    ///
    /// # Errors
    /// [`SessionError::Fenced`] if somebody removed the lock file and another owner has opened the session. Nothing of the
    /// batch is in the file after any error, its earlier content is unchanged, and the log can still be used.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), SessionError> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.lock.is_replaced().context("check the lock of", &self.path)? {
            return Err(SessionError::Fenced { key: self.key.clone() });
        }
        let file = self.file_for_append()?;
        let length = self.ensure_sound_tail(&file)?;
        let lines = self.encode(entries, length)?;
        if let Err(source) = write_whole(&file, &lines) {
            self.cut_back_to = Some(length);
            // A faulty disk may make this fail too. Then the next append retries it first.
            let _ = self.cut_back(&file);
            debug!(error = %source, "an append to the session log failed and was undone");
            return Err(SessionError::from_io("write to the session log", &self.path, source));
        }
        self.sound_length = Some(length + lines.len() as u64);
        self.end = self.end.behind(entries.len());
        debug!(
            entries = entries.len(),
            bytes = lines.len(),
            at = length,
            "appended to the session log"
        );
        Ok(())
    }

    /// The end of the log, as far as the next step needs it. Repairs a torn last line first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        let Some(file) = self.storage.file() else {
            return Ok(Tail::default());
        };
        // If the repair fails (on a full disk, for example), the log can still be read. The next append reports the
        // failure.
        let _ = self.ensure_sound_tail(&file);
        let mut tail = read_tail(self.history.with_own_backward(&file), limit)
            .context("read the session log", &self.path)?;
        fill_missing_times(&mut tail.messages, || beginning_ms(&file));
        tail.repaired_torn_tail = self.repaired_torn_tail;
        tail.moved_aside.clone_from(&self.moved_aside);
        Ok(tail)
    }

    /// A handle that makes appended entries durable. It can be sent to another thread.
    pub fn sync_handle(&self) -> SyncHandle {
        let (storage, path) = (Arc::clone(&self.storage), self.path.clone());
        SyncHandle::new(move || storage.sync(&path))
    }

    fn file_for_append(&self) -> Result<Arc<File>, SessionError> {
        if let Some(file) = self.storage.file() {
            return Ok(file);
        }
        let file = private_options()
            .read(true)
            .append(true)
            .create(true)
            .open(&self.path)
            .context("create the session log", &self.path)?;
        let file = Arc::new(file);
        self.storage.changed_directories.lock().push(parent_of(&self.path));
        *self.storage.file.lock() = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Removes the bytes that a failed append left.
    fn cut_back(&mut self, file: &File) -> io::Result<()> {
        if let Some(length) = self.cut_back_to {
            set_length(file, &self.path, length)?;
            self.cut_back_to = None;
        }
        Ok(())
    }

    /// Repairs the end of the file unless it is known to be whole. Returns the file's length.
    fn ensure_sound_tail(&mut self, file: &File) -> Result<u64, SessionError> {
        self.cut_back(file).context("remove a half-written line from", &self.path)?;
        // The number of links does not help here: a fork keeps the file under a name of its own.
        let found = still_at(file, &self.path).context("check the session log", &self.path)?;
        let Some(metadata) = found else {
            return Err(SessionError::Removed { path: self.path.clone() });
        };
        if self.sound_length == Some(metadata.len()) {
            return Ok(metadata.len());
        }
        match repair_torn_tail(file, &self.path)? {
            Repair::NotNeeded => {}
            Repair::Terminated => {
                debug!("added the missing end of the log's last line");
                self.repaired_torn_tail = true;
            }
            Repair::MovedAside(moved) => {
                debug!(bytes = moved.bytes, "moved a torn line out of the log");
                self.repaired_torn_tail = true;
                self.moved_aside = Some(moved);
            }
        }
        let length = file.metadata().context("check the session log", &self.path)?.len();
        self.sound_length = Some(length);
        Ok(length)
    }

    /// The lines of `entries`, preceded by a header if the file is still empty.
    fn encode(&self, entries: &[Entry], file_length: u64) -> Result<Vec<u8>, SessionError> {
        let mut lines = Vec::new();
        if file_length == 0 {
            let created_at = entries.iter().find_map(Entry::ts).unwrap_or_else(now_ms);
            let header = SessionHeader::of_new_log(self.key.as_str(), created_at)
                .in_directory(self.work.as_deref());
            self.encode_line(&header, &mut lines)?;
        }
        for entry in entries {
            self.encode_line(entry, &mut lines)?;
        }
        Ok(lines)
    }

    fn encode_line(
        &self,
        value: &impl serde::Serialize,
        lines: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        serde_json::to_writer(&mut *lines, value)
            .map_err(|source| SessionError::Encode { path: self.path.clone(), source })?;
        lines.push(b'\n');
        Ok(())
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        // A failed first append leaves an empty file, which is not a session.
        if let Some(file) = self.storage.file()
            && file.metadata().is_ok_and(|metadata| metadata.len() == 0 && metadata.nlink() > 0)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Storage {
    /// Waits until the appended entries are on disk, and the file's name too if it is new.
    fn sync(&self, path: &Path) -> Result<(), SessionError> {
        let Some(file) = self.file() else {
            return Ok(());
        };
        let begun = Instant::now();
        file.sync_data().context("write to disk", path)?;
        debug!(waited_us = micros(begun), "the session log is on disk");
        let mut directories = self.changed_directories.lock();
        while let Some(directory) = directories.last() {
            sync_directory(directory).context("write to disk the directory", directory)?;
            directories.pop();
        }
        Ok(())
    }

    fn file(&self) -> Option<Arc<File>> {
        self.file.lock().clone()
    }
}

/// Writes all of `lines`, in one call unless the system writes only a part; the next call then returns the error.
fn write_whole(mut file: &File, lines: &[u8]) -> io::Result<()> {
    file.write_all(lines)
}
