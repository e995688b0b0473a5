use super::*;
use crate::{Api, InputKind, Price};

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
