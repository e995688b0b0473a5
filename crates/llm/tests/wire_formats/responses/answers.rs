//! What servers make of the Responses format.

use myclaw_llm::{ContentBlock, ErrorClass, StopReason, Usage};
use serde_json::{Value, json};

use super::{API, hidden_thinking, text_with_state};
use crate::decoding::{
    Decoded, assert_matches_events, call_with_state, calls, decode, thinking, tool_call,
};
use crate::formats::format;
use crate::support::model;

fn responses(events: &[Value]) -> Decoded {
    let frame = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    decode(API, events.iter().map(frame).collect::<String>())
}

fn completed(output: impl Into<Value>) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output.into()}})
}

fn text_delta(item: u64, text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": item, "content_index": 0, "delta": text})
}

fn function_call(id: &str, call_id: &str, arguments: impl Into<Value>) -> Value {
    let arguments = arguments.into();
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": "read", "arguments": arguments})
}

#[test]
fn an_answer_with_reasoning_and_calls_side_by_side() {
    let (message, events) = decode(API, format(API).streams[0]);
    let message = message.unwrap();
    let state = json!({
        "id": "rs_0a1b01",
        "summary": [
            {"type": "summary_text", "text": "**Planning**\n\nRead \"both\" – at once 🦀."},
            {"type": "summary_text", "text": "**Doing**\n\nNow."},
        ],
        "encrypted_content": "gAAAAABo9k-first",
    });
    let shown = "**Planning**\n\nRead \"both\" – at once 🦀.\n\n**Doing**\n\nNow.";
    let read = tool_call(
        "call_DdmO9pD3xa9XTPNJ32zg2hcA",
        "read",
        json!({"path": "notes.md", "limit": 20}),
    );
    let ls = tool_call("call_hcAxxDdmO9pD3xa9XTPNJ32z", "ls", json!({}));
    assert_eq!(
        message.content,
        [
            thinking(shown, Some(&state.to_string())),
            text_with_state("I'll read both.\n", r#"{"id":"msg_0a1b02","phase":"commentary"}"#),
            hidden_thinking(
                r#"{"id":"rs_0a1b04","summary":[],"encrypted_content":"gAAAAABo9k-second"}"#
            ),
            call_with_state(read, "fc_0a1b05"),
            call_with_state(ls, "fc_0a1b06"),
        ]
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    let counters =
        Usage { input: 335, output: 89, cache_read: 2048, reasoning: 64, ..Usage::default() };
    assert_eq!(message.usage, counters.priced(model(API, "").price));
    assert_matches_events(&message, &events);
}

#[test]
fn items_may_come_only_when_they_are_done() {
    let (message, events) = decode(API, format(API).streams[1]);
    let message = message.unwrap();
    let state = r#"{"id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Two plus two."}]}"#;
    assert_eq!(
        message.content,
        [thinking("Two plus two.", Some(state)), text_with_state("Four.", r#"{"id":"msg_1"}"#)]
    );
    assert_eq!((message.usage.input, message.usage.output, message.usage.reasoning), (14, 11, 6));
    assert_matches_events(&message, &events);
}

/// What was said in pieces is said again when it is done: it counts once, and in whichever form it came.
#[test]
fn nothing_is_taken_twice_and_nothing_is_lost() {
    let done = json!({"type": "message", "id": "msg_2", "content": [
        {"type": "output_text", "text": "One. "}, {"type": "output_text", "text": "Two."},
    ]});
    let place = json!({"output_index": 0, "item_id": "msg_1"});
    let event = |kind: &str, more: Value| {
        let mut event = json!({"type": format!("response.{kind}")});
        for part in [&place, &more] {
            event.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        }
        event
    };
    let deltas = [
        text_delta(0, "One. "),
        event("output_text.delta", json!({"content_index": 1, "delta": "Two."})),
    ];
    let text_done = [
        event("output_text.done", json!({"content_index": 0, "text": "One. "})),
        event("output_text.done", json!({"content_index": 1, "text": "Two."})),
    ];
    let part_done = [
        event("content_part.done", json!({"content_index": 0, "part": done["content"][0]})),
        event("content_part.done", json!({"content_index": 1, "part": done["content"][1]})),
    ];
    let item_done = [event("output_item.done", json!({"item": done}))];
    let end = [completed(json!([done]))];
    for sources in 1..32 {
        let mut events = Vec::new();
        for (bit, source) in
            [&deltas[..], &text_done, &part_done, &item_done, &end].into_iter().enumerate()
        {
            if sources & (1 << bit) != 0 {
                events.extend_from_slice(source);
            }
        }
        if sources & 16 == 0 {
            events.push(completed(json!([])));
        }
        let (message, events) = responses(&events);
        let message = message.unwrap();
        assert_eq!(
            (message.text().as_str(), message.content.len()),
            ("One. Two.", 1),
            "{sources:b}"
        );
        assert_matches_events(&message, &events);
    }
}

#[test]
fn calls_come_in_every_shape() {
    let whole = r#"{"path":"a"}"#;
    let added = |arguments: &str| json!({"type": "response.output_item.added", "output_index": 0, "item": function_call("fc", "x", arguments)});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": function_call("fc", "x", whole)});
    let piece = |text: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "other", "delta": text});
    let arguments_done = json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": whole});
    let end = completed(json!([function_call("fc", "x", whole)]));
    let nothing_new = completed(json!([]));
    for (name, events) in [
        ("pieces", vec![added(""), piece(r#"{"path""#), piece(r#":"a"}"#), nothing_new.clone()]),
        ("whole at the start", vec![added(whole), nothing_new.clone()]),
        (
            "whole at the end of the arguments",
            vec![added(""), arguments_done.clone(), nothing_new.clone()],
        ),
        ("whole at the end of the item", vec![added(""), done.clone(), nothing_new.clone()]),
        ("at the end of the item only", vec![piece("lost"), done.clone(), nothing_new]),
        ("at the end of the response only", vec![end.clone()]),
        ("all at once", vec![added(""), piece(whole), arguments_done, done, end]),
        (
            "an object instead of text",
            vec![completed(json!([function_call("fc", "x", json!({"path": "a"}))]))],
        ),
    ] {
        let decoded = responses(&events);
        let expected = call_with_state(tool_call("x", "read", json!({"path": "a"})), "fc");
        assert_eq!(calls(&decoded), [expected], "{name}");
        assert_eq!(decoded.0.unwrap().stop_reason, StopReason::ToolUse, "{name}");
    }
    let without_ids = json!({"type": "function_call", "name": "ls", "arguments": ""});
    let decoded = responses(&[completed(json!([without_ids]))]);
    assert_eq!(calls(&decoded), [tool_call("made up", "ls", json!({}))]);
}

/// Some servers name neither a place nor an id, and some change the ids with every event.
#[test]
fn items_are_found_without_their_ids() {
    let (message, events) = responses(&[
        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "summary": []}}),
        json!({"type": "response.reasoning_text.delta", "delta": "h"}),
        json!({"type": "response.reasoning_text.delta", "delta": "m"}),
        json!({"type": "response.output_item.done", "item": {"type": "reasoning", "summary": []}}),
        json!({"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
        json!({"type": "response.output_text.delta", "delta": "Y"}),
        json!({"type": "response.output_text.delta", "delta": "es"}),
        completed(
            json!([{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Yes"}]}]),
        ),
    ]);
    let message = message.unwrap();
    assert_eq!(message.content, [thinking("hm", None), ContentBlock::text("Yes")]);
    assert_matches_events(&message, &events);

    let item = |id: &str| json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": "Yes"}]});
    let (message, _) = responses(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "1"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "2", "delta": "Yes"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item("3")}),
        completed(json!([item("4")])),
    ]);
    assert_eq!(message.unwrap().content, [text_with_state("Yes", r#"{"id":"3"}"#)]);
}

#[test]
fn reasoning_counts_once_and_is_kept_only_if_it_can_be_replayed() {
    let summary = |number: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": number, "delta": text});
    let done =
        |item: Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "short"}]});
    let mut sealed = reasoning.clone();
    sealed["encrypted_content"] = json!("sealed");
    let mut signed = reasoning.clone();
    signed["signature"] = json!("sig");
    signed["format"] = json!("anthropic-claude-v1");
    let summary_state = r#""summary":[{"type":"summary_text","text":"short"}]"#;
    let sealed_state = format!(r#"{{"id":"rs",{summary_state},"encrypted_content":"sealed"}}"#);
    let signed_state = format!(
        r#"{{"id":"rs",{summary_state},"signature":"sig","format":"anthropic-claude-v1"}}"#
    );
    for (events, expected) in [
        (
            vec![summary(0, "sh"), summary(0, "ort"), done(sealed.clone())],
            Some(thinking("short", Some(&sealed_state))),
        ),
        (vec![done(sealed)], Some(thinking("short", Some(&sealed_state)))),
        (vec![done(signed)], Some(thinking("short", Some(&signed_state)))),
        (vec![done(reasoning)], Some(thinking("short", None))),
        (
            vec![
                summary(0, "a"),
                json!({"type": "response.reasoning_text.delta", "output_index": 0, "delta": "the same in full"}),
                summary(1, "b"),
            ],
            Some(thinking("a\n\nb", None)),
        ),
        (
            vec![done(json!({"type": "reasoning", "id": "rs", "encrypted_content": "x"}))],
            Some(hidden_thinking(r#"{"id":"rs","summary":[],"encrypted_content":"x"}"#)),
        ),
        (vec![done(json!({"type": "reasoning", "id": "rs", "summary": [], "content": []}))], None),
    ] {
        let mut events = events;
        events.extend([text_delta(1, "."), completed(json!([]))]);
        let (message, reported) = responses(&events);
        let message = message.unwrap();
        let expected: Vec<_> = expected.into_iter().chain([ContentBlock::text(".")]).collect();
        assert_eq!(message.content, expected);
        assert_matches_events(&message, &reported);
    }
}

/// As when the config does not say that the model thinks, so that its reasoning was not asked for in a sealed form.
#[test]
fn ids_are_forgotten_behind_reasoning_that_cannot_be_replayed() {
    let text = |id: &str| json!({"type": "message", "id": id, "phase": "commentary", "content": [{"type": "output_text", "text": "a"}]});
    let call = function_call("fc", "x", "{}");
    let answer = |reasoning: Value| {
        responses(&[completed(json!([text("msg"), reasoning, text("other"), call]))])
            .0
            .unwrap()
            .content
    };
    let named = || text_with_state("a", r#"{"id":"msg","phase":"commentary"}"#);
    let call = tool_call("x", "read", json!({}));
    assert_eq!(
        answer(json!({"type": "reasoning", "id": "rs", "summary": []})),
        [named(), text_with_state("a", r#"{"phase":"commentary"}"#), call.clone()]
    );
    let sealed = json!({"type": "reasoning", "encrypted_content": "s"});
    let hidden = hidden_thinking(r#"{"summary":[],"encrypted_content":"s"}"#);
    let names_itself = call_with_state(call, "fc");
    assert_eq!(answer(sealed)[1], hidden);
    assert_eq!(answer(json!({"type": "web_search_call"})).last(), Some(&names_itself));
}

#[test]
fn responses_end_in_every_way() {
    let end = |kind: &str, more: Value| json!({"type": kind, "response": more});
    let incomplete = |reason: &str| {
        end(
            "response.incomplete",
            json!({"status": "incomplete", "incomplete_details": {"reason": reason}}),
        )
    };
    let refusal = [
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "a"}),
        completed(json!([])),
    ];
    for (events, expected) in [
        (vec![text_delta(0, "a"), completed(json!([]))], Some(StopReason::Stop)),
        (vec![text_delta(0, "a"), end("response.done", json!({}))], Some(StopReason::Stop)),
        (vec![text_delta(0, "a"), json!({"type": "response.completed"})], Some(StopReason::Stop)),
        (vec![text_delta(0, "a"), incomplete("max_output_tokens")], Some(StopReason::Length)),
        (vec![text_delta(0, "a"), incomplete("of the future")], Some(StopReason::Length)),
        (vec![text_delta(0, "a"), incomplete("content_filter")], Some(StopReason::Refusal)),
        (refusal.to_vec(), Some(StopReason::Refusal)),
        (
            vec![completed(
                json!([{"type": "message", "content": [{"type": "refusal", "refusal": "a"}]}]),
            )],
            Some(StopReason::Refusal),
        ),
        (vec![text_delta(0, "a")], None),
        (vec![text_delta(0, "a"), json!({"type": "response.output_text.done"})], None),
    ] {
        let (message, _) = responses(&events);
        assert_eq!(
            message.as_ref().ok().map(|message| message.stop_reason),
            expected,
            "{events:?}"
        );
        match message {
            Ok(message) => assert_eq!(message.text(), "a"),
            Err(error) => assert_eq!(error.class, ErrorClass::Timeout),
        }
    }
    let cut = json!({"type": "response.output_item.added", "output_index": 0, "item": function_call("fc", "x", "{\"pa")});
    let message = responses(&[cut, incomplete("max_output_tokens")]).0.unwrap();
    assert_eq!(message.stop_reason, StopReason::Length);
    assert_eq!(message.tool_calls().next().unwrap().invalid_arguments.as_deref(), Some("{\"pa"));
}

#[test]
fn failures_inside_the_stream_keep_their_meaning() {
    let failed = |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error, "output": []}});
    for (event, class, code, message) in [
        (
            failed(json!({"code": "rate_limit_exceeded", "message": "Slow down."})),
            ErrorClass::RateLimit,
            Some("rate_limit_exceeded"),
            "reported an error (rate_limit_exceeded): Slow down",
        ),
        (
            failed(json!({"code": "context_length_exceeded", "message": "Too long."})),
            ErrorClass::ContextOverflow,
            Some("context_length_exceeded"),
            "reported an error (context_length_exceeded): Too long",
        ),
        (failed(json!(null)), ErrorClass::Timeout, None, "the answer failed without a reason"),
        (
            json!({"type": "response.cancelled", "response": {}}),
            ErrorClass::Timeout,
            None,
            "the answer failed without a reason",
        ),
        (
            json!({"type": "error", "code": "insufficient_quota", "message": "No more.", "param": null}),
            ErrorClass::Quota,
            Some("insufficient_quota"),
            "reported an error (insufficient_quota): No more; check the plan and the limits of the account",
        ),
        (
            json!({"type": "error", "code": null, "message": "The network error."}),
            ErrorClass::Timeout,
            None,
            "reported an error: The network error",
        ),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_api_key", "message": "No."}}),
            ErrorClass::Auth,
            Some("invalid_api_key"),
            "reported an error (invalid_api_key): No; check the API key",
        ),
        (
            json!({"error": {"message": "upstream", "code": 502}}),
            ErrorClass::Timeout,
            None,
            "reported an error: upstream",
        ),
    ] {
        let error = responses(&[text_delta(0, "a"), event]).0.unwrap_err();
        assert_eq!(
            (error.class, error.code.as_deref(), error.message.as_str()),
            (class, code, message)
        );
        assert_eq!(error.status, Some(200), "{message}");
    }
    let runaway: Vec<Value> = (0..=10_000)
        .map(|number| json!({"type": "response.output_item.added", "output_index": number, "item": {"type": "message"}}))
        .collect();
    let error = responses(&runaway).0.unwrap_err();
    assert_eq!(error.message, "the answer has more than 10000 items");
}

#[test]
fn counters_of_every_kind() {
    let price = model(API, "").price;
    for (usage, expected) in [
        (
            json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}, "output_tokens": 4}),
            Usage { input: 5, output: 4, cache_read: 3, cache_write: 2, ..Usage::default() },
        ),
        (
            json!({"input_tokens": 10, "output_tokens": 24, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 34}),
            Usage { input: 10, output: 24, reasoning: 20, ..Usage::default() },
        ),
        (
            json!({"input_tokens": 10, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 34}),
            Usage { input: 10, output: 24, reasoning: 20, ..Usage::default() },
        ),
        (json!(null), Usage::default()),
        (json!({"input_tokens": "many"}), Usage::default()),
    ] {
        let end = json!({"type": "response.completed", "response": {"usage": usage}});
        let message = responses(&[text_delta(0, "a"), end]).0.unwrap();
        assert_eq!(message.usage, expected.priced(price), "{usage}");
    }
}
