//! Shortens a message that is sent only in part.

use myclaw_llm::{ContentBlock, Message, joined_text};
use myclaw_session::Reduction;

/// Cuts the text of a message according to `reduction` and adds a note about the omitted part. A text that is short
/// enough is unchanged. An assistant message that is cut also loses its thinking, because that belongs to the whole
/// text; its calls stay.
pub(crate) fn apply(message: &mut Message, reduction: Reduction) {
    let content = match message {
        Message::User(user) => &mut user.content,
        Message::ToolResult(result) => &mut result.content,
        Message::Assistant(assistant) => return cut_answer(&mut assistant.content, reduction),
    };
    let keeps_pictures = reduction.head + reduction.tail > 0;
    if !keeps_pictures {
        content.retain(|block| matches!(block, ContentBlock::Text(_)));
    }
    if let Some(short) = shortened(&joined_text(content, "\n"), reduction) {
        content.retain(|block| matches!(block, ContentBlock::Image(_)));
        content.insert(0, ContentBlock::text(short));
    } else if content.is_empty() {
        content.push(ContentBlock::text("[an old picture was left out]"));
    }
}

fn cut_answer(content: &mut Vec<ContentBlock>, reduction: Reduction) {
    let Some(short) = shortened(&joined_text(content, "\n"), reduction) else { return };
    content.retain(|block| matches!(block, ContentBlock::ToolCall(_)));
    content.insert(0, ContentBlock::text(short));
}

/// The beginning and the end of `text` with a note between them; `None` if the text is short enough.
fn shortened(text: &str, Reduction { head, tail, .. }: Reduction) -> Option<String> {
    let count = text.chars().count();
    let removed = count.checked_sub(head + tail).filter(|removed| *removed > 0)?;
    let (beginning, rest) = text.split_at(position(text, head));
    let end = &rest[position(rest, removed)..];
    Some(match (head, tail) {
        (0, 0) => format!("[{removed} chars of old output were left out]"),
        (_, 0) => format!("{beginning}\n[truncated {removed} chars]"),
        _ => format!("{beginning}\n[… {removed} chars left out …]\n{end}"),
    })
}

/// Byte position of the character number `count`.
fn position(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests;
