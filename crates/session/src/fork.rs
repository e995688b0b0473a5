//! Branching a conversation off another one without copying it.

use std::fs::{File, hard_link};
use std::io::{self, Write};
use std::path::Path;

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

/// Most files that a fork's conversation may begin in. Each costs an open file and a read whenever the session is
/// opened; a fork that would need more gets its history written out instead.
const MOST_PARTS: usize = 16;

/// Where a fork branched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkOrigin {
    /// The parent: a [`SessionKey`] as text.
    pub session_key: String,
    /// The last entry that the two have in common; none if the parent had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
}

impl ForkOrigin {
    /// Names of the index's `extra` with their values.
    pub(crate) fn to_extra(&self) -> Map<String, Value> {
        Map::from_iter([("forkedFrom".to_owned(), self.session_key.clone().into())])
    }
}

/// What a fork shares with its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Where it branched off. Not quite where it was asked to, if that lay between a call and its results.
    pub origin: ForkOrigin,
    /// Lines that were no entries and were left out; only where the history had to be written out.
    pub skipped_lines: usize,
}

impl SessionStore {
    /// Makes the session `to`, whose conversation is that of `from` up to and with the entry `at`, or all there is so
    /// far. Results of tools that directly follow that entry come along, because they belong to calls before them.
    ///
    /// The parent may be running meanwhile. The two share what they have in common, so the fork takes no space; it
    /// stays whole if the parent is deleted.
    ///
    /// # Errors
    /// There is no session `from` or no entry `at` in it, `to` exists, or what the system says. There is no session
    /// `to` then.
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
        // The index is derived: a fork that it does not know is a fork all the same.
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
    /// Behind the entry `at`, or behind the last whole line; `None` if there is no such entry.
    fn find(parent: &SessionReader, at: Option<EntryId>) -> io::Result<Option<Self>> {
        let wanted = at.map(WantedId::new);
        for part in (0..=parent.history().len()).rev() {
            let mut lines = BackwardLines::new(parent.part(part))?;
            let mut end_of_part = None;
            while let Some(found) = lines.next_line()? {
                // A line without its end is one that a writer is at.
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

    /// Moved behind the results of tools that follow: a call and its result are not parted.
    fn behind_results(mut self, parent: &SessionReader) -> Result<Self, SessionError> {
        let mut entries = parent.entries_from(self.position);
        while let Some(entry) = entries.next() {
            // None is a result that is only half written: the call gets another one when the fork goes on.
            let Some(position) = entries.position() else { break };
            match entry? {
                Entry::Message(message) if message.role == Role::Tool => {
                    self = Self { position, entry_id: Some(message.id) };
                }
                Entry::Reduction(_) | Entry::Refusal(_) | Entry::About(_) | Entry::Unknown(_) => {}
                Entry::Message(_) | Entry::Compaction(_) => break,
            }
        }
        Ok(self)
    }
}

/// Gives the child the files that hold the parent's conversation up to `cut`, and a header that says so.
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
        forked_from: Some(origin.clone()),
        history,
        ..SessionHeader::of_new_log(child.key().as_str(), now_ms())
    })
}

/// Gives the first `end` bytes of `file`, which is at `source`, the name `target`.
fn share(source: &Path, file: &File, end: u64, target: &Path) -> Result<(), SessionError> {
    // The fork is acknowledged once it is on the disk, and so must be what it begins with.
    file.sync_data().context("write to disk", source)?;
    match hard_link(source, target) {
        Ok(()) if is_still_at(file, target).context("check", target)? => {}
        // Somebody deleted or replaced the parent just now; what was read of it is still there.
        Ok(()) => {
            std::fs::remove_file(target).context("replace", target)?;
            copy(file, end, target)?;
        }
        Err(error) if can_only_be_copied(&error) => copy(file, end, target)?,
        Err(error) => return Err(SessionError::from_io("link the parent's log as", target, error)),
    }
    // An append of the parent that fails takes back what it wrote, which may have been seen here.
    if !ends_line(file, end).context("read the session log", source)? {
        return Err(SessionError::BrokenHistory { path: source.to_path_buf(), end });
    }
    Ok(())
}

/// Whether the file system has no hard links, or no more of them, or the file has lost its name.
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

/// Writes the parent's conversation up to `cut` into the child's own log. Gives how many lines were no entries.
fn write_history_out(
    parent: &SessionReader,
    cut: Position,
    origin: &ForkOrigin,
    child: &mut NewSession,
) -> Result<usize, SessionError> {
    child.write(&SessionHeader {
        forked_from: Some(origin.clone()),
        ..SessionHeader::of_new_log(child.key().as_str(), now_ms())
    })?;
    let mut entries = parent.entries();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entries.position().is_none_or(|position| position > cut) {
            break;
        }
        // What the parent is called is its own.
        if !matches!(entry, Entry::About(_)) {
            child.append(&entry)?;
        }
    }
    Ok(entries.skipped_lines())
}
