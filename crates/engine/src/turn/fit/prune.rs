//! Pruning: results of tools that have done their service are sent shorter, or not at all.
//!
//! Which results is decided once and written into the log as a reduction. So a conversation keeps its bytes, and with
//! them the provider's cache, until the next decision, and the log says when there was one.

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

/// From this part of the window on, in percent, long results are sent shorter.
const TRIM_FROM_PERCENT: u64 = 30;

/// From this part of the window on, in percent, old results are not sent any more.
const CLEAR_FROM_PERCENT: u64 = 50;

/// The results behind the last so many assistant messages stay as they are: the model still works with them.
const PROTECTED_ANSWERS: usize = 3;

/// Characters from which on a result is long.
const LONG_RESULT: usize = 4_000;

/// Characters that remain of a long result at its beginning and at its end.
const TRIMMED: (usize, usize) = (1_500, 1_500);

/// Clearing less than this many characters is not worth a cold cache.
const WORTH_CLEARING: usize = 50_000;

/// How long a provider keeps a prompt in its cache: Anthropic's usual five minutes, and about what others do.
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
        let outlook = Outlook::of(shared.conversation.messages(), mode);
        let was_fruitless = self.fruitless_pruning == Some(outlook);
        if !outlook.promises_anything(fill_percent) || was_fruitless {
            return Ok(());
        }
        let tail = shared.conversation.tail()?;
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

/// Whether the provider's cache of this session has lapsed, so that nothing is lost by changing what is sent.
fn cache_is_cold(shared: &Shared) -> bool {
    let last_answer =
        shared.conversation.messages().iter().rev().find_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant.timestamp),
            Message::User(_) | Message::ToolResult(_) => None,
        });
    last_answer.is_some_and(|at| shared.now_ms().saturating_sub(at) > CACHE_LIFETIME_MS)
}

/// What pruning could find, told from the messages in memory: the rows have to be read from the log, which is not worth
/// it before each call of a long chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outlook {
    mode: ContextPruning,
    /// Old results that are sent in more characters than a trimmed one.
    long_results: usize,
    /// Bytes that are sent of old results.
    bytes: usize,
}

impl Outlook {
    fn of(messages: &[Message], mode: ContextPruning) -> Self {
        let protected = if mode == ContextPruning::Aggressive { 1 } else { PROTECTED_ANSWERS };
        let is_answer = |(_, message): &(usize, &Message)| matches!(message, Message::Assistant(_));
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

    /// Whether a look at the rows may be worth it.
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

/// The rows of a conversation, as pruning looks at them.
struct Context<'a> {
    rows: &'a [TranscriptMessage],
    current: &'a HashMap<EntryId, Reduction>,
}

impl<'a> Context<'a> {
    fn new(rows: &'a [TranscriptMessage], current: &'a HashMap<EntryId, Reduction>) -> Self {
        Self { rows, current }
    }

    /// Everything but the results of the last assistant message that has some.
    fn clear_all_but_last(&self) -> Vec<Reduction> {
        let last = self.rows.iter().rposition(|row| row.role == Role::Tool).unwrap_or(0);
        let call = self.rows[..last].iter().rposition(|row| row.role == Role::Assistant);
        let old = &self.rows[..call.unwrap_or(0)];
        old.iter()
            .filter(|row| row.role == Role::Tool)
            .filter_map(|row| self.to(row, (0, 0)))
            .collect()
    }

    /// The beginning and the end of long results.
    fn trim_long(&self) -> Vec<Reduction> {
        self.candidates()
            .into_iter()
            .filter(|row| {
                row.content.len() > LONG_RESULT && row.content.chars().count() > LONG_RESULT
            })
            .filter_map(|row| self.to(row, TRIMMED))
            .collect()
    }

    /// No old result, if there is enough in them.
    fn clear_old(&self) -> Vec<Reduction> {
        let old = self.candidates();
        let characters: usize = old.iter().map(|row| self.characters_sent(row)).sum();
        if characters < WORTH_CLEARING {
            return Vec::new();
        }
        old.into_iter().filter_map(|row| self.to(row, (0, 0))).collect()
    }

    /// Old results without pictures that nobody has come back to.
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

    /// Where the last `count` assistant messages begin.
    fn start_of_answers(&self, count: usize) -> usize {
        let answers =
            self.rows.iter().enumerate().rev().filter(|(_, row)| row.role == Role::Assistant);
        answers.map(|(position, _)| position).take(count).last().unwrap_or(0)
    }

    /// The reduction of `row`, if less would be sent than now.
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
                // `.` or `src` is in every text.
                .filter(|path| path.len() > 3)
                .collect();
            names.insert(call.id.clone(), paths.into_iter().collect());
        }
    }
    names
}

/// Whether one of the messages says `name`, in its text or in the arguments of a call.
fn is_in(rows: &[TranscriptMessage], name: &str) -> bool {
    // Arguments are JSON inside JSON: what a path looks like there.
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
