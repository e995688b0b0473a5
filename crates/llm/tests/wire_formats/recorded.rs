//! Real answers of real servers (see `tests/data/recorded/SOURCE.md`): each gives the message that stands next to it,
//! however its bytes are cut, and goes back in a request that every format allows.
//!
//! `UPDATE_RECORDED=1` writes what stands next to them anew; a person reads the difference.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_llm::wire::Decoder;
use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, ErrorClass, Message, StreamEvent, ToolResultMessage,
};
use myclaw_testkit::{WireFormat, validate_body};
use serde_json::{Value, json};

use crate::decoding::{Decoded, assert_matches_events, decode_chunks, with_stable_ids};
use crate::formats::FORMATS;
use crate::request::{TestRequest, user};
use crate::support::{Server, answer, call, model, provider};

/// How often each stream is cut into pieces of other lengths.
const CUTS: u64 = 6;

/// Longest opaque state that stands in full next to a recording.
const LONGEST_SHOWN: usize = 120;

/// One recorded answer.
struct Recording {
    api: Api,
    path: PathBuf,
    body: Vec<u8>,
}

impl Recording {
    /// Every answer with status 200, in the order of their names.
    fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded");
        let mut recordings = Vec::new();
        for directory in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
            if !directory.is_dir() {
                continue;
            }
            let name = directory.file_name().unwrap().to_str().unwrap();
            // Google's and Bedrock's recordings, under other names, are replayed by the tests of these formats.
            let Ok(api) = serde_json::from_value::<Api>(json!(name)) else { continue };
            for path in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
                let stem = Path::new(path.file_stem().unwrap());
                if stem.extension().is_none() {
                    recordings.push(Self { api, body: fs::read(&path).unwrap(), path });
                }
            }
        }
        recordings.sort_by(|a, b| a.path.cmp(&b.path));
        recordings
    }

    fn name(&self) -> String {
        format!("{:?} {}", self.api, self.path.file_name().unwrap().display())
    }

    fn is_stream(&self) -> bool {
        self.path.extension().unwrap() == "sse"
    }

    fn decode(&self) -> Decoded {
        if self.is_stream() {
            return decode_chunks(self.api, &[], [self.body.as_slice()]);
        }
        let model = model(self.api, "http://localhost");
        let mut events = Vec::new();
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        let body = str::from_utf8(&self.body).unwrap();
        let result = decoder
            .feed_whole(body, &mut |event| events.push(event))
            .and_then(|()| decoder.finish(&mut |event| events.push(event)));
        (with_stable_ids(result), events)
    }

    /// The stream in pieces of 1 to 64 bytes; `seed` chooses their lengths.
    fn decode_in_pieces(&self, seed: u64) -> Decoded {
        let mut state = seed;
        let mut rest = self.body.as_slice();
        let pieces = std::iter::from_fn(|| {
            // Knuth's linear congruential generator: the lengths need only differ.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let length = usize::try_from(state >> 58).unwrap() + 1;
            let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        decode_chunks(self.api, &[], pieces)
    }
}

/// What a person can review: content, why it ended, and counters.
fn shown(message: &AssistantMessage) -> Value {
    let mut content = json!(message.content);
    for block in content.as_array_mut().unwrap() {
        for state in ["thinkingSignature", "textSignature", "thoughtSignature"] {
            let Some(text) = block[state].as_str().filter(|text| text.len() > LONGEST_SHOWN) else {
                continue;
            };
            let start: String = text.chars().take(LONGEST_SHOWN).collect();
            block[state] = json!(format!("{start}… ({} bytes)", text.len()));
        }
    }
    let usage = &message.usage;
    json!({
        "stopReason": message.stop_reason,
        "usage": {
            "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write, "reasoning": usage.reasoning,
        },
        "content": content,
    })
}

#[test]
fn each_recording_gives_the_message_beside_it() {
    let recordings = Recording::all();
    assert!(recordings.len() > 80, "{} recordings", recordings.len());
    for recording in recordings {
        let name = recording.name();
        let (message, events) = recording.decode();
        let message = message.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_matches_events(&message, &events);
        let expected = recording.path.with_extension("expected.json");
        if std::env::var_os("UPDATE_RECORDED").is_some() {
            fs::write(&expected, format!("{:#}\n", shown(&message))).unwrap();
        }
        let expected: Value = serde_json::from_slice(&fs::read(&expected).unwrap()).unwrap();
        assert_eq!(shown(&message), expected, "{name}");

        let pieces = |events: &[StreamEvent]| events.len();
        for seed in 0..if recording.is_stream() { CUTS } else { 0 } {
            let (again, reported) = recording.decode_in_pieces(seed);
            assert_eq!(again.as_ref(), Ok(&message), "{name}, cut by {seed}");
            assert_eq!(pieces(&reported), pieces(&events), "{name}, cut by {seed}");
        }
    }
}

/// The messages that follow an answer: results for its calls, and another question.
fn follow_up(message: AssistantMessage) -> Vec<Message> {
    let results: Vec<_> = message
        .tool_calls()
        .map(|call| {
            Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: vec![ContentBlock::text("done")],
                is_error: false,
                details: None,
                timestamp: 2,
            })
        })
        .collect();
    let mut messages = vec![user("first"), Message::Assistant(message)];
    messages.extend(results);
    messages.push(user("and now?"));
    messages
}

