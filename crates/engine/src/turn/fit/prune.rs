//! Pruning: old tool results are sent shorter, or not at all.
//!
//! The selection is made once and written into the log as a reduction. So the requests of a session begin with the same
//! bytes, which keeps the provider's cache valid, until the next pruning, and the log records when that was.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use myclaw_config::ContextPruning;
use myclaw_llm::{Message, joined_text};
use myclaw_session::{EntryId, Meta, Reduction, ReductionEntry, Role, TranscriptMessage};
use serde_json::Value;

use super::{Fit, Shared, append_reductions, estimated_tokens};
use crate::estimate::row_cost;
use crate::transcript::row_to_message;
use crate::{ActiveModel, AgentRunEvent, RunError};

/// Long results are sent shorter from this percentage of the window on.
const TRIM_FROM_PERCENT: u64 = 30;

/// Old results are no longer sent from this percentage of the window on.
const CLEAR_FROM_PERCENT: u64 = 50;

/// The results after the last this many assistant messages are unchanged, because the model still works with them.
const PROTECTED_ANSWERS: usize = 3;

/// Results of at least this many characters are long.
const LONG_RESULT: usize = 4_000;

/// Characters that are kept of a long result at its beginning and at its end.
const TRIMMED: (usize, usize) = (1_500, 1_500);

/// Clearing fewer characters than this is not worth losing the provider's cache.
const WORTH_CLEARING: usize = 50_000;

/// How long a provider keeps a prompt in its cache: Anthropic's default is five minutes, and others are similar.
const CACHE_LIFETIME_MS: u64 = 5 * 60 * 1_000;

impl Fit {
    /// Prunes as the config says.
    pub(super) fn prune(
        &mut self,
        shared: &mut Shared,
        model: &ActiveModel,
    ) -> Result<(), RunError> {
        let mode = self.pruning;
        let fill_percent = estimated_tokens(shared) * 100 / model.model.context_window.max(1);
        let is_due = match mode {
            ContextPruning::Off => false,
            ContextPruning::Adaptive => fill_percent >= TRIM_FROM_PERCENT,
            ContextPruning::Aggressive => true,
            ContextPruning::CacheTtl => fill_percent >= TRIM_FROM_PERCENT && cache_is_cold(shared),
        };
        if !is_due {
            return Ok(());
        }
        let outlook = Outlook::of(shared.log.messages(), mode);
        let was_fruitless = self.fruitless_pruning == Some(outlook);
        if !outlook.promises_anything(fill_percent) || was_fruitless {
            return Ok(());
        }
        let tail = shared.log.tail()?;
        let context = Context::new(&tail.messages, &tail.reductions);
        let planned = match mode {
            ContextPruning::Aggressive => context.clear_all_but_last(),
            _ if fill_percent >= CLEAR_FROM_PERCENT => {
                let cleared = context.clear_old();
                if cleared.is_empty() { context.trim_long() } else { cleared }
            }
            _ => context.trim_long(),
        };
        let results = planned.len();
        self.fruitless_pruning = planned.is_empty().then_some(outlook);
        if append_reductions(shared, ReductionEntry::PRUNING, planned)? {
            shared.emit(AgentRunEvent::Pruning { results });
        }
        Ok(())
    }
}

/// Whether the provider's cache of this session has expired, so that changing what is sent costs nothing.
fn cache_is_cold(shared: &Shared) -> bool {
    let last_answer = shared.log.messages().iter().rev().find_map(|message| match message {
        Message::Assistant(assistant) => Some(assistant.timestamp),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    last_answer.is_some_and(|at| shared.now_ms().saturating_sub(at) > CACHE_LIFETIME_MS)
}

/// An upper bound on what pruning could find, computed from the messages in memory. The rows have to be read from the
/// log, which is too expensive before each call of a long chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outlook {
    mode: ContextPruning,
    /// Old results that are sent with more characters than a trimmed one.
    long_results: usize,
    /// Bytes of old results that are sent.
    bytes: usize,
}

impl Outlook {
    fn of(messages: &[Message], mode: ContextPruning) -> Self {
        let protected = if mode == ContextPruning::Aggressive { 1 } else { PROTECTED_ANSWERS };
        // The results of the last step with calls stay, even if an answer follows it.
        let is_answer = |(_, message): &(usize, &Message)| match message {
            Message::Assistant(answer) => {
                mode != ContextPruning::Aggressive || answer.tool_calls().next().is_some()
            }
            Message::User(_) | Message::ToolResult(_) => false,
        };
        let answers = messages.iter().enumerate().rev().filter(is_answer);
        let recent = answers.map(|(position, _)| position).take(protected).last().unwrap_or(0);
        let mut outlook = Self { mode, long_results: 0, bytes: 0 };
        for message in &messages[..recent] {
            let Message::ToolResult(result) = message else { continue };
            let length = joined_text(&result.content, "\n").len();
            outlook.bytes += length;
            outlook.long_results += usize::from(length > LONG_RESULT);
        }
        outlook
    }

    /// Whether reading the rows may be worthwhile.
    fn promises_anything(self, fill_percent: u64) -> bool {
        match self.mode {
            ContextPruning::Aggressive => self.bytes > 0,
            _ => {
                let may_clear = fill_percent >= CLEAR_FROM_PERCENT && self.bytes >= WORTH_CLEARING;
                self.long_results > 0 || may_clear
            }
        }
    }
}

/// The rows of a session, as pruning sees them.
struct Context<'a> {
    rows: &'a [TranscriptMessage],
    current: &'a HashMap<EntryId, Reduction>,
}

