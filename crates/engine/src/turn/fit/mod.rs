//! Step `fit`: makes the request fit the model's context window.
//!
//! The ladder has three rungs: the older part of the conversation becomes a summary, oversized tool results are cut
//! in what is sent, and then the run fails with a clear error. A rung is used once between two successful calls, so
//! the ladder always ends.

mod compact;
mod truncate;

use myclaw_llm::ModelError;

use super::Turn;
use crate::estimate::{request_tokens, text_tokens};
use crate::{AgentRunEvent, RunError};

/// Rungs used since the last successful call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    compacted: bool,
    truncated: bool,
}

/// Part of the window that is never planned for input, even where the model may write a longer answer: otherwise a
/// model whose output limit is its window could take no input at all.
const LARGEST_OUTPUT_SHARE: u64 = 4;

/// Tokens that a request to a model may hold.
pub(crate) fn input_budget(model: &myclaw_llm::Model) -> u64 {
    model.context_window - model.max_output.min(model.context_window / LARGEST_OUTPUT_SHARE)
}

/// A log whose end alone fills the window is cut there once, in the log, so that the next request and all after it
/// begin with the same bytes.
pub(super) fn account_for_older_messages(turn: &mut Turn<'_>) -> Result<(), RunError> {
    if turn.opening.skipped_lines > 0 {
        let lines = match turn.opening.skipped_lines {
            1 => "1 unreadable line".to_owned(),
            count => format!("{count} unreadable lines"),
        };
        let path = turn.store.transcript_path(&turn.params.session_key);
        turn.notice(format!("{lines} of {} skipped; they stay in the file", path.display()));
    }
    match turn.opening.cut_before {
        Some(first_kept) => compact::leave_out_older_messages(turn, first_kept),
        None => Ok(()),
    }
}

/// Compacts before the window is full, where the summary would make a real difference.
pub(super) async fn before_call(turn: &mut Turn<'_>) -> Result<(), RunError> {
    if !turn.recovery.compacted && estimated_tokens(turn) > input_budget(&turn.model.model) {
        turn.recovery.compacted = true;
        compact::compact(turn, compact::Trigger::Estimate).await?;
    }
    Ok(())
}

/// Takes the next rung that makes the request smaller.
///
/// # Errors
/// [`RunError::ContextOverflow`] when none is left.
pub(super) async fn recover_from_overflow(
    turn: &mut Turn<'_>,
    error: &ModelError,
) -> Result<(), RunError> {
    if !turn.recovery.compacted {
        turn.recovery.compacted = true;
        if compact::compact(turn, compact::Trigger::Refusal).await? {
            return Ok(());
        }
    }
    if !turn.recovery.truncated {
        turn.recovery.truncated = true;
        let count = turn.conversation.messages().len();
        let mut changed = false;
        turn.conversation.edit_unsaved(|messages| changed = truncate::oversized_results(messages));
        turn.emit(AgentRunEvent::Compaction { old_count: count, new_count: count });
        if changed {
            return Ok(());
        }
    }
    Err(RunError::ContextOverflow { model: turn.model.reference(), detail: error.message.clone() })
}

fn estimated_tokens(turn: &Turn<'_>) -> u64 {
    let schemas: usize = turn
        .tool_schemas
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    request_tokens(
        turn.conversation.messages(),
        text_tokens(turn.start.system_prompt.len() + schemas),
    )
}
