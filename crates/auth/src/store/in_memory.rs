//! Keys that live as long as the process.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{AuthFile, KeepKeys, KeyChange, LoginsHeld, Reservation};
use crate::AuthStoreError;

/// Keys in the memory of this process.
#[derive(Debug)]
pub(super) struct MemoryKeys {
    number: u64,
    content: Mutex<AuthFile>,
    logins: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryKeys {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, content: Mutex::default(), logins: Arc::default() }
    }
}

impl KeepKeys for MemoryKeys {
    fn describe(&self) -> String {
        format!("memory:keys-{}", self.number)
    }

    fn exists(&self) -> bool {
        *self.content.lock() != AuthFile::default()
    }

    fn load(&self) -> Result<AuthFile, AuthStoreError> {
        Ok(self.content.lock().clone())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut AuthFile),
        _how: KeyChange,
    ) -> Result<Option<PathBuf>, AuthStoreError> {
        change(&mut self.content.lock());
        Ok(None)
    }

    fn reserve(&self) -> Result<Reservation, AuthStoreError> {
        Ok(Reservation::default())
    }

    fn hold_logins(&self) -> LoginsHeld<'_> {
        let logins = Arc::clone(&self.logins);
        Box::pin(async move { Ok(Box::new(logins.lock_owned().await) as Box<dyn Any + Send>) })
    }
}
