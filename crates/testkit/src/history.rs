//! The requests a server has seen, with a bound on what it keeps of them.

use std::sync::Arc;

use crate::RecordedRequest;

/// Bytes of bodies that are kept: room for every test, and a bound for those that run for long.
const MAX_KEPT_BYTES: usize = 512 * 1024 * 1024;

/// Requests in order of arrival.
#[derive(Debug)]
pub(crate) struct History {
    all: Vec<Arc<RecordedRequest>>,
    /// Places in `all` of those that the script answered.
    calls: Vec<usize>,
    /// How many of the oldest were already considered for removal.
    passed: usize,
    kept_bytes: usize,
    most_bodies: usize,
}

impl History {
    /// A history that keeps the bodies of at most the last `most_bodies` requests.
    pub(crate) fn new(most_bodies: usize) -> Self {
        Self { all: Vec::new(), calls: Vec::new(), passed: 0, kept_bytes: 0, most_bodies }
    }

    /// Adds a request and returns its place.
    pub(crate) fn add(&mut self, request: &Arc<RecordedRequest>) -> usize {
        self.kept_bytes += request.body_length;
        self.all.push(Arc::clone(request));
        self.forget();
        self.all.len() - 1
    }

    /// Notes that the script answers the request at `place`; returns how many it had answered before.
    pub(crate) fn mark_as_call(&mut self, place: usize) -> usize {
        self.calls.push(place);
        self.calls.len() - 1
    }

    pub(crate) fn all(&self) -> Vec<Arc<RecordedRequest>> {
        self.all.clone()
    }

    pub(crate) fn calls(&self) -> Vec<Arc<RecordedRequest>> {
        self.calls.iter().map(|place| Arc::clone(&self.all[*place])).collect()
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn last_call(&self) -> Option<Arc<RecordedRequest>> {
        self.calls.last().map(|place| Arc::clone(&self.all[*place]))
    }

    /// Forgets the oldest bodies beyond the limits on number and size. A body whose answer is in progress stays, and so
    /// do newer ones.
    fn forget(&mut self) {
        while self.all.len() - self.passed > self.most_bodies.max(1)
            || self.kept_bytes > MAX_KEPT_BYTES
        {
            let Some(oldest) = self.all.get_mut(self.passed) else { return };
            if oldest.end.get().is_none() {
                return;
            }
            self.kept_bytes -= oldest.body_length;
            *oldest = Arc::new(oldest.without_body());
            self.passed += 1;
        }
    }
}

#[cfg(test)]
mod tests;
