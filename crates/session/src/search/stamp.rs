//! States of logs, by which a change is noticed.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_files::portable::MetadataExt;

/// A list of the directory that is younger than its last change by less may lack files: clocks of file systems are coarse.
const SETTLED: Duration = Duration::from_millis(100);

/// A state of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogStamp {
    pub(super) inode: u64,
    pub(super) length: u64,
    /// In seconds and nanoseconds.
    pub(super) changed: (i64, i64),
}

impl From<&Metadata> for LogStamp {
    fn from(found: &Metadata) -> Self {
        let changed = (found.ctime(), found.ctime_nsec());
        Self { inode: found.ino(), length: found.len(), changed }
    }
}

impl LogStamp {
    pub(super) fn length(self) -> u64 {
        self.length
    }

    /// Whether the file was last changed a while before now, so that another change has another time.
    pub(super) fn is_settled(self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let changed = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX))
            .saturating_add(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        changed.saturating_add(SETTLED) < now
    }
}
