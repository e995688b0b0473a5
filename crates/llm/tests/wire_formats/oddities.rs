//! The many ways in which hosts and gateways read the formats.

use myclaw_llm::{
    Api, ContentBlock, ErrorClass, Message, StopReason, StreamEvent, Usage, UserMessage,
};
use serde_json::{Value, json};

use crate::decoding::*;
use crate::support::model;

#[test]
fn anthropic_counters_come_first_or_last() {
    let text = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    let stop = json!({"type": "message_stop"});
    let usage = json!({"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": null, "output_tokens_details": {"thinking_tokens": 2}});
    let expected = Usage { input: 5, output: 3, cache_read: 7, reasoning: 2, ..Usage::default() }
        .priced(model(Api::AnthropicMessages, "").price);
    for (start, end) in [
        (json!({}), usage.clone()),
        (json!({"usage": {"input_tokens": 0, "output_tokens": 0}}), usage.clone()),
        (json!({"usage": &usage}), json!({"output_tokens": 3, "input_tokens": 0})),
        (json!({"usage": usage}), json!(null)),
    ] {
        let (message, _) = anthropic(&[
            json!({"type": "message_start", "message": start}),
            text[0].clone(),
            text[1].clone(),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end}),
            stop.clone(),
        ]);
        let message = message.unwrap();
        assert_eq!((message.usage, message.text()), (expected, "a".to_owned()));
    }
}

#[test]
fn an_anthropic_call_that_the_limit_cut_keeps_what_it_has() {
    let (message, events) = anthropic(&[
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "write", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":\"a\",\"te"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]);
    let message = message.unwrap();
    assert_eq!(message.stop_reason, StopReason::Length);
    let call = message.tool_calls().next().unwrap();
    assert_eq!(call.invalid_arguments.as_deref(), Some("{\"path\":\"a\",\"te"));
    assert_matches_events(&message, &events);
}

#[test]
fn anthropic_oddities_of_gateways() {
    let stop = json!({"type": "message_stop"});
    // No start of the block, arguments with the start of a call, a block kind of the future, a foreign last event.
    let (message, events) = anthropic(&[
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "web_search_tool_result", "content": []}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "lost"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "brand_new_event"}),
        stop.clone(),
    ]);
    let message = message.unwrap();
    assert_eq!(
        message.content,
        [ContentBlock::text("hi"), tool_call("t", "read", json!({"path": "a"}))]
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_matches_events(&message, &events);
    assert_eq!(anthropic(&[stop]).0.unwrap_err().class, ErrorClass::Timeout);
}

#[test]
fn openai_calls_come_in_every_shape() {
    let read = |path: &str| json!({"name": "read", "arguments": json!({"path": path}).to_string()});
    let a = |id: &str| tool_call(id, "read", json!({"path": "a"}));
    let b = |id: &str| tool_call(id, "read", json!({"path": "b"}));
    for (name, chunks, expected) in [
        (
            "two in one chunk without numbers",
            vec![delta(
                json!({"tool_calls": [{"id": "x", "function": read("a")}, {"id": "y", "function": read("b")}]}),
            )],
            vec![a("x"), b("y")],
        ),
        (
            "both with the number 0",
            vec![
                delta(json!({"tool_calls": [{"index": 0, "id": "x", "function": read("a")}]})),
                delta(json!({"tool_calls": [{"index": 0, "id": "y", "function": read("b")}]})),
            ],
            vec![a("x"), b("y")],
        ),
        (
            "id and name repeated with every piece",
            vec![
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": "{\"path\""}}]}),
                ),
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": ":\"a\"}"}}]}),
                ),
            ],
            vec![a("x")],
        ),
        (
            "pieces of two calls in turn",
            vec![
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": "{\"path\""}}]}),
                ),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "y", "function": {"name": "read", "arguments": "{\"path\":"}}]}),
                ),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":\"a\"}"}}]})),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": null, "function": {"arguments": "\"b\"}"}}]}),
                ),
            ],
            vec![a("x"), b("y")],
        ),
        (
            "the same id twice",
            vec![
                delta(json!({"tool_calls": [{"index": 0, "id": "x", "function": read("a")}]})),
                delta(json!({"tool_calls": [{"index": 1, "id": "x", "function": read("b")}]})),
            ],
            vec![a("x"), b("x_2")],
        ),
        (
            "arguments that are an object, or missing",
            vec![
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": {"path": "a"}}}]}),
                ),
                delta(json!({"tool_calls": [{"index": 1, "id": "y", "function": {"name": "ls"}}]})),
            ],
            vec![a("x"), tool_call("y", "ls", json!({}))],
        ),
    ] {
        let mut chunks = chunks;
        chunks.push(finish("tool_calls"));
        let decoded = openai(&chunks);
        assert_eq!(calls(&decoded), expected, "{name}");
        let message = decoded.0.unwrap();
        assert_eq!(message.stop_reason, StopReason::ToolUse, "{name}");
    }
}

