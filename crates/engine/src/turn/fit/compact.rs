//! Rungs that replace older messages by a summary.
//!
//! A compaction is an entry of the log. The messages that it summarises stay in the file; the next request, in this run
//! and in all later ones, starts with the summary.

mod hooks;

use std::ops::ControlFlow;

use myclaw_llm::ErrorClass;
use myclaw_session::{CompactionEntry, EntryId, Role, Tail, TranscriptMessage};
use serde::Serialize;

use self::hooks::Decision;
use super::plan;
use super::summary::{self, LAST_REQUEST, Summary};
use super::{Fit, Shared, Writers, estimated_tokens};
use crate::estimate::{row_cost, text_tokens};
use crate::{ActiveModel, ContextChange, Notice, RunError};

/// A compaction must remove at least one part in this many of the request if it is made before the provider refuses, or
/// if it keeps next to nothing. Otherwise a session whose newest messages fill the window would be summarised again
/// before each call.
const WORTHWHILE_SHARE: u64 = 4;

/// After a compaction the request is at most one part in this many of the size that triggers the next one. Otherwise a
/// small window with large results would be compacted before every other call.
const KEPT_SHARE: u64 = 2;

/// Of a log that is too long to be read whole, at most this part of the window is read from its beginning.
const BEGINNING_SHARE: u64 = 2;

/// Replaces messages that are left out without a summary.
const LEFT_OUT: &str = "The earlier messages of this conversation do not fit the context window and were left out \
                        without a summary. They are still in the session file; ask the user for what you need of them.";

/// Why a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger<'a> {
    /// Only the end of the log was loaded, because the rest does not fit.
    Opening,
    /// The estimate exceeds the room for the request.
    Estimate,
    /// The provider refused the request.
    Refusal,
    /// The provider refused the request, and the earlier rungs did not help.
    LastResort,
    /// The user asked for it.
    Manual {
        /// What the summary should concentrate on.
        focus: Option<&'a str>,
    },
}

impl Trigger<'_> {
    /// Whether the session can go on without this compaction for now.
    fn can_wait(self) -> bool {
        matches!(self, Self::Opening | Self::Estimate)
    }
}

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionOutcome {
    /// A summary replaced older messages.
    Done,
    /// There are no older messages to summarise.
    NothingOlder,
    /// A hook forbade it; a notice gave the reason.
    Forbidden,
    /// No summary was shorter than the messages it would replace, so nothing has changed.
    NotShorter,
}

/// A report on a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionReport {
    /// The outcome.
    #[serde(skip)]
    pub outcome: CompactionOutcome,
    /// Messages of the context before.
    pub old_count: usize,
    /// Messages of the context afterwards; as many as before if there was nothing to summarise.
    pub new_count: usize,
    /// Estimated tokens of the context before.
    pub tokens_before: u64,
    /// Estimated tokens of the context afterwards.
    pub tokens_after: u64,
}

impl CompactionReport {
    pub(super) fn is_smaller(&self) -> bool {
        self.tokens_after < self.tokens_before
    }
}

/// The messages to summarise.
struct Older {
    tail: Tail,
    /// Number of its rows that are not in the list of messages.
    unread: usize,
    /// Where the kept part begins.
    cut: usize,
}

impl Older {
    fn rows(&self) -> &[TranscriptMessage] {
        &self.tail.messages[..self.cut]
    }

    fn kept(&self) -> &[TranscriptMessage] {
        &self.tail.messages[self.cut..]
    }

    /// Tokens that the request loses, before the summary is added.
    fn tokens_sent(&self) -> u64 {
        cost_of_older(&self.tail, &self.tail.messages[self.unread.min(self.cut)..self.cut])
    }

    fn tokens(&self) -> u64 {
        cost_of_older(&self.tail, self.rows())
    }
}

impl Fit {
    /// Finds the rows to summarise.
    fn find_older(
        &self,
        shared: &mut Shared,
        model: &ActiveModel,
        trigger: Trigger<'_>,
    ) -> Result<Older, RunError> {
        let tail = shared.log.wide_tail()?;
        let unread = shared.log.unread(&tail).unwrap_or(0);
        let keep = self.compaction.keep_messages;
        let mut cut = cut_position(&tail.messages, keep, unread, trigger);
        if cut > 0 && trigger == Trigger::Estimate {
            let room = self.room(shared, model);
            let fixed = shared.prompt.tokens() + room / summary::LARGEST_SHARE;
            // If the system prompt alone takes half of it, no cut could reach a smaller target.
            let target = (room / KEPT_SHARE).saturating_sub(fixed).max(room / 2 / KEPT_SHARE);
            cut = smaller_kept_part(&tail, cut, target);
        }
        Ok(Older { tail, unread, cut })
    }