#[test]
fn each_recording_goes_back_to_its_own_server_and_to_any_other() {
    for recording in Recording::all() {
        let messages = follow_up(recording.decode().0.unwrap());
        for format in FORMATS {
            let mut request = TestRequest::new(format.api, &messages);
            request.model.reasoning = true;
            let body = request.body();
            let rules = match format.api {
                Api::AnthropicMessages => WireFormat::AnthropicMessages,
                Api::OpenaiCompletions => WireFormat::OpenAiCompletions,
                Api::OpenaiResponses => WireFormat::OpenAiResponses,
                Api::GoogleGenerativeAi | Api::BedrockConverse | Api::Builtin => continue,
            };
            let checked = validate_body(rules, &body);
            assert_eq!(checked, Ok(()), "{} for {:?}: {body:#}", recording.name(), format.api);
        }
    }
}

/// The items of a response, as far as a session needs them, are those that the next request repeats.
#[test]
fn recorded_items_are_repeated_as_they_came() {
    let mut compared = 0;
    for recording in Recording::all() {
        if recording.api != Api::OpenaiResponses || recording.is_stream() {
            continue;
        }
        let response: Value = serde_json::from_slice(&recording.body).unwrap();
        let Value::Array(mut output) = response["output"].clone() else { unreachable!() };
        // Without its reasoning an answer goes back without the ids of its items.
        if output
            .iter()
            .any(|item| item["type"] == "reasoning" && item["encrypted_content"].is_null())
        {
            continue;
        }
        let kinds = ["message", "function_call", "reasoning"];
        output.retain(|item| kinds.contains(&item["type"].as_str().unwrap()));
        let messages = follow_up(recording.decode().0.unwrap());
        let mut request = TestRequest::new(recording.api, &messages);
        request.model.reasoning = true;
        let sent = request.wire_messages();
        let sent = &sent.as_array().unwrap()[2..];
        for (came, goes) in output.iter().zip(sent) {
            for field in
                ["type", "id", "phase", "role", "call_id", "name", "summary", "encrypted_content"]
            {
                assert_eq!(came[field], goes[field], "{} {field}", recording.name());
            }
            assert_eq!(came["content"][0]["text"], goes["content"][0]["text"]);
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared} items");
}

#[tokio::test]
async fn a_recorded_refusal_keeps_its_meaning() {
    let body = include_str!("../data/recorded/openai-responses/stop-sequence-1.401.json");
    let server = Server::start([answer("401 Unauthorized", "application/json", body)]).await;
    let outcome = call(&provider(), &model(Api::OpenaiResponses, &server.url())).await;
    let error = outcome.error();
    assert_eq!((error.class, error.status), (ErrorClass::Auth, Some(401)));
    let said = "Could not parse your authentication token. Please try signing in again";
    assert!(error.message.contains(said), "{error}");
}
