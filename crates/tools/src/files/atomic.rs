//! Replaces a file atomically: it has either its old content or its new one, even after a crash.

use std::fs::{DirEntry, File, Metadata, Permissions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use myclaw_files::open_regular_unlinked;
use myclaw_files::portable::{MetadataExt, PermissionsExt};
use tempfile::{Builder, TempPath};

/// Prefix of the names of temporary files, which are in the same directory as the file that they replace.
const TEMPORARY_PREFIX: &str = ".myclaw-new-";
/// An empty temporary file is kept for this long, because a new one is not locked at once.
const EMPTY_FOR: Duration = Duration::from_secs(60);
/// Most entries of a directory that are examined.
const MAX_ENTRIES: usize = 10_000;
/// Permissions of new files before the umask is applied.
const NEW_FILE_MODE: u32 = 0o666;
/// The same for programs.
const NEW_PROGRAM_MODE: u32 = 0o777;
const READ_BITS: u32 = 0o444;
const EXECUTE_BITS: u32 = 0o111;

/// The owner and permissions of a file that is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    /// The file whose owner and mode it gets; `None` for those of a new file.
    pub like: Option<Metadata>,
    /// Overrides the execute permission of `like`.
    pub executable: Option<Executable>,
}

/// Whether everyone who may read a file may execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executable {
    /// It may.
    Yes,
    /// It may not.
    No,
}

impl Attributes {
    /// The mode of a file that is replaced; `None` for a new one, whose mode the umask decides.
    pub(crate) fn mode(&self) -> Option<u32> {
        self.like.as_ref().map(|like| wanted_mode(like, self.executable).mode())
    }
}

/// A file's new content, safe on disk under a temporary name. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct StagedFile {
    temporary: TempPath,
    /// Locked as long as it has its temporary name, so that [`remove_abandoned`] leaves it alone.
    _file: Option<File>,
}

/// Replaces or creates the file at `path`, which has no links in it. The old owner and mode are kept.
///
/// # Errors
/// Any I/O error; the file then has its old content, and nothing is left behind.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], attributes: &Attributes) -> io::Result<()> {
    stage_file(path, bytes, attributes)?.put_at(path)?;
    sync_directory(path);
    Ok(())
}

/// Writes `bytes` to a temporary file next to `path` and waits until they are on disk.
///
/// # Errors
/// Any I/O error; nothing is left behind.
pub(crate) fn stage_file(
    path: &Path,
    bytes: &[u8],
    attributes: &Attributes,
) -> io::Result<StagedFile> {
    let mode = match (&attributes.like, attributes.executable) {
        (None, Some(Executable::Yes)) => NEW_PROGRAM_MODE,
        _ => NEW_FILE_MODE,
    };
    let mut file = Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(path.parent().unwrap_or(Path::new("/")))?;
    // Some file systems have no locks; there nothing is removed either.
    let _ = file.as_file().try_lock();
    file.write_all(bytes)?;
    if let Some(like) = &attributes.like {
        keep_owner(file.as_file(), like);
        file.as_file().set_permissions(wanted_mode(like, attributes.executable))?;
    }
    file.as_file().sync_all()?;
    let (file, temporary) = file.into_parts();
    Ok(StagedFile { temporary, _file: Some(file) })
}

/// Removes the temporary files that killed processes of this user left in `directory`. A file whose lock is held belongs
/// to a process that is running.
pub(crate) fn remove_abandoned(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_named = |entry: &DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
    };
    for entry in entries.take(MAX_ENTRIES).filter(is_named) {
        let path = entry.path();
        if is_abandoned(&path).unwrap_or(false) {
            // What cannot be removed now is tried again the next time.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_abandoned(path: &Path) -> io::Result<bool> {
    let file = open_regular_unlinked(path)?;
    let metadata = file.metadata()?;
    let is_old =
        || metadata.modified()?.elapsed().map_err(io::Error::other).map(|age| age >= EMPTY_FOR);
    let is_own = metadata.uid() == myclaw_files::portable::process::geteuid().as_raw();
    Ok(is_own && (metadata.len() > 0 || is_old()?) && file.try_lock().is_ok())
}

impl StagedFile {
    /// The same without the lock, which takes a file descriptor.
    pub(crate) fn unlocked(self) -> Self {
        Self { _file: None, ..self }
    }

    /// Renames the file into place, replacing any file of that name.
    ///
    /// # Errors
    /// If it cannot be renamed; it is removed then.
    pub(crate) fn put_at(self, path: &Path) -> io::Result<()> {
        self.temporary.persist(path).map_err(|error| error.error)
    }

    /// Renames the file into place if no file has that name.
    ///
    /// # Errors
    /// If something has that name, or it cannot be renamed; it is removed then.
    pub(crate) fn put_at_free(self, path: &Path) -> io::Result<()> {
        self.temporary.persist_noclobber(path).map_err(|error| error.error)
    }
}

/// Makes renames in the directory of `path` survive a power cut. Some file systems do not support this; there the call
/// does nothing.
pub(crate) fn sync_directory(path: &Path) {
    let _ = myclaw_files::sync_directory(&myclaw_files::parent_of(path));
}

/// Only a privileged process may change the owner. For other processes the file belongs to the user already, so a
/// failure is ignored.
fn keep_owner(file: &File, like: &Metadata) {
    let differs =
        file.metadata().map_or(true, |own| (own.uid(), own.gid()) != (like.uid(), like.gid()));
    if differs {
        let _ = myclaw_files::portable::fchown(file, Some(like.uid()), Some(like.gid()));
    }
}

fn wanted_mode(like: &Metadata, executable: Option<Executable>) -> Permissions {
    let mode = like.permissions().mode();
    Permissions::from_mode(match executable {
        None => mode,
        Some(Executable::Yes) => mode | ((mode & READ_BITS) >> 2),
        Some(Executable::No) => mode & !EXECUTE_BITS,
    })
}

#[cfg(test)]
mod tests;
