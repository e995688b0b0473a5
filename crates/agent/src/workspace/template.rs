//! What a new workspace of a session begins with: a copy of a directory of its agent's workspace.

use std::io;
use std::path::Path;

use myclaw_files::{Access, Durability, EntryKind, SharedDirectory};

/// The directory that is copied. Only the owner can change it.
pub(super) const TEMPLATE: &str = "workspace-template";
/// Most files and directories of it.
const MOST_ENTRIES: usize = 1_000;
/// Most bytes of one file.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// Deepest directory below it.
const MOST_DEPTH: usize = 16;

/// Fills the new workspace `own` from the template of `agent_workspace`, if there is one. Links and special files are left
/// out: a link could show a session of others what it names.
///
/// # Errors
/// The template is too large, or cannot be read or copied.
pub(super) fn copy_template(agent_workspace: &Path, own: &Path) -> io::Result<()> {
    let template = SharedDirectory::open(agent_workspace).and_then(|at| at.directory(TEMPLATE));
    let mut left = MOST_ENTRIES;
    match template {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(template) => copy(&template, &SharedDirectory::open(own)?, &mut left, 0),
    }
}

fn copy(
    from: &SharedDirectory,
    to: &SharedDirectory,
    left: &mut usize,
    depth: usize,
) -> io::Result<()> {
    let names = from.names(*left, |_| true)?;
    if names.is_cut || depth > MOST_DEPTH {
        return Err(io::Error::other(format!(
            "the template has more than {MOST_ENTRIES} files, or directories {MOST_DEPTH} deep; make it smaller"
        )));
    }
    for name in &names.names {
        *left = left.saturating_sub(1);
        match from.facts(name)?.map(|facts| facts.kind) {
            Some(EntryKind::Directory) => {
                let below = to.make_directory(name, Access::Owner)?;
                copy(&from.directory(name)?, &below, left, depth + 1)?;
            }
            Some(EntryKind::File) => {
                let content = from.read(name, MOST_BYTES)?;
                to.write(name, &content, (Access::Owner, Durability::Unsynced))?;
            }
            _ => {}
        }
    }
    Ok(())
}
