//! What is special about the Converse format: its vendors' models, its addresses, its recorded answers.

use myclaw_llm::wire::{Decoder, encode};
use myclaw_llm::{
    Api, AssistantMessage, CallLimits, ContentBlock, ErrorClass, Message, ModelRequest,
    PairedMessages, StopReason, ThinkingContent, ThinkingForm, ThinkingLevel, ThinkingLevels,
    ToolUse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::decoding::*;
use crate::request::{assistant, call, result, turn, user};
use crate::support::{hello, model, tools};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const ADAPTIVE: &str = "us.anthropic.claude-opus-4-6-v1";
const BOUND: &str = "us.anthropic.claude-sonnet-5-5";
const TOOLS: &[u8] = include_bytes!("../data/bedrock_tools.bin");

/// A request for the model with this id, at the level `thinking`.
fn body_for(id: &str, thinking: ThinkingLevel, messages: &[Message]) -> Value {
    let mut model = model(Api::BedrockConverse, "https://models.example");
    id.clone_into(&mut model.id);
    model.reasoning = true;
    model.max_output = 64_000;
    model.quirks.thinking_form = match id {
        ADAPTIVE => ThinkingForm::Adaptive,
        BOUND => ThinkingForm::BoundAdaptive,
        _ => ThinkingForm::Budget,
    };
    let messages = PairedMessages::repair(messages.to_vec());
    let tools = tools();
    let request = ModelRequest {
        model: &model,
        system_prompt: "You help.",
        messages: &messages,
        tools: &tools,
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking,
        api_key: None,
        limits: CallLimits::default(),
    };
    serde_json::from_slice(&encode(&request).unwrap().body).unwrap()
}

/// A message of the model with this id.
fn said_by(id: &str, content: Vec<ContentBlock>) -> Message {
    let message = assistant(Api::BedrockConverse, content);
    Message::Assistant(AssistantMessage { model: id.to_owned(), ..message })
}

#[test]
fn claude_gets_cache_points_and_the_status_of_results() {
    let cache_point = json!({"cachePoint": {"type": "default"}});
    let body = body_for(CLAUDE, ThinkingLevel::Off, &turn(Api::BedrockConverse));
    assert_eq!(
        body,
        json!({
            "toolConfig": {"tools": [
                {"toolSpec": {
                    "name": "read",
                    "description": "Reads a file.",
                    "inputSchema": {"json": tools()[0].parameters},
                }},
                cache_point,
            ]},
            "system": [{"text": "You help."}, cache_point],
            "inferenceConfig": {"maxTokens": 64000},
            "messages": [
                {"role": "user", "content": [{"text": "Read both."}, cache_point]},
                {"role": "assistant", "content": [
                    {"text": "On it."},
                    {"toolUse": {"toolUseId": "one", "name": "read", "input": {"path": "a"}}},
                    {"toolUse": {"toolUseId": "two", "name": "read", "input": {"path": "b"}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "one", "content": [{"text": "text of a"}, {"text": "more"}]}},
                    {"toolResult": {"toolUseId": "two", "content": [{"text": "no such file"}], "status": "error"}},
                    {"text": "Hurry."},
                    cache_point,
                ]},
            ],
        })
    );
}

/// The bytes before the new messages are the same in every request but for the cache points, which move on.
#[test]
fn the_prefix_of_claude_keeps_its_bytes() {
    let messages = turn(Api::BedrockConverse);
    let body = |end: usize| {
        let body = body_for(CLAUDE, ThinkingLevel::Off, &messages[..end]).to_string();
        body.replace(r#",{"cachePoint":{"type":"default"}}"#, "")
    };
    let earlier = body(1);
    let prefix = earlier.trim_end_matches(['"', '}', ']']);
    assert!(prefix.len() > 200 && body(5).starts_with(prefix), "{prefix}\n{}", body(5));
}

#[test]
fn models_get_cache_points_where_they_take_them() {
    let points = |id: &str| {
        let body = body_for(id, ThinkingLevel::Off, &[user("a")]);
        let has = |list: &Value| list.to_string().contains("cachePoint");
        [&body["toolConfig"], &body["system"], &body["messages"]].map(has)
    };
    for (id, expected) in [
        (CLAUDE, [true, true, true]),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", [true, true, true]),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-9",
            [true, true, true],
        ),
        ("anthropic.claude-3-haiku-20240307-v1:0", [false, false, false]),
        ("eu.amazon.nova-pro-v1:0", [false, true, true]),
        ("meta.llama3-3-70b-instruct-v1:0", [false, false, false]),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", [false, false, false]),
    ] {
        assert_eq!(points(id), expected, "{id}");
    }
}

#[test]
fn each_vendor_is_asked_to_think_in_its_own_words() {
    let asked =
        |id: &str, level| body_for(id, level, &[user("a")])["additionalModelRequestFields"].take();
    let adaptive = |effort: &str| {
        json!({
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": effort},
        })
    };
    let budget = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    for (id, level, expected) in [
        (CLAUDE, ThinkingLevel::Off, Value::Null),
        (CLAUDE, ThinkingLevel::Minimal, budget(1024)),
        (CLAUDE, ThinkingLevel::High, budget(20_480)),
        (ADAPTIVE, ThinkingLevel::Off, json!({"thinking": {"type": "disabled"}})),
        (ADAPTIVE, ThinkingLevel::Low, adaptive("low")),
        (ADAPTIVE, ThinkingLevel::High, adaptive("high")),
        (BOUND, ThinkingLevel::Off, json!({"thinking": {"type": "disabled"}})),
        (
            BOUND,
            ThinkingLevel::Medium,
            json!({
                "thinking": {
                    "type": "adaptive",
                    "display": "summarized",
                    "block_binding": {"prefix_mismatch_behavior": "drop_block"},
                },
                "output_config": {"effort": "medium"},
                "anthropic_beta": ["thinking-binding-controls-2026-08-01"],
            }),
        ),
        ("openai.gpt-oss-120b-1:0", ThinkingLevel::Minimal, json!({"reasoning_effort": "low"})),
        ("openai.gpt-oss-120b-1:0", ThinkingLevel::Off, json!({"reasoning_effort": "low"})),
        ("openai.gpt-oss-120b-1:0", ThinkingLevel::Medium, json!({"reasoning_effort": "medium"})),
        ("amazon.nova-pro-v1:0", ThinkingLevel::High, Value::Null),
        ("us.deepseek.r1-v1:0", ThinkingLevel::High, Value::Null),
    ] {
        assert_eq!(asked(id, level), expected, "{id} at {level}");
    }
}

#[test]
fn a_provider_s_own_word_for_a_level_is_used() {
    let mut model = model(Api::BedrockConverse, "https://models.example");
    "anthropic.claude-opus-4-6-v1".clone_into(&mut model.id);
    model.reasoning = true;
    model.quirks.thinking_form = ThinkingForm::Adaptive;
    model.thinking_levels = ThinkingLevels::new([(ThinkingLevel::Xhigh, Some("max".to_owned()))]);
    let messages = hello();
    let request = ModelRequest {
        model: &model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Xhigh,
        api_key: None,
        limits: CallLimits::default(),
    };
    let body: Value = serde_json::from_slice(&encode(&request).unwrap().body).unwrap();
    assert_eq!(body["additionalModelRequestFields"]["output_config"], json!({"effort": "max"}));
}

proptest! {
    /// A budget leaves room for an answer, whatever the limit is.
    #[test]
    fn a_budget_is_below_the_output_limit(limit in 1_u64..100_000, level in 0_usize..6) {
        let mut model = model(Api::BedrockConverse, "https://models.example");
        CLAUDE.clone_into(&mut model.id);
        model.reasoning = true;
        let messages = hello();
        let request = ModelRequest {
            model: &model,
            system_prompt: "",
            messages: &messages,
            tools: &[],
            tool_use: ToolUse::Auto,
            max_output: Some(limit),
            options: None,
            thinking: ThinkingLevel::ALL[level],
            api_key: None,
            limits: CallLimits::default(),
        };
        let body: Value = serde_json::from_slice(&encode(&request).unwrap().body).unwrap();
        prop_assert_eq!(&body["inferenceConfig"]["maxTokens"], &json!(limit));
        if let Some(budget) = body["additionalModelRequestFields"]["thinking"]["budget_tokens"].as_u64() {
            prop_assert!((1024..limit).contains(&budget), "{budget} of {limit}");
        }
    }
}

/// Claude with a budget refuses to begin to think between a call and its result.
#[test]
fn a_turn_that_began_without_thinking_goes_on_without() {
    let thinks = |id: &str, content: Vec<ContentBlock>, by: &str| {
        let messages =
            [user("a"), said_by(by, content), result("one", vec![ContentBlock::text("x")], false)];
        let fields = |messages: &[Message]| {
            body_for(id, ThinkingLevel::High, messages)["additionalModelRequestFields"].clone()
        };
        // What the user says behind the results ends no turn.
        assert_eq!(fields(&[&messages[..], &[user("b")]].concat()), fields(&messages));
        fields(&messages) != Value::Null
    };
    let signed = ContentBlock::Thinking(ThinkingContent {
        thinking: "hm".to_owned(),
        thinking_signature: Some("sig".to_owned()),
        redacted: false,
    });
    let with_thinking = || vec![signed.clone(), call("one", "a")];
    assert!(thinks(CLAUDE, with_thinking(), CLAUDE));
    assert!(!thinks(CLAUDE, vec![call("one", "a")], CLAUDE));
    assert!(!thinks(CLAUDE, with_thinking(), "another-model"));
    assert!(thinks(ADAPTIVE, vec![call("one", "a")], CLAUDE));
}

#[test]
fn thinking_goes_back_only_where_it_came_from() {
    let signed = thinking("signed", Some("sig"));
    let content = vec![
        signed.clone(),
        ContentBlock::Thinking(ThinkingContent {
            thinking: String::new(),
            thinking_signature: Some("c2VjcmV0".to_owned()),
            redacted: true,
        }),
        thinking("unsigned", None),
        ContentBlock::text("Answer."),
        signed,
    ];
    let sent_to = |to: &str, by: &str| {
        let messages = [user("a"), said_by(by, content.clone()), user("b")];
        body_for(to, ThinkingLevel::Off, &messages)["messages"][1]["content"].take()
    };
    let sent = |by: &str| sent_to(CLAUDE, by);
    let as_text = |text: &str| json!({"text": format!("<thinking>\n{text}\n</thinking>")});
    assert_eq!(
        sent(CLAUDE),
        json!([
            {"reasoningContent": {"reasoningText": {"text": "signed", "signature": "sig"}}},
            {"reasoningContent": {"redactedContent": "c2VjcmV0"}},
            as_text("unsigned"),
            {"text": "Answer."},
        ])
    );
    assert_eq!(
        sent("another-model"),
        json!([as_text("signed"), as_text("unsigned"), {"text": "Answer."}, as_text("signed")])
    );
    // With thinking off, nothing could say what becomes of bound thinking that is no longer valid.
    assert_eq!(sent_to(BOUND, BOUND), json!([as_text("unsigned"), {"text": "Answer."}]));
}

#[test]
fn a_session_with_calls_has_tools_even_when_none_are_offered() {
    let model = model(Api::BedrockConverse, "https://models.example");
    let tool_config = |messages: Vec<Message>| {
        let messages = PairedMessages::repair(messages);
        let request = ModelRequest {
            model: &model,
            system_prompt: " ",
            messages: &messages,
            tools: &[],
            tool_use: ToolUse::Auto,
            max_output: None,
            options: None,
            thinking: ThinkingLevel::Off,
            api_key: None,
            limits: CallLimits::default(),
        };
        let mut body: Value = serde_json::from_slice(&encode(&request).unwrap().body).unwrap();
        assert_eq!(body["system"], Value::Null);
        body["toolConfig"].take()
    };
    let stand_in = json!({"toolSpec": {
        "name": "read", "description": "Not available any more.", "inputSchema": {"json": {"type": "object"}},
    }});
    assert_eq!(tool_config(turn(Api::BedrockConverse)), json!({"tools": [stand_in]}));
    assert_eq!(tool_config(vec![user("a")]), Value::Null);
}

#[test]
fn the_id_of_a_model_is_one_segment_of_the_path() {
    let url = |base_url: &str, id: &str| {
        let mut model = model(Api::BedrockConverse, base_url);
        id.clone_into(&mut model.id);
        let messages = hello();
        let request = ModelRequest {
            model: &model,
            system_prompt: "",
            messages: &messages,
            tools: &[],
            tool_use: ToolUse::Auto,
            max_output: None,
            options: None,
            thinking: ThinkingLevel::Off,
            api_key: None,
            limits: CallLimits::default(),
        };
        encode(&request).unwrap().url.to_string()
    };
    for (base_url, id, expected) in [
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "amazon.nova-pro-v1:0",
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-pro-v1%3A0/converse-stream",
        ),
        (
            "https://gateway.example/bedrock/",
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.m",
            "https://gateway.example/bedrock/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.m/converse-stream",
        ),
        (
            "https://gateway.example/model/fixed/converse-stream?k=v",
            "m",
            "https://gateway.example/model/fixed/converse-stream?k=v",
        ),
    ] {
        assert_eq!(url(base_url, id), expected);
    }
}

