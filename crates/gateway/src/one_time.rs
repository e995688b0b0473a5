//! Values behind secrets that can be used once and for a time. They live in memory: a restart ends them all.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use myclaw_gateway_client::token_hash;
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

pub(crate) struct OneTime<T> {
    open: Mutex<VecDeque<Open<T>>>,
    /// How long a secret can be used.
    time: Duration,
    /// Most secrets at a time. A further one takes the place of the oldest.
    most: usize,
}

struct Open<T> {
    /// SHA-256 of the secret, in hexadecimal digits.
    digest: String,
    since: Instant,
    value: T,
}

impl<T> OneTime<T> {
    pub(crate) fn new(time: Duration, most: usize) -> Self {
        Self { open: Mutex::default(), time, most }
    }

    /// The secret for a value: 244 random bits. Nobody guesses one, so attempts are not counted.
    pub(crate) fn make(&self, value: T) -> String {
        let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
        let secret = format!("{first}{second}");
        let mut open = self.open.lock();
        open.retain(|one| one.since.elapsed() < self.time);
        if open.len() >= self.most {
            open.pop_front();
        }
        open.push_back(Open { digest: token_hash(&secret), since: Instant::now(), value });
        secret
    }

    /// Uses a secret up; `None` if it was used, is too old, or never was.
    pub(crate) fn take(&self, secret: &str) -> Option<T> {
        let digest = token_hash(secret);
        let mut open = self.open.lock();
        open.retain(|one| one.since.elapsed() < self.time);
        let is_it = |one: &Open<T>| bool::from(one.digest.as_bytes().ct_eq(digest.as_bytes()));
        let found = open.iter().position(is_it)?;
        open.remove(found).map(|one| one.value)
    }
}

#[cfg(test)]
mod tests;
