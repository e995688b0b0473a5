//! `auth-profiles.json`: the keys that belong to one agent, their order, and what happened to them.
//!
//! Several processes use it at once. A change takes the lock, reads the file anew, and puts a new file in its place, so
//! that nobody ever sees half of one. What is not understood in it is kept.

mod file;
mod secret;

use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

pub(crate) use file::Login;
pub use file::{AuthFile, StoredProfile};
use myclaw_files::{Durability, NewFile, create_private_directory, open_regular, remove_if_there};
use secrecy::SecretString;
use secret::StoredSecret;

use crate::error::{AuthStoreError, failed_to};
use crate::lock::StoreLock;
use crate::mark::KnownKeys;
use file::VERSION;

/// Name of the file in the agent's folder.
pub const STORE_FILE: &str = "auth-profiles.json";
/// Name of a file that is about to become the store. One name, so that killed processes do not leave many of them; two
/// processes never use it at once, since whoever writes has the lock.
const NEW_FILE: &str = ".auth-profiles.json.new";
/// Name of a file that has room for new tokens, for the same reason; whoever writes it has the lock of logins.
const RESERVED_FILE: &str = ".auth-profiles.json.renewed";
/// Largest file that is read: room for thousands of profiles.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Room for what a renewal adds to the store: a long token has some KiB.
const ROOM_FOR_TOKENS: u64 = 64 * 1024;
/// Bits that let anybody but the owner do something.
const OTHERS: u32 = 0o077;

/// The store of one agent. Every call blocks: it waits for the lock and the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStore {
    path: PathBuf,
    known_keys: KnownKeys,
}

/// What becomes of a file that is no store when something is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Corrupt {
    /// It is copied away, and a new one begun.
    SetAside,
    /// It stays, and nothing is written.
    Leave,
}

/// A file beside the store that has room for the next one on the disk.
#[derive(Debug)]
pub(crate) struct Reservation(NewFile);

/// How a change is written.
#[derive(Debug)]
struct Writing {
    durability: Durability,
    corrupt: Corrupt,
    /// The file that becomes the store, if it was made before.
    reserved: Option<Reservation>,
}

