//! The store of one agent's keys, wherever it keeps them.

mod file;
mod in_files;
mod in_memory;
mod secret;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use myclaw_files::NewFile;
use secrecy::SecretString;

use crate::AuthStoreError;
use crate::mark::KnownKeys;
pub(crate) use file::Login;
pub use file::{AuthFile, StoredProfile};
pub use in_files::{STORE_FILE, is_private};
use in_memory::MemoryKeys;

/// Where keys, their order and the record of their use are kept. All calls but [`KeepKeys::hold_logins`] block.
pub trait KeepKeys: fmt::Debug + Send + Sync {
    /// Where that is, for people. No other store gives the same text.
    fn describe(&self) -> String;

    /// The file, if it is one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether anything was stored.
    fn exists(&self) -> bool;

    /// All of it; empty if nothing was stored.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self) -> Result<AuthFile, AuthStoreError>;

    /// Changes it. If another process changes it meanwhile, `change` is called again with the new content. Returns
    /// where damaged content was moved, if there was some and `how` replaces it.
    ///
    /// # Errors
    /// It cannot be read or written. Nothing has changed then.
    fn update(
        &self,
        change: &mut dyn FnMut(&mut AuthFile),
        how: KeyChange,
    ) -> Result<Option<PathBuf>, AuthStoreError>;

    /// Makes sure that the new tokens of a login can be stored before the old ones are used up. The caller holds the logins.
    ///
    /// # Errors
    /// They could not be stored.
    fn reserve(&self) -> Result<Reservation, AuthStoreError>;

    /// Waits until nobody else renews a login. It is apart from changes, because it is held during a request to a server.
    fn hold_logins(&self) -> LoginsHeld<'_>;
}

/// The future of [`KeepKeys::hold_logins`]: what frees the logins when it is dropped.
pub type LoginsHeld<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Any + Send>, AuthStoreError>> + Send + 'a>>;

/// What a change is.
#[derive(Debug)]
pub enum KeyChange {
    /// Of profiles or their order, by the user. It is durable, and replaces damaged content, of which a copy is kept.
    Profiles,
    /// Of the record of use, which a crash of the machine may lose. Damaged content is left alone.
    Use,
    /// New tokens, for which room was reserved. It is durable. Damaged content is left alone.
    Tokens(Reservation),
}

/// Room that is reserved for new tokens: in files, disk space for the next version of the store.
#[derive(Debug, Default)]
pub struct Reservation(pub(crate) Option<NewFile>);

/// The store of one agent. Every call blocks.
#[derive(Debug, Clone)]
pub struct AuthStore {
    keeper: Arc<dyn KeepKeys>,
    known_keys: KnownKeys,
}

/// Two are equal if they are the same store, whichever keys are known.
impl PartialEq for AuthStore {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keeper, &other.keeper) || self.describe() == other.describe()
    }
}

impl Eq for AuthStore {}

impl AuthStore {
    /// A store that ends with the process.
    pub fn in_memory() -> Self {
        Self::kept_by(Arc::new(MemoryKeys::new()))
    }

    /// A store that is kept elsewhere.
    pub fn kept_by(keeper: Arc<dyn KeepKeys>) -> Self {
        Self { keeper, known_keys: KnownKeys::default() }
    }

    /// Where it is, for people.
    pub fn describe(&self) -> String {
        self.keeper.describe()
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        self.keeper.file()
    }

    /// Whether anything was stored.
    pub fn exists(&self) -> bool {
        self.keeper.exists()
    }

    /// Reads the store; it is empty if nothing was stored.
    ///
    /// # Errors
    /// [`AuthStoreError::Corrupt`] if it is damaged, other errors if the system refuses.
    pub fn load(&self) -> Result<AuthFile, AuthStoreError> {
        Ok(self.keeper.load()?.read_from(self))
    }

    /// The keys that this process knows.
    pub(crate) fn known_keys(&self) -> &KnownKeys {
        &self.known_keys
    }

    pub(crate) fn hold_logins(&self) -> LoginsHeld<'_> {
        self.keeper.hold_logins()
    }

    /// The login of that name as the store holds it now, if it can be renewed.
    pub(crate) fn login(&self, name: &str) -> Result<Option<Login>, AuthStoreError> {
        Ok(self.load()?.login(name))
    }

    pub(crate) fn reserve(&self) -> Result<Reservation, AuthStoreError> {
        self.keeper.reserve()
    }

    /// Stores the new tokens of a login durably. Nothing happens if the login was removed meanwhile.
    pub(crate) fn keep_login(
        &self,
        reserved: Reservation,
        name: &str,
        access: SecretString,
        refresh: Option<SecretString>,
        expires: Option<u64>,
    ) -> Result<(), AuthStoreError> {
        let keep = move |file: &mut AuthFile| {
            file.renew_login(name, access.clone(), refresh.clone(), expires);
        };
        self.update(keep, KeyChange::Tokens(reserved)).map(drop)
    }

    /// Changes profiles or their order durably. Damaged content is first copied to a name next to it, which is returned.
    ///
    /// # Errors
    /// The store is unchanged: it is locked, of a later version, or the system refuses.
    pub fn change<T: Default>(
        &self,
        change: impl FnMut(&mut AuthFile) -> T,
    ) -> Result<(T, Option<PathBuf>), AuthStoreError> {
        self.update(change, KeyChange::Profiles)
    }

    /// Changes the record of the use of profiles.
    ///
    /// # Errors
    /// As [`AuthStore::change`]. A store that is damaged is left unchanged.
    pub fn record(&self, change: impl FnMut(&mut AuthFile)) -> Result<(), AuthStoreError> {
        self.update(change, KeyChange::Use).map(drop)
    }

    fn update<T: Default>(
        &self,
        mut change: impl FnMut(&mut AuthFile) -> T,
        how: KeyChange,
    ) -> Result<(T, Option<PathBuf>), AuthStoreError> {
        let mut outcome = T::default();
        let mut changing = |file: &mut AuthFile| {
            *file = std::mem::take(file).read_from(self);
            outcome = change(file);
            file.forget_store();
        };
        let backup = self.keeper.update(&mut changing, how)?;
        Ok((outcome, backup))
    }
}

#[cfg(test)]
mod tests;
