use myclaw_llm::wire::compat::{CompatOverrides, OutputLimitField, StreamUsage};
use myclaw_llm::{
    Api, InputKind, Model, Price, Quirks, ThinkingForm, ThinkingLevel, ThinkingLevels,
};
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn config(value: serde_json::Value) -> Config {
    serde_json::from_value(value).unwrap()
}

fn choose(config: &Config, provider: &str, id: &str) -> ActiveModel {
    configured_model(config, &ModelRef { provider: provider.to_owned(), id: id.to_owned() })
}

fn keys(choice: &ActiveModel) -> Vec<(&str, Option<&str>)> {
    choice
        .profiles
        .iter()
        .map(|profile| {
            let key = match &profile.source {
                Some(KeySource::Literal(key)) => Some(key.expose_secret()),
                Some(source) => panic!("{source:?}"),
                None => None,
            };
            (profile.id.as_str(), key)
        })
        .collect()
}

#[test]
fn the_provider_section_gives_address_and_keys_in_order() {
    let config = config(json!({"provider": {
        "name": "anthropic", "model": "x", "baseUrl": "http://127.0.0.1:9",
        "authProfiles": [{"id": "a", "apiKey": "k1"}, {"id": "b", "apiKey": "k2"}],
    }}));

    let choice = choose(&config, "anthropic", "made-up-model");

    assert_eq!(keys(&choice), [("a", Some("k1")), ("b", Some("k2"))]);
    assert_eq!(
        (choice.model.base_url.as_str(), choice.model.api),
        ("http://127.0.0.1:9", Api::AnthropicMessages)
    );
    assert_eq!((choice.model.context_window, choice.model.max_output), (200_000, 8_192));
    assert_eq!(choice.reference(), "anthropic/made-up-model");
}

#[test]
fn keys_of_one_provider_do_not_go_to_another() {
    let config = config(json!({"provider": {
        "name": "anthropic", "model": "x", "authProfiles": [{"id": "a", "apiKey": "k1"}],
    }}));

    let choice = choose(&config, "groq", "some-model");

    assert_eq!(keys(&choice), [("default", None)]);
    assert_eq!(choice.model.api, Api::OpenaiCompletions);
}

#[test]
fn values_of_the_config_replace_those_of_the_catalog() {
    let config = config(json!({"models": {"providers": {"anthropic": {
        "baseUrl": "http://127.0.0.1:8080/v1", "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m", "contextWindow": 4096, "maxOutput": 512, "reasoning": true, "input": ["text"], "price": {"input": 3}}],
    }}}}));

    let model = choose(&config, "anthropic", "m").model;

    let expected = Model {
        id: "m".to_owned(),
        provider: "anthropic".to_owned(),
        api: Api::OpenaiCompletions,
        base_url: "http://127.0.0.1:8080/v1".to_owned(),
        reasoning: true,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price { input: 3.0, ..Price::default() }),
        context_window: 4_096,
        max_output: 512,
        // Only requests to OpenRouter say it.
        quirks: Quirks { attribution: Some(Attribution::default()), ..Quirks::default() },
    };
    assert_eq!(model, expected);
    assert_eq!(choose(&config, "anthropic", "another").model.base_url, "http://127.0.0.1:8080/v1");
    assert_eq!(keys(&choose(&config, "anthropic", "m")), [("anthropic", Some("k"))]);
}

#[test]
fn a_known_provider_may_be_changed_in_parts() {
    let config = config(json!({"models": {"providers": {"anthropic": {
        "headers": {"x-team": "secret"}, "compat": {"outputLimit": "max_tokens", "streamUsage": "always"},
        "models": [{
            "id": "claude-haiku-4-5", "api": "openai-completions", "thinkingForm": "adaptive",
            "thinkingLevels": {"off": "none", "high": "most"},
            "compat": {"outputLimit": "max_completion_tokens"},
        }],
    }}}}));

    let known = choose(&config, "anthropic", "claude-haiku-4-5").model;

    assert_eq!(
        (known.base_url.as_str(), known.api),
        ("https://api.anthropic.com", Api::OpenaiCompletions)
    );
    assert_eq!(known.offered_thinking_levels(), [ThinkingLevel::Off, ThinkingLevel::High]);
    assert_eq!(known.thinking_word(ThinkingLevel::High), "most");
    let expected = Quirks {
        thinking_form: ThinkingForm::Adaptive,
        headers: [("x-team".to_owned(), "secret".to_owned().into())].into_iter().collect(),
        compat: CompatOverrides {
            output_limit: Some(OutputLimitField::MaxCompletionTokens),
            stream_usage: Some(StreamUsage::Always),
            ..CompatOverrides::default()
        },
        attribution: Some(Attribution::default()),
    };
    assert_eq!(known.quirks, expected);
    assert!(!format!("{known:?}").contains("secret"));
    assert!(!serde_json::to_string(&known).unwrap().contains("secret"));

    let other = choose(&config, "anthropic", "claude-sonnet-4-6").model;
    assert_eq!(other.api, Api::AnthropicMessages);
    assert_eq!(other.quirks.compat.output_limit, Some(OutputLimitField::MaxTokens));
}

#[test]
fn a_provider_with_another_address_keeps_its_usual_format() {
    let model = |base_url: &str| {
        let config = config(json!({"models": {"providers": {"openai": {"baseUrl": base_url}}}}));
        choose(&config, "openai", "gpt-5.1").model.api
    };
    assert_eq!(model("http://127.0.0.1:9/v1"), Api::OpenaiCompletions);
    assert_eq!(model("https://api.openai.com/v1/"), Api::OpenaiResponses);
}

#[test]
fn the_config_says_what_hosts_are_told_about_the_program() {
    let told = |attribution: serde_json::Value| {
        let config = config(json!({"models": {"attribution": attribution}}));
        choose(&config, "openrouter", "openai/gpt-5-mini").model.quirks.attribution
    };
    assert_eq!(told(json!({})), Some(Attribution::default()));
    assert_eq!(told(json!({"enabled": false})), None);
    let own = Attribution { url: "https://claw.example".to_owned(), title: "Claw".to_owned() };
    assert_eq!(told(json!({"url": own.url, "title": own.title})), Some(own));
}
