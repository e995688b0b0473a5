//! Several writers that change one record at once: the store refuses all but one, and the others decide again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// How often a change is decided again because somebody else changed the record.
pub(crate) const MOST_RACES: u32 = 20;
/// Longest wait is two to this power, in milliseconds.
const LONGEST: u32 = 7;

/// Waits after a lost race, longer after each and at random, so that a slow writer gets its turn among fast ones. The first time
/// it does not wait: seldom is anybody there twice.
pub(crate) async fn stand_back(races: u32) {
    if races == 0 {
        return;
    }
    let most = 1_000_u64 << races.min(LONGEST);
    let wait = RandomState::new().hash_one(races) % most;
    tokio::time::sleep(Duration::from_micros(wait)).await;
}
