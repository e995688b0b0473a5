//! Shortens a message that is sent only in part.

use myclaw_llm::{ContentBlock, Message, ToolCall, joined_text};
use myclaw_session::Reduction;
use serde_json::Value;

/// A text of a call is not cut if that would remove fewer characters than this, because the note about the omitted part
/// is about as long.
const NOTE_CHARS: usize = 40;

/// Cuts the text of a message according to `reduction` and adds a note about the omitted part. A text that is short
/// enough is unchanged. An assistant message that is cut also loses its thinking, because that belongs to the whole
/// text; its calls stay, with arguments as long as the text may be.
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
    let limit = reduction.head + reduction.tail;
    let short = shortened(&joined_text(content, "\n"), reduction);
    let rest: usize = content.iter_mut().map(chars_beside_text).sum();
    if short.is_none() && rest <= limit {
        return;
    }
    content.retain(|block| !matches!(block, ContentBlock::Thinking(_)));
    if let Some(short) = short {
        content.retain(|block| matches!(block, ContentBlock::ToolCall(_)));
        content.insert(0, ContentBlock::text(short));
    }
    cut_arguments(content, limit);
}

/// Cuts the texts in the arguments of all calls to equal shares of `limit` characters, if together they are longer. All
/// other values stay, so the arguments still fit the tool's schema.
fn cut_arguments(content: &mut [ContentBlock], limit: usize) {
    let (mut count, mut total) = (0, 0);
    each_argument(content, &mut |text| {
        count += 1;
        total += text.chars().count();
    });
    if total <= limit {
        return;
    }
    let share = limit / count;
    each_argument(content, &mut |text| {
        let length = text.chars().count();
        if length > share + NOTE_CHARS {
            text.truncate(position(text, share));
            text.push_str(&format!("\n[truncated {} chars]", length - share));
        }
    });
}

/// Characters of a call's arguments, or of a thought.
fn chars_beside_text(block: &mut ContentBlock) -> usize {
    if let ContentBlock::Thinking(thinking) = block {
        return thinking.thinking.chars().count();
    }
    let mut chars = 0;
    each_argument(std::slice::from_mut(block), &mut |text| chars += text.chars().count());
    chars
}

/// Calls `visit` with every text in the arguments of the calls in `content`.
fn each_argument(content: &mut [ContentBlock], visit: &mut impl FnMut(&mut String)) {
    for block in content {
        let ContentBlock::ToolCall(ToolCall { arguments, invalid_arguments, .. }) = block else {
            continue;
        };
        arguments.values_mut().for_each(|value| each_text(value, visit));
        invalid_arguments.iter_mut().for_each(&mut *visit);
    }
}

fn each_text(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
