use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{Api, Quirks, ThinkingLevels};

fn resolve(provider: &str, id: &str) -> Model {
    resolve_model(ResolveModel { provider, id, base_url: None, api: None })
}

#[test]
fn every_line_is_read_and_found_again() {
    let catalog = ModelCatalog::builtin();
    let models: Vec<Model> = catalog.iter().collect();
    assert_eq!(models.len(), MODELS.lines().count(), "every line is a whole model");
    for model in &models {
        assert_eq!(catalog.find(&model.provider, &model.id).as_ref(), Some(model));
    }
}

#[test]
fn lines_are_sorted_and_unique() {
    let references: Vec<&str> = ModelCatalog::builtin().references().collect();
    assert!(references.is_sorted_by(|left, right| left < right));
}

#[test]
fn figures_make_sense() {
    for model in ModelCatalog::builtin().iter() {
        let name = format!("{}/{}", model.provider, model.id);
        // Its window is smaller than the engine's least, and the engine says so.
        let is_small = name == "openai/gpt-4";
        assert!(model.context_window >= 16_000 || is_small, "{name}: too small for the engine");
        assert!(
            model.max_output >= 1_000 && model.max_output <= model.context_window / 2,
            "{name}: output limit"
        );
        assert!(model.input.contains(&InputKind::Text), "{name}: takes text");
        assert!(
            model.price.is_none_or(|price| price.input >= 0.0 && price.output >= price.input),
            "{name}: price"
        );
    }
}

#[test]
fn a_known_model_has_the_published_figures() {
    let expected = Model {
        id: "claude-sonnet-4-5".to_owned(),
        provider: "anthropic".to_owned(),
        api: Api::AnthropicMessages,
        base_url: "https://api.anthropic.com".to_owned(),
        reasoning: true,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text, InputKind::Image],
        price: Some(Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 }),
        context_window: 200_000,
        max_output: 64_000,
        quirks: Quirks::default(),
    };
    assert_eq!(ModelCatalog::builtin().find("anthropic", "claude-sonnet-4-5"), Some(expected));
}

#[test]
fn an_id_with_slashes_is_found() {
    let model =
        ModelCatalog::builtin().find("groq", "openai/gpt-oss-120b").expect("in the catalog");
    assert_eq!((model.provider.as_str(), model.id.as_str()), ("groq", "openai/gpt-oss-120b"));
    assert_eq!(model.base_url, "https://api.groq.com/openai/v1");
}

#[test]
fn what_is_not_there_is_not_found() {
    for (provider, id) in [
        ("", ""),
        ("zzz", "zzz"),
        ("anthropic", ""),
        ("anthropic", "claude"),
        ("\0", "a"),
        ("é", "é"),
    ] {
        assert_eq!(ModelCatalog::builtin().find(provider, id), None, "{provider}/{id}");
    }
}

#[test]
fn every_default_model_is_known_and_every_model_has_a_known_provider() {
    let catalog = ModelCatalog::builtin();
    for provider in catalog.providers() {
        if let Some(model) = provider.default_model {
            assert!(catalog.find(provider.name, model).is_some(), "{}/{model}", provider.name);
        }
        assert_eq!(
            provider.key_variables.is_empty(),
            provider.key == KeyNeed::None,
            "{}",
            provider.name
        );
    }
    let names: HashSet<&str> = catalog.providers().map(|provider| provider.name).collect();
    assert_eq!(names.len(), catalog.providers().count(), "no name twice");
    assert!(catalog.iter().all(|model| names.contains(model.provider.as_str())));
}

#[test]
fn the_first_provider_with_a_key_wins() {
    let choose = |set: &[&str]| {
        first_provider_with_key(|variable| set.contains(&variable))
            .map(|(info, variable)| (info.name, variable))
    };
    assert_eq!(choose(&[]), None);
    assert_eq!(
        choose(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]),
        Some(("anthropic", "ANTHROPIC_API_KEY"))
    );
    assert_eq!(choose(&["GOOGLE_API_KEY"]), Some(("google", "GOOGLE_API_KEY")));
    assert_eq!(choose(&["GOOGLE_API_KEY", "GEMINI_API_KEY"]), Some(("google", "GEMINI_API_KEY")));
    assert_eq!(choose(&["CEREBRAS_API_KEY", "XAI_API_KEY"]), Some(("xai", "XAI_API_KEY")));
}

