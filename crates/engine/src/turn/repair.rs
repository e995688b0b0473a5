//! Step `repair`: completes what an interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their results here, in the log, before
//! anything else is appended. Any other disorder in an old log is corrected by `PairedMessages`, and only in what is
//! sent.
//!
//! A call that only waited for an approval had not begun. It stays open, and the next run asks for its approval again.

use super::{Act, Shared};
use crate::RunError;
use crate::open_log::{NextStep, PendingCalls};

/// Closes the calls that an interrupted run left open. Returns the calls to ask about again, if the run waited for an
/// approval.
pub(super) async fn close_interrupted_calls(
    shared: &mut Shared,
    act: &Act,
) -> Result<Option<PendingCalls>, RunError> {
    let NextStep::RunTools(pending) = shared.log.next_step() else { return Ok(None) };
    if act.were_asked(&shared.run, &pending).await {
        return Ok(Some(PendingCalls { are_asked_again: true, ..pending }));
    }
    close(shared)?;
    Ok(None)
}

/// Closes all calls that an interrupted run left open, for work that cannot ask for approvals.
pub(super) async fn close_all_calls(shared: &mut Shared, act: &Act) -> Result<(), RunError> {
    let Some(pending) = close_interrupted_calls(shared, act).await? else { return Ok(()) };
    for call in &pending.calls {
        act.forget(&shared.run, call).await;
    }
    close(shared)
}

fn close(shared: &mut Shared) -> Result<(), RunError> {
    let Shared { run, log, .. } = shared;
    Ok(log.close_interrupted_calls(|| run.clock.now_ms())?)
}
