//! What front-ends say about a turn: its events as JSON, and lines about them for people.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::approvals::escape;
use myclaw_engine::{AgentRunEvent, Approval, ContextChange, EventCallback, RunResult};
use myclaw_llm::Usage;
use myclaw_tools::FROM_PROGRAM;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::approval::word;
use crate::exit::CliError;
use crate::terminal::{JsonMode, Output, Style, truncated};

/// Columns of a tool's arguments or first line of output in one line of activity.
pub const SUMMARY_COLUMNS: usize = 100;
/// Arguments that describe a call best, the best first.
const SUBJECT_ARGUMENTS: [&str; 4] = ["command", "pattern", "path", "file"];

/// How much goes to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Tool activity, notices and usage.
    Normal,
    /// Nothing but errors.
    Quiet,
}

/// A callback that prints each event as one line of JSON.
pub fn json_reporter(output: Arc<Output>, mode: JsonMode) -> EventCallback {
    Arc::new(move |event| {
        output.push_json(&event, mode);
        if matches!(event.kind, AgentRunEvent::ToolStart { .. } | AgentRunEvent::RunEnd { .. }) {
            output.flush();
        }
    })
}

/// The last line of `--json` when there is no reply.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "error")]
pub struct ErrorLine<'a> {
    class: &'a str,
    message: &'a str,
}

impl<'a> From<&'a CliError> for ErrorLine<'a> {
    fn from(error: &'a CliError) -> Self {
        Self { class: error.class, message: &error.message }
    }
}

/// The line for an event that is neither text nor a tool call.
pub fn narrate(event: &AgentRunEvent) -> Option<(Style, String)> {
    match event {
        AgentRunEvent::Retry { attempt, cause, profile_id, delay_ms, message, .. } => Some((
            Style::Warning,
            format!(
                "retry {attempt} with {profile_id} in {:.1} s ({cause}): {}",
                Duration::from_millis(*delay_ms).as_secs_f64(),
                one_line(message)
            ),
        )),
        AgentRunEvent::Fallback { from, to, cause, message, .. } => Some((
            Style::Warning,
            format!("{to} answers instead of {from} ({cause}): {}", one_line(message)),
        )),
        AgentRunEvent::Compaction { old_count, new_count, change } => {
            let done = context_change(*change, *old_count, *new_count);
            Some((Style::Warning, format!("context made smaller: {done}")))
        }
        AgentRunEvent::Taken { text, .. } => Some((Style::Dim, read_line(text))),
        AgentRunEvent::ModeChanged { to } => {
            Some((Style::Warning, format!("mode {to}: {}", to.meaning())))
        }
        AgentRunEvent::ToolSkipped { tool_name, .. } => {
            Some((Style::Dim, format!("tool skipped {tool_name}: a message came first")))
        }
        AgentRunEvent::ApprovalResolved { approval, .. } => {
            Some((Style::Dim, one_line(&approval_line(approval))))
        }
        AgentRunEvent::BoundReached { message, .. } => Some((Style::Warning, message.clone())),
        AgentRunEvent::Notice(notice) => Some((Style::Warning, one_line(&notice.to_string()))),
        _ => None,
    }
}

/// The line for messages that a run took in.
pub(crate) fn read_line(text: &str) -> String {
    format!("read: {}", first_line(text))
}

fn approval_line(approval: &Approval) -> String {
    match approval {
        Approval::Denied { reason } => format!("not approved: {reason}"),
        approval => format!("approved: {}", word(approval)),
    }
}

fn context_change(change: ContextChange, old_count: usize, new_count: usize) -> String {
    match change {
        ContextChange::Summary if new_count >= old_count => {
            "a summary replaced the oldest message".to_owned()
        }
        ContextChange::Summary => format!("{old_count} messages became {new_count}"),
        ContextChange::LeftOut if new_count >= old_count => {
            "the oldest message was left out".to_owned()
        }
        ContextChange::LeftOut => format!(
            "older messages were left out without a summary ({old_count} messages became {new_count})"
        ),
        ContextChange::ResultsCut => "long tool results were cut".to_owned(),
        _ => "long texts were cut".to_owned(),
    }
}

/// `1.2 s, 2 iterations, 512 tokens in, 45 out, 400 from cache, $0.0012, anthropic/claude-sonnet-4-6`.
pub fn usage_line(result: &RunResult, elapsed: Duration) -> String {
    let iterations = if result.iterations == 1 { "iteration" } else { "iterations" };
    format!(
        "{:.1} s, {} {iterations}, {}, {}/{}",
        elapsed.as_secs_f64(),
        result.iterations,
        tokens_and_cost(&result.usage),
        result.provider,
        result.model
    )
}

/// `512 tokens in, 45 out, 400 from cache, 30 to cache, $0.0012`; the cache and the cost are shown unless they are
/// zero.
pub fn tokens_and_cost(usage: &Usage) -> String {
    let mut text = format!("{} tokens in, {} out", usage.input, usage.output);
    for (tokens, what) in [(usage.cache_read, "from cache"), (usage.cache_write, "to cache")] {
        if tokens > 0 {
            text.push_str(&format!(", {tokens} {what}"));
        }
    }
    if usage.cost.total > 0.0 {
        text.push_str(&format!(", ${:.4}", usage.cost.total));
    }
    text
}

/// What a call is about, in one short line.
pub fn summarise_arguments(arguments: &Map<String, Value>) -> String {
    let found = SUBJECT_ARGUMENTS.iter().find_map(|name| arguments.get(*name)?.as_str());
    let about = match found {
        Some(text) => first_line(text),
        None if arguments.is_empty() => String::new(),
        None => first_line(&Value::Object(arguments.clone()).to_string()),
    };
    // As in a question: what the model wrote cannot look like something else.
    escape(&about)
}

/// `text` with its line ends and other runs of white space as single spaces: a message that must not be cut.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A tool's error in one short line.
pub fn failure_line(text: &str) -> String {
    // If a command printed nothing, the next line holds its outcome.
    first_line(text.strip_prefix("(no output)\n").unwrap_or(text))
}

/// The first line of `text` that is not blank, cut to a readable length, as people read it.
pub fn first_line(text: &str) -> String {
    if let Some((line, _)) =
        text.strip_prefix(FROM_PROGRAM).and_then(|text| text.split_once([']', '\n']))
    {
        return truncated(line, SUMMARY_COLUMNS);
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let cut = truncated(first, SUMMARY_COLUMNS);
    if lines.next().is_some() && !cut.ends_with('…') { format!("{cut} …") } else { cut }
}

#[cfg(test)]
mod tests;