#[test]
fn an_unknown_model_is_built_by_hand() {
    let expected = Model {
        id: "my-model".to_owned(),
        provider: "acme".to_owned(),
        api: Api::OpenaiCompletions,
        base_url: "https://api.openai.com/v1".to_owned(),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text, InputKind::Image],
        price: None,
        context_window: 200_000,
        max_output: 8_192,
        quirks: Quirks::default(),
    };
    assert_eq!(resolve("acme", "my-model"), expected);
    let anthropic = resolve("anthropic", "claude-9");
    assert_eq!(
        (anthropic.api, anthropic.base_url.as_str()),
        (Api::AnthropicMessages, "https://api.anthropic.com")
    );
    assert_eq!(resolve("ollama", "qwen3:4b").base_url, "http://127.0.0.1:11434/v1");
}

#[test]
fn a_dated_name_has_the_figures_of_its_family() {
    for (provider, id, family) in [
        ("anthropic", "claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("anthropic", "claude-opus-4-6-20260205", "claude-opus-4-6"),
        ("openai", "gpt-4.1-2025-04-14", "gpt-4.1"),
        ("ollama", "llama3.2:3b", "llama3.2"),
    ] {
        let known = ModelCatalog::builtin().find(provider, family).expect("in the catalog");
        assert_eq!(resolve(provider, id), Model { id: id.to_owned(), ..known }, "{id}");
    }
    assert_eq!(resolve("openrouter", "liquid/lfm-2.5").context_window, 128_000);
    assert_eq!(resolve("openai", "gpt-4").context_window, 8_192);
}

#[test]
fn a_price_is_free_or_unknown_and_not_both() {
    let price = |provider: &str, id: &str| resolve(provider, id).price;
    for (provider, id) in
        [("ollama", "anything"), ("google", "gemma-4-31b-it"), ("builtin", "demo")]
    {
        assert_eq!(price(provider, id), Some(Price::default()), "{provider}/{id}");
    }
    for (provider, id) in
        [("openai", "gpt-99"), ("openrouter", "openrouter/auto"), ("zai", "glm-5.3-highspeed")]
    {
        assert_eq!(price(provider, id), None, "{provider}/{id}");
    }
    let local = ResolveModel {
        provider: "mine",
        id: "model",
        base_url: Some("http://127.0.0.1:9/v1"),
        api: None,
    };
    assert_eq!(resolve_model(local).price, Some(Price::default()));
}

#[test]
fn settings_replace_base_url_and_wire_format() {
    let known =
        ModelCatalog::builtin().find("anthropic", "claude-haiku-4-5").expect("in the catalog");
    let resolved = resolve_model(ResolveModel {
        provider: "anthropic",
        id: "claude-haiku-4-5",
        base_url: Some("http://127.0.0.1:9/v1/"),
        api: Some(Api::OpenaiCompletions),
    });
    let expected = Model {
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        api: Api::OpenaiCompletions,
        ..known
    };
    assert_eq!(resolved, expected);
}

#[test]
fn an_address_of_google_determines_the_wire_format() {
    let api = |base_url| {
        let wanted = ResolveModel { provider: "google", id: "gemini-2.5-pro", base_url, api: None };
        resolve_model(wanted).api
    };
    let compatible = "https://generativelanguage.googleapis.com/v1beta/openai/";
    assert_eq!(api(Some(compatible)), Api::OpenaiCompletions);
    for own in [None, Some("https://proxy.example/v1beta"), Some("https://proxy.example/openai")] {
        assert_eq!(api(own), Api::GoogleGenerativeAi);
    }
}

#[test]
fn the_demo_model_is_in_the_catalog() {
    let demo = resolve("builtin", "demo");
    assert_eq!(
        (demo.api, demo.base_url.as_str(), demo.price),
        (Api::Builtin, "", Some(Price::default()))
    );
    assert_eq!(ModelCatalog::builtin().find("builtin", "demo"), Some(demo));
}

#[test]
fn a_reference_splits_at_the_first_slash() {
    let parse =
        |text: &str| parse_model_ref(text).map(|reference| (reference.provider, reference.id));
    let pair = |provider: &str, id: &str| Ok((provider.to_owned(), id.to_owned()));
    assert_eq!(parse("anthropic/claude-opus-4-5"), pair("anthropic", "claude-opus-4-5"));
    assert_eq!(parse(" OpenRouter/openai/gpt-5-mini "), pair("openrouter", "openai/gpt-5-mini"));
    assert_eq!(parse("llamacpp//models/a.gguf"), pair("llamacpp", "/models/a.gguf"));
    assert_eq!(parse("Acme/x"), pair("Acme", "x"));
}

#[test]
fn a_broken_reference_says_what_to_write() {
    let message = |text: &str| parse_model_ref(text).expect_err(text).to_string();
    assert_eq!(
        message("  "),
        "the model's name is empty: write provider/model, such as anthropic/claude-sonnet-4-6"
    );
    assert_eq!(
        message("gpt-4o-mni"),
        "`gpt-4o-mni` names no provider: write provider/model; did you mean openai/gpt-4o-mini or azure-openai/gpt-4o-mini?"
    );
    assert_eq!(
        message("qqqqqq"),
        "`qqqqqq` names no provider: write provider/model, such as anthropic/claude-sonnet-4-6"
    );
    assert_eq!(
        message("openai/"),
        "`openai/` names no model: write provider/model; did you mean openai/gpt-5.1?"
    );
    assert_eq!(
        message("antropic"),
        "`antropic` names no provider: write provider/model; did you mean anthropic/claude-sonnet-4-6?"
    );
}

#[test]
fn suggestions_come_nearest_first_and_stay_few() {
    assert_eq!(suggest_model("anthropic/claude-sonet-4-5")[0], "anthropic/claude-sonnet-4-5");
    assert_eq!(suggest_model("antropic/claude-haiku-4-5")[0], "anthropic/claude-haiku-4-5");
    assert!(suggest_model("sonnet").iter().all(|name| name.contains("sonnet")));
    assert_eq!(suggest_model("sonnet").len(), 3);
    assert_eq!(suggest_model(&"x".repeat(100_000)), Vec::<String>::new());
    assert_eq!(suggest_model("/"), Vec::<String>::new());
}

proptest! {
    #[test]
    fn bisection_agrees_with_a_scan(text in "[a-z/.0-9-]{0,24}") {
        let (provider, id) = text.split_once('/').unwrap_or((text.as_str(), ""));
        let scanned = ModelCatalog::builtin().references().find(|reference| *reference == format!("{provider}/{id}"));
        let found = ModelCatalog::builtin().find(provider, id).map(|model| format!("{}/{}", model.provider, model.id));
        prop_assert_eq!(found.as_deref(), scanned);
    }

    #[test]
    fn any_text_parses_or_is_explained(text in "\\PC{0,40}") {
        match parse_model_ref(&text) {
            Ok(reference) => prop_assert!(!reference.provider.is_empty() && !reference.id.is_empty()),
            Err(error) => prop_assert!(error.to_string().contains("provider/model")),
        }
    }
}

#[test]
fn the_documentation_has_this_table() {
    let page = include_str!("../../../../docs/use/models.md");
    let documented: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let code = |text: &str| format!("`{text}`");
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let expected: Vec<String> = ModelCatalog::builtin()
        .providers()
        .map(|provider| {
            let base_url = if provider.base_url.is_empty() {
                String::new()
            } else {
                format!("<{}>", provider.base_url)
            };
            let variables: Vec<String> =
                provider.key_variables.iter().map(|variable| code(variable)).collect();
            format!(
                "| {} | {} | {} | {} |",
                code(provider.name),
                or_none(base_url),
                or_none(variables.join(", ")),
                or_none(provider.default_model.map(code).unwrap_or_default())
            )
        })
        .collect();
    assert_eq!(documented, expected);
}
