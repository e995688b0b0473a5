//! Step `fit`: makes the request fit the model's context window.
//!
//! What is sent is made smaller by entries of the log, so that every later request of the session begins with the
//! same bytes: a compaction puts a summary in the place of older messages, a reduction leaves out parts of long ones.
//! The messages themselves stay in the file.
//!
//! When a provider refuses a request, the rungs of a ladder are taken one after the other, each at most once between
//! two successful calls, and only if it makes the request smaller. So the ladder ends: in a request that fits, or in
//! a clear error after at most one refused call for each rung and one before.

mod compact;
mod history;
mod prune;
mod reduce;
mod summary;

use myclaw_config::CompactionSettings;
use myclaw_llm::{Model, ModelError};
use myclaw_session::{EntryId, Reduction, ReductionEntry};

use super::Turn;
use crate::estimate::{message_tokens, request_tokens, text_tokens};
use crate::{AgentRunEvent, ContextChange, Notice, RunError};

pub use compact::{CompactionOutcome, CompactionReport};
pub(crate) use prune::Outlook;

/// Which rungs may still be taken before the next successful call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    compacted_ahead: bool,
    next: Rung,
}

/// The ladder, from its first rung to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rung {
    /// The older messages become a summary.
    #[default]
    Summary,
    /// Tool results of more than 20,000 characters are cut to that.
    LongResults,
    /// Every long text is cut, the user's own too.
    LongTexts,
    /// All but the newest message, with the results that belong to it, becomes a summary; if that is not worth it, long
    /// texts are cut again, by the size that was refused.
    NewestOnly,
    /// Nothing is left to try.
    End,
}

impl Rung {
    fn next(self) -> Self {
        match self {
            Self::Summary => Self::LongResults,
            Self::LongResults => Self::LongTexts,
            Self::LongTexts => Self::NewestOnly,
            Self::NewestOnly | Self::End => Self::End,
        }
    }
}

/// Part of the window that is never planned for input, even where the model may write a longer answer: otherwise a
/// model whose output limit is its window could take no input at all.
const LARGEST_OUTPUT_SHARE: u64 = 4;

/// Largest part of the window that settings can keep free.
const LARGEST_RESERVE_SHARE: u64 = 2;

/// Of a size that was refused, what is planned for at most.
const SAFE_QUARTERS: u64 = 3;

/// Tokens that a request to a model may hold: its window without what is kept free for the answer.
pub(crate) fn input_budget(model: &Model, settings: &CompactionSettings) -> u64 {
    let window = model.context_window;
    let reserve = match settings.reserve_tokens {
        Some(tokens) => tokens.min(window / LARGEST_RESERVE_SHARE),
        None => model.max_output.min(window / LARGEST_OUTPUT_SHARE),
    };
    window - reserve
}

/// Tells of lines that nobody can read, and cuts a chat whose history is limited by its settings.
pub(super) async fn account_for_older_messages(turn: &mut Turn<'_>) -> Result<(), RunError> {
    if turn.opening.skipped_lines > 0 {
        let path = turn.store.transcript_path(&turn.params.session_key);
        turn.notice(Notice::UnreadableLines { count: turn.opening.skipped_lines, path });
    }
    if let Some(moved) = &turn.opening.moved_aside {
        let path = turn.store.transcript_path(&turn.params.session_key);
        let moved_to = moved.path.clone();
        turn.notice(Notice::TornEndMoved { path, bytes: moved.bytes, moved_to });
    }
    history::limit(turn)
}

/// Makes room before the window is full: prunes as the settings say, then compacts where the summary would make a
/// real difference. What can certainly not fit climbs the ladder without asking the provider first.
///
/// A log of which no more than the end was loaded is compacted there once, so that the next request and all after it
/// begin with the same bytes.
pub(super) async fn before_call(turn: &mut Turn<'_>) -> Result<(), RunError> {
    if turn.opening.cut_before.take().is_some() {
        turn.notice(Notice::SessionTooLong {});
        compact::compact(turn, compact::Trigger::Opening).await?;
    }
    prune::prune(turn)?;
    if !turn.recovery.compacted_ahead && is_full(turn) {
        turn.recovery.compacted_ahead = true;
        compact::compact(turn, compact::Trigger::Estimate).await?;
    }
    while is_certain_to_overflow(turn) && climb(turn).await? {}
    Ok(())
}

