//! What hooks have to say about a compaction.

use myclaw_session::{Tail, TranscriptMessage};

use super::super::{Turn, estimated_tokens};
use super::{CompactionReport, Trigger, cost_of_older};
use crate::estimate::text_tokens;
use crate::hook::unless_aborted;
use crate::transcript::row_to_message;
use crate::{
    CompactionReason, CompactionVerdict, HookPoint, Notice, PendingCompaction, RunError,
    SummaryProblem,
};

/// Who writes the summary.
pub(super) enum Decision {
    /// Nobody: there is to be none.
    Veto,
    /// A hook has written it.
    Summary(String),
    /// The model.
    Model {
        /// What it should pay attention to.
        focus: Option<String>,
    },
}

/// Asks the hooks one after the other, until one decides.
pub(super) async fn ask(
    turn: &Turn<'_>,
    trigger: Trigger<'_>,
    tail: &Tail,
    older: &[TranscriptMessage],
) -> Result<Decision, RunError> {
    let (reason, focus) = match trigger {
        Trigger::Estimate | Trigger::Opening => (CompactionReason::Estimate, None),
        Trigger::Refusal | Trigger::LastResort => (CompactionReason::Overflow, None),
        Trigger::Hand { focus } => (CompactionReason::Manual, focus.map(str::to_owned)),
    };
    if turn.hooks().is_empty() {
        return Ok(Decision::Model { focus });
    }
    let mut pending = PendingCompaction {
        reason,
        tokens_before: estimated_tokens(turn),
        focus,
        previous_summary: tail.compaction.as_ref().map(|earlier| earlier.summary.clone()),
        messages: older.iter().cloned().filter_map(row_to_message).collect(),
    };
    let older_tokens = cost_of_older(tail, older);
    for hook in turn.hooks() {
        let name = || hook.name().to_owned();
        let asked = hook.before_session_compact(&mut pending);
        match unless_aborted(&turn.params.cancel, asked).await {
            Ok(CompactionVerdict::Proceed) => {}
            Ok(CompactionVerdict::Veto { reason }) => {
                turn.notice(Notice::CompactionForbidden { hook: name(), reason });
                return Ok(Decision::Veto);
            }
            Ok(CompactionVerdict::Summary(text)) if text.trim().is_empty() => turn
                .notice(Notice::HookSummaryUnused { hook: name(), problem: SummaryProblem::Empty }),
            Ok(CompactionVerdict::Summary(text)) if text_tokens(text.len()) < older_tokens => {
                return Ok(Decision::Summary(text));
            }
            Ok(CompactionVerdict::Summary(_)) => turn.notice(Notice::HookSummaryUnused {
                hook: name(),
                problem: SummaryProblem::TooLong,
            }),
            Err(_) if turn.params.cancel.is_cancelled() => return Err(RunError::Aborted),
            Err(error) => {
                turn.notice(Notice::HookFailed {
                    hook: name(),
                    point: HookPoint::BeforeSessionCompact,
                    error: error.to_string(),
                });
            }
        }
    }
    Ok(Decision::Model { focus: pending.focus })
}

/// Tells the hooks what was done. An abort ends the telling; what was done stays.
pub(super) async fn tell(turn: &Turn<'_>, report: &CompactionReport, summary: &str) {
    for hook in turn.hooks() {
        let told = hook.session_compact(report, summary);
        if let Err(error) = unless_aborted(&turn.params.cancel, told).await {
            turn.notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::SessionCompact,
                error: error.to_string(),
            });
        }
    }
}
