//! What a server of the Responses format is sent.

use myclaw_llm::{
    AnswerOptions, Api, AssistantMessage, ContentBlock, Message, ThinkingLevel, ThinkingLevels,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{API, hidden_thinking, text_with_state};
use crate::decoding::{call_with_state, decode};
use crate::formats::format;
use crate::request::{TestRequest, assistant, call, result, turn, user};

/// What a model said goes back to it as the same items, and to others as plain words.
#[test]
fn an_answer_goes_back_as_it_came() {
    let own = decode(API, format(API).streams[0]).0.unwrap();
    let input = |message: AssistantMessage| {
        let ids: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
        let mut messages = vec![user("a"), Message::Assistant(message)];
        messages.extend(ids.iter().map(|id| result(id, vec![ContentBlock::text("x")], false)));
        let mut request = TestRequest::new(API, &messages);
        request.model.reasoning = true;
        let Value::Array(items) = request.wire_messages() else { unreachable!() };
        items[2..items.len() - 2].to_vec()
    };
    let call = |number: u64, id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "id": format!("fc_0a1b0{number}")});
    let mut items = vec![
        json!({"type": "reasoning", "id": "rs_0a1b01", "encrypted_content": "gAAAAABo9k-first", "summary": [
            {"type": "summary_text", "text": "**Planning**\n\nRead \"both\" – at once 🦀."},
            {"type": "summary_text", "text": "**Doing**\n\nNow."},
        ]}),
        json!({"type": "message", "id": "msg_0a1b02", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
            {"type": "output_text", "text": "I'll read both.\n", "annotations": []},
        ]}),
        json!({"type": "reasoning", "id": "rs_0a1b04", "encrypted_content": "gAAAAABo9k-second", "summary": []}),
        call(5, "call_DdmO9pD3xa9XTPNJ32zg2hcA", "read", r#"{"path":"notes.md","limit":20}"#),
        call(6, "call_hcAxxDdmO9pD3xa9XTPNJ32z", "ls", "{}"),
    ];
    assert_eq!(input(own.clone()), items);

    // Reasoning that cannot be replayed takes the ids of the other items with it.
    let mut unsealed = own.clone();
    if let ContentBlock::Thinking(thinking) = &mut unsealed.content[0] {
        thinking.thinking_signature = None;
    }
    let expected = {
        let mut items = items[1..].to_vec();
        items[0] = json!({"type": "message", "role": "assistant", "phase": "commentary", "content": "I'll read both.\n"});
        for item in &mut items[2..] {
            item.as_object_mut().unwrap().shift_remove("id");
        }
        items
    };
    assert_eq!(input(unsealed), expected);

    let spoken = "<thinking>\n**Planning**\n\nRead \"both\" – at once 🦀.\n\n**Doing**\n\nNow.\n</thinking>\n\nI'll read both.";
    items.splice(..3, [json!({"type": "message", "role": "assistant", "content": spoken})]);
    for item in &mut items[1..] {
        item.as_object_mut().unwrap().shift_remove("id");
    }
    for foreign in [
        AssistantMessage { model: "other".to_owned(), ..own.clone() },
        AssistantMessage { provider: "other".to_owned(), ..own.clone() },
        AssistantMessage { api: Api::OpenaiCompletions, ..own },
    ] {
        assert_eq!(input(foreign), items);
    }
}

#[test]
fn reasoning_that_led_to_nothing_stays_behind() {
    let state = r#"{"id":"rs","summary":[],"encrypted_content":"sealed"}"#;
    let hidden = || hidden_thinking(state);
    let messages = [
        user("a"),
        Message::Assistant(assistant(API, vec![hidden()])),
        user("b"),
        Message::Assistant(assistant(API, vec![hidden(), ContentBlock::text("c"), hidden()])),
        user("d"),
    ];
    let sent = TestRequest::new(API, &messages).wire_messages();
    let kinds: Vec<_> =
        sent.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "message", "reasoning", "message", "message"]);
}

#[test]
fn ids_that_the_server_would_refuse_are_not_sent() {
    let long = "x".repeat(65);
    let content = vec![
        text_with_state("a", &json!({"id": long, "phase": "final_answer"}).to_string()),
        text_with_state("b", "no state at all"),
        call_with_state(call(&long, "a"), &long),
    ];
    let messages = [user("a"), Message::Assistant(assistant(API, content))];
    let sent = TestRequest::new(API, &messages).wire_messages();
    let call_id = sent[4]["call_id"].as_str().unwrap();
    assert_eq!((call_id.len(), &sent[5]["call_id"]), (64, &json!(call_id)));
    assert_eq!(
        sent.as_array().unwrap()[2..5],
        [
            json!({"type": "message", "role": "assistant", "phase": "final_answer", "content": "a"}),
            json!({"type": "message", "role": "assistant", "content": "b"}),
            json!({"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{\"path\":\"a\"}"}),
        ]
    );
}