/// Whether more waits to be sent than is planned for. The size of the texts tells only where the model has refused one:
/// what a provider has counted is known better.
fn is_full(turn: &Turn<'_>) -> bool {
    let refused = turn.conversation.smallest_refused(&turn.model.reference());
    estimated_tokens(turn) > turn.budget() || (refused.is_some() && text_size(turn) > turn.room())
}

fn is_certain_to_overflow(turn: &Turn<'_>) -> bool {
    let refused = turn.conversation.smallest_refused(&turn.model.reference());
    estimated_tokens(turn) > turn.model.model.context_window
        || refused.is_some_and(|tokens| text_size(turn) >= tokens)
}

/// Takes the next rung that makes the request smaller.
///
/// # Errors
/// [`RunError::ContextOverflow`] when none is left.
pub(super) async fn recover_from_overflow(
    turn: &mut Turn<'_>,
    error: &ModelError,
) -> Result<(), RunError> {
    let tokens = text_size(turn);
    turn.conversation.note_refusal(turn.model.reference(), tokens);
    if climb(turn).await? {
        return Ok(());
    }
    Err(RunError::ContextOverflow { model: turn.model.reference(), detail: error.message.clone() })
}

/// Summarises by hand; `focus` is what the summary should pay attention to.
pub(crate) async fn compact_by_hand(
    turn: &mut Turn<'_>,
    focus: Option<&str>,
) -> Result<CompactionReport, RunError> {
    compact::compact(turn, compact::Trigger::Hand { focus }).await
}

/// Takes rungs until one made the request smaller; false when the ladder has ended.
async fn climb(turn: &mut Turn<'_>) -> Result<bool, RunError> {
    while turn.recovery.next != Rung::End {
        let rung = turn.recovery.next;
        turn.recovery.next = rung.next();
        let is_smaller = match rung {
            Rung::Summary => compact::compact(turn, compact::Trigger::Refusal).await?.is_smaller(),
            Rung::LongResults => reduce::long_results(turn)?,
            Rung::LongTexts => reduce::long_texts(turn)?,
            Rung::NewestOnly => {
                compact::compact(turn, compact::Trigger::LastResort).await?.is_smaller()
                    || reduce::long_texts(turn)?
            }
            Rung::End => false,
        };
        if is_smaller {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Stores reductions, if there are any, and sends less from now on.
fn append_reductions(
    turn: &mut Turn<'_>,
    reason: &str,
    messages: Vec<Reduction>,
) -> Result<bool, RunError> {
    if messages.is_empty() {
        return Ok(false);
    }
    let (id, ts) = (EntryId::generate(), turn.now_ms());
    turn.conversation.append_change(ReductionEntry {
        id,
        ts,
        reason: reason.to_owned(),
        messages,
    })?;
    Ok(true)
}

/// Tokens of the next request, as far as they can be known before it is sent.
pub(super) fn estimated_tokens(turn: &Turn<'_>) -> u64 {
    request_tokens(turn.conversation.messages(), fixed_tokens(turn))
}

/// Tokens of the next request by its length alone: what two requests can be compared by, whatever a provider has counted
/// of one of them.
fn text_size(turn: &Turn<'_>) -> u64 {
    let messages = turn.conversation.messages();
    fixed_tokens(turn) + messages.iter().map(message_tokens).sum::<u64>()
}

/// Tokens of what every request holds: the system prompt and the tools.
fn fixed_tokens(turn: &Turn<'_>) -> u64 {
    let schemas: usize = turn
        .tool_schemas
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    text_tokens(turn.start.system_prompt.len() + schemas)
}

impl Turn<'_> {
    /// Tokens that a request of this turn may hold.
    fn budget(&self) -> u64 {
        input_budget(&self.model.model, &self.limits.compaction)
    }

    /// The same by length alone, and less where the model has refused a request of no more than that.
    fn room(&self) -> u64 {
        let refused = self.conversation.smallest_refused(&self.model.reference());
        refused.map_or(u64::MAX, |tokens| tokens / 4 * SAFE_QUARTERS).min(self.budget())
    }

    /// The context was made smaller; `kept` messages remain of `before`.
    fn emit_compaction(&self, before: usize, kept: usize, change: ContextChange) {
        self.emit(AgentRunEvent::Compaction { old_count: before, new_count: kept, change });
    }
}
