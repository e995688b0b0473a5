use serde_json::{Value, json};

use super::*;
use crate::sse::Frame;
use crate::wire::{Decoder, encode};
use crate::{
    Api, AssistantMessage, CallLimits, ContentBlock, InputKind, Message, ModelRequest,
    PairedMessages, Price, ThinkingLevel, ToolResultMessage, ToolUse, UserMessage,
};

fn compat(provider: &str, base_url: &str) -> Compat {
    Compat::of(&model(provider, base_url))
}

fn model(provider: &str, base_url: &str) -> Model {
    Model {
        id: "m".to_owned(),
        provider: provider.to_owned(),
        api: Api::OpenaiCompletions,
        base_url: base_url.to_owned(),
        reasoning: true,
        thinking_levels: crate::ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price::default()),
        context_window: 1000,
        max_output: 100,
        quirks: crate::Quirks::default(),
    }
}

#[test]
fn an_address_counts_before_a_name() {
    let mistral = compat("mistral", "https://api.mistral.ai/v1");
    assert_eq!(mistral.tool_ids, ToolIdRule::NineAlphanumeric);
    assert_eq!(mistral.stream_usage, StreamUsage::Always);
    assert_eq!(compat("openai", "https://api.mistral.ai/v1"), mistral);
    assert_eq!(compat("mistral", "http://127.0.0.1:9999/v1"), mistral);
    assert_eq!(
        compat("mine", "https://me.openai.azure.com/openai/v1").output_limit,
        OutputLimitField::MaxCompletionTokens
    );
}

#[test]
fn strangers_get_what_most_hosts_understand() {
    assert_eq!(compat("mine", "http://10.0.0.1/v1"), COMMON);
    assert_eq!(compat("mine", "https://notapi.openai.com.example/v1"), COMMON);
    assert_eq!(compat("mine", "https://evilapi.x.ai.example"), COMMON);
    assert_eq!(compat("mine", "not a url"), COMMON);
    assert_eq!(compat("mine", "http://localhost:9999/v1"), LOCAL);
}

#[test]
fn the_hosts_of_one_provider_are_one_row() {
    for (provider, base_url) in [
        ("moonshot", "https://api.moonshot.cn/v1"),
        ("zai", "https://open.bigmodel.cn/api/paas/v4"),
        ("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("github-copilot", "https://api.business.githubcopilot.com"),
        ("azure", "https://me.services.ai.azure.com/openai/v1"),
    ] {
        assert_eq!(
            compat("mine", base_url),
            compat(provider, "https://models.example"),
            "{provider}"
        );
        assert_ne!(compat("mine", base_url), COMMON, "{provider}");
    }
}

/// The words come from the person who named the model, so its server knows them. A host with a row has a way of its own.
#[test]
fn a_stranger_s_model_with_words_for_its_levels_is_asked_by_them() {
    use crate::{ThinkingLevel, ThinkingLevels};
    let field = |provider: &str, base_url: &str, word: Option<&str>| {
        let levels = ThinkingLevels::new([(ThinkingLevel::Low, word.map(str::to_owned))]);
        let model = Model { thinking_levels: levels, ..model(provider, base_url) };
        Compat::of(&model).thinking_field
    };
    for base_url in ["https://models.example/v1", "http://localhost:9999/v1"] {
        assert_eq!(field("mine", base_url, Some("tiny")), ThinkingField::ReasoningEffort);
        assert_eq!(field("mine", base_url, None), ThinkingField::None);
    }
    let gateway = field("vercel-ai-gateway", "https://ai-gateway.vercel.sh/v1", Some("low"));
    assert_eq!(gateway, ThinkingField::ReasoningObject);
    assert_eq!(field("xai", "https://api.x.ai/v1", None), ThinkingField::None);
    assert_eq!(field("xai", "https://api.x.ai/v1", Some("low")), ThinkingField::ReasoningEffort);
    assert_eq!(field("mine", "https://api.z.ai/v4", Some("low")), ThinkingField::ThinkingType);
}

/// The name of a field in which reasoning comes.
fn name_of(field: ReasoningField) -> &'static str {
    match field {
        ReasoningField::ReasoningContent => "reasoning_content",
        ReasoningField::Reasoning => "reasoning",
        ReasoningField::ReasoningText => "reasoning_text",
    }
}

