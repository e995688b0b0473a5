//! A short-lived cache of the config.
//!
//! A process that serves many messages requests the config for each one. The cache saves reading the file every time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::load::load;
use crate::{ConfigError, Environment, Loaded, Paths};
use parking_lot::Mutex;

/// How long a config counts as fresh: less than a person needs to save the file and send a message.
const FRESH_FOR: Duration = Duration::from_millis(200);

/// Remembers the config that was read last. Values of variables are not compared, so a cache serves one
/// [`Environment`].
#[derive(Debug, Default)]
pub struct ConfigCache {
    slot: Mutex<Option<Slot>>,
}

#[derive(Debug)]
struct Slot {
    path: PathBuf,
    loaded: Loaded,
    read_at: Instant,
}

impl ConfigCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The config; the same one if it was read from that path less than 200 ms ago.
    ///
    /// # Errors
    /// As [`crate::load_config`]. Errors are not remembered.
    pub fn load(&self, environment: &Environment) -> Result<Loaded, ConfigError> {
        self.load_at(environment, Instant::now())
    }

    /// Like [`ConfigCache::load`], with the time given.
    ///
    /// # Errors
    /// As [`crate::load_config`].
    pub fn load_at(&self, environment: &Environment, now: Instant) -> Result<Loaded, ConfigError> {
        let paths = Paths::resolve(environment)?;
        if let Some(slot) = &*self.slot.lock()
            && slot.path == paths.config_file()
            && now.saturating_duration_since(slot.read_at) < FRESH_FOR
        {
            return Ok(slot.loaded.clone());
        }
        self.refresh(environment, paths, now)
    }

    /// Reads the config again and caches it.
    ///
    /// # Errors
    /// As [`crate::load_config`].
    pub fn load_fresh(&self, environment: &Environment) -> Result<Loaded, ConfigError> {
        self.refresh(environment, Paths::resolve(environment)?, Instant::now())
    }

    /// Clears the cache.
    pub fn clear(&self) {
        *self.slot.lock() = None;
    }

    fn refresh(
        &self,
        environment: &Environment,
        paths: Paths,
        now: Instant,
    ) -> Result<Loaded, ConfigError> {
        let loaded = load(environment, paths)?;
        let slot = Slot { path: loaded.path.clone(), loaded: loaded.clone(), read_at: now };
        *self.slot.lock() = Some(slot);
        Ok(loaded)
    }
}
