//! What single hosts of the Chat Completions format want, in requests and in answers.

use myclaw_llm::wire::{EncodedRequest, encode};
use myclaw_llm::{
    Api, AssistantMessage, Attribution, CallLimits, ContentBlock, Message, Model, ModelRequest,
    PairedMessages, StopReason, ThinkingContent, ThinkingLevel, ThinkingLevels, ToolCall,
    ToolResultMessage, ToolUse, Usage, UserMessage,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::decoding::{assert_matches_events, decode_for, delta, finish};
use crate::support::{KEY, hello, model};

fn host(provider: &str, base_url: &str) -> Model {
    Model {
        provider: provider.to_owned(),
        reasoning: true,
        ..model(Api::OpenaiCompletions, base_url)
    }
}

fn request(model: &Model, messages: &PairedMessages, thinking: ThinkingLevel) -> EncodedRequest {
    let key = SecretString::from(KEY);
    encode(&ModelRequest {
        model,
        system_prompt: "",
        messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking,
        api_key: Some(&key),
        limits: CallLimits::default(),
    })
    .unwrap()
}

fn body(model: &Model, messages: &PairedMessages, thinking: ThinkingLevel) -> Value {
    serde_json::from_slice(&request(model, messages, thinking).body).unwrap()
}

/// The fields that ask for thinking.
fn asked(model: &Model, level: ThinkingLevel) -> Value {
    let body = body(model, &hello(), level);
    let fields =
        ["reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs"];
    let found = fields.iter().filter_map(|&name| Some((name.to_owned(), body.get(name)?.clone())));
    Value::Object(found.collect())
}

#[test]
fn each_host_is_asked_to_think_in_its_own_words() {
    use ThinkingLevel::{High, Off};
    let effort = json!({"reasoning_effort": "high"});
    // Without a word for `off`, the least that such hosts take.
    let least = json!({"reasoning_effort": "low"});
    let switch = |word| json!({"thinking": {"type": word}});
    let template =
        json!({"chat_template_kwargs": {"enable_thinking": true, "reasoning_effort": "high"}});
    let nothing = json!({});
    for (provider, url, on, off) in [
        ("openai", "https://api.openai.com/v1", &effort, &least),
        ("groq", "https://api.groq.com/openai/v1", &effort, &least),
        (
            "openrouter",
            "https://openrouter.ai/api/v1",
            &json!({"reasoning": {"effort": "high"}}),
            &json!({"reasoning": {"enabled": false}}),
        ),
        ("zai", "https://api.z.ai/api/paas/v4", &switch("enabled"), &switch("disabled")),
        ("deepseek", "https://api.deepseek.com/v1", &switch("enabled"), &switch("disabled")),
        (
            "qwen",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            &json!({"enable_thinking": true}),
            &json!({"enable_thinking": false}),
        ),
        (
            "vllm",
            "http://127.0.0.1:8000/v1",
            &template,
            &json!({"chat_template_kwargs": {"enable_thinking": false}}),
        ),
        ("xai", "https://api.x.ai/v1", &nothing, &nothing),
        ("someone", "https://models.example/v1", &nothing, &nothing),
    ] {
        let model = host(provider, url);
        assert_eq!(&asked(&model, High), on, "{provider}");
        assert_eq!(&asked(&model, Off), off, "{provider}");
        let plain = Model { reasoning: false, ..model };
        assert_eq!(asked(&plain, High), json!({}), "{provider}");
    }
}

#[test]
fn the_words_of_the_levels_are_those_of_the_model() {
    let levels = ThinkingLevels::new([
        (ThinkingLevel::Off, Some("none".to_owned())),
        (ThinkingLevel::Low, None),
        (ThinkingLevel::Xhigh, Some("max".to_owned())),
    ]);
    let model = Model { thinking_levels: levels, ..host("openai", "https://api.openai.com/v1") };
    for (level, word) in [
        (ThinkingLevel::Off, "none"),
        (ThinkingLevel::Minimal, "none"),
        (ThinkingLevel::High, "low"),
        (ThinkingLevel::Xhigh, "max"),
    ] {
        assert_eq!(asked(&model, level), json!({"reasoning_effort": word}), "{level}");
    }
}

#[test]
fn a_stranger_is_asked_in_the_words_of_the_settings() {
    let words = [(ThinkingLevel::Low, "tiny"), (ThinkingLevel::High, "huge")];
    let levels = ThinkingLevels::new(words.map(|(level, word)| (level, Some(word.to_owned()))));
    let stranger = host("someone", "https://models.example/v1");
    let model = Model { thinking_levels: levels, ..stranger };
    for (level, word) in [
        (ThinkingLevel::Minimal, "tiny"),
        (ThinkingLevel::Low, "tiny"),
        (ThinkingLevel::High, "huge"),
    ] {
        assert_eq!(asked(&model, level), json!({"reasoning_effort": word}), "{level}");
    }
    let plain = Model { reasoning: false, ..model };
    assert_eq!(asked(&plain, ThinkingLevel::Low), json!({}));
}

#[test]
fn azure_has_paths_and_a_header_of_its_own() {
    for (base_url, url) in [
        ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://r.openai.azure.com/openai/v1",
            "https://r.openai.azure.com/openai/v1/chat/completions",
        ),
        (
            "https://r.openai.azure.com/?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/deployments/test-model/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://r.openai.azure.com/openai/deployments/mine?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://r.services.ai.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
            "https://r.services.ai.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
    ] {
        let encoded = request(&host("azure", base_url), &hello(), ThinkingLevel::Off);
        assert_eq!(encoded.url.as_str(), url);
        assert_eq!(encoded.headers.get("api-key").unwrap(), KEY);
        assert!(encoded.headers["api-key"].is_sensitive());
        assert_eq!(encoded.headers.get("authorization"), None);
    }
}

/// A turn of `model` in which it called a tool, with `thinking` before the call.
fn tool_turn(model: &Model, thinking: ThinkingContent, id: &str) -> Vec<Message> {
    let call = ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: serde_json::Map::new(),
        invalid_arguments: None,
        thought_signature: None,
    };
    vec![
        Message::User(UserMessage::text("look", 1)),
        Message::Assistant(AssistantMessage {
            content: vec![ContentBlock::Thinking(thinking), ContentBlock::ToolCall(call)],
            api: model.api,
            provider: model.provider.clone(),
            model: model.id.clone(),
            usage: Usage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 2,
        }),
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: "read".to_owned(),
            content: vec![ContentBlock::text("found")],
            is_error: false,
            details: None,
            timestamp: 3,
        }),
    ]
}

