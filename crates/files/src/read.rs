//! Reading regular files that somebody else may have put there.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, openat};

/// Opens a regular file for reading, following symbolic links. Never blocks: a FIFO, device, socket or directory is
/// refused, before it is opened, since opening a device may do something. The check is repeated on the open file, so that
/// replacing the path in between changes nothing.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for anything but a regular file; otherwise an I/O error.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, &std::fs::metadata(path)?, 0)
}

/// Like [`open_regular`], but refuses a symbolic link as the last part of `path`: for files in a directory that others
/// can write to.
///
/// # Errors
/// As for [`open_regular`].
pub fn open_regular_unlinked(path: &Path) -> io::Result<File> {
    open(path, &std::fs::symlink_metadata(path)?, libc::O_NOFOLLOW)
}

fn open(path: &Path, found: &Metadata, flags: i32) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if !found.is_file() {
        return Err(refused());
    }
    // Without O_NONBLOCK, opening a FIFO waits for a writer and opening a terminal may wait for a carrier.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused());
    }
    Ok(file)
}

/// Opens the regular file `path` in `directory` for reading. No part of `path` may be a symbolic link or `..`, so whatever
/// others change meanwhile, the file is one of the directory's own. Never blocks on a FIFO.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for anything but a regular file, and for a path that leads elsewhere; otherwise an I/O
/// error.
pub fn open_beneath(directory: &Path, path: &Path) -> io::Result<File> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let open_directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(directory, open_directory, Mode::empty())?;
    let mut parts = path.components().filter(|part| *part != Component::CurDir).peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(refused("it is outside of the directory"));
        };
        let kind = if parts.peek().is_some() { open_directory } else { open_file() };
        at = openat(&at, name, kind | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
            let is_link = error == rustix::io::Errno::LOOP || error == rustix::io::Errno::NOTDIR;
            if is_link {
                refused("a part of its path is no directory, or a symbolic link")
            } else {
                error.into()
            }
        })?;
    }
    let file = File::from(at);
    if !file.metadata()?.is_file() {
        return Err(refused("it is not a regular file"));
    }
    Ok(file)
}

fn open_file() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC
}

/// Reads at most `limit` bytes of a regular file. A result of `limit` bytes may be only the beginning of the file.
///
/// # Errors
/// As for [`open_regular`].
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
