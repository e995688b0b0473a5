//! Windows: by whole paths.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::search::stamp::LogStamp;

/// A directory.
#[derive(Debug)]
pub(in crate::search) struct OpenDirectory(PathBuf);

impl OpenDirectory {
    pub(in crate::search) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(path.to_owned()))
    }

    /// Opens a file of it for reading.
    pub(in crate::search) fn file(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.0.join(name))
    }

    /// The present state of a file of it, of which a link is not followed.
    pub(in crate::search) fn stamp(&self, name: &OsStr) -> io::Result<LogStamp> {
        Ok(LogStamp::from(&std::fs::symlink_metadata(self.0.join(name))?))
    }
}
