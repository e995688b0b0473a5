//! What is particular to Google's format: signatures on the part they came with, whole calls, reasons for stopping,
//! counters, and recorded answers of the real service.

use myclaw_llm::wire::Decoder;
use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, ErrorClass, InputKind, Message, ModelError, StopReason,
    TextContent, ThinkingContent, ToolCall, Usage,
};
use serde_json::{Value, json};

use crate::decoding::{
    Decoded, assert_matches_events, decode, thinking, tool_call, with_stable_ids,
};
use crate::request::{TestRequest, assistant, call, image, result, user};
use crate::support::model;

const API: Api = Api::GoogleGenerativeAi;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../data/recorded/google_generative_ai/", $name))
    };
}

fn stream(responses: &[Value]) -> Decoded {
    let body: String = responses.iter().map(|response| format!("data: {response}\n\n")).collect();
    decode(API, body)
}

#[expect(clippy::needless_pass_by_value, reason = "every caller makes the value on the spot")]
fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {}, "finishReason": reason}]})
}

fn document(body: &str) -> Result<AssistantMessage, ModelError> {
    let model = model(API, "http://localhost");
    let mut decoder = Decoder::new(&model, &[], 42).unwrap();
    decoder.feed_whole(body, &mut |_| {})?;
    with_stable_ids(decoder.finish(&mut |_| {}))
}

fn text(text: &str, signature: Option<&str>) -> ContentBlock {
    ContentBlock::Text(TextContent {
        text: text.to_owned(),
        text_signature: signature.map(str::to_owned),
        outside: Vec::new(),
    })
}

fn signed_call(id: &str, signature: Option<&str>) -> ContentBlock {
    let ContentBlock::ToolCall(call) = call(id, "a") else { unreachable!() };
    ContentBlock::ToolCall(ToolCall { thought_signature: signature.map(str::to_owned), ..call })
}

#[test]
fn an_answer_with_thoughts_calls_and_counters() {
    let (message, events) = decode(API, include_bytes!("../data/google_tools.sse"));
    let message = message.unwrap();
    let mut read = tool_call("fc_1", "read", json!({"path": "notes.md", "limit": 20}));
    if let ContentBlock::ToolCall(call) = &mut read {
        call.thought_signature = Some("CiIB0e2KbxCallSignature==".to_owned());
    }
    assert_eq!(
        message.content,
        [
            thinking("The user wants two files. I read \"both\" – at once 🦀.", None),
            text("Let me look.\n", Some("CiIB0e2KbxTextSignature==")),
            read,
            tool_call("fc_2", "ls", json!({})),
        ]
    );
    assert_eq!((message.stop_reason, message.api), (StopReason::ToolUse, API));
    let counters =
        Usage { input: 335, output: 89, cache_read: 2048, reasoning: 64, ..Usage::default() };
    assert_eq!(message.usage, counters.priced(model(API, "").price));
    assert_eq!(message.usage.total_tokens, 2472, "as the service counts");
    let ends = events.iter().filter(|event| format!("{event:?}").contains("End")).count();
    assert_eq!(ends, 4);
}

#[test]
fn each_signature_stays_on_its_part() {
    let (message, events) = stream(&[
        parts(json!([{"text": "a"}, {"text": "b", "thoughtSignature": "one"}, {"text": "c"}])),
        parts(json!([{"text": "", "thoughtSignature": "two"}])),
        parts(json!([{"text": "hm", "thought": true, "thoughtSignature": "three"}])),
        parts(
            json!([{"functionCall": {"name": "read", "id": "x", "args": {"path": "a"}}, "thoughtSignature": "four"}]),
        ),
        parts(json!([{"text": "", "thoughtSignature": "five"}, {"text": ""}])),
        finish("STOP"),
    ]);
    let content = message.unwrap().content;
    assert_eq!(
        content,
        [
            text("abc", Some("one")),
            text("", Some("two")),
            thinking("hm", Some("three")),
            signed_call("x", Some("four")),
            text("", Some("five")),
        ]
    );
    assert!(!events.is_empty());
    let sent = |message: AssistantMessage| {
        let messages =
            [user("a"), Message::Assistant(message), result("x", vec![], false), user("b")];
        TestRequest::new(API, &messages).wire_messages()[1]["parts"].take()
    };
    let own = assistant(API, content);
    let call = json!({"id": "x", "name": "read", "args": {"path": "a"}});
    assert_eq!(
        sent(own.clone()),
        json!([
            {"text": "abc", "thoughtSignature": "one"},
            {"text": "", "thoughtSignature": "two"},
            {"text": "hm", "thought": true, "thoughtSignature": "three"},
            {"functionCall": call, "thoughtSignature": "four"},
            {"text": "", "thoughtSignature": "five"},
        ])
    );
    for foreign in [
        AssistantMessage { model: "other-model".to_owned(), ..own.clone() },
        AssistantMessage { provider: "other".to_owned(), ..own.clone() },
        AssistantMessage { api: Api::OpenaiCompletions, ..own },
    ] {
        assert_eq!(
            sent(foreign),
            json!([
                {"text": "abc"},
                {"text": "<thinking>\nhm\n</thinking>"},
                {"functionCall": call, "thoughtSignature": "skip_thought_signature_validator"},
            ])
        );
    }
}

