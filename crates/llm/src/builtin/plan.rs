//! From the conversation to the next step. The conversation is all the planner knows: the last user message says what
//! to do, the results behind it say how much of that is done.

use std::collections::HashSet;

use super::answer::{self, Ending};
use super::calls::{PlannedCall, call_for};
use super::parse::{Request, Understood, understand};
use super::{BUILTIN_PROVIDER, extract, help};
use crate::message::joined_text;
use crate::{Message, ModelRequest, ToolResultMessage};

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
    let Some((index, text)) = last_user else { return Step::Say(help::what_i_can_do()) };
    if request.tools.is_empty()
        && let Some(conversation) = extract::conversation_in(&text)
    {
        return Step::Say(extract::extract_of(conversation));
    }
    match understand(&text) {
        Understood::Steps(steps) => {
            continue_steps(&steps, &own_results(&messages[index + 1..]), request)
        }
        Understood::UnquotedCommand(command) => Step::Say(help::put_in_quotes(&command)),
        Understood::Who => Step::Say(help::who_i_am()),
        Understood::Help | Understood::Nothing => Step::Say(help::what_i_can_do()),
    }
}

fn continue_steps(
    steps: &[Request],
    results: &[&ToolResultMessage],
    request: &ModelRequest<'_>,
) -> Step {
    if results.iter().any(|result| result.is_error) {
        return Step::Say(answer::report(steps, results, Ending::Failed));
    }
    let Some(next) = steps.get(results.len()) else {
        return Step::Say(answer::report(steps, results, Ending::Complete));
    };
    let call = call_for(next);
    if request.tools.iter().any(|tool| tool.name == call.tool) {
        Step::Call { lead: answer::lead(next), call }
    } else {
        Step::Say(answer::report(steps, results, Ending::NotOnOffer(call.tool)))
    }
}

/// Results of the planner's own calls, in order. A call that another model made before it was switched off is not its.
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