    /// Summarises all but the newest messages, if that makes the request smaller.
    pub(super) async fn compact(
        &mut self,
        shared: &mut Shared,
        writers: &mut dyn Writers,
        trigger: Trigger<'_>,
    ) -> Result<CompactionReport, RunError> {
        let older = self.find_older(shared, writers.active(), trigger)?;
        // Rows that were not loaded are no part of the request, but these two triggers summarise them too.
        let accounts_for_unread = matches!(trigger, Trigger::Opening | Trigger::Manual { .. });
        let (older_tokens, unread_count, unread_tokens) = if accounts_for_unread {
            (older.tokens(), older.unread, older.tokens().saturating_sub(older.tokens_sent()))
        } else {
            (older.tokens_sent(), 0, 0)
        };
        let old_count = shared.log.messages().len() + unread_count;
        let tokens_before = estimated_tokens(shared) + unread_tokens;
        let unchanged = |outcome| CompactionReport {
            outcome,
            old_count,
            new_count: old_count,
            tokens_before,
            tokens_after: tokens_before,
        };
        // One turn may be longer than the most that is read; then what preceded it is unknown.
        let leaves_out = trigger == Trigger::Opening && older.tail.older_messages_exist;
        let Some(first_kept) = older.kept().first().filter(|_| older.cut > 0 || leaves_out) else {
            return Ok(unchanged(CompactionOutcome::NothingOlder));
        };
        let must_be_worthwhile = matches!(trigger, Trigger::Estimate | Trigger::LastResort);
        if must_be_worthwhile && older_tokens < tokens_before / WORTHWHILE_SHARE {
            return Ok(unchanged(CompactionOutcome::NotShorter));
        }
        let earlier = older.tail.compaction.as_ref().map(|earlier| earlier.summary.as_str());
        let plan = plan::left_behind(older.rows(), older.kept(), earlier);
        let task = plan + &task_left_behind(writers.active().model.context_window, &older);
        let must_be_shorter = trigger != Trigger::Opening;
        if must_be_shorter && text_tokens(task.len()) >= older_tokens {
            return Ok(unchanged(CompactionOutcome::NotShorter));
        }
        let (mut text, change) = match stand_in(shared, writers, trigger, &older).await? {
            Ok(stand_in) => stand_in,
            Err(outcome) => return Ok(unchanged(outcome)),
        };
        text.push_str(&task);
        if must_be_shorter && text_tokens(text.len()) >= older_tokens {
            return Ok(unchanged(CompactionOutcome::NotShorter));
        }
        let new_count = older.kept().len() + 1;
        let entry = CompactionEntry {
            id: EntryId::generate(),
            ts: shared.now_ms(),
            summary: text,
            first_kept_id: first_kept.id,
            tokens_before,
            old_count: old_count as u64,
            new_count: new_count as u64,
        };
        let summary = entry.summary.clone();
        shared.log.append_change(entry)?;
        self.opening.cut_before = None;
        shared.emit_compaction(old_count, new_count, change);
        // Both sides of this comparison are estimates of the same kind. A provider's count would not be comparable.
        let tokens_after = estimated_tokens(shared).min(tokens_before.saturating_sub(1));
        let report =
            CompactionReport { new_count, tokens_after, ..unchanged(CompactionOutcome::Done) };
        hooks::report(shared, &report, &summary).await;
        Ok(report)
    }
}

/// The text that replaces the older messages, and its kind: a hook's summary, the model's, or a note. The inner error
/// is the reason why there is no text. A session that still fits never gets a note in place of its messages.
async fn stand_in(
    shared: &mut Shared,
    writers: &mut dyn Writers,
    trigger: Trigger<'_>,
    older: &Older,
) -> Result<Result<(String, ContextChange), CompactionOutcome>, RunError> {
    let older_tokens = older.tokens();
    let focus = match hooks::ask(shared, trigger, &older.tail, older.rows()).await? {
        Decision::Veto => return Ok(Err(CompactionOutcome::Forbidden)),
        Decision::Summary(text) => return Ok(Ok((text, ContextChange::Summary))),
        Decision::Model { focus } => focus,
    };
    let is_manual = matches!(trigger, Trigger::Manual { .. });
    let beginning = beginning(shared, writers.active().model.context_window, &older.tail)?;
    let rows = summary::Rows { beginning: &beginning, older: older.rows() };
    // Boxed: its state is large, callers hold it inside their own state, and few calls need it.
    let writing = Box::pin(summary::of(shared, writers, &older.tail, rows, focus.as_deref()));
    Ok(match writing.await? {
        Summary::Written(text) if text_tokens(text.len()) < older_tokens => {
            Ok((text, ContextChange::Summary))
        }
        Summary::Written(_) if is_manual => Err(CompactionOutcome::NotShorter),
        Summary::Written(_) => Ok((LEFT_OUT.to_owned(), ContextChange::LeftOut)),
        Summary::Failed { error, .. } if is_manual => return Err(RunError::Model(*error)),
        Summary::Failed { error, .. } if trigger.can_wait() && will_pass(error.class) => {
            shared.notice(Notice::SummaryPostponed { error: error.message });
            Err(CompactionOutcome::NotShorter)
        }
        Summary::Failed { note, error } => {
            shared.notice(Notice::SummaryReplaced { error: error.message });
            Ok((note, ContextChange::LeftOut))
        }
    })
}

