//! Forks a session without copying it.

use std::fs::{File, hard_link};
use std::io::{self, Write};
use std::path::Path;

use myclaw_files::portable::sync_content;
use myclaw_files::{is_still_at, private_options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::backward::BackwardLines;
use crate::create::NewSession;

use crate::entry::FORK_VERSION;
use crate::error::{IoContext, SessionError};
use crate::history::{ends_line, history_path};
use crate::line::{self, Line};

use crate::reader::{Position, Positioned, SessionReader};
use crate::wanted::WantedId;
use crate::{Entry, EntryId, MetaPatch, Role, SessionHeader, SessionKey, SessionStore, now_ms};

/// Most history files of a fork. Each costs an open file and a read whenever the session is opened; a fork that would
/// need more gets its history written into its own log instead.
const MOST_PARTS: usize = 16;

/// Field of a fork's entry in the index, in `extra`: the key of its parent.
pub const FORKED_FROM: &str = "forkedFrom";

/// Where a fork branched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkOrigin {
    /// The parent: a [`SessionKey`] as text.
    pub session_key: String,
    /// The last entry that the two have in common; `None` if the parent had no entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
}

impl ForkOrigin {
    /// The index's `extra` fields.
    pub(crate) fn to_extra(&self) -> Map<String, Value> {
        Map::from_iter([(FORKED_FROM.to_owned(), self.session_key.clone().into())])
    }
}

/// The result of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Where it branched off. It differs from the requested place if that was between a call and its results.
    pub origin: ForkOrigin,
    /// Lines that are not entries and were left out. Only counted where the history had to be written out.
    pub skipped_lines: usize,
}

impl SessionStore {
    /// Creates the session `to` from the entries of `from` up to and including `at`, or from all entries if `at` is
    /// `None`. Tool results that directly follow that entry are included, because they belong to calls before them.
    ///
    /// The parent may be running meanwhile. Both share the common entries, so the fork takes no space. The fork stays
    /// complete if the parent is deleted.
    ///
    /// # Errors
    /// There is no session `from` or no entry `at` in it, `to` exists, or an I/O error. The session `to` does not exist
    /// then.
    pub fn fork(
        &self,
        from: &SessionKey,
        at: Option<EntryId>,
        to: &SessionKey,
    ) -> Result<Fork, SessionError> {
        let parent = self.reader(from)?.filter(|_| self.exists(from));
        let parent = parent.ok_or_else(|| SessionError::NoSuchSession { key: from.clone() })?;
        let mut child = self.begin(to)?;
        let cut = Cut::find(&parent, at).context("read the session log", parent.path())?;
        let cut = match (cut, at) {
            (Some(cut), _) => cut.behind_results(&parent)?,
            (None, Some(id)) => return Err(SessionError::NoSuchEntry { key: from.clone(), id }),
            (None, None) => return Err(SessionError::EmptySession { key: from.clone() }),
        };
        let origin = ForkOrigin { session_key: from.to_string(), entry_id: cut.entry_id };
        let skipped_lines = if cut.position.part < MOST_PARTS {
            share_history(&parent, cut.position, &origin, &mut child)?;
            0
        } else {
            write_history_out(&parent, cut.position, &origin, &mut child)?
        };
        child.finish()?;
        // The index is derived, so the fork exists even if the index does not list it.
        let _ = self.index().record(to, MetaPatch::forked_from(to, &origin));
        Ok(Fork { origin, skipped_lines })
    }
}

/// The place where a fork leaves its parent.
#[derive(Debug, Clone, Copy)]
struct Cut {
    position: Position,
    /// The entry before it.
    entry_id: Option<EntryId>,
}