#[test]
fn openai_calls_may_lack_ids() {
    let read = |path: &str| json!({"name": "read", "arguments": json!({"path": path}).to_string()});
    let decoded = openai(&[
        delta(json!({"tool_calls": [{"index": 0, "function": read("a")}]})),
        delta(json!({"tool_calls": [{"index": 1, "id": "", "function": read("b")}]})),
        delta(json!({"tool_calls": [{"function": read("c")}]})),
        finish("tool_calls"),
    ]);
    let expected = ["a", "b", "c"].map(|path| tool_call("made up", "read", json!({"path": path})));
    assert_eq!(calls(&decoded), expected);
}

#[test]
fn an_openai_call_may_get_another_id_with_every_piece() {
    let piece = |number: Option<u64>, id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        delta(json!({"tool_calls": [{"index": number, "id": id, "function": function}]}))
    };
    for (first, second) in [(Some(0), Some(1)), (Some(0), Some(0)), (None, None)] {
        let decoded = openai(&[
            piece(first, "x", "read", "{\"path\""),
            piece(first, "x2", "", ":\"a\"}"),
            piece(second, "y", "read", "{\"path\""),
            piece(second, "y2", "", ":\"b\"}"),
            finish("tool_calls"),
        ]);
        let call = |id: &str, path: &str| tool_call(id, "read", json!({"path": path}));
        assert_eq!(calls(&decoded), [call("x", "a"), call("y", "b")], "{first:?} {second:?}");
    }
    // Without numbers, one that has an id follows one that has none.
    let decoded = openai(&[
        delta(json!({"tool_calls": [{"function": {"name": "ls"}}]})),
        piece(None, "y", "ls", "{}"),
        finish("tool_calls"),
    ]);
    assert_eq!(calls(&decoded).len(), 2);
}

#[test]
fn an_id_of_the_history_is_not_used_again() {
    let turn = |history: &[Message]| {
        let call = delta(
            json!({"tool_calls": [{"index": 0, "id": "call_0", "function": {"name": "ls", "arguments": "{}"}}]}),
        );
        let body = format!("data: {call}\n\ndata: {}\n\n", finish("tool_calls"));
        decode_chunks(Api::OpenaiCompletions, history, [body.as_bytes()]).0.unwrap()
    };
    let first = turn(&[]);
    let second =
        turn(&[Message::User(UserMessage::text("a", 1)), Message::Assistant(first.clone())]);
    let third = turn(&[Message::Assistant(first.clone()), Message::Assistant(second.clone())]);
    let ids = [first, second, third].map(|message| message.tool_calls().next().unwrap().id.clone());
    assert_eq!(ids, ["call_0", "call_0_2", "call_0_3"]);
}

#[test]
fn openai_streams_end_in_every_way() {
    let text = || delta(json!({"content": "a"}));
    let body = |chunks: &[Value]| -> String {
        chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
    };
    for (stream, expected) in [
        (body(&[text(), finish("stop")]), Some(StopReason::Stop)),
        (body(&[text()]) + "data: [DONE]\n\n", Some(StopReason::Stop)),
        (body(&[text(), finish("length")]), Some(StopReason::Length)),
        (body(&[text(), finish("content_filter")]), Some(StopReason::Refusal)),
        (body(&[text(), finish("tool_calls")]), Some(StopReason::Stop)),
        (body(&[delta(json!({"refusal": "a"})), finish("stop")]), Some(StopReason::Refusal)),
        (body(&[delta(json!({"content": ""})), finish("stop")]), Some(StopReason::Stop)),
        (body(&[text()]), None),
        ("data: [DONE]\n\n".to_owned(), None),
        (body(&[text(), finish("error")]), None),
        (body(&[text()]) + "data: {\"choices\": [\n\n", None),
    ] {
        let (message, _) = decode(Api::OpenaiCompletions, &stream);
        assert_eq!(message.as_ref().ok().map(|message| message.stop_reason), expected, "{stream}");
        if let Ok(message) = message {
            assert!(message.text() == "a" || stream.contains(r#""content":"""#), "{stream}");
        }
    }
}

#[test]
fn openai_content_may_be_a_list_of_parts() {
    let (message, events) = openai(&[
        delta(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        ),
        delta(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}], "closed": true}, {"type": "text", "text": "Yes"}]}),
        ),
        delta(json!({"content": "."})),
        finish("stop"),
    ]);
    let message = message.unwrap();
    assert_eq!(message.content, [thinking("hmm", None), ContentBlock::text("Yes.")]);
    assert_matches_events(&message, &events);
}

#[test]
fn reasoning_under_two_names_counts_once() {
    let (message, _) = openai(&[
        delta(json!({"reasoning_content": "a", "reasoning": "a"})),
        delta(json!({"reasoning_content": null, "reasoning": "b"})),
        delta(json!({"reasoning": {"effort": "high"}, "reasoning_text": "c", "content": "d"})),
        finish("stop"),
    ]);
    assert_eq!(message.unwrap().content, [thinking("abc", None), ContentBlock::text("d")]);
}

