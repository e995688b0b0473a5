//! The directory that holds the sessions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use myclaw_files::{LockFile, create_private_directory, is_locked, remove_if_there};
use tracing::debug;

use crate::error::{IoContext, SessionError};
use crate::history::HISTORY_MARK;
use crate::repair::{MovedAside, TORN_MARK};
use crate::{
    FileInbox, LockWait, SearchFilters, SessionIndex, SessionKey, SessionLog, SessionReader, micros,
};

/// Extension of a log.
pub(crate) const LOG_EXTENSION: &str = "jsonl";
/// Extension of the file whose lock guards a log.
pub(crate) const LOCK_EXTENSION: &str = "lock";
/// Extension of the file for messages that wait for a session. It differs from a log's, so that it is not taken for
/// one.
pub(crate) const INBOX_EXTENSION: &str = "inbox";
/// Extension of the directory for data that belongs to a session but not into its log.
pub(crate) const ARTIFACT_EXTENSION: &str = "files";
/// Extension of the directory for the records of a session's background jobs.
const JOBS_EXTENSION: &str = "jobs";

/// File name of the log of `key`.
pub(crate) fn session_file(key: &SessionKey) -> String {
    format!("{}.{LOG_EXTENSION}", key.slug())
}

/// Finds, opens and deletes the sessions of one directory.
#[derive(Debug, Clone)]
pub struct SessionStore {
    directory: PathBuf,
    /// The directory that new sessions work in, if not their agent's workspace.
    work: Option<PathBuf>,
    /// Whether the lock file of a session stays when the session is closed.
    pub(crate) leaves_lock_files: bool,
    index: Arc<SessionIndex>,
    /// What searches have learned.
    pub(crate) filters: Arc<SearchFilters>,
}