#[test]
fn unsigned_thoughts_go_back_too_and_empty_ones_do_not() {
    let redacted = ContentBlock::Thinking(ThinkingContent {
        thinking: String::new(),
        thinking_signature: None,
        redacted: true,
    });
    let content = vec![thinking("hm", None), redacted, ContentBlock::text("Well.")];
    let messages = [user("a"), Message::Assistant(assistant(API, content)), user("b")];
    let sent = TestRequest::new(API, &messages).wire_messages();
    assert_eq!(sent[1]["parts"], json!([{"text": "hm", "thought": true}, {"text": "Well."}]));
}

#[test]
fn only_the_newer_models_are_reported_of_missing_signatures() {
    let calls = vec![call("one", "a"), call("two", "b")];
    let messages = [user("a"), Message::Assistant(assistant(Api::AnthropicMessages, calls))];
    for (id, expected) in [
        ("gemini-2.5-pro", Value::Null),
        ("gemini-3.1-pro-preview", json!("skip_thought_signature_validator")),
    ] {
        let mut request = TestRequest::new(API, &messages);
        request.model.id = id.to_owned();
        let parts = request.wire_messages()[1]["parts"].take();
        assert_eq!(parts[0]["thoughtSignature"], expected, "{id}");
        assert_eq!(parts[1]["thoughtSignature"], Value::Null, "the first call stands for all");
    }
}

#[test]
fn older_models_get_the_images_of_results_behind_them() {
    let messages = [
        user("a"),
        Message::Assistant(assistant(API, vec![call("one", "a"), call("two", "b")])),
        result("one", vec![image("image/png")], false),
        result("two", vec![ContentBlock::text("x")], false),
        user("Well?"),
    ];
    let mut request = TestRequest::new(API, &messages);
    request.model.id = "gemini-2.5-flash".to_owned();
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let response = |id: &str, output: &str| json!({"functionResponse": {"id": id, "name": "read", "response": {"output": output}}});
    assert_eq!(
        request.wire_messages()[2],
        json!({"role": "user", "parts": [
            response("one", "(the image)"), response("two", "x"),
            {"text": "Image from the result of tool read:"}, png, {"text": "Well?"},
        ]})
    );
    request.model.input = vec![InputKind::Text];
    let note = "[image omitted: this model takes no images]";
    assert_eq!(
        request.wire_messages()[2],
        json!({"role": "user", "parts": [
            response("one", note), response("two", "x"), {"text": "Well?"},
        ]})
    );
}

#[test]
fn vertex_gets_no_ids() {
    let messages = [
        user("a"),
        Message::Assistant(assistant(API, vec![call("one", "a")])),
        result("one", vec![ContentBlock::text("x")], false),
    ];
    let mut request = TestRequest::new(API, &messages);
    request.model.provider = "google-vertex".to_owned();
    let sent = request.wire_messages();
    assert_eq!(sent[1]["parts"][0]["functionCall"], json!({"name": "read", "args": {"path": "a"}}));
    assert_eq!(
        sent[2]["parts"][0]["functionResponse"],
        json!({"name": "read", "response": {"output": "x"}})
    );
}

#[test]
fn a_session_begins_with_the_user() {
    let messages = [user(" "), Message::Assistant(assistant(API, vec![call("one", "a")]))];
    let sent = TestRequest::new(API, &messages).wire_messages();
    assert_eq!(sent[0], json!({"role": "user", "parts": [{"text": "(no text)"}]}));
    assert_eq!(
        sent.as_array().unwrap().iter().map(|turn| &turn["role"]).collect::<Vec<_>>(),
        ["user", "model", "user"]
    );
}

