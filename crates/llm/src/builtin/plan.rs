//! Derives the next step from the messages. The planner has no other state: the last user message says what to do, and
//! the results after it say how much of that is done.

use std::collections::HashSet;

use super::request::{FORMS, PlannedCall, Understood, code, understand};
use super::{BUILTIN_PROVIDER, extract};
use crate::message::joined_text;
use crate::{Message, ModelRequest, ToolResultMessage, ToolUse};

/// Most of a result that is repeated, in characters.
const MAX_RESULT: usize = 4_000;

/// How to get a language model instead.
const HOW_TO_CONNECT: &str = "To talk to a language model, set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, \
    start a local server such as Ollama, or run `myclaw init` and edit the config file.";

/// The end of the message of a heartbeat that brings no notes.
const HEARTBEAT: &str = "If nothing needs attention, reply HEARTBEAT_OK.";
/// The answer to it, which is delivered to nobody. The planner can look after nothing.
const NOTHING: &str = "HEARTBEAT_OK";

/// What the planner does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// It answers, and the turn is over.
    Say(String),
    /// It says what it is about to do and calls a tool.
    Call { lead: String, call: PlannedCall },
}

/// The next step.
pub(super) fn next_step(request: &ModelRequest<'_>) -> Step {
    let messages = request.messages.as_slice();
    let last_user = messages.iter().enumerate().rev().find_map(|(index, message)| match message {
        Message::User(user) => Some((index, joined_text(&user.content, "\n"))),
        _ => None,
    });
    let Some((index, text)) = last_user else { return Step::Say(what_i_can_do()) };
    if request.tools.is_empty()
        && let Some(conversation) = extract::conversation_in(&text)
    {
        return Step::Say(extract::extract_of(conversation));
    }
    if text.trim_end().ends_with(HEARTBEAT) {
        return Step::Say(NOTHING.to_owned());
    }
    match understand(&text) {
        Understood::Calls(calls) => {
            continue_calls(calls, &own_results(&messages[index + 1..]), request)
        }
        Understood::UnquotedCommand => Step::Say(
            "I run a command only if it is in quotes, so that it is clear where it ends."
                .to_owned(),
        ),
        Understood::Who => Step::Say(format!(
            "I am `builtin/demo`, the demo planner built into MyClaw. I am not a language model. Ask for `help` to \
             see what I understand. {HOW_TO_CONNECT}"
        )),
        Understood::Nothing => Step::Say(what_i_can_do()),
    }
}

/// The answer to a message that is not understood, and to a request for help.
fn what_i_can_do() -> String {
    let forms: Vec<String> = FORMS.iter().map(|form| format!("- {}", code(form))).collect();
    format!(
        "I am MyClaw's built-in demo planner, not a language model. I understand only these requests:\n\n{}\n\n\
         Join several with `then`. {HOW_TO_CONNECT}",
        forms.join("\n")
    )
}

fn continue_calls(
    mut calls: Vec<PlannedCall>,
    results: &[&ToolResultMessage],
    request: &ModelRequest<'_>,
) -> Step {
    let mut report: Vec<String> =
        calls.iter().zip(results).map(|(call, result)| outcome(call, result)).collect();
    let is_failed = results.iter().any(|result| result.is_error);
    let left = calls.len().saturating_sub(results.len());
    if left > 0 && is_failed {
        report.push(format!("I stopped there; {left} more of your requests were not done."));
    } else if left > 0 {
        let next = calls.swap_remove(results.len());
        let is_on_offer = request.tools.iter().any(|tool| tool.name == next.tool);
        if is_on_offer && request.tool_use == ToolUse::Auto {
            let lead = format!("I call {} to {}.", code(next.tool), next.purpose);
            return Step::Call { lead, call: next };
        }
        report.push(format!(
            "To {}, I need the tool {}, which I may not call here.",
            next.purpose,
            code(next.tool)
        ));
    }
    Step::Say(report.join("\n\n"))
}

/// The outcome of a call.
fn outcome(call: &PlannedCall, result: &ToolResultMessage) -> String {
    let called = format!("I called {} to {}", code(call.tool), call.purpose);
    let text = joined_text(&result.content, "\n");
    let text = text.trim_end();
    let (shown, note) = match text.char_indices().nth(MAX_RESULT) {
        Some((end, _)) => (&text[..end], "\n\nThe rest is left out here."),
        None => (text, ""),
    };
    let returned = if result.is_error { ", and it failed" } else { ". It returned" };
    // A fence that no line of the text can close.
    let longest = shown.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{called}{returned}:\n\n{fence}\n{shown}\n{fence}{note}")
}

/// Results of the planner's own calls, in order. Calls that another model made before the switch are not included.
fn own_results(messages: &[Message]) -> Vec<&ToolResultMessage> {
    let own_calls: HashSet<&str> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(assistant) if assistant.provider == BUILTIN_PROVIDER => {
                Some(assistant)
            }
            _ => None,
        })
        .flat_map(|assistant| assistant.tool_calls().map(|call| call.id.as_str()))
        .collect();
    messages
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(result) if own_calls.contains(result.tool_call_id.as_str()) => {
                Some(result)
            }
            _ => None,
        })
        .collect()
}
