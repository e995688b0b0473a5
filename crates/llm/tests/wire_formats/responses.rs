//! The Responses format.

mod answers;
mod requests;

use myclaw_llm::{Api, ContentBlock, TextContent, ThinkingContent};

const API: Api = Api::OpenaiResponses;

fn hidden_thinking(state: &str) -> ContentBlock {
    ContentBlock::Thinking(ThinkingContent {
        thinking: String::new(),
        thinking_signature: Some(state.to_owned()),
        redacted: true,
    })
}

fn text_with_state(text: &str, state: &str) -> ContentBlock {
    let text_signature = Some(state.to_owned());
    ContentBlock::Text(TextContent { text: text.to_owned(), text_signature, outside: Vec::new() })
}