impl AuthStore {
    /// The store in an agent's folder, which need not exist yet.
    pub fn in_agent_dir(agent_dir: &Path) -> Self {
        Self { path: agent_dir.join(STORE_FILE), known_keys: KnownKeys::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// What is in it; nothing if there is no file.
    ///
    /// # Errors
    /// [`AuthStoreError::Corrupt`] if it is no store, others if the system refuses.
    pub fn load(&self) -> Result<AuthFile, AuthStoreError> {
        let file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(AuthFile::default().read_from(self));
            }
            Err(error) => return Err(failed_to("read", &self.path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed_to("read", &self.path))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(AuthStoreError::TooLarge { path: self.path.clone(), limit: MAX_BYTES });
        }
        let parsed = serde_json::from_slice(&bytes).map_err(|error| AuthStoreError::Corrupt {
            path: self.path.clone(),
            // The error's own text may quote what it found.
            detail: format!("line {}, column {}: not as expected", error.line(), error.column()),
        });
        parsed.map(|file: AuthFile| file.read_from(self))
    }

    /// The keys that this process knows.
    pub(crate) fn known_keys(&self) -> &KnownKeys {
        &self.known_keys
    }

    /// Where whoever renews a login of this store holds a lock.
    pub(crate) fn login_lock_path(&self) -> PathBuf {
        self.target().with_extension("json.login.lock")
    }

    /// Where the file itself is: whoever keeps it elsewhere and links to it here means that file.
    fn target(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// The login of that name as it lies in the store now, if it says how it is renewed.
    pub(crate) fn login(&self, name: &str) -> Result<Option<Login>, AuthStoreError> {
        Ok(self.load()?.login(name))
    }

    /// Makes sure that new tokens of a login can be kept, before the old ones are spent: what could be in the way is met
    /// now, and their room on the disk is taken. Only who holds the lock of logins may call this.
    pub(crate) fn reserve(&self) -> Result<Reservation, AuthStoreError> {
        let (_lock, before) = self.lock_and_load()?;
        before?;
        let target = self.target();
        let folder = target.parent().unwrap_or(Path::new("."));
        let reserve = || {
            let size = fs::metadata(&target)?.len().saturating_add(ROOM_FOR_TOKENS);
            let mut file = NewFile::named(&folder.join(RESERVED_FILE))?;
            io::copy(&mut io::repeat(0).take(size), &mut file)?;
            file.as_file().sync_all()?;
            Ok(Reservation(file))
        };
        reserve().map_err(failed_to("write", &self.path))
    }

    /// Keeps the new tokens of a login, and waits until that is on disk. Nothing happens if it was removed meanwhile.
    pub(crate) fn keep_login(
        &self,
        reserved: Reservation,
        name: &str,
        access: SecretString,
        refresh: Option<SecretString>,
        expires: Option<u64>,
    ) -> Result<(), AuthStoreError> {
        let keep = move |file: &mut AuthFile| file.renew_login(name, access, refresh, expires);
        let writing = Writing {
            durability: Durability::Synced,
            corrupt: Corrupt::Leave,
            reserved: Some(reserved),
        };
        self.update(keep, writing).map(|((), _)| ())
    }

    /// Changes profiles or their order, and waits until that is on disk. A file that is no store is copied to a name
    /// beside it first; that name is given.
    ///
    /// # Errors
    /// Nothing changed then: the store is locked, of a later version, or the system refuses.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut AuthFile) -> T,
    ) -> Result<(T, Option<PathBuf>), AuthStoreError> {
        let writing =
            Writing { durability: Durability::Synced, corrupt: Corrupt::SetAside, reserved: None };
        self.update(change, writing)
    }

    /// Changes what is remembered about the use of profiles.
    ///
    /// # Errors
    /// As [`AuthStore::change`]; and a file that is no store stays as it is.
    pub fn record(&self, change: impl FnOnce(&mut AuthFile)) -> Result<(), AuthStoreError> {
        let writing =
            Writing { durability: Durability::Unsynced, corrupt: Corrupt::Leave, reserved: None };
        self.update(change, writing).map(|((), _)| ())
    }

    fn update<T>(
        &self,
        change: impl FnOnce(&mut AuthFile) -> T,
        writing: Writing,
    ) -> Result<(T, Option<PathBuf>), AuthStoreError> {
        let (_lock, before) = self.lock_and_load()?;
        let (before, backup) = match before {
            Err(AuthStoreError::Corrupt { .. }) if writing.corrupt == Corrupt::SetAside => {
                (AuthFile::default(), Some(self.set_aside()?))
            }
            before => (before?, None),
        };
        let mut after = before.clone();
        let outcome = change(&mut after);
        if after != before || backup.is_some() {
            let Writing { durability, reserved, .. } = writing;
            self.replace(&after, durability, reserved).map_err(failed_to("write", &self.path))?;
        }
        Ok((outcome, backup))
    }

    /// Takes the lock, and reads what is to be changed.
    fn lock_and_load(
        &self,
    ) -> Result<(StoreLock, Result<AuthFile, AuthStoreError>), AuthStoreError> {
        let target = self.target();
        let folder = target.parent().unwrap_or(Path::new("."));
        create_private_directory(folder).map_err(failed_to("make", folder))?;
        let lock = StoreLock::acquire(&target.with_extension("json.lock"))?;
        // Whoever made it is dead, since the lock is ours: it must not keep keys that were taken out since.
        remove_if_there(&folder.join(NEW_FILE)).map_err(failed_to("write", &self.path))?;
        let found = self.load().and_then(|file| match file.version {
            found if found > VERSION => Err(AuthStoreError::NewerVersion {
                path: self.path.clone(),
                found,
                supported: VERSION,
            }),
            _ => Ok(file),
        });
        Ok((lock, found))
    }

    /// Copies the file to a name of its own, readable by its owner alone.
    fn set_aside(&self) -> Result<PathBuf, AuthStoreError> {
        myclaw_files::set_aside(&self.path)
            .map_err(|(backup, error)| failed_to("save the unreadable store as", &backup)(error))
    }

    /// Puts a new file in the place of the old one: the reserved one, or a temporary file, which is readable by its owner
    /// alone.
    fn replace(
        &self,
        file: &AuthFile,
        durability: Durability,
        reserved: Option<Reservation>,
    ) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(file)?;
        text.push(b'\n');
        let target = self.target();
        let folder = target.parent().unwrap_or(Path::new("."));
        let mut new = match reserved {
            Some(Reservation(file)) => file,
            None => NewFile::named(&folder.join(NEW_FILE))?,
        };
        new.as_file().rewind()?;
        new.write_all(&text)?;
        new.as_file().set_len(text.len() as u64)?;
        new.put_at(&target, durability).map(drop)
    }
}

/// Whether nobody but its owner can read or write the file at `path`; true if there is none.
pub fn is_private(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.permissions().mode() & OTHERS == 0)
}
