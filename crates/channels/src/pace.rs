//! Rates that a vendor documents, and the pauses that it asks for.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Most keys that are remembered.
const MOST_KEYS: usize = 1_000;
/// Longest pause that a server can ask for.
const LONGEST_QUIET: Duration = Duration::from_secs(24 * 60 * 60);

/// At most so many calls within a time, for each key, such as a chat or a method.
pub(crate) struct Pace {
    most: usize,
    window: Duration,
    places: Mutex<HashMap<String, Place>>,
}

#[derive(Default)]
struct Place {
    /// The moments that were given away, the oldest first. Some may lie ahead.
    given: VecDeque<Instant>,
    /// The server asked for quiet until then.
    quiet_until: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(most: usize, window: Duration) -> Self {
        Self { most: most.max(1), window, places: Mutex::default() }
    }

    /// Waits until a call may be made.
    pub(crate) async fn wait(&self, key: &str) {
        loop {
            let at = self.reserve(key, Instant::now());
            tokio::time::sleep_until(at).await;
            // If the server has asked for a pause meanwhile, those who wait take places behind it.
            if self.quiet_until(key).is_none_or(|until| until <= Instant::now()) {
                return;
            }
        }
    }

    /// Takes a place for a call that may be left out, if `kept` others stay free; false if no place is free.
    pub(crate) fn try_now(&self, key: &str, kept: usize) -> bool {
        let now = Instant::now();
        let most = self.most.saturating_sub(kept);
        let is_free = self
            .places
            .lock()
            .get(key)
            .is_none_or(|place| most > 0 && place.next(most, self.window, now) <= now);
        if is_free {
            self.reserve(key, now);
        }
        is_free
    }

    /// Makes no call for some time, because the server said so.
    pub(crate) fn pause(&self, key: &str, time: Duration) {
        let until = Instant::now() + time.min(LONGEST_QUIET);
        let mut places = self.places.lock();
        let place = places.entry(key.to_owned()).or_default();
        place.quiet_until = place.quiet_until.max(Some(until));
    }

    fn quiet_until(&self, key: &str) -> Option<Instant> {
        self.places.lock().get(key).and_then(|place| place.quiet_until)
    }

    fn reserve(&self, key: &str, now: Instant) -> Instant {
        let mut places = self.places.lock();
        if places.len() >= MOST_KEYS {
            places.retain(|_, place| {
                let last = place.given.back().copied().max(place.quiet_until);
                last.is_some_and(|last| last + self.window > now)
            });
        }
        let place = places.entry(key.to_owned()).or_default();
        let at = place.next(self.most, self.window, now);
        place.given.push_back(at);
        while place.given.len() > self.most {
            place.given.pop_front();
        }
        at
    }
}

impl Place {
    /// When the next call may be made.
    fn next(&self, most: usize, window: Duration, now: Instant) -> Instant {
        let quiet = self.quiet_until.unwrap_or(now).max(now);
        let first = self.given.len().checked_sub(most);
        first.map_or(quiet, |first| quiet.max(self.given[first] + window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_holds_no_more_than_its_calls() {
        let pace = Pace::new(2, Duration::from_secs(10));
        let begun = Instant::now();
        let mut times = Vec::new();
        for _ in 0..5 {
            pace.wait("a").await;
            times.push(begun.elapsed().as_secs());
        }
        assert_eq!(times, [0, 0, 10, 10, 20]);
        pace.wait("b").await;
        assert_eq!(begun.elapsed().as_secs(), 20, "keys wait for each other");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_left_out_leaves_places_free() {
        let pace = Pace::new(3, Duration::from_secs(10));
        assert!(pace.try_now("a", 1) && pace.try_now("a", 1));
        assert!(!pace.try_now("a", 1));
        let begun = Instant::now();
        pace.wait("a").await;
        assert_eq!(begun.elapsed().as_secs(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_those_who_wait_already() {
        let pace = Pace::new(1, Duration::from_secs(1));
        let begun = Instant::now();
        pace.wait("a").await;
        let pausing = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            pace.pause("a", Duration::from_secs(7));
        };
        tokio::join!(pace.wait("a"), pausing);
        assert_eq!(begun.elapsed().as_millis(), 7_500);
        assert!(!pace.try_now("a", 0));
        pace.pause("b", Duration::MAX);
        assert!(!pace.try_now("b", 0));
    }
}
