//! Private temporary directories. One that a killed process left behind is removed when the next one is made.

use std::fs::{Metadata, Permissions};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::portable::{MetadataExt, PermissionsExt};
use crate::private::DIRECTORY_MODE;
use crate::replace::without_temporary_name;
use crate::{LockFile, LockWait};

/// The lock that shows that a directory has an owner.
const OWNER: &str = "owner";
/// A directory without an owner is kept for this long, because a new one is not locked at once.
const UNOWNED_FOR: Duration = Duration::from_secs(60);
/// Most entries that are examined: some machines never clean up their directory for temporary files.
const MAX_ENTRIES: usize = 10_000;

/// A directory that only this user can enter. It is removed when it is dropped. Its lock is free if its process was
/// killed.
#[derive(Debug)]
pub struct OwnedDirectory {
    _owner: LockFile,
    /// Dropped after the lock, which is in it.
    directory: TempDir,
}

impl OwnedDirectory {
    /// Makes a directory in `base` whose name begins with `prefix`. Removes those of this user with the same prefix whose
    /// owner was killed.
    ///
    /// # Errors
    /// The directory cannot be made or locked.
    pub fn create(base: &Path, prefix: &str) -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            // The default leaves it to the umask, which usually lets everybody in.
            .permissions(Permissions::from_mode(DIRECTORY_MODE))
            .tempdir_in(base)
            .map_err(without_temporary_name)?;
        let owner = own(directory.path())
            .ok_or_else(|| io::Error::other("the new directory cannot be locked"))?;
        remove_abandoned(base, prefix, directory.path().metadata()?.uid());
        Ok(Self { _owner: owner, directory })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn own(directory: &Path) -> Option<LockFile> {
    LockFile::acquire(&directory.join(OWNER), LockWait::Fail).ok()
}

fn remove_abandoned(base: &Path, prefix: &str, user: u32) {
    let now = SystemTime::now();
    let is_candidate = |metadata: &Metadata| {
        let is_old =
            |changed: SystemTime| now.duration_since(changed).is_ok_and(|age| age >= UNOWNED_FOR);
        metadata.is_dir() && metadata.uid() == user && metadata.modified().is_ok_and(is_old)
    };
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries.take(MAX_ENTRIES) {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
        // The metadata of a link is its own, so it is not followed.
        if is_named
            && entry.metadata().is_ok_and(|metadata| is_candidate(&metadata))
            && let Some(_owner) = own(&entry.path())
        {
            // What cannot be removed now is tried again the next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