#[test]
fn mistral_gets_an_answer_between_results_and_the_user() {
    let roles = |provider: &str| {
        let model = host(provider, "https://models.example/v1");
        let mut messages = tool_turn(&model, ThinkingContent::default(), "abcdefghi");
        messages.push(Message::User(UserMessage::text("and?", 4)));
        let body = body(&model, &PairedMessages::repair(messages), ThinkingLevel::Off);
        let roles = body["messages"].as_array().unwrap().iter();
        roles.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles("mistral"), ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(roles("groq"), ["user", "assistant", "tool", "user"]);
}

#[test]
fn thinking_hosts_get_the_field_with_every_call_of_the_turn() {
    let content = |provider: &str, thinking: &str, level| {
        let model = host(provider, "https://models.example/v1");
        let thinking =
            ThinkingContent { thinking: thinking.to_owned(), ..ThinkingContent::default() };
        let messages = PairedMessages::repair(tool_turn(&model, thinking, "functions.read:0"));
        body(&model, &messages, level)["messages"][1].clone()
    };
    let field = |provider, thinking, level| {
        content(provider, thinking, level).get("reasoning_content").cloned()
    };
    let (on, off) = (ThinkingLevel::High, ThinkingLevel::Off);
    assert_eq!(field("deepseek", "hm", on), Some(json!("hm")));
    assert_eq!(field("deepseek", "", on), Some(json!("")));
    assert_eq!(field("deepseek", "", off), None);
    assert_eq!(field("groq", "hm", on), None);
    // Moonshot's models read the numbers of their calls.
    assert_eq!(content("moonshot", "", off)["tool_calls"][0]["id"], "functions.read:0");
    assert_ne!(content("groq", "", off)["tool_calls"][0]["id"], "functions.read:0");
}

#[test]
fn openrouter_gets_its_reasoning_details_back_as_they_came() {
    let model = host("openrouter", "https://openrouter.ai/api/v1");
    let detail = |detail: Value| delta(json!({"reasoning_details": [detail]}));
    let text = |text: &str| {
        delta(json!({
            "reasoning": text,
            "reasoning_details": [{"type": "reasoning.text", "text": text, "format": "f", "index": 0}],
        }))
    };
    let (message, events) = decode_for(
        &model,
        &[
            text("I "),
            text("look."),
            detail(json!({"type": "reasoning.text", "signature": "s1", "format": "f", "index": 0})),
            delta(json!({"content": "Looking."})),
            delta(
                json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}),
            ),
            detail(json!({"type": "reasoning.encrypted", "data": "e1", "id": "rs_1", "index": 1})),
            finish("tool_calls"),
        ],
    );
    let message = message.unwrap();
    assert_matches_events(&message, &events);
    let mut messages = tool_turn(&model, ThinkingContent::default(), "c1");
    messages[1] = Message::Assistant(message);
    let sent = body(&model, &PairedMessages::repair(messages), ThinkingLevel::High);
    assert_eq!(
        sent["messages"][1]["reasoning_details"],
        json!([
            {"type": "reasoning.text", "text": "I look.", "signature": "s1", "format": "f", "index": 0},
            {"type": "reasoning.encrypted", "data": "e1", "id": "rs_1", "index": 1},
        ])
    );
    assert_eq!(sent["messages"][1]["content"], "Looking.");
}