impl<'a> Context<'a> {
    fn new(rows: &'a [TranscriptMessage], current: &'a HashMap<EntryId, Reduction>) -> Self {
        Self { rows, current }
    }

    /// Clears all results except those of the last assistant message that made calls.
    fn clear_all_but_last(&self) -> Vec<Reduction> {
        let last = self.rows.iter().rposition(|row| row.role == Role::Tool).unwrap_or(0);
        let call = self.rows[..last].iter().rposition(|row| row.role == Role::Assistant);
        let old = &self.rows[..call.unwrap_or(0)];
        old.iter()
            .filter(|row| row.role == Role::Tool)
            .filter_map(|row| self.to(row, (0, 0)))
            .collect()
    }

    /// Trims long results to their beginning and end.
    fn trim_long(&self) -> Vec<Reduction> {
        self.candidates()
            .into_iter()
            .filter(|row| {
                row.content.len() > LONG_RESULT && row.content.chars().count() > LONG_RESULT
            })
            .filter_map(|row| self.to(row, TRIMMED))
            .collect()
    }

    /// Clears all old results, if they are large enough together.
    fn clear_old(&self) -> Vec<Reduction> {
        let old = self.candidates();
        let characters: usize = old.iter().map(|row| self.characters_sent(row)).sum();
        if characters < WORTH_CLEARING {
            return Vec::new();
        }
        old.into_iter().filter_map(|row| self.to(row, (0, 0))).collect()
    }

    /// Old results that contain no images and that later messages do not mention.
    fn candidates(&self) -> Vec<&'a TranscriptMessage> {
        let (old, recent) = self.rows.split_at(self.start_of_answers(PROTECTED_ANSWERS));
        let names = names_of_calls(old);
        let mentioned = |row: &TranscriptMessage| {
            let id = row.tool_call_id.as_deref().unwrap_or_default();
            let named = names.get(id).into_iter().flatten().map(String::as_str);
            named.chain([id]).filter(|name| !name.is_empty()).any(|name| is_in(recent, name))
        };
        old.iter()
            .filter(|row| row.role == Role::Tool && !has_picture(row) && !mentioned(row))
            .collect()
    }

    /// Position at which the last `count` assistant messages begin.
    fn start_of_answers(&self, count: usize) -> usize {
        let answers =
            self.rows.iter().enumerate().rev().filter(|(_, row)| row.role == Role::Assistant);
        answers.map(|(position, _)| position).take(count).last().unwrap_or(0)
    }

    /// The reduction of `row`, if it makes the sent text shorter than now.
    fn to(&self, row: &TranscriptMessage, (head, tail): (usize, usize)) -> Option<Reduction> {
        let reduction = Reduction { id: row.id, head, tail };
        let now = row_cost(row, self.current.get(&row.id));
        (row_cost(row, Some(&reduction)) < now).then_some(reduction)
    }

    fn characters_sent(&self, row: &TranscriptMessage) -> usize {
        let kept = self.current.get(&row.id).map(|reduction| reduction.head + reduction.tail);
        kept.unwrap_or(usize::MAX).min(row.content.len())
    }
}

/// The paths that the calls of these rows name, by the calls' ids.
fn names_of_calls(rows: &[TranscriptMessage]) -> HashMap<String, Vec<String>> {
    let mut names = HashMap::new();
    for row in rows.iter().filter(|row| row.role == Role::Assistant) {
        let Some(Message::Assistant(assistant)) = row_to_message(row.clone()) else { continue };
        for call in assistant.tool_calls() {
            let paths: HashSet<String> = call
                .arguments
                .iter()
                .filter(|(name, _)| name.to_lowercase().contains("path"))
                .filter_map(|(_, value)| value.as_str().map(str::to_owned))
                // Short paths such as `.` or `src` occur in every text.
                .filter(|path| path.len() > 3)
                .collect();
            names.insert(call.id.clone(), paths.into_iter().collect());
        }
    }
    names
}

/// Whether one of the messages mentions `name`, in its text or in the arguments of a call.
fn is_in(rows: &[TranscriptMessage], name: &str) -> bool {
    // Arguments are JSON inside JSON, so the path is escaped like this.
    let quoted = Value::from(name).to_string();
    let quoted = quoted.trim_matches('"');
    let says = |text: &str, name: &str| memmem::find(text.as_bytes(), name.as_bytes()).is_some();
    rows.iter().any(|row| {
        says(&row.content, name)
            || (row.role == Role::Assistant
                && row.meta.as_ref().is_some_and(|meta| says(meta.as_str(), quoted)))
    })
}

fn has_picture(row: &TranscriptMessage) -> bool {
    row.meta.as_ref().is_some_and(|meta: &Meta| meta.as_str().contains(r#"{"type":"image""#))
}

#[cfg(test)]
mod tests;
