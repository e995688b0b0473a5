//! Part of step `act`: tells a model that goes in circles.
//!
//! Small models like to make the same call again and again. The iteration cap ends that at last; a word in the result
//! mostly ends it at once.

use myclaw_llm::{Message, ToolCall};

/// How often the same call may give the same result before the model is told. Twice can be a check.
const TOLD_FROM: usize = 3;

/// What to add to the result of `call`, whose text is `text`, if it has been given often enough since the user last
/// spoke.
pub(super) fn note(messages: &[Message], call: &ToolCall, text: &str) -> Option<String> {
    let spoke = messages.iter().rposition(|message| matches!(message, Message::User(_)))?;
    let mut same_calls = Vec::new();
    let mut times = 1;
    for message in &messages[spoke..] {
        match message {
            Message::User(_) => {}
            Message::Assistant(assistant) => same_calls.extend(
                assistant
                    .tool_calls()
                    .filter(|other| other.name == call.name && other.arguments == call.arguments)
                    .map(|other| other.id.as_str()),
            ),
            // An earlier result may already have had its note.
            Message::ToolResult(result) => {
                let is_same = same_calls.contains(&result.tool_call_id.as_str());
                times += usize::from(is_same && result.text().starts_with(text));
            }
        }
    }
    (times >= TOLD_FROM).then(|| {
        format!(
            "[This call has now given the same result {times} times. Do not repeat it: use what you have, try \
             something else, or answer.]"
        )
    })
}

#[cfg(test)]
mod tests;
