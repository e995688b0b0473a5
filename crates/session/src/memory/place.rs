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
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// Frees the place when it is dropped.
#[derive(Debug)]
pub(super) struct Taken(Arc<Place>);

impl Place {
    pub(super) fn named(name: PathBuf) -> Self {
        Self { name, is_taken: Mutex::new(false), freed: Condvar::new() }
    }

    pub(super) fn name(&self) -> PathBuf {
        self.name.clone()
    }

    pub(super) fn is_taken(&self) -> bool {
        *self.is_taken.lock()
    }

    /// Takes the place, as soon as it is free.
    pub(super) fn take(self: &Arc<Self>, wait: LockWait) -> Result<Taken, SessionError> {
        let longest = match wait {
            LockWait::Fail => Duration::ZERO,
            LockWait::Until(longest) => longest,
        };
        let began = Instant::now();
        let mut is_taken = self.is_taken.lock();
        self.freed.wait_while_for(&mut is_taken, |taken| *taken, longest);
        if *is_taken {
            let waited = began.elapsed();
            let process_id = Some(std::process::id());
            return Err(SessionError::Locked { path: self.name(), process_id, waited });
        }
        *is_taken = true;
        Ok(Taken(Arc::clone(self)))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.freed.notify_one();
    }
}