#[test]
fn the_model_stands_in_the_path() {
    let mut request = TestRequest::new(API, &[user("a")]);
    for (base_url, id, expected) in [
        (
            "https://generativelanguage.googleapis.com",
            "models/gemini-3-flash",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse",
        ),
        (
            "https://h.example/v1?team=a",
            "a/b?c",
            "https://h.example/v1/models/a%2Fb%3Fc:streamGenerateContent?team=a&alt=sse",
        ),
    ] {
        request.model.base_url = base_url.to_owned();
        request.model.id = id.to_owned();
        assert_eq!(request.encode().url.as_str(), expected);
    }
}

#[test]
fn every_reason_for_stopping() {
    let stop = |reason: &str| stream(&[parts(json!([{"text": "x"}])), finish(reason)]).0;
    for (reason, expected) in [
        ("STOP", StopReason::Stop),
        ("FINISH_REASON_UNSPECIFIED", StopReason::Stop),
        ("SOMETHING_NEW", StopReason::Stop),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("LANGUAGE", StopReason::Refusal),
        ("BLOCKLIST", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("SPII", StopReason::Refusal),
        ("MODEL_ARMOR", StopReason::Refusal),
        ("ESCALATION", StopReason::Refusal),
        ("IMAGE_SAFETY", StopReason::Refusal),
        ("IMAGE_PROHIBITED_CONTENT", StopReason::Refusal),
        ("IMAGE_RECITATION", StopReason::Refusal),
    ] {
        assert_eq!(stop(reason).unwrap().stop_reason, expected, "{reason}");
    }
    for (reason, class) in [
        ("MALFORMED_FUNCTION_CALL", ErrorClass::Timeout),
        ("UNEXPECTED_TOOL_CALL", ErrorClass::Timeout),
        ("TOO_MANY_TOOL_CALLS", ErrorClass::Timeout),
        ("MALFORMED_RESPONSE", ErrorClass::Timeout),
        ("OTHER", ErrorClass::Timeout),
        ("PUP_LIMITED_DISABLED", ErrorClass::Auth),
        ("MISSING_THOUGHT_SIGNATURE", ErrorClass::Unknown),
        ("NO_IMAGE", ErrorClass::Unknown),
        ("IMAGE_OTHER", ErrorClass::Unknown),
    ] {
        let error = stop(reason).unwrap_err();
        let code = Some(reason.to_owned());
        assert_eq!((error.class, error.status, &error.code), (class, Some(200), &code));
        assert_eq!(error.message, format!("gave the answer up ({reason})"));
    }
    let explained = json!({"candidates": [{
        "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed call:\nprint(x",
    }]});
    assert_eq!(
        stream(&[explained]).0.unwrap_err().message,
        "gave the answer up (MALFORMED_FUNCTION_CALL): Malformed call: print(x"
    );
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let blocked = json!({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
    });
    let (message, events) = stream(&[blocked]);
    let message = message.unwrap();
    assert_eq!(
        (message.stop_reason, message.content.len(), message.usage.input),
        (StopReason::Refusal, 0, 7)
    );
    assert_matches_events(&message, &events);
}

#[test]
fn counters_are_counted_once() {
    let usage = |counters: Value| {
        let mut last = finish("STOP");
        last["usageMetadata"] = counters;
        let message = stream(&[parts(json!([{"text": "x"}])), last]).0.unwrap();
        let Usage { input, output, cache_read, reasoning, .. } = message.usage;
        (input, output, cache_read, reasoning)
    };
    let beside = json!({"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3,
        "thoughtsTokenCount": 20, "totalTokenCount": 33});
    assert_eq!(usage(beside), (6, 23, 4, 20));
    let within = json!({"promptTokenCount": 10, "candidatesTokenCount": 23, "thoughtsTokenCount": 20, "totalTokenCount": 33});
    assert_eq!(usage(within), (10, 23, 0, 20));
    let absurd = json!({"promptTokenCount": u64::MAX, "toolUsePromptTokenCount": 9, "candidatesTokenCount": 1});
    assert_eq!(usage(absurd), (u64::MAX, 1, 0, 0));
    assert_eq!(usage(json!("none")), (0, 0, 0, 0));
}

/// A total that came with an earlier chunk says nothing of the counters of a later one, and counters do not shrink.
#[test]
fn counters_of_several_chunks_belong_together() {
    let usage = |first: Value, second: Value| {
        let mut begin = parts(json!([{"text": "x"}]));
        begin["usageMetadata"] = first;
        let mut last = finish("STOP");
        last["usageMetadata"] = second;
        let message = stream(&[begin, last]).0.unwrap();
        let Usage { input, output, cache_read, reasoning, .. } = message.usage;
        (input, output, cache_read, reasoning)
    };
    let thinking = json!({"promptTokenCount": 10, "thoughtsTokenCount": 20, "totalTokenCount": 30});
    let answered = json!({"promptTokenCount": 10, "candidatesTokenCount": 20});
    assert_eq!(usage(thinking.clone(), answered), (10, 40, 0, 20));
    let zeros = json!({"promptTokenCount": 10, "thoughtsTokenCount": 0, "candidatesTokenCount": 3, "totalTokenCount": 33});
    assert_eq!(usage(thinking, zeros), (10, 23, 0, 20));
    let cached =
        json!({"promptTokenCount": 10, "cachedContentTokenCount": 4, "totalTokenCount": 10});
    let later = json!({"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12});
    assert_eq!(usage(cached, later), (6, 2, 4, 0));
}

#[test]
fn errors_in_a_list_are_found() {
    let error = json!([
        parts(json!([{"text": "x"}])),
        {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}},
    ]);
    for error in [stream(std::slice::from_ref(&error)).0, document(&error.to_string())] {
        let error = error.unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ErrorClass::RateLimit, "reported an error (RESOURCE_EXHAUSTED): Slow down")
        );
    }
    assert!(document("[]").is_err());
    assert!(document(r#"[{"candidates": [{"content": {"parts": [{"text": "half"}]}}]}]"#).is_err());
}

#[test]
fn recorded_streams() {
    let message = decode(API, recorded!("text.sse")).0.unwrap();
    assert_eq!(message.content, [text("The capital of France is Paris.\n", None)]);
    assert_eq!((message.usage.input, message.usage.output), (13, 8));

    let message = decode(API, recorded!("call.sse")).0.unwrap();
    let call = tool_call("made up", "get_capital", json!({"country": "France"}));
    assert_eq!(
        (message.content.as_slice(), message.stop_reason),
        ([call].as_slice(), StopReason::ToolUse)
    );

    let (message, events) = decode(API, recorded!("thought_signature.sse"));
    let message = message.unwrap();
    let [ContentBlock::Thinking(thought), ContentBlock::Text(answer)] = message.content.as_slice()
    else {
        panic!("{:?}", message.content)
    };
    assert!(thought.thinking.starts_with("**Clarifying User Goals**"));
    assert_eq!(thought.thinking_signature, None);
    assert!(answer.text.starts_with("This is a great question! Safely crossing"));
    assert!(answer.text.ends_with("Always assume a driver might not see you."));
    let signature = answer.text_signature.as_deref().unwrap();
    assert!(recorded!("thought_signature.sse").contains(&format!("\"{signature}\"")), "unchanged");
    let Usage { input, output, reasoning, .. } = message.usage;
    assert_eq!((input, output, reasoning), (34, 469 + 787, 787));
    assert!(!events.is_empty());

    let message = decode(API, recorded!("code_execution.sse")).0.unwrap();
    let code =
        "\n```python\n    result = 65465 - 6544 * 65464 - 6 + 1.02255\n    print(result)\n```\n";
    let printed = "\n```\n-428330955.97745\n```\n";
    let commented = "\n```python\n# Calculate the expression 65465-6544 * 65464-6+1.02255\n\
                     result = 65465 - 6544 * 65464 - 6 + 1.02255\nprint(result)\n```\n";
    let answer = "The result is -428,330,955.97745.";
    let expected = [code, printed, commented, printed, answer].concat();
    assert_eq!(message.content, [text(&expected, None)]);
    assert_eq!((message.usage.input, message.usage.total_tokens), (46 + 901, 1475));
}

#[test]
fn recorded_documents() {
    let message = document(recorded!("max_tokens.json")).unwrap();
    assert_eq!(
        (message.text().as_str(), message.stop_reason),
        ("The capital of France is", StopReason::Length)
    );
    let message = document(recorded!("safety.json")).unwrap();
    assert_eq!((message.content.len(), message.stop_reason), (0, StopReason::Refusal));
    let message = document(recorded!("call_after_thoughts.json")).unwrap();
    assert_eq!(message.content, [tool_call("made up", "get_user_country", json!({}))]);
    assert_eq!((message.usage.output, message.usage.reasoning), (276, 264));
    let message = document(recorded!("vertex.json")).unwrap();
    assert_eq!(message.text(), "The capital of France is Paris.\n");
}