#[test]
fn an_answer_with_thinking_and_calls() {
    let (message, events) = decode(Api::BedrockConverse, TOOLS);
    let message = message.unwrap();
    assert_eq!(
        message.content,
        [
            thinking("The user wants two files – 🦀.", Some("EvYCCkgICxABGAIq")),
            ContentBlock::Thinking(ThinkingContent {
                thinking: String::new(),
                thinking_signature: Some("RW13S0FoZ0I=".to_owned()),
                redacted: true,
            }),
            ContentBlock::text("I'll read \"both\".\n"),
            tool_call(
                "tooluse_q8A6U9X7S4apz8TPXNx4Kq",
                "read",
                json!({"path": "notes.md", "limit": 20})
            ),
            tool_call("tooluse_Zsi5nODkqYT50BEZ9GG8ud", "ls", json!({})),
        ]
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    let usage = message.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens),
        (25, 89, 2048, 310, 2472)
    );
    assert_matches_events(&message, &events);
}

#[test]
fn recorded_streams() {
    let thinking = include_bytes!("../data/recorded/bedrock_converse/thinking.bin");
    let citations = include_bytes!("../data/recorded/bedrock_converse/citations.bin");
    for (stream, blocks, text, usage) in [
        (&thinking[..], 2, "smallest", (46, 1196)),
        (
            citations,
            4,
            "According to the company policy manual, employees get 20 days annual leave.",
            (887, 78),
        ),
    ] {
        let (message, events) = decode(Api::BedrockConverse, stream);
        let message = message.unwrap();
        assert_eq!(message.content.len(), blocks, "{message:?}");
        assert!(message.text().contains(text), "{}", message.text());
        assert_eq!((message.usage.input, message.usage.output), usage);
        assert_eq!(message.stop_reason, StopReason::Stop);
        assert_matches_events(&message, &events);
    }
}

