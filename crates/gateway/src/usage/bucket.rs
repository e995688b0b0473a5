//! Hours and days.

use serde::{Deserialize, Serialize};

const HOUR_MS: u64 = 60 * 60 * 1_000;
pub(super) const DAY_MS: u64 = 24 * HOUR_MS;

/// The length of a part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bucket {
    /// An hour.
    Hour,
    /// A day, in UTC.
    #[default]
    Day,
}

impl Bucket {
    /// The name in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    pub(super) fn ms(self) -> u64 {
        match self {
            Self::Hour => HOUR_MS,
            Self::Day => DAY_MS,
        }
    }

    /// The beginning of the hour or day of a moment.
    pub(super) fn start_of(self, ms: u64) -> u64 {
        ms - ms % self.ms()
    }

    /// Kind of the records, and their queue.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Hour => "usage-hour",
            Self::Day => "usage-day",
        }
    }

    /// Most rows of a record with sessions of their own.
    pub(super) fn most_rows(self) -> usize {
        match self {
            Self::Hour => 200,
            Self::Day => 500,
        }
    }

    /// How long the records are kept: 35 days, or 400.
    pub(super) fn kept_ms(self) -> u64 {
        match self {
            Self::Hour => 35 * DAY_MS,
            Self::Day => 400 * DAY_MS,
        }
    }
}
