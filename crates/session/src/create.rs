//! Sessions that are created as a whole: forks and imports.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use myclaw_files::{LockFile, create_private_directory, private_options, sync_directory};

use crate::error::{IoContext, SessionError};

use crate::{Entry, LockWait, SessionHeader, SessionKey, SessionStore};

/// Extension of a log that is being written.
const UNFINISHED_EXTENSION: &str = "jsonl.new";

/// A session that is invisible until it is finished. Dropping it removes its file. A killed program leaves the file,
/// and the next session of this name overwrites it.
#[derive(Debug)]
pub struct NewSession {
    store: SessionStore,
    key: SessionKey,
    unfinished: PathBuf,
    out: BufWriter<File>,
    changed_directories: Vec<PathBuf>,
    is_finished: bool,
    /// Held so that nobody else creates or opens the session meanwhile.
    _lock: LockFile,
}

impl SessionStore {
    /// Begins a session that must not exist yet. `created_at` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// The session exists, another process is creating it, or an I/O error.
    pub fn create(&self, key: &SessionKey, created_at: u64) -> Result<NewSession, SessionError> {
        let mut session = self.begin(key)?;
        let header = SessionHeader::of_new_log(key.as_str(), created_at);
        session.write(&header.in_directory(self.work()))?;
        Ok(session)
    }

    /// Begins a session, without a header yet.
    pub(crate) fn begin(&self, key: &SessionKey) -> Result<NewSession, SessionError> {
        let mut changed_directories = create_private_directory(self.directory())
            .context("create the sessions directory", self.directory())?;
        changed_directories.push(self.directory().to_path_buf());
        let lock = self.lock(key, LockWait::Fail)?;
        if self.exists(key) {
            return Err(SessionError::SessionExists { key: key.clone() });
        }
        // Files that a killed program left under this name belong to no session.
        self.delete_history(key)?;
        let unfinished = self.beside(key, UNFINISHED_EXTENSION);
        let file = private_options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&unfinished)
            .context("create the session log", &unfinished)?;
        Ok(NewSession {
            store: self.clone(),
            key: key.clone(),
            unfinished,
            out: BufWriter::new(file),
            changed_directories,
            is_finished: false,
            _lock: lock,
        })
    }
}

impl NewSession {
    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// An I/O error. The session cannot be finished then.
    pub fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        self.write(entry)
    }

    /// Renames the session into place, syncs it to disk and closes it.
    ///
    /// # Errors
    /// An I/O error. There is no session then.
    pub fn finish(mut self) -> Result<(), SessionError> {
        let path = self.store.transcript_path(&self.key);
        self.out.flush().context("write to the session log", &self.unfinished)?;
        self.out.get_ref().sync_all().context("write to disk", &self.unfinished)?;
        std::fs::rename(&self.unfinished, &path).context("create the session log", &path)?;
        self.is_finished = true;
        for directory in self.changed_directories.iter().rev() {
            sync_directory(directory).context("write to disk the directory", directory)?;
        }
        Ok(())
    }

    /// Where the log will be.
    pub(crate) fn final_path(&self) -> PathBuf {
        self.store.transcript_path(&self.key)
    }

    /// Writes a line.
    pub(crate) fn write(&mut self, value: &impl serde::Serialize) -> Result<(), SessionError> {
        let path = &self.unfinished;
        let line = encode_line(value, path)?;
        self.out.write_all(&line).context("write to the session log", path)
    }
}

impl Drop for NewSession {
    fn drop(&mut self) {
        if !self.is_finished {
            // A failure here cannot be handled, and the leftover file is not a session.
            let _ = std::fs::remove_file(&self.unfinished);
            let _ = self.store.delete_history(&self.key);
        }
    }
}

fn encode_line(value: &impl serde::Serialize, path: &Path) -> Result<Vec<u8>, SessionError> {
    let mut line = serde_json::to_vec(value)
        .map_err(|source| SessionError::Encode { path: path.to_path_buf(), source })?;
    line.push(b'\n');
    Ok(line)
}
