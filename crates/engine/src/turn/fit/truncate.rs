//! Second rung: cuts oversized tool results in what is sent. The log keeps them whole.

use myclaw_llm::{ContentBlock, Message};

/// Longest text of one tool block that stays whole, in characters.
const MAX_RESULT_CHARS: usize = 20_000;

/// Cuts each longer text and says how much was removed; whether there was one.
pub(super) fn oversized_results(messages: &mut [Message]) -> bool {
    let mut changed = false;
    for message in messages {
        let Message::ToolResult(result) = message else { continue };
        for block in &mut result.content {
            let ContentBlock::Text(text) = block else { continue };
            if let Some((at, _)) = text.text.char_indices().nth(MAX_RESULT_CHARS) {
                let removed = text.text[at..].chars().count();
                text.text.truncate(at);
                text.text.push_str(&format!("\n[truncated {removed} chars]"));
                changed = true;
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests;
