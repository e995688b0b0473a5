//! Streams to decode, and how the driver would.

use myclaw_llm::event_stream::EventStreamDecoder;
use myclaw_llm::sse::{Frame, SseDecoder};
use myclaw_llm::wire::Decoder;
use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, ErrorClass, Message, Model, ModelError, StreamEvent,
    TextContent, ThinkingContent, ToolCall,
};
use serde_json::{Value, json};

use crate::formats::{FORMATS, Format, Framing, format};
use crate::support::model;

pub(crate) const ANTHROPIC: &[u8] = include_bytes!("../data/anthropic_tools.sse");
pub(crate) const OPENAI: &[u8] = include_bytes!("../data/openai_tools.sse");
pub(crate) const OPENROUTER: &[u8] = include_bytes!("../data/openrouter_reasoning.sse");
pub(crate) const OLLAMA: &[u8] = include_bytes!("../data/ollama_tools.sse");

/// Every stream of every format.
pub(crate) fn recorded() -> Vec<(Api, &'static [u8])> {
    let streams =
        |format: &'static Format| format.streams.iter().map(|stream| (format.api, *stream));
    FORMATS.into_iter().flat_map(streams).collect()
}

pub(crate) type Decoded = (Result<AssistantMessage, ModelError>, Vec<StreamEvent>);

/// Decodes chunks as the driver does.
pub(crate) fn decode_chunks<'a>(
    api: Api,
    history: &[Message],
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Decoded {
    decode_of(&model(api, "http://localhost"), history, chunks)
}

/// The same for an answer of `model`.
fn decode_of<'a>(
    model: &Model,
    history: &[Message],
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Decoded {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(model, history, 42).unwrap();
    let fed = for_each_frame(format(model.api).framing, chunks, |frame| {
        decoder.feed(frame, &mut |event| events.push(event)).map(|_| ())
    });
    let result = fed.and_then(|()| decoder.finish(&mut |event| events.push(event)));
    (with_stable_ids(result), events)
}

/// Takes a stream apart. One that cannot be read further ends with an error of the class that the driver gives it.
pub(crate) fn for_each_frame<'a>(
    framing: Framing,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    mut take: impl FnMut(&Frame<'_>) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    match framing {
        Framing::Text => {
            let mut sse = SseDecoder::default();
            for chunk in chunks {
                sse.push(chunk);
                while let Some(frame) = sse.next_frame().unwrap() {
                    take(&frame)?;
                }
            }
            sse.end();
            while let Some(frame) = sse.next_frame().unwrap() {
                take(&frame)?;
            }
            Ok(())
        }
        Framing::Binary => {
            let failed = |why: String| ModelError::new(ErrorClass::Timeout, why);
            let mut stream = EventStreamDecoder::default();
            for chunk in chunks {
                stream.push(chunk);
                while let Some(frame) =
                    stream.next_frame().map_err(|error| failed(error.to_string()))?
                {
                    take(&frame)?;
                }
            }
            Ok(())
        }
    }
}

/// Ids that the decoder made up are random.
pub(crate) fn with_stable_ids(
    result: Result<AssistantMessage, ModelError>,
) -> Result<AssistantMessage, ModelError> {
    result.map(|mut message| {
        for block in &mut message.content {
            if let ContentBlock::ToolCall(call) = block
                && call.id.len() == "call_".len() + 32
            {
                call.id = "made up".to_owned();
            }
        }
        message
    })
}

pub(crate) fn decode(api: Api, stream: impl AsRef<[u8]>) -> Decoded {
    decode_chunks(api, &[], [stream.as_ref()])
}

/// An OpenAI stream of these chunks, with `[DONE]`.
pub(crate) fn openai(chunks: &[Value]) -> Decoded {
    decode_for(&model(Api::OpenaiCompletions, "http://localhost"), chunks)
}

