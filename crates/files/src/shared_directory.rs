//! Directories in which a less trusted party, such as a sandboxed session or a container, can change everything.
//!
//! Such a party may put links, FIFOs, devices and endless files there, and may replace one thing by another between two
//! looks at it. So a directory is opened once, everything else happens relative to the open directory, and no path is
//! resolved twice. Nothing outside of the directory is read or changed, and nothing here waits for a writer of a FIFO.
//!
//! Hard links are read, not refused: package managers make many. They lead nowhere new, because neither Landlock nor a
//! mounted directory lets a confined process link a file into a directory where it could do more with it. Writing
//! replaces a name and never changes the file behind it, and [`SharedDirectory::append`] refuses a file with two names.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::SharedDirectory;
#[cfg(windows)]
pub use windows::SharedDirectory;

/// Most entries of a directory that are looked at, unless more names are wanted.
const MAX_ENTRIES: usize = 20_000;

/// Who may read what is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only the owner of this process: the modes 0600 and 0700.
    Owner,
    /// Every user, such as one that a container runs as: the modes 0644 and 0755, less what the umask forbids.
    Everyone,
}

/// What has a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// What is known of a name in a directory. A link is described itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes, as it says: a sparse file has as many as it likes.
    pub bytes: u64,
    /// When its content changed last, in nanoseconds since the Unix epoch. Whoever can change it can set this too.
    pub changed_ns: u64,
}

/// Names in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The names, sorted by their bytes. They may hold anything but `/` and NUL, and need not be UTF-8.
    pub names: Vec<OsString>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// A file that was reached over links inside the directory.
#[derive(Debug)]
pub struct Followed {
    /// Where it is below the directory: without links, `.` and `..`.
    pub path: PathBuf,
    /// The open regular file.
    pub file: File,
}