/// Reads the answer of a host that thinks and then calls a tool.
fn thoughtful_answer(model: &Model, field: &str) -> AssistantMessage {
    let details = json!([{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "e", "index": 1}]);
    let call =
        json!({"index": 0, "id": "call_1234", "function": {"name": "look", "arguments": "{}"}});
    let mut delta = json!({"role": "assistant", "reasoning_details": details});
    delta[field] = json!("hm");
    let mut decoder = Decoder::new(model, &[], 2).unwrap();
    for (delta, reason) in
        [(delta, Value::Null), (json!({"tool_calls": [call]}), json!("tool_calls"))]
    {
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let data = chunk.to_string();
        let frame = Frame { event: "".into(), data: data.into(), terminated: true };
        decoder.feed(&frame, &mut |_| {}).unwrap();
    }
    decoder.finish(&mut |_| {}).unwrap()
}

fn request(model: &Model, messages: Vec<Message>) -> Value {
    let messages = PairedMessages::repair(messages);
    let encoded = encode(&ModelRequest {
        model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::High,
        api_key: None,
        limits: CallLimits::default(),
    });
    serde_json::from_slice(&encoded.unwrap().body).unwrap()
}

/// A host that is asked to think gets its reasoning back, in the field in which it came, while the calls of a turn go on.
#[test]
fn every_host_that_is_asked_for_reasoning_gets_it_back() {
    // They do not show it in this format; Google's signatures come with the calls.
    let hide_it = ["openai", "azure", "google"];
    for row in HOSTS {
        let provider = row.providers[0];
        let base_url = row
            .hosts
            .first()
            .map_or("http://127.0.0.1:1/v1".to_owned(), |host| format!("https://{host}/v1"));
        let model = model(provider, &base_url);
        let compat = Compat::of(&model);
        let field = name_of(compat.reasoning_fields[0]);
        let question = Message::User(UserMessage::text("?", 1));
        let asked = request(&model, vec![question.clone()]);
        let asks = [
            "reasoning_effort",
            "reasoning",
            "thinking",
            "enable_thinking",
            "chat_template_kwargs",
        ]
        .iter()
        .any(|name| asked.get(*name).is_some());
        let answer = thoughtful_answer(&model, field);
        assert!(
            answer.content.iter().any(|block| matches!(block, ContentBlock::Thinking(_))),
            "{provider}: reasoning is read"
        );
        let result = Message::ToolResult(ToolResultMessage {
            tool_call_id: answer.tool_calls().next().unwrap().id.clone(),
            tool_name: "look".to_owned(),
            content: vec![ContentBlock::text("seen")],
            is_error: false,
            details: None,
            timestamp: 3,
        });
        let body =
            request(&model, vec![question, Message::Assistant(answer.clone()), result.clone()]);
        let sent = &body["messages"][1];
        assert_eq!(sent["role"], "assistant", "{provider}");
        let comes_back = match compat.reasoning_replay {
            ReasoningReplay::Details => {
                sent["reasoning_details"][0]["signature"] == "s"
                    && sent["reasoning_details"][1]["data"] == "e"
            }
            ReasoningReplay::WithinTurn | ReasoningReplay::WhereGiven => sent[field] == "hm",
            ReasoningReplay::Never => false,
        };
        let hides = hide_it.contains(&provider);
        assert_eq!(comes_back, (asks || provider == "xai") && !hides, "{provider}: {sent}");
        // After the next question only details go back.
        let later = Message::User(UserMessage::text("And?", 4));
        let body = request(
            &model,
            vec![
                Message::User(UserMessage::text("?", 1)),
                Message::Assistant(answer),
                result,
                later,
            ],
        );
        assert_eq!(body["messages"][1].get(field), None, "{provider}");
    }
}
