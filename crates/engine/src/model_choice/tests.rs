use myclaw_llm::{Api, InputKind, Price, Quirks, ThinkingLevels};
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn config(value: serde_json::Value) -> Config {
    serde_json::from_value(value).unwrap()
}

fn choose(config: &Config, provider: &str, id: &str) -> ModelChoice {
    ModelChoice::from_config(config, &ModelRef { provider: provider.to_owned(), id: id.to_owned() })
}

fn keys(choice: &ModelChoice) -> Vec<(&str, Option<&str>)> {
    choice
        .profiles
        .iter()
        .map(|profile| {
            (profile.id.as_str(), profile.api_key.as_ref().map(ExposeSecret::expose_secret))
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
fn what_the_settings_say_about_a_model_wins() {
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
        price: Price { input: 3.0, ..Price::default() },
        context_window: 4_096,
        max_output: 512,
        quirks: Quirks::default(),
    };
    assert_eq!(model, expected);
    assert_eq!(choose(&config, "anthropic", "another").model.base_url, "http://127.0.0.1:8080/v1");
    assert_eq!(keys(&choose(&config, "anthropic", "m")), [("anthropic", Some("k"))]);
}
