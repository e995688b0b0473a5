//! What a channel remembers for a while and could do without.

use std::collections::{HashMap, VecDeque};

/// Most entries; older ones are forgotten.
pub(crate) const MOST: usize = 1_000;

/// The newest entries, by their keys.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    entries: HashMap<String, T>,
    order: VecDeque<String>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Recent<T> {
    pub(crate) fn put(&mut self, key: &str, value: T) {
        if self.entries.insert(key.to_owned(), value).is_none() {
            self.order.push_back(key.to_owned());
        }
        while self.order.len() > MOST {
            self.order.pop_front().and_then(|oldest| self.entries.remove(&oldest));
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.entries.get(key)
    }
}
