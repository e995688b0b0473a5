//! Logs that came into the directory, or went from it, without this program.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use myclaw_files::portable::MetadataExt as _;
use myclaw_files::private_options;

use super::rebuild::{add_missing, entry_from_log};
use super::{EntriesByKey, SessionIndex};
use crate::error::IoContext;
use crate::store::{LOG_EXTENSION, session_file};
use crate::{SessionError, SessionKey};

/// An empty file whose time says when sessions were last removed from the index.
const PRUNED: &str = ".pruned";

impl SessionIndex {
    /// Adds the logs that somebody put into the directory: those that the index does not list, and that came after sessions
    /// were last pruned from it. Removes the entries whose logs somebody deleted. Returns how many were added. Reads the
    /// names in the directory.
    ///
    /// # Errors
    /// The directory could not be read, or the index not locked, read or written.
    pub fn adopt(&self) -> Result<usize, SessionError> {
        if !self.directory.is_dir() {
            return Ok(0);
        }
        // Before the names are read: the log of an entry is there before the entry.
        let mut gone = self.slugs()?;
        let pruned =
            self.directory.join(PRUNED).symlink_metadata().map(|marker| changed_at(&marker));
        let mut new = Vec::new();
        for entry in std::fs::read_dir(&self.directory)
            .context("list the sessions directory", &self.directory)?
        {
            let path = entry.context("list the sessions directory", &self.directory)?.path();
            let is_log = path.extension() == Some(OsStr::new(LOG_EXTENSION));
            let Some(slug) = path.file_stem().and_then(OsStr::to_str).filter(|_| is_log) else {
                continue;
            };
            if !gone.remove(slug) {
                new.push(path);
            }
        }
        // A copy may keep the time of its content, but not that of its entry in the directory.
        let came = |path: &Path| path.symlink_metadata().ok().map(|log| changed_at(&log));
        new.retain(|path| pruned.as_ref().ok().is_none_or(|pruned| came(path) > Some(*pruned)));
        let found: EntriesByKey = new.iter().filter_map(|path| entry_from_log(path)).collect();
        if found.is_empty() && gone.is_empty() {
            return Ok(0);
        }
        self.change(|entries| {
            entries.retain(|key, _| {
                let key = SessionKey::parse_canonical(key).filter(|key| gone.contains(&key.slug()));
                key.is_none_or(|key| self.directory.join(session_file(&key)).exists())
            });
            let before = entries.len();
            add_missing(entries, found);
            entries.len() - before
        })
    }

    /// When sessions were last pruned from the index, in milliseconds since the Unix epoch; `None` if never.
    pub(super) fn pruned_at(&self) -> Option<u64> {
        let marker = self.directory.join(PRUNED).symlink_metadata().ok()?;
        let time = marker.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(time.as_millis()).ok()
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