/// Whether the cause of a failure is temporary and unrelated to the text, so that a later attempt may succeed.
fn will_pass(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Auth
        | ErrorClass::Billing
        | ErrorClass::Quota
        | ErrorClass::RateLimit
        | ErrorClass::Timeout => true,
        ErrorClass::ContextOverflow | ErrorClass::Unknown => false,
    }
}

/// The first rows of a log that is too long to be read back to its beginning. They contain the task.
fn beginning(
    shared: &Shared,
    window: u64,
    tail: &Tail,
) -> Result<Vec<TranscriptMessage>, RunError> {
    let first_read = tail.messages.first().map(|row| row.id);
    if !tail.older_messages_exist {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    let mut room = window / BEGINNING_SHARE;
    shared.run.store.visit_oldest(&shared.run.session_key, &mut |row| {
        let cost = row_cost(&row, None);
        if Some(row.id) == first_read || cost > room {
            return ControlFlow::Break(());
        }
        room -= cost;
        rows.push(row);
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

fn cost_of_older(tail: &Tail, older: &[TranscriptMessage]) -> u64 {
    let earlier = tail.compaction.as_ref().map_or(0, |earlier| text_tokens(earlier.summary.len()));
    let rows = older.iter().map(|row| row_cost(row, tail.reductions.get(&row.id)));
    earlier + rows.sum::<u64>()
}

/// Position at which the kept part begins; 0 if there is nothing to summarise. It never begins with a result, which
/// would be separated from its call, or with one of the first `unread` rows.
fn cut_position(
    rows: &[TranscriptMessage],
    keep: usize,
    unread: usize,
    trigger: Trigger<'_>,
) -> usize {
    let with_its_call = |mut cut: usize| {
        while cut > 0 && rows.get(cut).is_some_and(|row| row.role == Role::Tool) {
            cut -= 1;
        }
        cut
    };
    let usual = with_its_call(rows.len().saturating_sub(keep));
    let helpful = |cut: usize| if cut > unread { cut } else { 0 };
    match trigger {
        Trigger::Opening => unread,
        Trigger::Estimate | Trigger::Refusal => helpful(usual),
        Trigger::LastResort => helpful(with_its_call(rows.len().saturating_sub(1))),
        Trigger::Manual { .. } if unread > 0 => usual.max(unread),
        // A manual compaction of a session with few messages summarises all but the last turn.
        Trigger::Manual { .. } if usual == 0 => {
            rows.iter().rposition(|row| row.role == Role::User).unwrap_or(0)
        }
        Trigger::Manual { .. } => usual,
    }
}

/// Position at which the kept part begins so that it costs at most `target` tokens, or is the newest message with its
/// results.
fn smaller_kept_part(tail: &Tail, cut: usize, target: u64) -> usize {
    let rows = &tail.messages;
    let cost = |row: &TranscriptMessage| row_cost(row, tail.reductions.get(&row.id));
    let mut kept: u64 = rows[cut..].iter().map(cost).sum();
    let (mut best, mut at) = (cut, cut);
    while kept > target {
        kept -= cost(&rows[at]);
        at += 1;
        // Results stay with their call.
        while let Some(row) = rows.get(at).filter(|row| row.role == Role::Tool) {
            kept -= cost(row);
            at += 1;
        }
        if at >= rows.len() {
            break;
        }
        best = at;
    }
    best
}

/// The user's last request, if the kept part does not contain it.
fn task_left_behind(window: u64, older: &Older) -> String {
    if older.kept().iter().any(|row| row.role == Role::User) {
        return String::new();
    }
    let room = summary::share_bytes(window);
    if older.rows().iter().any(|row| row.role == Role::User) {
        return last_request(older.rows(), room);
    }
    // An earlier compaction of the same turn contains it.
    let earlier = older.tail.compaction.as_ref().map(|earlier| earlier.summary.as_str());
    match earlier.and_then(|summary| summary.split_once(LAST_REQUEST)) {
        Some((_, request)) => {
            format!("{LAST_REQUEST}{}", &request[..request.floor_char_boundary(room)])
        }
        None => String::new(),
    }
}

/// The user's last request verbatim, cut to `room`.
fn last_request(older: &[TranscriptMessage], room: usize) -> String {
    let Some(request) = older.iter().rev().find(|row| row.role == Role::User) else {
        return String::new();
    };
    let shown = &request.content[..request.content.floor_char_boundary(room)];
    format!("{LAST_REQUEST}{shown}")
}

#[cfg(test)]
mod tests;
