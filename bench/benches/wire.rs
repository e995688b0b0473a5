//! Measures the wire formats: decoding a stream, and encoding a long session as a request.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use myclaw_llm::event_stream::EventStreamDecoder;
use myclaw_llm::sse::{Frame, SseDecoder};
use myclaw_llm::wire::{Decoder, encode};
use myclaw_llm::{
    Api, AssistantMessage, CallLimits, ContentBlock, InputKind, Message, Model, ModelRequest,
    PairedMessages, Price, Quirks, StopReason, ThinkingLevel, ToolCall, ToolResultMessage, ToolUse,
    Usage, UserMessage,
};
use myclaw_testkit::{Reply, WireFormat};
use serde_json::json;

/// Deltas of a stream.
const DELTAS: usize = 20_000;

/// Bytes that arrive together: one small event, and what a fast server sends at once.
const CHUNKS: [usize; 2] = [128, 16 * 1024];

/// Rounds of a question, a call, its result and an answer.
const ROUNDS: usize = 50;

fn main() {
    divan::main();
}

/// The framing alone: server-sent events, and Amazon's binary one.
#[divan::bench(args = [WireFormat::AnthropicMessages, WireFormat::BedrockConverse], consts = CHUNKS)]
fn frames<const CHUNK: usize>(bencher: Bencher<'_, '_>, format: WireFormat) {
    let body = stream(format);
    bencher.counter(ItemsCount::new(DELTAS)).counter(BytesCount::new(body.len())).bench_local(
        || {
            let mut bytes = 0;
            each_frame(format, body.chunks(CHUNK), |frame| bytes += frame.data.len());
            black_box(bytes)
        },
    );
}

/// From bytes to stream events and the finished message.
#[divan::bench(args = WireFormat::ALL, consts = CHUNKS)]
fn message<const CHUNK: usize>(bencher: Bencher<'_, '_>, format: WireFormat) {
    let body = stream(format);
    let model = model(format);
    bencher.counter(ItemsCount::new(DELTAS)).counter(BytesCount::new(body.len())).bench_local(
        || {
            let mut decoder = Decoder::new(&model, &[], 0).expect("a format with a wire form");
            let mut events = 0_usize;
            let mut sink = |event| {
                black_box(&event);
                events += 1;
            };
            each_frame(format, body.chunks(CHUNK), |frame| {
                decoder.feed(frame, &mut sink).expect("a sound event");
            });
            let message = decoder.finish(&mut sink).expect("a whole message");
            black_box((message, events))
        },
    );
}

/// Takes a stream apart as the driver does.
fn each_frame<'a>(
    format: WireFormat,
    chunks: impl Iterator<Item = &'a [u8]>,
    mut take: impl FnMut(&Frame<'_>),
) {
    if format == WireFormat::BedrockConverse {
        let mut frames = EventStreamDecoder::default();
        for chunk in chunks {
            frames.push(chunk);
            while let Some(frame) = frames.next_frame().expect("a sound stream") {
                take(&frame);
            }
        }
    } else {
        let mut frames = SseDecoder::default();
        for chunk in chunks {
            frames.push(chunk);
            while let Some(frame) = frames.next_frame().expect("a sound stream") {
                take(&frame);
            }
        }
    }
}

/// A session of 200 messages as the body of a request.
#[divan::bench(args = WireFormat::ALL)]
fn request(bencher: Bencher<'_, '_>, format: WireFormat) {
    let model = model(format);
    let messages = long_session(&model);
    let request = ModelRequest {
        model: &model,
        system_prompt: "You are a benchmark.",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: None,
        limits: CallLimits::default(),
    };
    let bytes = encode(&request).expect("a request").body.len();
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| black_box(encode(&request).expect("a request")));
}

fn stream(format: WireFormat) -> Vec<u8> {
    Reply::new(format).repeated_text(" word", DELTAS).stream_body("m")
}

fn model(format: WireFormat) -> Model {
    let api = match format {
        WireFormat::AnthropicMessages => Api::AnthropicMessages,
        WireFormat::OpenAiCompletions => Api::OpenaiCompletions,
        WireFormat::OpenAiResponses => Api::OpenaiResponses,
        WireFormat::GoogleGenerativeAi => Api::GoogleGenerativeAi,
        WireFormat::BedrockConverse => Api::BedrockConverse,
    };
    Model {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        reasoning: false,
        thinking_levels: myclaw_llm::ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price::default()),
        context_window: 200_000,
        max_output: 8_192,
        quirks: Quirks::default(),
    }
}

fn long_session(model: &Model) -> PairedMessages {
    let messages = (0..ROUNDS).flat_map(|round| {
        let id = format!("call_{round}");
        let call = ToolCall {
            id: id.clone(),
            name: "read".to_owned(),
            arguments: json!({"path": format!("notes/file-{round}.txt")})
                .as_object()
                .cloned()
                .unwrap_or_default(),
            invalid_arguments: None,
            thought_signature: None,
        };
        let answer = |content, stop_reason| {
            Message::Assistant(AssistantMessage {
                content,
                api: model.api,
                provider: model.provider.clone(),
                model: model.id.clone(),
                usage: Usage::default(),
                stop_reason,
                error_message: None,
                timestamp: 0,
            })
        };
        let result = ToolResultMessage {
            tool_call_id: id,
            tool_name: "read".to_owned(),
            content: vec![ContentBlock::text("line one of a file\n".repeat(20))],
            is_error: false,
            details: None,
            timestamp: 0,
        };
        [
            Message::User(UserMessage::text("What is in the next file?", 0)),
            answer(
                vec![ContentBlock::text("Let me look."), ContentBlock::ToolCall(call)],
                StopReason::ToolUse,
            ),
            Message::ToolResult(result),
            answer(vec![ContentBlock::text("It has twenty lines.")], StopReason::Stop),
        ]
    });
    let end = Message::User(UserMessage::text("And the last?", 0));
    PairedMessages::repair(messages.chain([end]).collect())
}
