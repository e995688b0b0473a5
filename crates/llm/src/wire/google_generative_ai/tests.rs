use super::*;
use crate::wire::google_generative_ai::thinking::ThinkingConfig;
use crate::{Api, InputKind, Price, Quirks, ThinkingLevel, ThinkingLevels};
use serde_json::{Value, json};

fn model(id: &str, provider: &str, base_url: &str) -> Model {
    Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        api: Api::GoogleGenerativeAi,
        base_url: base_url.to_owned(),
        reasoning: true,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price::default()),
        context_window: 1,
        max_output: 1,
        quirks: Quirks::default(),
    }
}

#[test]
fn the_service_shows_in_the_host_or_the_provider() {
    for (provider, base_url, expected) in [
        ("google", "https://generativelanguage.googleapis.com/v1beta", Service::AiStudio),
        ("any", "https://proxy.example/v1beta", Service::AiStudio),
        ("any", "https://aiplatform.googleapis.com/v1", Service::Vertex),
        ("any", "https://europe-west4-aiplatform.googleapis.com", Service::Vertex),
        ("any", "https://aiplatform.eu.rep.googleapis.com", Service::Vertex),
        ("google-vertex", "http://127.0.0.1:1", Service::Vertex),
    ] {
        assert_eq!(Service::of(&model("m", provider, base_url)), expected, "{provider} {base_url}");
    }
}

#[test]
fn generations() {
    for (id, expected) in [
        ("gemini-2.5-flash", false),
        ("models/gemini-1.5-pro", false),
        ("gemini-3-pro-preview", true),
        ("gemini-3.1-flash-lite", true),
        ("gemini-10-pro", true),
        ("gemini-flash-latest", true),
        ("gemma-4-31b-it", true),
    ] {
        assert_eq!(is_generation_3(id), expected, "{id}");
    }
}

fn thinking(model: &Model, level: ThinkingLevel, limit: Option<u64>) -> Value {
    serde_json::to_value(ThinkingConfig::of(model, level, limit)).unwrap()
}

#[test]
fn a_level_is_a_number_up_to_gemini_2_5() {
    let budgets = |id: &str| {
        let model = model(id, "google", "");
        ThinkingLevel::ALL.map(|level| {
            let config = thinking(&model, level, Some(65_536));
            assert_eq!(config["includeThoughts"], level != ThinkingLevel::Off);
            config["thinkingBudget"].as_u64().unwrap()
        })
    };
    assert_eq!(budgets("gemini-2.5-pro"), [128, 128, 1024, 8192, 24_576, 24_576]);
    assert_eq!(budgets("models/gemini-2.5-flash"), [0, 128, 1024, 8192, 24_576, 24_576]);
    assert_eq!(budgets("gemini-2.5-flash-lite"), [0, 512, 1024, 8192, 24_576, 24_576]);
    let pro = model("gemini-2.5-pro", "google", "");
    let budget = |limit| thinking(&pro, ThinkingLevel::High, limit)["thinkingBudget"].clone();
    assert_eq!(budget(None), 24_576);
    assert_eq!(budget(Some(4000)), 2000, "half the output limit");
    assert_eq!(budget(Some(100)), 128, "and not less than the model takes");
}

#[test]
fn a_level_is_a_word_from_gemini_3_on() {
    let mut model = model("gemini-3.1-pro-preview", "google", "");
    let levels = [ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High];
    model.thinking_levels = ThinkingLevels::new(levels.map(|level| (level, None)));
    for (asked, reported) in [
        (ThinkingLevel::Minimal, "LOW"),
        (ThinkingLevel::Medium, "MEDIUM"),
        (ThinkingLevel::Xhigh, "HIGH"),
    ] {
        let config = json!({"includeThoughts": true, "thinkingLevel": reported});
        assert_eq!(thinking(&model, asked, Some(100)), config);
    }
    let off = json!({"includeThoughts": false, "thinkingLevel": "LOW"});
    assert_eq!(thinking(&model, ThinkingLevel::Off, None), off);
    model.thinking_levels = ThinkingLevels::default();
    assert_eq!(thinking(&model, ThinkingLevel::Off, None), off, "of which nothing is known");
    model.reasoning = false;
    assert_eq!(thinking(&model, ThinkingLevel::High, None), Value::Null);
}
