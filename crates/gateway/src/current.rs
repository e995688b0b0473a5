//! The config in force, which a reload replaces.

use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_config::Config;
use parking_lot::RwLock;

/// An environment and the config that was read with it.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub(crate) home: Home,
    pub(crate) config: Arc<Config>,
    /// Whether there was a config file.
    pub(crate) found: bool,
}

/// The config that whatever begins now uses.
#[derive(Debug)]
pub(crate) struct Current(RwLock<Arc<InForce>>);

impl Current {
    pub(crate) fn new(first: InForce) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(first))))
    }

    pub(crate) fn get(&self) -> Arc<InForce> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.get().config)
    }

    pub(crate) fn replace(&self, new: Arc<InForce>) {
        *self.0.write() = new;
    }
}