#[test]
fn recorded_documents() {
    let decode = |body: &str| {
        let model = model(Api::BedrockConverse, "http://localhost");
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        decoder.feed_whole(body, &mut |_| {}).unwrap();
        decoder.finish(&mut |_| {}).unwrap()
    };
    let call = decode(include_str!("../data/recorded/bedrock_converse/whole_tool_call.json"));
    let arguments = json!({"location": "San Francisco, CA"});
    assert_eq!(
        call.content,
        [tool_call("tooluse_hi2yncmb3TRabw7kPLFJX3", "get_weather", arguments)]
    );
    assert_eq!(
        (call.stop_reason, call.usage.input, call.usage.output),
        (StopReason::ToolUse, 446, 55)
    );
    let thought = decode(include_str!("../data/recorded/bedrock_converse/whole_thinking.json"));
    let [ContentBlock::Thinking(thinking), ContentBlock::Text(_)] = &thought.content[..] else {
        panic!("{thought:?}")
    };
    assert!(thinking.thinking_signature.as_ref().is_some_and(|signature| signature.len() > 500));
}

/// The decoder, fed these events.
fn decode_events(events: &[(&str, Value)]) -> Result<AssistantMessage, myclaw_llm::ModelError> {
    let model = model(Api::BedrockConverse, "http://localhost");
    let mut decoder = Decoder::new(&model, &[], 42).unwrap();
    for (event, data) in events {
        let frame = myclaw_llm::sse::Frame {
            event: (*event).into(),
            data: data.to_string().into(),
            terminated: true,
        };
        decoder.feed(&frame, &mut |_| {})?;
    }
    decoder.finish(&mut |_| {})
}

