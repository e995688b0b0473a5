//! The answer to a model call, in one of the wire formats.

use myclaw_llm::wire::{AnswerBody, Decoder, Progress, encode};
use myclaw_llm::{
    Api, AssistantMessage, CallLimits, ContentBlock, InputKind, Message, Model, ModelError,
    ModelRequest, PairedMessages, Price, Quirks, StopReason, StreamEvent, ThinkingLevel,
    ThinkingLevels, ToolResultMessage, ToolSchema, ToolUse, Usage, UserMessage,
};
use myclaw_testkit::{WireFormat, validate_body};

use super::pieces::cuts;
use super::story::Story;

/// The formats that go over a wire, each with its rules for requests.
const FORMATS: [(Api, WireFormat); 5] = [
    (Api::AnthropicMessages, WireFormat::AnthropicMessages),
    (Api::OpenaiCompletions, WireFormat::OpenAiCompletions),
    (Api::OpenaiResponses, WireFormat::OpenAiResponses),
    (Api::GoogleGenerativeAi, WireFormat::GoogleGenerativeAi),
    (Api::BedrockConverse, WireFormat::BedrockConverse),
];

/// What came of an answer. Nothing in it is random.
#[derive(Debug, PartialEq)]
struct Outcome {
    result: Result<AssistantMessage, ModelError>,
    events: Vec<StreamEvent>,
    /// What would be kept if the call ended there.
    partial: Option<AssistantMessage>,
}

/// Checks that an answer gives the same however its bytes are cut, that its events tell the story of its message, and
/// that the message can go back in a request of any format.
///
/// # Panics
/// When one of that does not hold.
pub fn answer(api: Api, input: &[u8]) {
    for host in hosts(api) {
        let model = model(api, host);
        let whole = read(&model, &[input]);
        for cut in cuts(input) {
            assert_eq!(read(&model, &cut), whole);
        }
        let story = Story::of(&whole.events);
        match &whole.result {
            Ok(message) => {
                story.assert_tells(message);
                assert_can_go_back(message);
            }
            Err(error) => {
                assert!(!story.is_done, "a failed call is not done");
                assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error:?}");
            }
        }
        // A partial message may hold nothing but counters.
        let kept = whole.partial.as_ref().map_or(0, |partial| partial.content.len());
        assert_eq!(story.len(), kept);
    }
}

/// Hosts whose answers are read differently: one that leaves thinking in the text, and one that wants its details of
/// reasoning back.
fn hosts(api: Api) -> &'static [&'static str] {
    match api {
        Api::OpenaiCompletions => {
            &["https://models.example/v1", "http://localhost:1/v1", "https://openrouter.ai/api/v1"]
        }
        _ => &["https://models.example/v1"],
    }
}

fn model(api: Api, base_url: &str) -> Model {
    Model {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        base_url: base_url.to_owned(),
        reasoning: true,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 1.25 }),
        context_window: 200_000,
        max_output: 8_192,
        quirks: Quirks::default(),
    }
}

/// The conversation before the answer, with a call whose id must not come again.
fn history(api: Api) -> Vec<Message> {
    let mut call = myclaw_llm::ToolCall {
        id: "call_1".to_owned(),
        name: "read".to_owned(),
        arguments: serde_json::Map::new(),
        invalid_arguments: None,
        thought_signature: None,
    };
    call.arguments.insert("path".to_owned(), "notes.md".into());
    let asked = AssistantMessage {
        content: vec![ContentBlock::ToolCall(call)],
        api,
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 2,
    };
    vec![user("What do my notes say?", 1), Message::Assistant(asked), result("call_1", "read", 3)]
}

fn user(text: &str, timestamp: u64) -> Message {
    Message::User(UserMessage::text(text, timestamp))
}

fn result(id: &str, name: &str, timestamp: u64) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: name.to_owned(),
        content: vec![ContentBlock::text("Buy milk.")],
        is_error: false,
        details: None,
        timestamp,
    })
}

