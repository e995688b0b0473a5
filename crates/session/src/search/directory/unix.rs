//! Unix: relative to the open directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, openat, statat};

use crate::search::stamp::LogStamp;

/// An open directory.
#[derive(Debug)]
pub(in crate::search) struct OpenDirectory(File);

impl OpenDirectory {
    pub(in crate::search) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Opens a file of it for reading.
    pub(in crate::search) fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// The present state of a file of it, of which a link is not followed.
    pub(in crate::search) fn stamp(&self, name: &OsStr) -> io::Result<LogStamp> {
        Ok(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }
}

impl From<Stat> for LogStamp {
    fn from(found: Stat) -> Self {
        let length = u64::try_from(found.st_size).unwrap_or(0);
        let changed = (whole(found.st_ctime), whole(found.st_ctime_nsec));
        Self { inode: found.st_ino, length, changed }
    }
}

/// A number whose type differs between systems.
fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