fn text(number: u64, text: &str) -> (&'static str, Value) {
    ("contentBlockDelta", json!({"contentBlockIndex": number, "delta": {"text": text}}))
}

#[test]
fn every_stop_reason_has_its_meaning() {
    let stopped = |word: &str| {
        let outcome = decode_events(&[text(0, "a"), ("messageStop", json!({"stopReason": word}))]);
        outcome.map(|message| message.stop_reason).map_err(|error| (error.class, error.code))
    };
    for (word, reason) in [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("something_new", StopReason::Stop),
        ("tool_use", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("guardrail_intervened", StopReason::Refusal),
        ("content_filtered", StopReason::Refusal),
    ] {
        assert_eq!(stopped(word), Ok(reason), "{word}");
    }
    for word in ["malformed_model_output", "malformed_tool_use"] {
        assert_eq!(stopped(word), Err((ErrorClass::Timeout, Some(word.to_owned()))));
    }
}

#[test]
fn oddities_of_streams() {
    let stop = ("messageStop", json!({"stopReason": "end_turn"}));
    // Counters before the end, an event that is not known, tools that run at the provider.
    let server_tool = json!({"contentBlockIndex": 1, "start": {"toolUse": {
        "name": "nova_code_interpreter", "toolUseId": "s", "type": "server_tool_use"}}});
    let server_input = json!({"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}});
    let message = decode_events(&[
        ("metadata", json!({"usage": {"inputTokens": 3, "outputTokens": 2}})),
        ("novelty", json!({"x": 1})),
        text(0, "a"),
        ("contentBlockStart", server_tool),
        ("contentBlockDelta", server_input),
        text(2, "b"),
        stop.clone(),
    ])
    .unwrap();
    assert_eq!(message.content, [ContentBlock::text("a"), ContentBlock::text("b")]);
    assert_eq!((message.usage.input, message.stop_reason), (3, StopReason::Stop));

    // One number for blocks of two kinds, and a fragment of a call that was never announced.
    let reasoning = json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}});
    let fragment = json!({"contentBlockIndex": 7, "delta": {"toolUse": {"input": "{\"a\":"}}});
    let message = decode_events(&[
        ("contentBlockDelta", reasoning),
        text(0, "a"),
        ("contentBlockDelta", fragment),
        stop,
    ])
    .unwrap();
    assert_eq!(message.content, [thinking("hm", None), ContentBlock::text("a")]);

    let cut = decode_events(&[text(0, "a")]).unwrap_err();
    assert_eq!(cut.class, ErrorClass::Timeout);
}
