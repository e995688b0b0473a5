//! Directories that a container can write: nothing in them is followed or believed.

use std::io;
use std::path::Path;

use myclaw_files::{Access, Durability, SharedDirectory};

use crate::ledger::now_ms;

/// Most bytes of a file with JSON.
pub(crate) const MAX_JSON_BYTES: u64 = 1024 * 1024;
/// Most files that are looked at in one round; the others wait for the next.
const MAX_FILES: usize = 200;
/// How files for a container are written: it may run as another user, and it is over if the machine stops.
pub(crate) const FOR_CONTAINER: (Access, Durability) = (Access::Everyone, Durability::Unsynced);

/// Opens the directory `name` of a container's own directory `base`, which is made if it is missing. What the container has
/// put in its place is moved to the host's directory `aside` under a name that begins with `owner`.
pub(crate) fn open_or_replace(
    base: &Path,
    name: &str,
    (aside, owner): (&Path, &str),
) -> io::Result<SharedDirectory> {
    let parent = SharedDirectory::open(base)?;
    parent.make_directory(name, Access::Everyone).or_else(|_| {
        let new_name = format!("{owner}-{name}-{}", now_ms());
        parent.move_to(name, &SharedDirectory::open(aside)?, new_name)?;
        parent.make_directory(name, Access::Everyone)
    })
}

/// The names that end in `.json`, sorted, and at most some hundred of them.
pub(crate) fn json_files(directory: &SharedDirectory) -> io::Result<Vec<String>> {
    let is_json =
        |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.ends_with(".json"));
    let found = directory.names(MAX_FILES, is_json)?;
    Ok(found.names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

/// Whether there is something of that name.
pub(crate) fn has(directory: &SharedDirectory, name: &str) -> bool {
    matches!(directory.facts(name), Ok(Some(_)))
}