#[test]
fn openai_counters_of_every_kind() {
    let price = model(Api::OpenaiCompletions, "").price;
    for (usage, expected) in [
        (
            json!({"prompt_tokens": 10, "completion_tokens": 4}),
            Usage { input: 10, output: 4, ..Usage::default() },
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 4}),
            Usage { input: 4, output: 4, cache_read: 6, ..Usage::default() },
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}}),
            Usage { input: 5, output: 4, cache_read: 3, cache_write: 2, ..Usage::default() },
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 34, "completion_tokens_details": {"reasoning_tokens": 20}}),
            Usage { input: 10, output: 24, reasoning: 20, ..Usage::default() },
        ),
        (
            json!({"prompt_tokens": 1, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 300}}),
            Usage { output: 4, cache_read: 1, ..Usage::default() },
        ),
        (json!(null), Usage::default()),
        (json!({"prompt_tokens": -1, "completion_tokens": "many"}), Usage::default()),
    ] {
        let (message, _) = openai(&[
            delta(json!({"content": "a"})),
            finish("stop"),
            json!({"choices": [], "usage": usage}),
        ]);
        assert_eq!(message.unwrap().usage, expected.priced(price), "{usage}");
    }
}

#[test]
fn the_signature_of_a_call_is_kept() {
    let (message, _) = openai(&[
        delta(
            json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "ls", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "sig"}}}]}),
        ),
        finish("tool_calls"),
    ]);
    assert_eq!(
        message.unwrap().tool_calls().next().unwrap().thought_signature.as_deref(),
        Some("sig")
    );
}

/// Cloudflare sends a structured answer as the value itself.
#[test]
fn content_that_is_no_text_is_shown_as_json() {
    for (content, text) in [
        (json!({"answer": 42, "unit": "km"}), "{\"answer\":42,\"unit\":\"km\"}"),
        (json!({"type": "text", "text": "plain"}), "plain"),
        (json!(42), "42"),
        (json!(true), "true"),
        (json!({}), ""),
        (json!(null), ""),
    ] {
        let whole = json!({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": "stop"}]});
        let message = openai(&[whole]).0.unwrap();
        assert_eq!(message.text(), text, "{content}");
    }
}

/// Some hosts count pieces where they should count calls.
#[test]
fn pieces_of_a_call_whose_number_jumps_are_joined() {
    let piece = |number: u64, call: Value| {
        let mut call = call;
        call["index"] = json!(number);
        delta(json!({"tool_calls": [call]}))
    };
    for pieces in [
        vec![
            piece(0, json!({"id": "a", "function": {"name": "look", "arguments": "{\"at\":"}})),
            piece(1, json!({"function": {"arguments": "\"x\"}"}})),
        ],
        vec![
            piece(3, json!({"id": "a", "function": {"name": "look", "arguments": ""}})),
            piece(7, json!({"id": "a", "function": {"arguments": "{\"at\":"}})),
            piece(9, json!({"id": "a", "function": {"name": "look", "arguments": "\"x\"}"}})),
        ],
        vec![
            piece(0, json!({"id": "a", "function": {"name": "look"}})),
            piece(2, json!({"id": "other", "function": {"arguments": "{\"at\":\"x\"}"}})),
        ],
    ] {
        let message = openai(&[pieces, vec![finish("tool_calls")]].concat()).0.unwrap();
        let calls: Vec<_> = message.tool_calls().collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].arguments["at"], "x");
    }
    // Numbers that jump between calls are two calls.
    let two = [
        piece(0, json!({"id": "a", "function": {"name": "look", "arguments": "{}"}})),
        piece(5, json!({"id": "b", "function": {"name": "look", "arguments": "{\"at\":\"y\"}"}})),
        finish("tool_calls"),
    ];
    assert_eq!(openai(&two).0.unwrap().tool_calls().count(), 2);
}

/// A delta of a call brings the arguments so far, now and then.
#[test]
fn arguments_come_parsed_while_they_arrive() {
    let text = format!("{{\"path\":\"a.txt\",\"content\":\"{}\"}}", "x".repeat(5_000));
    let mut chunks = vec![delta(
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write"}}]}),
    )];
    chunks.extend(text.as_bytes().chunks(7).map(|piece| {
        let piece = String::from_utf8_lossy(piece);
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    }));
    chunks.push(finish("tool_calls"));
    let (message, events) = openai(&chunks);
    let parsed: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ToolCallDelta { arguments, .. } => arguments.as_ref(),
            _ => None,
        })
        .collect();
    assert!(parsed.len() > 5, "{}", parsed.len());
    let bytes: usize = parsed.iter().map(|so_far| json!(so_far).to_string().len()).sum();
    assert!(bytes < 3 * text.len(), "{bytes}");
    assert!(
        parsed.iter().any(|so_far| so_far["path"] == "a.txt" && so_far.contains_key("content"))
    );
    let whole = message.unwrap();
    let whole = whole.tool_calls().next().unwrap();
    let last = parsed.last().unwrap()["content"].as_str().unwrap();
    assert!(whole.arguments["content"].as_str().unwrap().starts_with(last));
}
