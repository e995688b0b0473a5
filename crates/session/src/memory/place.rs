//! A place that one holder at a time has, for as long as it likes: what a lock on a file is for sessions in files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::{LockWait, SessionError};

#[derive(Debug)]
pub(super) struct Place {
    /// For messages to people.
    name: PathBuf,
    holding: Mutex<Holding>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Holding {
    /// The number of the last holder.
    last: u64,
    /// Whether that one still has it.
    is_taken: bool,
}

/// Frees the place when it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    place: Arc<Place>,
    number: u64,
}

impl Place {
    pub(super) fn named(name: PathBuf) -> Self {
        Self { name, holding: Mutex::default(), freed: Condvar::new() }
    }

    pub(super) fn name(&self) -> PathBuf {
        self.name.clone()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.holding.lock().is_taken
    }

    /// Takes the place from its holder, without the holder's knowledge.
    pub(super) fn lose(&self) {
        self.holding.lock().is_taken = false;
        self.freed.notify_one();
    }

    /// Takes the place, as soon as it is free.
    pub(super) fn take(self: &Arc<Self>, wait: LockWait) -> Result<Taken, SessionError> {
        let longest = match wait {
            LockWait::Fail => Duration::ZERO,
            LockWait::Until(longest) => longest,
        };
        let began = Instant::now();
        let mut holding = self.holding.lock();
        self.freed.wait_while_for(&mut holding, |holding| holding.is_taken, longest);
        if holding.is_taken {
            let waited = began.elapsed();
            let process_id = Some(std::process::id());
            return Err(SessionError::Locked { path: self.name(), process_id, waited });
        }
        *holding = Holding { last: holding.last + 1, is_taken: true };
        Ok(Taken { place: Arc::clone(self), number: holding.last })
    }
}

impl Taken {
    /// The number of this holder: those after it have higher ones.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Runs `work` while nobody else can take the place; `None` if somebody else has had it since.
    pub(super) fn while_last<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let holding = self.place.holding.lock();
        (holding.last == self.number).then(work)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut holding = self.place.holding.lock();
        if holding.last == self.number {
            holding.is_taken = false;
            self.place.freed.notify_one();
        }
    }
}
