//! Rebuilds index entries from the logs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value};

use super::journal::MadeFrom;
use super::{EntriesByKey, SessionEntry};
use crate::about::read_about;
use crate::backward::BackwardLines;
use crate::entry::new_session_id;
use crate::error::{IoContext, SessionError};
use crate::line::{self, Line};
use crate::reader::{Positioned, read_header};
use crate::store::LOG_EXTENSION;
use crate::title::{first_words, title_of_beginning};
use crate::{AUTOMATIC_TITLE, About, Entry, FIRST_WORDS, MODE, Role, SessionHeader, SessionKey};

/// Bytes of a log in which its first exchange is looked for.
const MOST_FIRST_BYTES: u64 = 64 * 1024;
/// Longest log whose owner's title is looked for at each turn.
const MOST_ABOUT_BYTES: u64 = 1024 * 1024;
/// Lines at the end of a log in which the permission mode is looked for: more than a long turn has.
const MOST_LAST_LINES: usize = 2_000;
/// Occurs in every row that names a mode, and in few others.
const MODE_NAME: &[u8] = b"\"mode\"";
/// Lines of a log in which its first exchange is looked for.
const MOST_FIRST_LINES: usize = 5;

/// An entry for each log in `directory`.
pub(super) fn entries_from_logs(directory: &Path) -> Result<EntriesByKey, SessionError> {
    let listing = std::fs::read_dir(directory).context("list the sessions directory", directory)?;
    Ok(listing.filter_map(|found| entry_from_log(&found.ok()?.path())).collect())
}

/// Adds those of `found` that are missing from `entries`.
pub(super) fn add_missing(entries: &mut EntriesByKey, found: EntriesByKey) {
    for (key, entry) in found {
        entries.entry(key).or_insert(entry);
    }
}

/// The key and entry of a log. `None` if the file is not a log, or has a name that does not match its key.
pub(super) fn entry_from_log(path: &Path) -> Option<(String, SessionEntry)> {
    if path.extension() != Some(OsStr::new(LOG_EXTENSION)) {
        return None;
    }
    let slug = path.file_stem()?.to_str()?;
    let file = File::open(path).ok()?;
    let metadata =
        file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let header = read_header(&file).ok().flatten();
    let from_header =
        header.as_ref().and_then(|header| SessionKey::parse_canonical(&header.session_key));
    // The key of a log without a header is in its name.
    let key =
        from_header.filter(|key| key.slug() == slug).or_else(|| SessionKey::from_slug(slug))?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let session_id = header.as_ref().and_then(|header| header.session_id.clone());
    let directory = header.as_ref().and_then(|header| header.directory.clone());
    let mut entry = SessionEntry::new(
        &key,
        session_id.unwrap_or_else(new_session_id),
        u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    );
    let parts = key.parts();
    entry.last_channel = Some(parts.channel);
    entry.chat_type = Some(parts.peer_kind);
    entry.directory = directory;
    let about = read_about(&file).unwrap_or_default();
    entry.extra = extra(&file, &about, header.as_ref());
    Some((key.to_string(), entry))
}

/// What the log at `path` says of its session; without an id there, a new one. The title of a log from before `pruned_at`
/// too, in milliseconds since the Unix epoch: its entry may have been pruned.
pub(super) fn made_from(path: &Path, pruned_at: Option<u64>) -> MadeFrom {
    let file = File::open(path).ok();
    let header = file.as_ref().and_then(|file| read_header(file).ok().flatten());
    let is_old = |header: &&SessionHeader| pruned_at.is_some_and(|at| header.created_at <= at);
    let old = header.as_ref().filter(is_old).zip(file.as_ref());
    let extra = old.and_then(|(header, file)| {
        let is_short = file.metadata().is_ok_and(|found| found.len() <= MOST_ABOUT_BYTES);
        let about = if is_short { read_about(file).unwrap_or_default() } else { About::default() };
        extra(file, &about, Some(header))
    });
    let (id, directory) =
        header.map_or((None, None), |header| (header.session_id, header.directory));
    MadeFrom { session_id: id.unwrap_or_else(new_session_id), directory, extra }
}

/// The first rows.
fn beginning(file: &File) -> Vec<Entry> {
    let beginning = Positioned::new(file).take(MOST_FIRST_BYTES);
    let lines = BufReader::new(beginning).split(b'\n').map_while(Result::ok);
    let entry = |bytes: Vec<u8>| match line::decode(&bytes, 0) {
        Line::Entry(entry) => Some(entry),
        _ => None,
    };
    lines.take(MOST_FIRST_LINES).filter_map(entry).collect()
}

/// The title and labels of the session and its fork origin, if it has any.
fn extra(file: &File, about: &About, header: Option<&SessionHeader>) -> Option<Map<String, Value>> {
    let mut extra = if *about == About::default() { Map::new() } else { about.to_extra() };
    if let Some(origin) = header.and_then(|header| header.forked_from.as_ref()) {
        extra.extend(origin.to_extra());
    }
    let rows = beginning(file);
    let messages = rows.iter().filter_map(|entry| match entry {
        Entry::Message(message) => Some(message),
        _ => None,
    });
    let first = messages.take_while(|message| message.role == Role::User).last();
    let first = first.map(|message| first_words(&message.content));
    if let Some(first) = first {
        extra.insert(FIRST_WORDS.to_owned(), first.into());
    }
    if about.automatic_title.is_none()
        && let Some(title) = title_of_beginning(rows.into_iter())
    {
        extra.insert(AUTOMATIC_TITLE.to_owned(), title.into());
    }
    extra.extend(newest_mode(file).map(|mode| (MODE.to_owned(), mode.into())));
    (!extra.is_empty()).then_some(extra)
}

/// The permission mode that the newest of a user's messages names.
fn newest_mode(file: &File) -> Option<String> {
    let mut lines = BackwardLines::new(Positioned::new(file)).ok()?;
    for _ in 0..MOST_LAST_LINES {
        let found = lines.next_line().ok()??;
        if memchr::memmem::find(found.bytes, MODE_NAME).is_none() {
            continue;
        }
        if let Line::Entry(Entry::Message(message)) = line::decode(found.bytes, found.offset)
            && message.role == Role::User
            && let Some(mode) = message.meta.and_then(|meta| meta.field(MODE))
        {
            return Some(mode);
        }
    }
    None
}