impl Cut {
    /// After the entry `at`, or after the last whole line; `None` if there is no such entry.
    fn find(parent: &SessionReader, at: Option<EntryId>) -> io::Result<Option<Self>> {
        let wanted = at.map(WantedId::new);
        for part in (0..=parent.history().len()).rev() {
            let mut lines = BackwardLines::new(parent.part(part))?;
            let mut end_of_part = None;
            while let Some(found) = lines.next_line()? {
                // A line without its end is still being written.
                if !found.terminated {
                    continue;
                }
                let line_end = found.offset + found.bytes.len() as u64 + 1;
                let end_of_part = *end_of_part.get_or_insert(line_end);
                if wanted.as_ref().is_some_and(|id| !id.may_be_in(found.bytes, found.offset)) {
                    continue;
                }
                let Line::Entry(entry) = line::decode(found.bytes, found.offset) else { continue };
                if entry.id().is_some() && (at.is_none() || entry.id() == at) {
                    let offset = if at.is_some() { line_end } else { end_of_part };
                    return Ok(Some(Self {
                        position: Position { part, offset },
                        entry_id: entry.id(),
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Moves the cut after the tool results that follow, so that a call and its results stay together.
    fn behind_results(mut self, parent: &SessionReader) -> Result<Self, SessionError> {
        let mut entries = parent.entries_from(self.position);
        while let Some(entry) = entries.next() {
            // `None` means that the result is only half written. The call gets another result when the fork continues.
            let Some(position) = entries.position() else { break };
            match entry? {
                Entry::Message(message) if message.role == Role::Tool => {
                    self = Self { position, entry_id: Some(message.id) };
                }
                Entry::Reduction(_)
                | Entry::Refusal(_)
                | Entry::Unsigned(_)
                | Entry::About(_)
                | Entry::Unknown(_) => {}
                Entry::Message(_) | Entry::Compaction(_) => break,
            }
        }
        Ok(self)
    }
}

/// Gives the child the files that hold the parent's entries up to `cut`, and a header that names them.
fn share_history(
    parent: &SessionReader,
    cut: Position,
    origin: &ForkOrigin,
    child: &mut NewSession,
) -> Result<(), SessionError> {
    let log = child.final_path();
    let parts = parent.history().parts();
    let mut history = Vec::with_capacity(cut.part + 1);
    for part in &parts[..cut.part] {
        share(&part.path, &part.file, part.end, &history_path(&log, history.len()))?;
        history.push(part.end);
    }
    let (path, file) = match parts.get(cut.part) {
        Some(part) => (part.path.as_path(), &part.file),
        None => (parent.path(), parent.file()),
    };
    share(path, file, cut.offset, &history_path(&log, history.len()))?;
    history.push(cut.offset);
    child.write(&SessionHeader {
        version: FORK_VERSION,
        directory: directory_of(parent)?,
        forked_from: Some(origin.clone()),
        history,
        ..SessionHeader::of_new_log(child.key().as_str(), now_ms())
    })
}

/// A fork works where its parent does.
fn directory_of(parent: &SessionReader) -> Result<Option<String>, SessionError> {
    Ok(parent.header()?.and_then(|header| header.directory))
}

/// Links the first `end` bytes of `file`, which is at `source`, to the name `target`.
fn share(source: &Path, file: &File, end: u64, target: &Path) -> Result<(), SessionError> {
    // The fork is acknowledged only once it is on disk, so its history must be on disk too.
    sync_content(file, source).context("write to disk", source)?;
    match hard_link(source, target) {
        Ok(()) if is_still_at(file, target).context("check", target)? => {}
        // The parent was just deleted or replaced. The file that was read is still open.
        Ok(()) => {
            std::fs::remove_file(target).context("replace", target)?;
            copy(file, end, target)?;
        }
        Err(error) if can_only_be_copied(&error) => copy(file, end, target)?,
        Err(error) => return Err(SessionError::from_io("link the parent's log as", target, error)),
    }
    // If an append of the parent fails, it removes what it wrote, and this code may have seen those bytes.
    if !ends_line(file, end).context("read the session log", source)? {
        return Err(SessionError::BrokenHistory { path: source.to_path_buf(), end });
    }
    Ok(())
}

/// True if the file system has no hard links, or no more of them, or the file has lost its name.
fn can_only_be_copied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::NotFound
    )
}

fn copy(file: &File, end: u64, target: &Path) -> Result<(), SessionError> {
    let mut out = private_options()
        .write(true)
        .create_new(true)
        .open(target)
        .context("copy the parent's log to", target)?;
    io::copy(&mut Positioned::until(file, end), &mut out)
        .and_then(|_| out.flush())
        .and_then(|()| out.sync_all())
        .context("copy the parent's log to", target)
}

/// Writes the parent's entries up to `cut` into the child's own log. Returns how many lines were not entries.
fn write_history_out(
    parent: &SessionReader,
    cut: Position,
    origin: &ForkOrigin,
    child: &mut NewSession,
) -> Result<usize, SessionError> {
    child.write(&SessionHeader {
        directory: directory_of(parent)?,
        forked_from: Some(origin.clone()),
        ..SessionHeader::of_new_log(child.key().as_str(), now_ms())
    })?;
    let mut entries = parent.entries();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entries.position().is_none_or(|position| position > cut) {
            break;
        }
        // The parent's title and labels are not inherited.
        if !matches!(entry, Entry::About(_)) {
            child.append(&entry)?;
        }
    }
    Ok(entries.skipped_lines())
}
