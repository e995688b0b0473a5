//! The config in force, which a reload replaces.

use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_config::Config;
use parking_lot::RwLock;

/// An environment and the config that was read with it.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The environment and the directories.
    pub home: Home,
    /// What was read.
    pub config: Arc<Config>,
    /// Whether there was a config file.
    pub found: bool,
}

/// The config that whatever begins now uses.
#[derive(Debug)]
pub struct Current(RwLock<Arc<InForce>>);

impl Current {
    /// Begins with this one.
    pub fn new(first: InForce) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(first))))
    }

    /// What is in force at this moment.
    pub fn get(&self) -> Arc<InForce> {
        Arc::clone(&self.0.read())
    }

    /// Its config.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.get().config)
    }

    /// Puts another one into force.
    pub fn replace(&self, new: Arc<InForce>) {
        *self.0.write() = new;
    }
}
