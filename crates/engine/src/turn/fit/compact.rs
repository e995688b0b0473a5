//! Rungs that put a summary in the place of older messages.
//!
//! A compaction is an entry of the log. What it summarises stays in the file; the next request, in this run and in
//! all later ones, starts from it.

mod hooks;

use myclaw_session::{CompactionEntry, EntryId, Role, Tail, TranscriptMessage};
use serde::Serialize;

use self::hooks::Decision;
use super::summary::{self, Summary};
use super::{Turn, estimated_tokens};
use crate::RunError;
use crate::estimate::{row_cost, text_tokens};

/// A compaction ahead of the provider's refusal, and one that keeps next to nothing, must take at least this part of
/// the request away. Otherwise a conversation whose newest messages fill the window would be summarised again before
/// each call.
const WORTHWHILE_SHARE: u64 = 4;

/// Characters of the user's last message that stay word for word when it is summarised away: a task is not to be
/// told in other words.
const TASK_CHARS: usize = 4_000;

/// Takes the place of what is left out without a summary.
const LEFT_OUT: &str = "The earlier messages of this conversation do not fit the context window and were left out \
                        without a summary. They are still in the session file; ask the user for what you need of them.";

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger<'a> {
    /// The estimate says that it will not fit.
    Estimate,
    /// The provider refused it.
    Refusal,
    /// The provider refused it, and nothing else has helped.
    LastResort,
    /// Somebody asked for it.
    Hand {
        /// What the summary should pay attention to.
        focus: Option<&'a str>,
    },
}

/// What came of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionOutcome {
    /// A summary took the place of older messages.
    Done,
    /// There is nothing that a summary could stand for.
    NothingOlder,
    /// A hook forbade it, as a notice said.
    Forbidden,
    /// The summary would have been longer than what it stands for, so nothing has changed.
    NotShorter,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionReport {
    /// What came of it.
    #[serde(skip)]
    pub outcome: CompactionOutcome,
    /// Messages of the context before.
    pub old_count: usize,
    /// Messages of the context afterwards; as many as before if there was nothing to summarise.
    pub new_count: usize,
    /// Tokens of the context before, estimated.
    pub tokens_before: u64,
    /// Tokens of the context afterwards, estimated.
    pub tokens_after: u64,
}

impl CompactionReport {
    pub(super) fn is_smaller(&self) -> bool {
        self.tokens_after < self.tokens_before
    }
}

/// Summarises all but the newest messages, if that makes the request smaller.
pub(super) async fn compact(
    turn: &mut Turn<'_>,
    trigger: Trigger<'_>,
) -> Result<CompactionReport, RunError> {
    let old_count = turn.conversation.messages().len();
    let tokens_before = estimated_tokens(turn);
    let unchanged = |outcome| CompactionReport {
        outcome,
        old_count,
        new_count: old_count,
        tokens_before,
        tokens_after: tokens_before,
    };
    let tail = turn.conversation.tail()?;
    let cut = cut_position(&tail.messages, turn.limits.compaction.keep_messages, trigger);
    let (older, kept) = tail.messages.split_at(cut);
    let Some(first_kept) = kept.first().filter(|_| cut > 0) else {
        return Ok(told(turn, trigger, unchanged(CompactionOutcome::NothingOlder)));
    };
    let older_tokens = cost_of_older(&tail, older);
    let must_be_worthwhile = matches!(trigger, Trigger::Estimate | Trigger::LastResort);
    if must_be_worthwhile && older_tokens < tokens_before / WORTHWHILE_SHARE {
        return Ok(unchanged(CompactionOutcome::NotShorter));
    }
    let mut text = match stand_in(turn, trigger, &tail, older).await? {
        Ok(text) => text,
        Err(outcome) => return Ok(told(turn, trigger, unchanged(outcome))),
    };
    if !kept.iter().any(|row| row.role == Role::User) {
        text.push_str(&last_request(older));
    }
    if text_tokens(text.len()) >= older_tokens {
        return Ok(told(turn, trigger, unchanged(CompactionOutcome::NotShorter)));
    }
    let entry = CompactionEntry {
        id: EntryId::generate(),
        ts: turn.now_ms(),
        summary: text,
        first_kept_id: first_kept.id,
        tokens_before,
        old_count: old_count as u64,
        new_count: kept.len() as u64 + 1,
    };
    let new_count = kept.len() + 1;
    let summary = entry.summary.clone();
    turn.conversation.append_change(entry)?;
    turn.emit_compaction(old_count, new_count);
    // Both sides of this comparison are estimates of the same kind; what a provider has counted is not.
    let tokens_after = estimated_tokens(turn).min(tokens_before.saturating_sub(1));
    let report = CompactionReport { new_count, tokens_after, ..unchanged(CompactionOutcome::Done) };
    hooks::tell(turn, &report, &summary).await;
    Ok(report)
}