#[test]
fn thinking_in_the_text_is_thinking_where_hosts_leave_it_there() {
    let content = |provider: &str, url: &str| {
        let pieces = ["<th", "ink>I look.</", "think>\n\nIt is <think>", "</think> fine."];
        let mut chunks: Vec<Value> =
            pieces.iter().map(|piece| delta(json!({"content": piece}))).collect();
        chunks.push(finish("stop"));
        let (message, events) = decode_for(&host(provider, url), &chunks);
        let message = message.unwrap();
        assert_matches_events(&message, &events);
        message.content
    };
    let thinking = ContentBlock::Thinking(ThinkingContent {
        thinking: "I look.".to_owned(),
        ..ThinkingContent::default()
    });
    let split = vec![thinking, ContentBlock::text("It is <think></think> fine.")];
    assert_eq!(content("mine", "http://127.0.0.1:9999/v1"), split);
    assert_eq!(content("ollama", "http://gpu.example:11434/v1"), split);
    assert_eq!(content("together", "https://api.together.xyz/v1"), split);
    assert_eq!(
        content("openai", "https://api.openai.com/v1"),
        [ContentBlock::text("<think>I look.</think>\n\nIt is <think></think> fine.")]
    );
}

#[test]
fn what_looked_like_a_tag_is_not_lost() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]});
    let model = host("ollama", "http://127.0.0.1:11434/v1");
    let (message, _) =
        decode_for(&model, &[delta(json!({"content": "<thi"})), delta(call), finish("tool_calls")]);
    let message = message.unwrap();
    assert_eq!((message.text().as_str(), message.tool_calls().count()), ("<thi", 1));
    let (message, _) = decode_for(&model, &[delta(json!({"content": "<"})), finish("stop")]);
    assert_eq!(message.unwrap().text(), "<");
}

#[test]
fn openrouter_is_told_which_program_asks_and_others_are_not() {
    let told = |model: &Model| {
        let encoded = request(model, &hello(), ThinkingLevel::Off);
        let header = |name| encoded.headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        (header("http-referer"), header("x-title"))
    };
    let own = Attribution { url: "https://claw.example".to_owned(), title: "Claw".to_owned() };
    let mut model = host("mine", "https://openrouter.ai/api/v1");
    assert_eq!(told(&model), (None, None));
    model.quirks.attribution = Some(own.clone());
    assert_eq!(told(&model), (Some(own.url.clone()), Some(own.title.clone())));
    // The user's own headers replace them.
    model.quirks.headers = [("X-Title".to_owned(), "Mine".into())].into_iter().collect();
    assert_eq!(told(&model), (Some(own.url.clone()), Some("Mine".to_owned())));
    let mut other = host("openai", "https://api.openai.com/v1");
    other.quirks.attribution = Some(own);
    assert_eq!(told(&other), (None, None));
}
