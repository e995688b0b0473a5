//! Step `repair`: completes what an interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their results here, in the log, before
//! anything else is appended: the one that the tool has kept, else a text that says so. Any other disorder in an old log is corrected by `PairedMessages`, and only in what is
//! sent.
//!
//! A call that only waited for an approval had not begun. It stays open, and the next run asks for its approval again.

use myclaw_llm::INTERRUPTED_RESULT;

use super::act::append_result;
use super::{Act, Shared};
use crate::open_log::{NextStep, PendingCalls};
use crate::{RunError, ToolOutput};

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
    close(shared, act, &pending).await?;
    Ok(None)
}

/// Closes all calls that an interrupted run left open, for work that cannot ask for approvals.
pub(super) async fn close_all_calls(shared: &mut Shared, act: &Act) -> Result<(), RunError> {
    let Some(pending) = close_interrupted_calls(shared, act).await? else { return Ok(()) };
    close(shared, act, &pending).await
}

async fn close(shared: &mut Shared, act: &Act, pending: &PendingCalls) -> Result<(), RunError> {
    for call in &pending.calls {
        let known = act.recall(&shared.run, call, pending.asked_at).await;
        act.forget(&shared.run, call).await;
        let output = known.unwrap_or_else(|| ToolOutput::error(INTERRUPTED_RESULT));
        append_result(shared, call, output)?;
    }
    Ok(())
}