/// Reads an answer as the driver does: up to its end, or to the end of the body.
fn read(model: &Model, pieces: &[&[u8]]) -> Outcome {
    let history = history(model.api);
    let mut decoder = Decoder::new(model, &history, 4).expect("a format with a wire form");
    let mut events = Vec::new();
    let result = read_body(&mut decoder, pieces, &mut events);
    // A message that is whole was taken out of the decoder.
    let partial = match &result {
        Ok(message) => (!message.content.is_empty()).then(|| message.clone()),
        Err(_) => decoder.partial(StopReason::Error, "failed"),
    };
    let mut outcome = Outcome { result, events, partial };
    let ids: Vec<String> = outcome.events.iter().filter_map(made_up_id).collect();
    for (number, id) in ids.iter().enumerate() {
        outcome.rename(id, &format!("made up {number}"));
    }
    outcome
}

fn read_body(
    decoder: &mut Decoder<'_>,
    pieces: &[&[u8]],
    events: &mut Vec<StreamEvent>,
) -> Result<AssistantMessage, ModelError> {
    let mut body = AnswerBody::default();
    let mut sink = |event| events.push(event);
    let mut is_complete = false;
    for piece in pieces {
        match body.feed(piece, decoder, &mut sink)? {
            Some(Progress::Ended) => return decoder.finish(&mut sink),
            Some(Progress::Complete) => is_complete = true,
            Some(Progress::Advanced) => is_complete = false,
            Some(Progress::KeepAlive) | None => {}
        }
    }
    match body.end(decoder, &mut sink) {
        Err(error) if !is_complete => Err(error),
        _ => decoder.finish(&mut sink),
    }
}

/// The id of a call, if the decoder had to make one up.
fn made_up_id(event: &StreamEvent) -> Option<String> {
    let StreamEvent::ToolCallStart { id, .. } = event else { return None };
    let random = id.strip_prefix("call_")?;
    (random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.clone())
}

impl Outcome {
    fn rename(&mut self, old: &str, new: &str) {
        let rename = |id: &mut String| {
            if id == old {
                new.clone_into(id);
            }
        };
        let in_message = |message: &mut AssistantMessage| {
            for block in &mut message.content {
                if let ContentBlock::ToolCall(call) = block {
                    rename(&mut call.id);
                }
            }
        };
        for event in &mut self.events {
            match event {
                StreamEvent::ToolCallStart { id, .. } => rename(id),
                StreamEvent::ToolCallEnd { tool_call, .. } => rename(&mut tool_call.id),
                StreamEvent::Done { message, .. } => in_message(message),
                _ => {}
            }
        }
        self.result.as_mut().ok().into_iter().chain(&mut self.partial).for_each(in_message);
    }
}

/// Puts the message into the conversation with results for its calls, and asks a model of each format to go on.
fn assert_can_go_back(message: &AssistantMessage) {
    let mut messages = history(message.api);
    messages.push(Message::Assistant(message.clone()));
    messages.extend(message.tool_calls().map(|call| result(&call.id, &call.name, 5)));
    messages.push(user("And now?", 6));
    let messages = PairedMessages::repair(messages);
    let tools = [ToolSchema {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }];
    for (api, rules) in FORMATS {
        let model = model(api, "https://models.example/v1");
        let request = ModelRequest {
            model: &model,
            system_prompt: "You help.",
            messages: &messages,
            tools: &tools,
            tool_use: ToolUse::Auto,
            max_output: None,
            options: None,
            thinking: ThinkingLevel::Off,
            api_key: None,
            limits: CallLimits::default(),
        };
        let encoded = encode(&request).expect("a request");
        let body = serde_json::from_slice(&encoded.body).expect("a body of JSON");
        assert_eq!(validate_body(rules, &body), Ok(()), "{api:?}: {body:#}");
    }
}
