//! `auth-profiles.json`: the keys of one agent, their order, and the record of their use.
//!
//! Several processes use it at once. A change takes the lock, reads the file again, and replaces it by a new one, so
//! that a reader never sees a partial file. Unknown content is kept.

use std::any::Any;
use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{
    Durability, NewFile, canonical_or_same, create_private_directory, open_regular, remove_if_there,
};
use serde_json::Value;

use super::file::VERSION;
use super::{AuthFile, AuthStore, KeepKeys, KeyChange, LoginsHeld, Reservation};
use crate::error::{AuthStoreError, failed_to};
use crate::lock::{LoginLock, StoreLock};

/// Name of the file in the agent's directory.
pub const STORE_FILE: &str = "auth-profiles.json";
/// Name of the temporary file that replaces the store. The name is fixed, so that killed processes do not leave many
/// such files. Two processes never use it at once, since the writer holds the lock.
const NEW_FILE: &str = ".auth-profiles.json.new";
/// Name of the file that reserves room for new tokens. The name is fixed for the same reason; its writer holds the
/// login lock.
const RESERVED_FILE: &str = ".auth-profiles.json.renewed";
/// Largest file that is read: room for thousands of profiles.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Room for what a renewal adds to the store: a long token has some KiB.
const ROOM_FOR_TOKENS: u64 = 64 * 1024;
/// Permission bits of everyone but the owner.
const OTHERS: u32 = 0o077;

/// The store of one agent in its directory. It waits for the lock and the disk.
#[derive(Debug)]
struct FileKeys {
    path: PathBuf,
}

impl AuthStore {
    /// The store in an agent's directory, which need not exist yet.
    pub fn in_agent_dir(agent_dir: &Path) -> Self {
        Self::kept_by(Arc::new(FileKeys { path: agent_dir.join(STORE_FILE) }))
    }
}

impl FileKeys {
    /// Path of the lock that is held while a login of this store is renewed.
    fn login_lock_path(&self) -> PathBuf {
        self.target().with_extension("json.login.lock")
    }

    /// Path of the file itself, after following a symbolic link.
    fn target(&self) -> PathBuf {
        canonical_or_same(&self.path)
    }

    /// Takes the lock and reads the store.
    fn lock_and_load(
        &self,
    ) -> Result<(StoreLock, Result<AuthFile, AuthStoreError>), AuthStoreError> {
        let target = self.target();
        let directory = target.parent().unwrap_or(Path::new("."));
        create_private_directory(directory).map_err(failed_to("make", directory))?;
        let lock = StoreLock::acquire(&target.with_extension("json.lock"))?;
        // The process that made this file has ended, because this process now has the lock. The file is removed,
        // because it may contain keys that were deleted since.
        remove_if_there(&directory.join(NEW_FILE)).map_err(failed_to("write", &self.path))?;
        let found = self.load().and_then(|file| match file.version {
            found if found > VERSION => Err(self.newer(found)),
            _ => Ok(file),
        });
        Ok((lock, found))
    }

    fn newer(&self, found: u64) -> AuthStoreError {
        AuthStoreError::NewerVersion { path: self.path.clone(), found, supported: VERSION }
    }

    /// Copies the file to a separate name, readable by its owner only.
    fn set_aside(&self) -> Result<PathBuf, AuthStoreError> {
        myclaw_files::set_aside(&self.path)
            .map_err(|(backup, error)| failed_to("save the unreadable store as", &backup)(error))
    }

    /// Replaces the old file by the reserved one, or by a temporary file that is readable by its owner only.
    fn replace(
        &self,
        file: &AuthFile,
        durability: Durability,
        reserved: Option<NewFile>,
    ) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(file)?;
        text.push(b'\n');
        let target = self.target();
        let directory = target.parent().unwrap_or(Path::new("."));
        let mut new = match reserved {
            Some(file) => file,
            None => NewFile::named(&directory.join(NEW_FILE))?,
        };
        new.as_file().rewind()?;
        new.write_all(&text)?;
        new.as_file().set_len(text.len() as u64)?;
        new.put_at(&target, durability).map(drop)
    }
}

impl KeepKeys for FileKeys {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn exists(&self) -> bool {
        self.path.exists()
    }

    fn load(&self) -> Result<AuthFile, AuthStoreError> {
        let file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(AuthFile::default());
            }
            Err(error) => return Err(failed_to("read", &self.path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed_to("read", &self.path))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(AuthStoreError::TooLarge { path: self.path.clone(), limit: MAX_BYTES });
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            // A later version may have other fields, which are not damage.
            let value: Option<Value> = serde_json::from_slice(&bytes).ok();
            match value.and_then(|value| value["version"].as_u64()) {
                Some(found) if found > VERSION => self.newer(found),
                _ => AuthStoreError::Corrupt {
                    path: self.path.clone(),
                    // The error's own text may quote the content.
                    detail: format!(
                        "line {}, column {}: not as expected",
                        error.line(),
                        error.column()
                    ),
                },
            }
        })
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut AuthFile),
        how: KeyChange,
    ) -> Result<Option<PathBuf>, AuthStoreError> {
        let (_lock, before) = self.lock_and_load()?;
        let (before, backup) = match (before, &how) {
            (Err(AuthStoreError::Corrupt { .. }), KeyChange::Profiles) => {
                (AuthFile::default(), Some(self.set_aside()?))
            }
            (before, _) => (before?, None),
        };
        let mut after = before.clone();
        change(&mut after);
        if after != before || backup.is_some() {
            let (durability, reserved) = match how {
                KeyChange::Profiles => (Durability::Synced, None),
                KeyChange::Use => (Durability::Unsynced, None),
                KeyChange::Tokens(Reservation(reserved)) => (Durability::Synced, reserved),
            };
            self.replace(&after, durability, reserved).map_err(failed_to("write", &self.path))?;
        }
        Ok(backup)
    }

    /// Obstacles are found now, and disk space is reserved.
    fn reserve(&self) -> Result<Reservation, AuthStoreError> {
        let (_lock, before) = self.lock_and_load()?;
        before?;
        let target = self.target();
        let directory = target.parent().unwrap_or(Path::new("."));
        let reserve = || {
            let size = fs::metadata(&target)?.len().saturating_add(ROOM_FOR_TOKENS);
            let mut file = NewFile::named(&directory.join(RESERVED_FILE))?;
            io::copy(&mut io::repeat(0).take(size), &mut file)?;
            file.as_file().sync_all()?;
            Ok(Reservation(Some(file)))
        };
        reserve().map_err(failed_to("write", &self.path))
    }

    fn hold_logins(&self) -> LoginsHeld<'_> {
        Box::pin(async {
            let lock = LoginLock::acquire(&self.login_lock_path()).await?;
            Ok(Box::new(lock) as Box<dyn Any + Send>)
        })
    }
}

/// Whether only its owner can read or write the file at `path`; true if there is no file.
pub fn is_private(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.permissions().mode() & OTHERS == 0)
}

#[cfg(test)]
mod tests;
