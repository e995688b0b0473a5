//! Replacing a file as a whole: readers see the old content or the new one, never a part of either.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::NamedTempFile;

use crate::{parent_of, sync_directory};

/// Whether a change must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The content and the name are on the disk when the call returns.
    Synced,
    /// The system writes it later: for content that can be made again.
    Unsynced,
}

/// The next content of a file, under a temporary name with the mode 0600. Dropping it removes it.
#[derive(Debug)]
pub struct NewFile(NamedTempFile);

impl NewFile {
    /// Creates an empty file with the given name, in place of what a killed process left there. For names that only the
    /// holder of a lock uses: a killed process then leaves one file at most, and the next writer removes it.
    ///
    /// # Errors
    /// An I/O error.
    pub fn named(path: &Path) -> io::Result<Self> {
        remove_if_there(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let named =
            tempfile::Builder::new().prefix(name).rand_bytes(0).tempfile_in(parent_of(path));
        named.map(Self).map_err(without_temporary_name)
    }

    /// Creates an empty file with a name of its own in `directory`.
    ///
    /// # Errors
    /// An I/O error.
    pub fn in_directory(directory: &Path, prefix: &str) -> io::Result<Self> {
        let made = tempfile::Builder::new().prefix(prefix).suffix(".tmp").tempfile_in(directory);
        made.map(Self).map_err(without_temporary_name)
    }

    /// The open file.
    pub fn as_file(&self) -> &File {
        self.0.as_file()
    }

    /// Renames the file to `path`, replacing any file of that name. Returns the open file.
    ///
    /// # Errors
    /// An I/O error. The temporary file is removed then, and `path` is unchanged unless only the last sync failed.
    pub fn put_at(self, path: &Path, durability: Durability) -> io::Result<File> {
        self.sync(durability)?;
        let file = self.0.persist(path).map_err(|failure| failure.error)?;
        sync_parent(path, durability)?;
        Ok(file)
    }

    /// Like [`NewFile::put_at`], but fails if a file of that name exists.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if a file has the name; otherwise an I/O error.
    pub fn put_at_free(self, path: &Path, durability: Durability) -> io::Result<File> {
        self.sync(durability)?;
        let file = self.0.persist_noclobber(path).map_err(|failure| failure.error)?;
        sync_parent(path, durability)?;
        Ok(file)
    }

    fn sync(&self, durability: Durability) -> io::Result<()> {
        if durability == Durability::Synced { self.as_file().sync_all() } else { Ok(()) }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

/// A failure without the name of the temporary file, which tells a person nothing. It is in the text alone.
pub(crate) fn without_temporary_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((why, _)) => io::Error::new(error.kind(), why.to_owned()),
        None => error,
    }
}

fn sync_parent(path: &Path, durability: Durability) -> io::Result<()> {
    if durability == Durability::Synced { sync_directory(&parent_of(path)) } else { Ok(()) }
}

/// Removes a file. Returns false if there was none.
///
/// # Errors
/// An I/O error.
pub fn remove_if_there(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies a damaged file to `<path>.bak.<milliseconds>` with the mode 0600, so that nothing in it is lost. Returns the
/// name of the copy.
///
/// # Errors
/// An I/O error, with the name that could not be written.
pub fn set_aside(path: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".bak.{}", since.as_millis()));
    let backup = PathBuf::from(name);
    let copy = || {
        let mut source = File::open(path)?;
        let mut copy =
            crate::private_options().write(true).create(true).truncate(true).open(&backup)?;
        io::copy(&mut source, &mut copy)
    };
    match copy() {
        Ok(_) => Ok(backup),
        Err(error) => Err((backup, error)),
    }
}