impl SessionStore {
    /// The sessions in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let index = Arc::new(SessionIndex::new(directory.clone()));
        Self { directory, work: None, leaves_lock_files: false, index, filters: Arc::default() }
    }

    /// The same; sessions that are created through it remember that they work in `directory`.
    #[must_use]
    pub fn for_work_in(self, directory: Option<PathBuf>) -> Self {
        Self { work: directory, ..self }
    }

    /// The same; the lock files of its sessions stay until the sessions are deleted. For programs that open the same
    /// sessions again and again.
    #[must_use]
    pub fn leaving_lock_files(self) -> Self {
        Self { leaves_lock_files: true, ..self }
    }

    /// The directory that new sessions work in.
    pub(crate) fn work(&self) -> Option<&Path> {
        self.work.as_deref()
    }

    /// The directory that a session works in; `None` if that is its agent's workspace, or there is no such session.
    /// Reads the first line of the log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn directory_of(&self, key: &SessionKey) -> Result<Option<PathBuf>, SessionError> {
        let header = self.reader(key)?.as_ref().map(SessionReader::header).transpose()?.flatten();
        Ok(header.and_then(|header| header.directory).map(PathBuf::from))
    }

    /// The path of the sessions directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The index of these sessions. Clones of the store share it, with what it has read.
    pub fn index(&self) -> Arc<SessionIndex> {
        Arc::clone(&self.index)
    }

    /// The path of the log of `key`, whether it exists or not.
    pub fn transcript_path(&self, key: &SessionKey) -> PathBuf {
        self.beside(key, LOG_EXTENSION)
    }

    /// The directory for large data that belongs to the session, such as a tool's full output. It is created when it is
    /// needed; [`SessionStore::delete`] removes it with the log.
    pub fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        self.beside(key, ARTIFACT_EXTENSION)
    }

    /// The directory for the records of the session's background jobs. It is apart from the artifacts because commands
    /// can write to those. It is created when it is needed; [`SessionStore::delete`] removes it with the log.
    pub fn job_directory(&self, key: &SessionKey) -> PathBuf {
        self.beside(key, JOBS_EXTENSION)
    }

    /// Opens a session, new or old, for appending. Creates the directory if needed; a new session's file is created by
    /// the first append.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if another process has it open; otherwise, an I/O error or a problem in the file's
    /// header.
    pub fn open(&self, key: &SessionKey, wait: LockWait) -> Result<SessionLog, SessionError> {
        let changed_directories = create_private_directory(&self.directory)
            .context("create the sessions directory", &self.directory)?;
        let mut lock = self.lock(key, wait)?;
        if self.leaves_lock_files {
            lock.leave_file();
        }
        let log =
            SessionLog::open(key.clone(), self.transcript_path(key), lock, changed_directories)?;
        Ok(log.for_work_in(self.work.clone()))
    }

    /// The messages that wait for a session.
    pub fn inbox(&self, key: &SessionKey) -> FileInbox {
        FileInbox::new(self.beside(key, INBOX_EXTENSION))
    }

    /// True if the session is open for writing at this moment, in this process or another.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn is_in_use(&self, key: &SessionKey) -> Result<bool, SessionError> {
        let path = self.beside(key, LOCK_EXTENSION);
        is_locked(&path).context("lock", &path)
    }

    /// Takes the lock that a session's writer holds.
    pub(crate) fn lock(&self, key: &SessionKey, wait: LockWait) -> Result<LockFile, SessionError> {
        let path = self.beside(key, LOCK_EXTENSION);
        let begun = Instant::now();
        let lock = LockFile::acquire(&path, wait).context("lock", &path);
        let (session, waited_us) = (key.as_str(), micros(begun));
        match &lock {
            Ok(_) => debug!(session, waited_us, "locked the session"),
            Err(error) => debug!(session, waited_us, %error, "did not get the session's lock"),
        }
        lock
    }

    /// Opens a session for reading, without a lock; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be opened, or a later version of the program wrote it.
    pub fn reader(&self, key: &SessionKey) -> Result<Option<SessionReader>, SessionError> {
        SessionReader::open(&self.transcript_path(key), key)
    }

    /// The id (UUID version 4) by which other programs identify the session; `None` if there is no such session. It is
    /// in the header of the log, so the time does not depend on the number of sessions. Only for an old log without an
    /// id in its header is the index read.
    ///
    /// # Errors
    /// The log or the index cannot be read.
    pub fn session_id(&self, key: &SessionKey) -> Result<Option<String>, SessionError> {
        let reader = self.reader(key)?;
        let header = reader.as_ref().map(SessionReader::header).transpose()?.flatten();
        match header.and_then(|header| header.session_id) {
            Some(id) => Ok(Some(id)),
            None => Ok(self.index().get(key)?.map(|entry| entry.session_id)),
        }
    }

    /// Torn ends that were moved out of this session's log, the oldest first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn moved_aside(&self, key: &SessionKey) -> Result<Vec<MovedAside>, SessionError> {
        let prefix = format!("{}{TORN_MARK}", session_file(key));
        self.moved_aside_where(|name| is_numbered(name, &prefix))
    }

    /// Torn ends that were moved out of the logs of all sessions, the oldest of a session first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn all_moved_aside(&self) -> Result<Vec<MovedAside>, SessionError> {
        self.moved_aside_where(|name| {
            name.rsplit_once(TORN_MARK).is_some_and(|(_, number)| is_number(number))
        })
    }

    fn moved_aside_where(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<MovedAside>, SessionError> {
        if !self.directory.is_dir() {
            return Ok(Vec::new());
        }
        let listing = std::fs::read_dir(&self.directory)
            .context("list the sessions directory", &self.directory)?;
        let mut found: Vec<MovedAside> = listing
            .filter_map(Result::ok)
            .filter(|found| found.file_name().to_str().is_some_and(&is_wanted))
            .filter_map(|found| {
                let bytes = found.metadata().ok()?.len();
                Some(MovedAside { path: found.path(), bytes })
            })
            .collect();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// True if any session has a log, listed in the index or not.
    pub fn has_transcripts(&self) -> bool {
        let Ok(mut listing) = std::fs::read_dir(&self.directory) else { return false };
        let is_log = |path: PathBuf| path.extension().is_some_and(|found| found == LOG_EXTENSION);
        listing.any(|found| found.is_ok_and(|found| is_log(found.path())))
    }

    /// True if the session has a log.
    pub fn exists(&self, key: &SessionKey) -> bool {
        // An empty file is left if the program is killed while a first append fails. It is not a session yet.
        std::fs::metadata(self.transcript_path(key))
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    }

    /// Deletes a session's log, its side files and its artifacts; the index keeps its entry (see
    /// [`SessionIndex::remove`]). Returns whether there was a log.
    ///
    /// # Errors
    /// [`SessionError::Locked`] if a process has it open; otherwise, an I/O error.
    pub fn delete(&self, key: &SessionKey) -> Result<bool, SessionError> {
        if !self.directory.is_dir() {
            return Ok(false);
        }
        let _lock = self.lock(key, LockWait::Fail)?;
        let path = self.transcript_path(key);
        if let Err(foreign @ SessionError::ForeignTranscript { .. }) = self.reader(key) {
            return Err(foreign);
        }
        let existed = remove_if_there(&path).context("delete the session log", &path)?;
        let inbox = self.inbox(key);
        remove_if_there(inbox.path()).context("delete the inbox", inbox.path())?;
        for directory in [self.artifact_directory(key), self.job_directory(key)] {
            match std::fs::remove_dir_all(&directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome.context("delete the session's files in", &directory)?,
            }
        }
        self.delete_torn_lines(&path)?;
        self.delete_history(key)?;
        Ok(existed)
    }

    /// Deletes a fork's own names for its history files; those of other sessions stay.
    pub(crate) fn delete_history(&self, key: &SessionKey) -> Result<(), SessionError> {
        self.delete_numbered(&format!("{}{HISTORY_MARK}", key.slug()))
    }

    fn delete_torn_lines(&self, log: &Path) -> Result<(), SessionError> {
        let Some(log_name) = log.file_name().and_then(|name| name.to_str()) else {
            return Ok(());
        };
        self.delete_numbered(&format!("{log_name}{TORN_MARK}"))
    }

    /// Deletes the files of the directory whose names are `prefix` and a number. Other names with this prefix belong to
    /// other sessions, because a key may contain nearly any character.
    fn delete_numbered(&self, prefix: &str) -> Result<(), SessionError> {
        let listing = std::fs::read_dir(&self.directory)
            .context("list the sessions directory", &self.directory)?;
        for found in listing.filter_map(Result::ok) {
            if found.file_name().to_str().is_some_and(|name| is_numbered(name, prefix)) {
                let path = found.path();
                remove_if_there(&path).context("delete", &path)?;
            }
        }
        Ok(())
    }

    pub(crate) fn beside(&self, key: &SessionKey, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", key.slug()))
    }
}

/// True if a file name is `prefix` and a number. Other names with this prefix belong to other sessions.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
