//! Messages as turns of blocks, as the Messages format and the similar Converse format require them: roles alternate,
//! results and the user's text after them are one turn, and the model's thinking keeps its place. Each format encodes
//! blocks in its own way.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::anthropic_messages::thinking::ThinkingHistory;
use super::compat::ToolIdRule;
use super::history;
use super::pieces::{self, ImageTypes, Piece, pieces};
use crate::{
    AssistantMessage, ContentBlock, Message, Model, ThinkingContent, ToolCall, ToolResultMessage,
};

/// The form of call ids that both allow: letters, digits, `_` and `-`, at most 64 bytes.
const TOOL_IDS: ToolIdRule = ToolIdRule::Token(64);

/// Image types that both accept.
const IMAGE_TYPES: ImageTypes =
    ImageTypes::Only(&["image/png", "image/jpeg", "image/gif", "image/webp"]);

/// How many of the newest user turns carry a cache point: the last one of this call, and the last one of the call
/// before, so that the cache is found even if a turn added more blocks than the provider searches backwards. With one
/// for the tools and one for the system prompt this makes four, the maximum of both formats.
const CACHED_USER_TURNS: usize = 2;

/// The content of one role, in blocks of this module or of a host's format.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Turn<B> {
    pub(super) role: Role,
    pub(super) content: Vec<B>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

/// A part of a turn.
#[derive(Debug, PartialEq)]
pub(super) enum Block<'a> {
    Piece(Piece<'a>),
    Thinking { text: &'a str, signature: &'a str },
    RedactedThinking(&'a str),
    Call { id: Cow<'a, str>, name: Cow<'a, str>, arguments: Cow<'a, Map<String, Value>> },
    Result { call_id: Cow<'a, str>, content: Vec<Piece<'a>>, is_error: bool },
}

impl Block<'_> {
    fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking(_))
    }
}

/// The turns of `messages`. `past` says how the model's own thinking in them is sent.
pub(super) fn turns<'a>(
    model: &Model,
    past: ThinkingHistory,
    messages: &'a [Message],
) -> Vec<Turn<Block<'a>>> {
    let mut turns: Vec<Turn<Block<'a>>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, content) = match message {
            Message::User(user) => {
                let pieces = pieces::of_user(model, IMAGE_TYPES, user);
                (Role::User, pieces.into_iter().map(Block::Piece).collect())
            }
            Message::Assistant(assistant) => {
                (Role::Assistant, assistant_blocks(model, past, assistant))
            }
            Message::ToolResult(result) => (Role::User, vec![result_block(model, result)]),
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    turns
}

fn assistant_blocks<'a>(
    model: &Model,
    past: ThinkingHistory,
    message: &'a AssistantMessage,
) -> Vec<Block<'a>> {
    let same_origin = history::has_same_origin(model, message);
    let mut blocks: Vec<Block<'a>> = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) if history::is_blank(&text.text) => None,
            ContentBlock::Text(text) => Some(text_block(text.text.as_str())),
            ContentBlock::Thinking(thinking) if same_origin => own_thinking(thinking, past),
            ContentBlock::Thinking(thinking) => history::thinking_as_text(thinking).map(text_block),
            ContentBlock::ToolCall(call) => Some(call_block(call)),
            ContentBlock::Image(_) => None,
        })
        .collect();
    // An answer that ends with thinking, because it was cut off there, is refused.
    while blocks.last().is_some_and(Block::is_thinking) {
        blocks.pop();
    }
    blocks
}

fn text_block<'a>(text: impl Into<Cow<'a, str>>) -> Block<'a> {
    Block::Piece(Piece::Text(text.into()))
}

/// The model's own thinking is sent back unchanged if it is signed and `past` allows it. Thinking without a signature
/// comes from an answer that was cut off, so only its text is sent.
fn own_thinking(thinking: &ThinkingContent, past: ThinkingHistory) -> Option<Block<'_>> {
    let signature = history::usable_signature(thinking.thinking_signature.as_ref());
    match (signature, past) {
        (Some(_), ThinkingHistory::LeftOut) => None,
        (Some(data), ThinkingHistory::Kept) if thinking.redacted => {
            Some(Block::RedactedThinking(data))
        }
        (Some(signature), ThinkingHistory::Kept) => {
            Some(Block::Thinking { text: &thinking.thinking, signature })
        }
        (None, _) => history::thinking_as_text(thinking).map(text_block),
    }
}

fn call_block(call: &ToolCall) -> Block<'_> {
    Block::Call {
        id: TOOL_IDS.apply(&call.id),
        name: history::tool_name(&call.name),
        arguments: history::arguments(call),
    }
}

fn result_block<'a>(model: &Model, result: &'a ToolResultMessage) -> Block<'a> {
    let mut content = pieces(model, IMAGE_TYPES, &result.content);
    if content.is_empty() {
        content.push(Piece::Text(Cow::Borrowed(history::NO_OUTPUT)));
    }
    let call_id = TOOL_IDS.apply(&result.tool_call_id);
    Block::Result { call_id, content, is_error: result.is_error }
}

/// Whether the last turns are tool calls that this model made without thinking, or that another model made.
pub(super) fn continue_calls_without_thinking(turns: &[Turn<Block<'_>>]) -> bool {
    let [.., assistant, results] = turns else { return false };
    let goes_on = results.content.iter().any(|block| matches!(block, Block::Result { .. }));
    goes_on && !assistant.content.first().is_some_and(Block::is_thinking)
}

/// The turns in the blocks of a host.
pub(super) fn written<'a, B>(
    turns: Vec<Turn<Block<'a>>>,
    write: impl Fn(Block<'a>) -> B,
) -> Vec<Turn<B>> {
    let write_all = |turn: Turn<Block<'a>>| Turn {
        role: turn.role,
        content: turn.content.into_iter().map(&write).collect(),
    };
    turns.into_iter().map(write_all).collect()
}

/// The blocks of each turn that ends with a cache point.
pub(super) fn turns_to_cache<B>(turns: &mut [Turn<B>]) -> impl Iterator<Item = &mut Vec<B>> {
    let users = turns.iter_mut().rev().filter(|turn| turn.role == Role::User);
    users.take(CACHED_USER_TURNS).map(|turn| &mut turn.content)
}

#[cfg(test)]
mod tests;
