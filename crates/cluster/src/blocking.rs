//! Records for callers that block.

use std::sync::Arc;

use myclaw_store::{Store, StoreError};
use myclaw_store_postgres::{Address, Options, PostgresSessions, PostgresStore};

/// A store of its own, which the thread of the sessions serves.
pub(crate) struct Blocking {
    sessions: Arc<PostgresSessions>,
    store: Arc<PostgresStore>,
    server: String,
}

impl Blocking {
    pub(crate) fn open(
        sessions: Arc<PostgresSessions>,
        address: Address,
        options: Options,
    ) -> Result<Self, StoreError> {
        let server = address.server().to_owned();
        let store = sessions.wait_for(PostgresStore::open(address, options))?;
        Ok(Self { sessions, store: Arc::new(store), server })
    }

    /// Waits for `work`, which gets the store.
    pub(crate) fn wait<'s, T, F: Future<Output = T>>(
        &'s self,
        work: impl FnOnce(&'s PostgresStore) -> F,
    ) -> T {
        self.sessions.wait_for(work(&self.store))
    }

    /// The store, for what is waited for with [`Blocking::wait`].
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as _
    }

    /// The server and the database, for people.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }
}

impl std::fmt::Debug for Blocking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Blocking").field(&self.server).finish()
    }
}
