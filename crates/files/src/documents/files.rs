//! Documents as files below one directory.

use std::fs::{self, FileTimes, Metadata};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Document, Documents, checked_document_name as checked};
use crate::read::read_file;
use crate::{
    Durability, LockError, LockFile, LockWait, NewFile, create_private_directory, open_regular,
    parent_of, remove_if_there, sync_directory,
};

/// Most bytes of a document.
const MOST_BYTES: u64 = 16 << 20;
/// Most names of a directory that are listed.
const MOST_NAMES: usize = 100_000;
/// Name of the lock in a directory. It begins with a dot, as no document does.
const LOCK: &str = ".documents.lock";
/// Longest wait for another process that changes a document, which takes milliseconds.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));
/// The file of the next text, until it is complete.
const UNFINISHED: &str = ".documents.tmp";

/// Documents in a directory that no other party can change: each is a file of its name.
#[derive(Debug, Clone)]
pub struct FileDocuments {
    directory: PathBuf,
}

impl FileDocuments {
    /// The documents below `directory`, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        Ok(self.directory.join(checked(name)?))
    }
}

impl Documents for FileDocuments {
    fn read(&self, name: &str) -> io::Result<Option<Document>> {
        let file = match open_regular(&self.path(name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = file.metadata()?;
        if found.len() > MOST_BYTES {
            return Err(too_large());
        }
        let bytes = read_file(file, MOST_BYTES)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Document { text, age: age(&found) }))
    }

    /// Its size and when it was written: every change writes another file.
    fn version(&self, name: &str) -> io::Result<Option<String>> {
        let found = match fs::metadata(self.path(name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let written = found.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Some(format!("{}-{}", found.len(), written.as_nanos())))
    }

    fn change(
        &self,
        name: &str,
        durability: Durability,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> io::Result<()> {
        let path = self.path(name)?;
        let directory = parent_of(&path);
        create_private_directory(&directory)?;
        let _lock = LockFile::acquire(&directory.join(LOCK), LOCK_WAIT).map_err(unlocked)?;
        let before = self.read(name)?;
        let text = change(before.as_ref().map(|document| document.text.as_str()));
        if text.len() as u64 > MOST_BYTES {
            return Err(too_large());
        }
        let mut file = NewFile::named(&directory.join(UNFINISHED))?;
        file.write_all(text.as_bytes())?;
        file.put_at(&path, durability).map(drop)
    }

    fn note_use(&self, name: &str) -> io::Result<()> {
        match open_regular(&self.path(name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => opened?.set_times(FileTimes::new().set_modified(SystemTime::now())),
        }
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        let path = self.path(name)?;
        let was_there = remove_if_there(&path)?;
        if was_there {
            sync_directory(&parent_of(&path))?;
        }
        Ok(was_there)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Duration)>> {
        let (parents, start) = match prefix.rsplit_once('/') {
            Some((parents, start)) => (format!("{}/", checked(parents)?), start),
            None => (String::new(), prefix),
        };
        let entries = match fs::read_dir(self.directory.join(&parents)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten().take(MOST_NAMES) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            if name.starts_with(start) && !name.starts_with('.') && metadata.is_file() {
                found.push((format!("{parents}{name}"), age(&metadata)));
            }
        }
        Ok(found)
    }

    fn describe(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

fn too_large() -> io::Error {
    io::Error::other(format!("it has more than {MOST_BYTES} bytes"))
}

fn age(found: &Metadata) -> Duration {
    found.modified().map_or(Duration::ZERO, |time| time.elapsed().unwrap_or_default())
}

fn unlocked(error: LockError) -> io::Error {
    match error {
        LockError::Held { .. } => {
            let why = "another process changes it for a long time; try again";
            io::Error::new(io::ErrorKind::WouldBlock, why)
        }
        LockError::Io { source, .. } => source,
    }
}
