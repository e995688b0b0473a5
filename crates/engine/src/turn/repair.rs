//! Step `repair`: completes what an interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their results here, in the log, before
//! anything else is appended. Any other disorder in an old log is corrected by `PairedMessages`, and only in what is
//! sent.

use super::Shared;
use crate::RunError;

pub(super) fn close_interrupted_calls(shared: &mut Shared) -> Result<(), RunError> {
    let Shared { run, log, .. } = shared;
    Ok(log.close_interrupted_calls(|| run.clock.now_ms())?)
}