/// The same from the host of `model`.
pub(crate) fn decode_for(model: &Model, chunks: &[Value]) -> Decoded {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    decode_of(model, &[], [format!("{body}data: [DONE]\n\n").as_bytes()])
}

pub(crate) fn anthropic(events: &[Value]) -> Decoded {
    let body: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    decode(Api::AnthropicMessages, body)
}

pub(crate) fn delta(delta: impl Into<Value>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta.into()}]})
}

pub(crate) fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

pub(crate) fn tool_call(id: &str, name: &str, arguments: Value) -> ContentBlock {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ContentBlock::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
        invalid_arguments: None,
        thought_signature: None,
    })
}

/// `block` with the provider's opaque state, if it is a call.
pub(crate) fn call_with_state(mut block: ContentBlock, state: &str) -> ContentBlock {
    if let ContentBlock::ToolCall(call) = &mut block {
        call.thought_signature = Some(state.to_owned());
    }
    block
}

pub(crate) fn thinking(text: &str, signature: Option<&str>) -> ContentBlock {
    ContentBlock::Thinking(ThinkingContent {
        thinking: text.to_owned(),
        thinking_signature: signature.map(str::to_owned),
        redacted: false,
    })
}

pub(crate) fn calls(decoded: &Decoded) -> Vec<ContentBlock> {
    decoded.0.as_ref().unwrap().tool_calls().cloned().map(ContentBlock::ToolCall).collect()
}

/// The events tell the same story as the message: each block begins, grows and ends, in order.
pub(crate) fn assert_matches_events(message: &AssistantMessage, events: &[StreamEvent]) {
    let mut reported: Vec<ContentBlock> = Vec::new();
    let mut ended = Vec::new();
    for event in events {
        match event {
            StreamEvent::Start => assert!(reported.is_empty()),
            StreamEvent::TextStart { index } => {
                assert_eq!(*index, reported.len());
                reported.push(ContentBlock::text(""));
            }
            StreamEvent::ThinkingStart { index } => {
                assert_eq!(*index, reported.len());
                reported.push(thinking("", None));
            }
            StreamEvent::ToolCallStart { index, id, name } => {
                assert_eq!(*index, reported.len());
                reported.push(tool_call(id, name, json!({})));
            }
            StreamEvent::TextDelta { index, delta }
            | StreamEvent::ThinkingDelta { index, delta } => match &mut reported[*index] {
                ContentBlock::Text(TextContent { text, .. }) => text.push_str(delta),
                ContentBlock::Thinking(block) => block.thinking.push_str(delta),
                other => panic!("text for {other:?}"),
            },
            StreamEvent::ToolCallDelta { index, .. } => {
                assert!(matches!(reported[*index], ContentBlock::ToolCall(_)))
            }
            StreamEvent::ToolCallEnd { index, tool_call } => {
                reported[*index] = ContentBlock::ToolCall(tool_call.clone());
                ended.push(*index);
            }
            StreamEvent::TextEnd { index } | StreamEvent::ThinkingEnd { index } => {
                ended.push(*index)
            }
            StreamEvent::Done { reason, message: whole } => {
                assert_eq!((*reason, whole.as_ref()), (message.stop_reason, message));
            }
            StreamEvent::Error { .. } | StreamEvent::OptionLeftOut { .. } => panic!("{event:?}"),
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, (0..message.content.len()).collect::<Vec<_>>());
    let without_signatures = |content: &[ContentBlock]| -> Vec<ContentBlock> {
        content
            .iter()
            .cloned()
            .map(|block| match block {
                ContentBlock::Thinking(block) => thinking(&block.thinking, None),
                ContentBlock::Text(block) => ContentBlock::text(block.text),
                other => other,
            })
            .collect()
    };
    assert_eq!(without_signatures(&reported), without_signatures(&message.content));
    assert!(matches!(
        (events.first(), events.last()),
        (Some(StreamEvent::Start), Some(StreamEvent::Done { .. }))
    ));
}
