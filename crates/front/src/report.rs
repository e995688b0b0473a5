//! The output of `myclaw run` during a turn: the answer goes to standard output, everything else to standard error.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_agent::approvals::escape;
use myclaw_engine::{AgentRunEvent, Approval, ContextChange, EventCallback, RunResult};
use myclaw_llm::{StreamEvent, Usage};
use myclaw_tools::FROM_PROGRAM;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::approval::word;
use crate::exit::CliError;
use crate::print::fitting_stderr;
use crate::terminal::{JsonMode, Output, Paint, Style, escaped, truncated};

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

/// A callback that prints the answer as text.
pub fn text_reporter(output: Arc<Output>, verbosity: Verbosity) -> EventCallback {
    reporter(output, verbosity, true)
}

/// A callback that prints what [`text_reporter`] prints, without the answer.
pub fn activity_reporter(output: Arc<Output>, verbosity: Verbosity) -> EventCallback {
    reporter(output, verbosity, false)
}

fn reporter(output: Arc<Output>, verbosity: Verbosity, shows_answer: bool) -> EventCallback {
    let reporter = TextReporter {
        output,
        verbosity,
        shows_answer,
        paint: Paint::for_stream(&std::io::stderr()),
        began: Instant::now(),
        state: Mutex::default(),
    };
    Arc::new(move |event| reporter.report(event.kind))
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

struct TextReporter {
    output: Arc<Output>,
    verbosity: Verbosity,
    shows_answer: bool,
    paint: Paint,
    began: Instant,
    state: Mutex<TextState>,
}

#[derive(Default)]
struct TextState {
    /// Whether the message that arrives has shown any text.
    has_text: bool,
    /// What the running calls are about, by their ids.
    calls: HashMap<String, String>,
}

impl TextReporter {
    fn report(&self, event: AgentRunEvent) {
        // Most events are deltas, so they are handled first.
        if let AgentRunEvent::LlmStream { event } = &event {
            if self.shows_answer {
                self.report_stream(event);
            }
            return;
        }
        let mut state = self.state.lock();
        match event {
            AgentRunEvent::LlmStart { .. } => state.has_text = false,
            AgentRunEvent::LlmStream { .. } | AgentRunEvent::ToolExecutionUpdate { .. } => {}
            AgentRunEvent::LlmEnd { .. } => self.output.end_line(),
            AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments } => {
                let about = summarise_arguments(&arguments);
                self.say(Style::Dim, &format!("tool start {tool_name} {about}"));
                state.calls.insert(tool_call_id, about);
            }
            AgentRunEvent::ToolEnd {
                tool_name, tool_call_id, duration_ms, is_error, text, ..
            } => {
                state.calls.remove(&tool_call_id);
                if is_error {
                    let reason = failure_line(&text);
                    self.say(
                        Style::Bad,
                        &format!("tool error {tool_name} {duration_ms} ms: {reason}"),
                    );
                } else {
                    self.say(Style::Dim, &format!("tool ok {tool_name} {duration_ms} ms"));
                }
            }
            event => {
                if let AgentRunEvent::Done { result } = &event {
                    if self.shows_answer && !state.has_text {
                        self.output.push_text(&result.reply);
                    }
                    self.output.end_line();
                    self.output.flush();
                }
                if let Some((style, line)) = narrate(&event, self.began.elapsed()) {
                    self.say(style, &line);
                }
            }
        }
    }

    fn report_stream(&self, event: &StreamEvent) {
        match event {
            StreamEvent::TextDelta { delta, .. } if !delta.is_empty() => {
                self.state.lock().has_text = true;
                self.output.push_text(delta);
            }
            // Blocks of text stand apart.
            StreamEvent::TextStart { .. } => self.output.end_line(),
            _ => {}
        }
    }

    /// Writes one line to standard error, after flushing standard output.
    fn say(&self, style: Style, line: &str) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        self.output.end_line();
        self.output.flush();
        let line = fitting_stderr(escaped(line).trim_end());
        let mut line = self.paint.paint(style, &line);
        line.push('\n');
        // One write, so that lines of several processes do not mix. A failed write is ignored: there is no other place
        // to report it.
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
}

/// The line for an event that is neither text nor a tool call.
pub fn narrate(event: &AgentRunEvent, elapsed: Duration) -> Option<(Style, String)> {
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
        AgentRunEvent::Taken { text, .. } => {
            Some((Style::Dim, format!("read: {}", first_line(text))))
        }
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
        AgentRunEvent::Done { result } => Some((Style::Dim, usage_line(result, elapsed))),
        _ => None,
    }
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