/// Tells of a rung that did not help. Who asked for a compaction gets the report.
fn told(turn: &Turn<'_>, trigger: Trigger<'_>, report: CompactionReport) -> CompactionReport {
    if !matches!(trigger, Trigger::Hand { .. }) {
        turn.emit_compaction(report.old_count, report.new_count);
    }
    report
}

/// The text that takes the place of `older`: a hook's, the model's, or a note; the inner error is why there is none.
/// A conversation that still fits is not given away for a note.
async fn stand_in(
    turn: &mut Turn<'_>,
    trigger: Trigger<'_>,
    tail: &Tail,
    older: &[TranscriptMessage],
) -> Result<Result<String, CompactionOutcome>, RunError> {
    let older_tokens = cost_of_older(tail, older);
    let focus = match hooks::ask(turn, trigger, Some(tail), older).await? {
        Decision::Veto => return Ok(Err(CompactionOutcome::Forbidden)),
        Decision::Summary(text) => return Ok(Ok(text)),
        Decision::Model { focus } => focus,
    };
    let is_by_hand = matches!(trigger, Trigger::Hand { .. });
    Ok(match summary::of(turn, tail, older, focus.as_deref()).await? {
        Summary::Written(text) if text_tokens(text.len()) < older_tokens => Ok(text),
        Summary::Written(_) if is_by_hand => Err(CompactionOutcome::NotShorter),
        Summary::Written(_) => Ok(LEFT_OUT.to_owned()),
        Summary::Failed { error, .. } if is_by_hand => return Err(RunError::Model(*error)),
        Summary::Failed { note, error } => {
            turn.notice(format!(
                "the older messages could not be summarised ({}); they are left out instead",
                error.message
            ));
            Ok(note)
        }
    })
}

/// Starts the conversation at the loaded end of a log that is too long to be read whole. A hook may write what takes the
/// place of the rest, which nobody has read; if one forbids it, the log stays as it is, and the rest is not sent all the
/// same.
pub(super) async fn leave_out_older_messages(
    turn: &mut Turn<'_>,
    first_kept_id: EntryId,
) -> Result<(), RunError> {
    turn.notice(
        "the session is longer than the model's context window; its oldest messages are no longer sent",
    );
    let text = match hooks::ask(turn, Trigger::Estimate, None, &[]).await? {
        Decision::Veto => return Ok(()),
        Decision::Summary(text) => text,
        Decision::Model { .. } => LEFT_OUT.to_owned(),
    };
    let kept = turn.conversation.messages().len();
    let tokens_before = estimated_tokens(turn);
    let entry = CompactionEntry {
        id: EntryId::generate(),
        ts: turn.now_ms(),
        summary: text,
        first_kept_id,
        tokens_before,
        old_count: kept as u64,
        new_count: kept as u64 + 1,
    };
    turn.conversation.append_compaction_before_all(&entry)?;
    turn.emit_compaction(kept, kept + 1);
    let report = CompactionReport {
        outcome: CompactionOutcome::Done,
        old_count: kept,
        new_count: kept + 1,
        tokens_before,
        tokens_after: estimated_tokens(turn),
    };
    hooks::tell(turn, &report, &entry.summary).await;
    Ok(())
}

fn cost_of_older(tail: &Tail, older: &[TranscriptMessage]) -> u64 {
    let earlier = tail.compaction.as_ref().map_or(0, |earlier| text_tokens(earlier.summary.len()));
    let rows = older.iter().map(|row| row_cost(row, tail.reductions.get(&row.id)));
    earlier + rows.sum::<u64>()
}

/// Where the kept part begins. It never begins with a result: that would be parted from its call.
fn cut_position(rows: &[TranscriptMessage], keep: usize, trigger: Trigger<'_>) -> usize {
    let with_its_call = |mut cut: usize| {
        while cut > 0 && rows.get(cut).is_some_and(|row| row.role == Role::Tool) {
            cut -= 1;
        }
        cut
    };
    let usual = with_its_call(rows.len().saturating_sub(keep));
    match trigger {
        Trigger::Estimate | Trigger::Refusal => usual,
        Trigger::LastResort => with_its_call(rows.len().saturating_sub(1)),
        // Who asks for it in a conversation of few messages means all but the last turn.
        Trigger::Hand { .. } if usual == 0 => {
            rows.iter().rposition(|row| row.role == Role::User).unwrap_or(0)
        }
        Trigger::Hand { .. } => usual,
    }
}

/// What the user asked for last, word for word.
fn last_request(older: &[TranscriptMessage]) -> String {
    let Some(request) = older.iter().rev().find(|row| row.role == Role::User) else {
        return String::new();
    };
    let shown: String = request.content.chars().take(TASK_CHARS).collect();
    format!("\n\nThe user's last message, which is being worked on:\n{shown}")
}

#[cfg(test)]
mod tests;
