//! Choices of random tests, which a seed repeats.

use std::time::Duration;

/// Random numbers that are the same in each run of a seed: the splitmix64 generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }

    /// Sleeps for a random part of `longest`.
    pub fn pause(&mut self, longest: Duration) {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        std::thread::sleep(Duration::from_micros(self.below(micros)));
    }
}

/// The number in an environment variable, such as the seed of a random test.
pub fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
