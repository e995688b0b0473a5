//! Logs that came into the directory without this program.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use myclaw_files::private_options;

use super::rebuild::{add_missing, entry_from_log};
use super::{EntriesByKey, SessionIndex};
use crate::SessionError;
use crate::error::IoContext;
use crate::store::LOG_EXTENSION;

/// An empty file whose time says when sessions were last removed from the index.
const PRUNED: &str = ".pruned";

impl SessionIndex {
    /// Adds the logs that somebody put into the directory: those that the index does not list, and that came after sessions
    /// were last pruned from it. Returns how many there were. Reads the names in the directory.
    ///
    /// # Errors
    /// The directory could not be read, or the index not locked, read or written.
    pub fn adopt(&self) -> Result<usize, SessionError> {
        if !self.directory.is_dir() {
            return Ok(0);
        }
        let listed = self.slugs()?;
        let pruned =
            self.directory.join(PRUNED).symlink_metadata().map(|marker| changed_at(&marker));
        let is_new = |path: &Path| {
            let is_listed =
                path.file_stem().and_then(OsStr::to_str).is_none_or(|slug| listed.contains(slug));
            // A copy may keep the time of its content, but not that of its entry in the directory.
            let is_log = !is_listed && path.extension() == Some(OsStr::new(LOG_EXTENSION));
            let came = || path.symlink_metadata().ok().map(|log| changed_at(&log));
            is_log && pruned.as_ref().ok().is_none_or(|pruned| came() > Some(*pruned))
        };
        let found: EntriesByKey = std::fs::read_dir(&self.directory)
            .context("list the sessions directory", &self.directory)?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| is_new(path))
            .filter_map(|path| entry_from_log(&path))
            .collect();
        if found.is_empty() {
            return Ok(0);
        }
        self.change(|entries| {
            let before = entries.len();
            add_missing(entries, found);
            entries.len() - before
        })
    }

    /// Keeps in mind that sessions were removed from the index whose logs are still there.
    pub(super) fn note_pruned(&self) -> Result<(), SessionError> {
        let marker = self.directory.join(PRUNED);
        let opened = private_options().write(true).create(true).truncate(true).open(&marker);
        // The file is empty; the time of this change says when.
        opened
            .and_then(|file| file.set_modified(SystemTime::now()))
            .context("note in the sessions directory that sessions were pruned", &marker)
    }
}

/// When an entry of a directory came or was last changed: seconds and nanoseconds since the Unix epoch.
fn changed_at(found: &Metadata) -> (i64, i64) {
    (found.ctime(), found.ctime_nsec())
}
