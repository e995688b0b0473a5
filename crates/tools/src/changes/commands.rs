//! What a command has changed, recorded after it: the caller knows what the files held before.
//!
//! Before a command, the caller notes with what the files are compared; a process that is killed meanwhile leaves the note, and
//! whoever finds it records what the command did until then.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::{ToolContext, TurnId};
use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{Durability, NewFile, private_options, remove_if_there};
use std::io::Write as _;

use super::fingerprint::{Found, look};
use super::journal::{FileChange, Journal, Origin, Record};
use super::plan::is_allowed;
use super::record::new_id;
use super::{Fingerprint, directory, directory_in};

/// The file with the note.
const NOTE: &str = "command.json";

/// A file that a command has changed. The path has no links in it.
#[derive(Debug)]
pub struct CommandChange {
    /// The file.
    pub path: PathBuf,
    /// What it held; `None` if there was no file.
    pub before: Option<OldContent>,
}

/// What a file held.
#[derive(Debug)]
pub struct OldContent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// Records what a command has changed in a turn, which can be undone then as the changes of file tools can.
/// `made` are the directories that did not exist before. It began at `ts`, in milliseconds since the Unix epoch. Returns how many
/// files are recorded. Blocks.
///
/// # Errors
/// The list of changes cannot be written.
pub fn record_command(
    context: &ToolContext,
    (turn, ts): (TurnId, u64),
    changes: Vec<CommandChange>,
    made: Vec<PathBuf>,
) -> io::Result<usize> {
    let journal = Journal::new(directory(context));
    journal.prepare()?;
    let id = new_id();
    let mut files = Vec::new();
    for (number, change) in changes.into_iter().enumerate() {
        if is_allowed(context, &change.path) {
            files.extend(file_change(&journal, &format!("{id}-{number}"), change)?);
        }
    }
    let count = files.len();
    if count > 0 {
        let origin = Origin::Tool;
        journal.add(Record { id, turn, origin, ts, files, directories: made })?;
    }
    Ok(count)
}

/// One file, with its old content kept under `name`. `None` if it is as it was, or no regular file now.
fn file_change(
    journal: &Journal,
    name: &str,
    change: CommandChange,
) -> io::Result<Option<FileChange>> {
    let CommandChange { path, before } = change;
    let after = match look(&path)? {
        Found::Nothing => None,
        Found::File { fingerprint, .. } => Some(fingerprint),
        Found::Other(_) => return Ok(None),
    };
    let Some(old) = before else {
        let (before, image) = (None, None);
        return Ok(after.map(|after| FileChange {
            path,
            before,
            after: Some(after),
            image,
            not_kept: None,
        }));
    };
    let before = Fingerprint::of(&old.bytes, Some(old.mode));
    if after.as_ref().is_some_and(|after| after.matches(&before)) {
        return Ok(None);
    }
    let image = journal.images().join(name);
    let mut file = private_options().write(true).create_new(true).open(&image)?;
    file.write_all(&old.bytes)?;
    file.set_permissions(std::fs::Permissions::from_mode(old.mode))?;
    let image = Some(name.to_owned());
    Ok(Some(FileChange { path, before: Some(before), after, image, not_kept: None }))
}

/// Notes with what the files are to be compared after a command. Blocks.
///
/// # Errors
/// It cannot be written.
pub fn note_command(context: &ToolContext, note: &str) -> io::Result<()> {
    let directory = directory(context);
    Journal::new(directory.clone()).prepare()?;
    let mut new = NewFile::in_directory(&directory, "command-")?;
    new.write_all(note.as_bytes())?;
    new.put_at(&directory.join(NOTE), Durability::Unsynced).map(drop)
}

/// The note of a command whose changes nobody has recorded, of the session with these artifacts. Blocks.
pub fn noted_command(artifact_directory: &Path) -> Option<String> {
    let note = directory_in(artifact_directory).join(NOTE);
    let bytes = myclaw_files::read_regular(&note, MOST_NOTE_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

/// Removes the note. Blocks.
///
/// # Errors
/// The directory cannot be written.
pub fn forget_command(context: &ToolContext) -> io::Result<()> {
    remove_if_there(&note_of(context)).map(drop)
}

/// Largest note that is read.
const MOST_NOTE_BYTES: u64 = 4 << 20;

fn note_of(context: &ToolContext) -> PathBuf {
    directory(context).join(Path::new(NOTE))
}
