//! Sessions that come into being as a whole: forks and imports.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use myclaw_files::{LockFile, create_private_directory, private_options, sync_directory};

use crate::error::{IoContext, SessionError};

use crate::{Entry, LockWait, SessionHeader, SessionKey, SessionStore};

/// Behind the name of a log that is being written.
const UNFINISHED_EXTENSION: &str = "jsonl.new";

/// A session that nobody sees before it is finished. Dropping it leaves nothing; a killed program leaves a file that
/// the next session of this name writes over.
#[derive(Debug)]
pub struct NewSession {
    store: SessionStore,
    key: SessionKey,
    unfinished: PathBuf,
    out: BufWriter<File>,
    changed_directories: Vec<PathBuf>,
    is_finished: bool,
    /// Held for its effect: nobody else makes or opens the session meanwhile.
    _lock: LockFile,
}

impl SessionStore {
    /// Begins a session that must not exist yet. `created_at` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// The session exists, another process is making it, or what the system says.
    pub fn create(&self, key: &SessionKey, created_at: u64) -> Result<NewSession, SessionError> {
        let mut session = self.begin(key)?;
        session.write(&SessionHeader::of_new_log(key.as_str(), created_at))?;
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
        // What a killed program has left under this name belongs to no session.
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
    /// Whose log it is.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// What the system says. The session cannot be finished then.
    pub fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        self.write(entry)
    }

    /// Puts the session in its place, on the disk, and closes it.
    ///
    /// # Errors
    /// What the system says. There is no session then.
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
            // Nothing can be done about a failure, and nothing of this is a session.
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
