use super::*;
use crate::{Api, InputKind, Price};

fn compat(provider: &str, base_url: &str) -> Compat {
    Compat::of(&Model {
        id: "m".to_owned(),
        provider: provider.to_owned(),
        api: Api::OpenaiCompletions,
        base_url: base_url.to_owned(),
        reasoning: true,
        thinking_levels: crate::ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Price::default(),
        context_window: 1000,
        max_output: 100,
        quirks: crate::Quirks::default(),
    })
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
    assert_eq!(compat("lmstudio", "not a url"), COMMON);
}
