//! Requests to encode.

use myclaw_llm::wire::{EncodedRequest, encode};
use myclaw_llm::{
    AnswerOptions, Api, AssistantMessage, CallLimits, ContentBlock, ImageContent, Message, Model,
    ModelError, ModelRequest, PairedMessages, StopReason, ThinkingContent, ThinkingLevel, ToolCall,
    ToolResultMessage, ToolUse, Usage, UserMessage,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::formats::format;
use crate::support::{model, tools};

/// A request to encode, with the test model and tools.
pub(crate) struct TestRequest {
    pub(crate) model: Model,
    pub(crate) messages: Vec<Message>,
    pub(crate) key: Option<SecretString>,
    pub(crate) thinking: ThinkingLevel,
    pub(crate) tool_use: ToolUse,
    pub(crate) options: Option<AnswerOptions>,
}

impl TestRequest {
    pub(crate) fn new(api: Api, messages: &[Message]) -> Self {
        let model = model(api, "https://models.example/v1");
        Self {
            model,
            messages: messages.to_vec(),
            key: None,
            thinking: ThinkingLevel::Off,
            tool_use: ToolUse::Auto,
            options: None,
        }
    }

    pub(crate) fn encode(&self) -> EncodedRequest {
        self.try_encode().unwrap()
    }

    pub(crate) fn try_encode(&self) -> Result<EncodedRequest, ModelError> {
        let messages = PairedMessages::repair(self.messages.clone());
        let tools = tools();
        encode(&ModelRequest {
            model: &self.model,
            system_prompt: "You help.",
            messages: &messages,
            tools: &tools,
            tool_use: self.tool_use,
            max_output: None,
            options: self.options.as_ref(),
            thinking: self.thinking,
            api_key: self.key.as_ref(),
            limits: CallLimits::default(),
        })
    }

    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.encode().body).unwrap()
    }

    pub(crate) fn wire_messages(&self) -> Value {
        self.body()[format(self.model.api).messages].take()
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

pub(crate) fn user_blocks(content: Vec<ContentBlock>) -> Message {
    Message::User(UserMessage { content, annotation: None, timestamp: 1 })
}

pub(crate) fn image(mime_type: &str) -> ContentBlock {
    ContentBlock::Image(ImageContent { data: "aGk=".to_owned(), mime_type: mime_type.to_owned() })
}

pub(crate) fn call(id: &str, path: &str) -> ContentBlock {
    let Value::Object(arguments) = json!({"path": path}) else { unreachable!() };
    ContentBlock::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments,
        invalid_arguments: None,
        thought_signature: None,
    })
}

pub(crate) fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> ContentBlock {
    ContentBlock::Thinking(ThinkingContent {
        thinking: text.to_owned(),
        thinking_signature: signature.map(str::to_owned),
        redacted,
    })
}

/// A message of the test model itself.
pub(crate) fn assistant(api: Api, content: Vec<ContentBlock>) -> AssistantMessage {
    AssistantMessage {
        content,
        api,
        provider: "testing".to_owned(),
        model: "test-model".to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 1,
    }
}

pub(crate) fn result(id: &str, content: Vec<ContentBlock>, is_error: bool) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content,
        is_error,
        details: Some(json!({"never": "sent"})),
        timestamp: 1,
    })
}

/// A turn with two calls, one of which failed, and a steering message.
pub(crate) fn turn(api: Api) -> Vec<Message> {
    vec![
        user("Read both."),
        Message::Assistant(assistant(
            api,
            vec![ContentBlock::text("On it."), call("one", "a"), call("two", "b")],
        )),
        result("one", vec![ContentBlock::text("text of a"), ContentBlock::text("more")], false),
        result("two", vec![ContentBlock::text("no such file")], true),
        user("Hurry."),
    ]
}

/// Images from the user and from tools, one of a kind that few servers know.
pub(crate) fn pictures(api: Api) -> Vec<Message> {
    vec![
        user_blocks(vec![ContentBlock::text("See:"), image("image/png")]),
        Message::Assistant(assistant(api, vec![call("one", "a"), call("two", "b")])),
        result("one", vec![ContentBlock::text("a picture"), image("image/png")], false),
        result("two", vec![image("image/tiff")], false),
    ]
}

/// Messages that the engine added something to, and one that holds nothing else.
pub(crate) fn annotated() -> Vec<Message> {
    let annotated = |content: &[ContentBlock], annotation: &str| {
        let annotation = Some(annotation.to_owned());
        Message::User(UserMessage { content: content.to_vec(), annotation, timestamp: 1 })
    };
    vec![
        annotated(&[ContentBlock::text("What time is it?")], "It is noon."),
        annotated(&[ContentBlock::text(" ")], "Nothing was said."),
        annotated(&[image("image/png")], "A picture."),
        annotated(&[ContentBlock::text("Well?")], " "),
    ]
}

/// Messages and blocks with nothing in them, which servers refuse.
pub(crate) fn with_blanks(api: Api) -> Vec<Message> {
    vec![
        user("a"),
        user("  \n"),
        Message::Assistant(assistant(
            api,
            vec![ContentBlock::text(""), ContentBlock::text(" "), call("one", "a")],
        )),
        result("one", vec![ContentBlock::text("")], true),
        Message::Assistant(assistant(api, vec![ContentBlock::text(" \n")])),
        user("b"),
    ]
}
