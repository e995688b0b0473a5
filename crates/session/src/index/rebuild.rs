//! Making index entries from the logs themselves.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{EntriesByKey, SessionEntry};
use crate::SessionKey;
use crate::error::{IoContext, SessionError};
use crate::reader::read_header;
use crate::store::LOG_EXTENSION;

/// An entry for each log in `directory`.
pub(super) fn entries_from_logs(directory: &Path) -> Result<EntriesByKey, SessionError> {
    let listing = std::fs::read_dir(directory).context("list the sessions directory", directory)?;
    Ok(listing.filter_map(|found| entry_from_log(&found.ok()?.path())).collect())
}

/// Adds those of `found` that `entries` has not.
pub(super) fn add_missing(entries: &mut EntriesByKey, found: EntriesByKey) {
    for (key, entry) in found {
        entries.entry(key).or_insert(entry);
    }
}

/// What a log tells about itself. `None` if it is no log, or stands under a name where nobody would look for it.
fn entry_from_log(path: &Path) -> Option<(String, SessionEntry)> {
    if path.extension() != Some(OsStr::new(LOG_EXTENSION)) {
        return None;
    }
    let slug = path.file_stem()?.to_str()?;
    let file = File::open(path).ok()?;
    let metadata =
        file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let from_header = || SessionKey::parse_canonical(&read_header(&file).ok()??.session_key);
    // A log that lost its header still has its name.
    let key =
        from_header().filter(|key| key.slug() == slug).or_else(|| SessionKey::from_slug(slug))?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut entry =
        SessionEntry::new(&key, u64::try_from(modified.as_millis()).unwrap_or(u64::MAX));
    let parts = key.parts();
    entry.last_channel = Some(parts.channel);
    entry.chat_type = Some(parts.peer_kind);
    Some((key.to_string(), entry))
}
