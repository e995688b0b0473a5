//! A model's answer, put together from the events of its stream.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{Fallible, Format};

/// What the model said.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    is_over: bool,
}

/// A tool call; the arguments are JSON text.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    content_block: BlockStart<'a>,
    #[serde(borrow, default)]
    delta: BlockDelta<'a>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

#[derive(Deserialize, Default)]
struct BlockStart<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
struct BlockDelta<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    partial_json: Cow<'a, str>,
}

#[derive(Deserialize)]
struct OpenAiChunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: ChoiceDelta<'a>,
}

#[derive(Deserialize, Default)]
struct ChoiceDelta<'a> {
    #[serde(default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Vec<CallDelta<'a>>,
}

/// Within an `Option`, serde borrows only through a type of one's own.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: usize,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    function: FunctionDelta<'a>,
}

#[derive(Deserialize, Default)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

impl Answer {
    /// Takes the data of one event.
    pub(crate) fn take(&mut self, format: Format, data: &[u8]) -> Fallible<()> {
        match format {
            Format::Anthropic => self.take_anthropic(serde_json::from_slice(data)?),
            Format::OpenAi if data.trim_ascii() == b"[DONE]" => {
                self.is_over = true;
                Ok(())
            }
            Format::OpenAi => self.take_openai(serde_json::from_slice(data)?),
        }
    }

    /// The answer, if the stream came to its proper end.
    pub(crate) fn finished(self) -> Fallible<Self> {
        if self.is_over { Ok(self) } else { Err("the stream ended before the answer did".into()) }
    }

    fn take_anthropic(&mut self, event: AnthropicEvent<'_>) -> Fallible<()> {
        if let Some(error) = event.error {
            return Err(error.message.into());
        }
        match &*event.kind {
            "content_block_start" if event.content_block.kind == "tool_use" => {
                self.calls.push(Call {
                    id: event.content_block.id.into_owned(),
                    name: event.content_block.name.into_owned(),
                    arguments: String::new(),
                })
            }
            "content_block_delta" => {
                self.text.push_str(&event.delta.text);
                // Blocks of this format do not interleave: a fragment belongs to the last call.
                if let Some(call) = self.calls.last_mut() {
                    call.arguments.push_str(&event.delta.partial_json);
                }
            }
            "message_stop" => self.is_over = true,
            _ => {}
        }
        Ok(())
    }

    fn take_openai(&mut self, chunk: OpenAiChunk<'_>) -> Fallible<()> {
        if let Some(error) = chunk.error {
            return Err(error.message.into());
        }
        for Choice { delta } in chunk.choices {
            if let Some(Text(text)) = delta.content {
                self.text.push_str(&text);
            }
            for call in delta.tool_calls {
                if self.calls.len() <= call.index {
                    self.calls.resize_with(call.index + 1, Call::default);
                }
                let known = &mut self.calls[call.index];
                known.id.push_str(&call.id);
                known.name.push_str(&call.function.name);
                known.arguments.push_str(&call.function.arguments);
            }
        }
        Ok(())
    }
}
