//! Calls the hooks before and after a compaction.

use myclaw_session::{Tail, TranscriptMessage};

use super::super::{Shared, estimated_tokens};
use super::{CompactionReport, Trigger, cost_of_older};
use crate::estimate::text_tokens;
use crate::hook::unless_aborted;
use crate::{
    CompactionReason, CompactionVerdict, HookPoint, Notice, PendingCompaction, RunError,
    SummaryProblem,
};

/// The hooks' decision on the summary.
pub(super) enum Decision {
    /// The session is not compacted.
    Veto,
    /// A hook has written the summary.
    Summary(String),
    /// The model writes the summary.
    Model {
        /// What the summary should concentrate on.
        focus: Option<String>,
    },
}

/// Calls the hooks in order until one decides.
pub(super) async fn ask(
    shared: &Shared,
    trigger: Trigger<'_>,
    tail: &Tail,
    older: &[TranscriptMessage],
) -> Result<Decision, RunError> {
    let (reason, focus) = match trigger {
        Trigger::Estimate | Trigger::Opening => (CompactionReason::Estimate, None),
        Trigger::Refusal | Trigger::LastResort => (CompactionReason::Overflow, None),
        Trigger::Manual { focus } => (CompactionReason::Manual, focus.map(str::to_owned)),
    };
    if shared.run.hooks.is_empty() {
        return Ok(Decision::Model { focus });
    }
    let mut pending = PendingCompaction {
        reason,
        tokens_before: estimated_tokens(shared),
        focus,
        previous_summary: tail.compaction.as_ref().map(|earlier| earlier.summary.clone()),
        rows: older,
    };
    let older_tokens = cost_of_older(tail, older);
    for hook in &shared.run.hooks {
        let name = || hook.name().to_owned();
        let asked = hook.before_session_compact(&mut pending);
        match unless_aborted(shared.run.cancel.token(), asked).await {
            Ok(CompactionVerdict::Proceed) => {}
            Ok(CompactionVerdict::Veto { reason }) => {
                shared.notice(Notice::CompactionForbidden { hook: name(), reason });
                return Ok(Decision::Veto);
            }
            Ok(CompactionVerdict::Summary(text)) if text.trim().is_empty() => shared
                .notice(Notice::HookSummaryUnused { hook: name(), problem: SummaryProblem::Empty }),
            Ok(CompactionVerdict::Summary(text)) if text_tokens(text.len()) < older_tokens => {
                return Ok(Decision::Summary(text));
            }
            Ok(CompactionVerdict::Summary(_)) => shared.notice(Notice::HookSummaryUnused {
                hook: name(),
                problem: SummaryProblem::TooLong,
            }),
            Err(_) if shared.run.cancel.is_cancelled() => return Err(RunError::Aborted),
            Err(error) => {
                shared.notice(Notice::HookFailed {
                    hook: name(),
                    point: HookPoint::BeforeSessionCompact,
                    error: error.to_string(),
                });
            }
        }
    }
    Ok(Decision::Model { focus: pending.focus })
}

/// Reports the compaction to the hooks. An abort ends the reporting; the compaction is kept.
pub(super) async fn report(shared: &Shared, report: &CompactionReport, summary: &str) {
    for hook in &shared.run.hooks {
        let reporting = hook.session_compact(report, summary);
        if let Err(error) = unless_aborted(shared.run.cancel.token(), reporting).await {
            shared.notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::SessionCompact,
                error: error.to_string(),
            });
        }
    }
}
