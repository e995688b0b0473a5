//! A schedule of any kind.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::zone::instant;
use crate::{Cron, ScheduleError, write_duration, zone_named};

/// Shortest interval.
const SHORTEST_MS: u64 = 1_000;
/// Longest interval: ten years.
const LONGEST_MS: u64 = 10 * 366 * 86_400 * 1_000;

/// When something is due, as it is stored. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Schedule {
    /// Once.
    At {
        /// The time.
        at_ms: u64,
    },
    /// At an interval. Summer time does not matter.
    Every {
        /// The interval.
        every_ms: u64,
        /// A due time; the others are whole intervals before and after it.
        anchor_ms: u64,
    },
    /// By the local time of a zone.
    Cron {
        /// The expression.
        expr: String,
        /// The name of the zone.
        tz: String,
    },
}

impl Schedule {
    /// Whether the schedule can be used: the interval is within the limits, the expression matches some date, and the
    /// zone exists.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<(), ScheduleError> {
        match self {
            Self::At { .. } => Ok(()),
            Self::Every { every_ms, .. } if (SHORTEST_MS..=LONGEST_MS).contains(every_ms) => Ok(()),
            Self::Every { every_ms, .. } => {
                let given = match every_ms {
                    0 => "0".to_owned(),
                    1..SHORTEST_MS => format!("{every_ms} ms"),
                    _ => write_duration(Duration::from_millis(*every_ms)),
                };
                Err(ScheduleError::Interval(given))
            }
            Self::Cron { expr, tz } => {
                let zone = zone_named(tz)?;
                let cron: Cron = expr.parse()?;
                cron.next_after(0, &zone)
                    .map(|_| ())
                    .ok_or_else(|| ScheduleError::Never(expr.clone()))
            }
        }
    }

    /// The first due time after `ms`; `None` if there is none.
    pub fn next_after(&self, ms: u64) -> Option<u64> {
        match self {
            Self::At { at_ms } => (*at_ms > ms).then_some(*at_ms),
            Self::Every { every_ms, anchor_ms } => {
                let every = (*every_ms).max(SHORTEST_MS);
                // The due times are the numbers that leave the same rest as the anchor.
                let phase = anchor_ms % every;
                let whole = (ms + every - phase) / every;
                Some(whole * every + phase)
            }
            Self::Cron { .. } => {
                let (cron, zone) = self.parsed()?;
                cron.next_after(ms, &zone)
            }
        }
    }

    /// The newest due times from `due`, which is one, to `now`, at most `most`, in their order.
    pub fn newest(&self, due: u64, now: u64, most: usize) -> Vec<u64> {
        let mut window: u64 = 1_000;
        loop {
            let from = now.saturating_sub(window).max(due.saturating_sub(1));
            let found = self.between(from, now);
            if found.len() >= most || from < due {
                return found[found.len().saturating_sub(most)..].to_vec();
            }
            window = window.saturating_mul(2);
        }
    }

    /// The due times after `from` up to `to`.
    fn between(&self, from: u64, to: u64) -> Vec<u64> {
        let parsed = self.parsed();
        let next = |after: u64| match &parsed {
            Some((cron, zone)) => cron.next_after(after, zone),
            None => self.next_after(after),
        };
        std::iter::successors(next(from), |due| next(*due)).take_while(|due| *due <= to).collect()
    }

    /// What is understood of it, for whoever has said it: how often, the due time, and the zone in which the time is written.
    pub fn understood(&self, due: Option<u64>, tz: &str) -> String {
        let (often, tz) = match self {
            Self::At { .. } => ("once".to_owned(), tz),
            Self::Every { every_ms, .. } => {
                (format!("every {}", write_duration(Duration::from_millis(*every_ms))), tz)
            }
            Self::Cron { expr, tz } => (format!("at the times of `{expr}`"), tz.as_str()),
        };
        let local = |due: u64| {
            let local = zone_named(tz).map(|zone| instant(due).to_zoned(zone));
            local.map(|local| local.strftime("%A %Y-%m-%d %H:%M:%S").to_string()).ok()
        };
        match (self, due.and_then(local)) {
            (_, None) => format!("{often}, not due"),
            (Self::At { .. }, Some(due)) => format!("{often}, {due} ({tz})"),
            (_, Some(due)) => format!("{often}, next on {due} ({tz})"),
        }
    }

    fn parsed(&self) -> Option<(Cron, TimeZone)> {
        match self {
            Self::Cron { expr, tz } => Some((expr.parse().ok()?, zone_named(tz).ok()?)),
            Self::At { .. } | Self::Every { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