#[test]
fn thinking_is_asked_for_in_the_words_of_the_provider() {
    let asked = |levels: ThinkingLevels, level: ThinkingLevel| {
        let mut request = TestRequest::new(API, &[user("a")]);
        request.model.reasoning = true;
        request.model.thinking_levels = levels;
        request.thinking = level;
        let mut body = request.body();
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        body["reasoning"].take()
    };
    let renamed = || {
        let none = Some("none".to_owned());
        ThinkingLevels::new([(ThinkingLevel::Off, none), (ThinkingLevel::Low, None)])
    };
    let always = ThinkingLevels::new([(ThinkingLevel::Low, None)]);
    let effort = |word: &str| json!({"effort": word, "summary": "auto"});
    assert_eq!(asked(ThinkingLevels::default(), ThinkingLevel::Off), effort("low"));
    assert_eq!(asked(ThinkingLevels::default(), ThinkingLevel::Xhigh), effort("high"));
    assert_eq!(asked(renamed(), ThinkingLevel::Off), json!({"effort": "none"}));
    assert_eq!(asked(renamed(), ThinkingLevel::High), effort("low"));
    assert_eq!(asked(always, ThinkingLevel::Off), effort("low"));
    let plain =
        TestRequest { thinking: ThinkingLevel::High, ..TestRequest::new(API, &[user("a")]) };
    assert_eq!(
        (&plain.body()["reasoning"], &plain.body()["include"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn hosts_are_addressed_as_they_want() {
    let sent = |base_url: &str, key: &str| {
        let mut request = TestRequest::new(API, &[user("a")]);
        request.model.base_url = base_url.to_owned();
        request.model.reasoning = true;
        request.model.max_output = 1;
        request.key = Some(SecretString::from(key));
        let request = request.encode();
        let header =
            |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let key =
            header("api-key").map(|key| format!("api-key: {key}")).or(header("authorization"));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["max_output_tokens"], 16, "the least that OpenAI takes");
        (request.url.to_string(), key.unwrap(), body["input"][0]["role"].clone())
    };
    for (base_url, key, expected) in [
        (
            "https://api.githubcopilot.com",
            "tid",
            ("https://api.githubcopilot.com/responses", "Bearer tid", "system"),
        ),
        (
            "https://api.openai.com/v1",
            "sk-1",
            ("https://api.openai.com/v1/responses", "Bearer sk-1", "developer"),
        ),
        ("https://api.x.ai", "xai-1", ("https://api.x.ai/v1/responses", "Bearer xai-1", "system")),
        (
            "https://me.openai.azure.com",
            "abc",
            ("https://me.openai.azure.com/openai/v1/responses", "api-key: abc", "developer"),
        ),
        (
            "https://me.openai.azure.com/openai?api-version=2025-04-01-preview",
            "abc",
            (
                "https://me.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
                "api-key: abc",
                "developer",
            ),
        ),
        (
            "https://me.openai.azure.com/openai/v1/responses",
            "eyJ0eXAi.x.y",
            ("https://me.openai.azure.com/openai/v1/responses", "Bearer eyJ0eXAi.x.y", "developer"),
        ),
        (
            "https://me.services.ai.azure.com/openai/v1",
            "abc",
            ("https://me.services.ai.azure.com/openai/v1/responses", "api-key: abc", "developer"),
        ),
    ] {
        let (url, header, role) = sent(base_url, key);
        assert_eq!((url.as_str(), header.as_str(), role.as_str().unwrap()), expected);
    }
}

/// A login with a ChatGPT plan permits less than a key (developers.openai.com/siwc), at OpenAI itself alone.
#[test]
fn a_chatgpt_plan_gets_what_it_permits() {
    let mut request = TestRequest::new(API, &turn(API));
    request.options = Some(AnswerOptions { temperature: Some(0.5), ..AnswerOptions::default() });
    let mut bodies = [
        ("https://api.openai.com/v1", "sk-key"),
        ("https://gateway.example/v1", "token-of-a-login"),
        ("https://api.openai.com/v1", "token-of-a-login"),
    ]
    .map(|(base_url, key)| {
        request.model.base_url = base_url.to_owned();
        request.key = Some(SecretString::from(key));
        request.body()
    });
    let [with_key, elsewhere, with_plan] = &mut bodies;
    assert_eq!(with_key["tools"], elsewhere["tools"]);
    assert_eq!(elsewhere["temperature"], 0.5);
    for field in ["max_output_tokens", "temperature"] {
        let left_out = with_key.as_object_mut().unwrap().remove(field);
        assert!(left_out.is_some_and(|value| !value.is_null()), "{field}");
    }
    with_key["tools"] = json!([{
        "type": "namespace", "name": "agent", "description": "The tools of this agent.",
        "tools": with_key["tools"].take(),
    }]);
    let items = with_key["input"].as_array_mut().unwrap();
    items[0]["role"] = json!("developer");
    for item in items.iter_mut().filter(|item| item["type"] == "function_call") {
        item["namespace"] = json!("agent");
    }
    assert_eq!(with_plan, with_key);
    assert!(with_plan.to_string().matches("\"namespace\"").count() > 1, "{with_plan}");
}
