//! How models of the Messages format are asked to think.

use myclaw_llm::wire::{EncodedRequest, encode};
use myclaw_llm::{
    Api, ContentBlock, Message, Model, ModelCatalog, ModelRequest, PairedMessages, ThinkingForm,
    ThinkingLevel, ToolSchema, ToolUse, UserMessage,
};
use myclaw_llm::{AssistantMessage, CallLimits};
use serde_json::{Value, json};

use crate::request::{assistant, call, result, thinking, user};
use crate::support::tools;

fn claude(id: &str) -> Model {
    ModelCatalog::builtin().find("anthropic", id).expect("in the catalog")
}

/// One request to `model`.
struct Asked<'a> {
    model: &'a Model,
    level: ThinkingLevel,
    max_output: Option<u64>,
    tools: &'a [ToolSchema],
    messages: Vec<Message>,
}

impl<'a> Asked<'a> {
    fn new(model: &'a Model, level: ThinkingLevel) -> Self {
        let messages = vec![Message::User(UserMessage::text("hello", 1))];
        Self { model, level, max_output: None, tools: &[], messages }
    }

    fn encode(&self) -> EncodedRequest {
        let messages = PairedMessages::repair(self.messages.clone());
        encode(&ModelRequest {
            model: self.model,
            system_prompt: "",
            messages: &messages,
            tools: self.tools,
            tool_use: ToolUse::Auto,
            max_output: self.max_output,
            options: None,
            thinking: self.level,
            api_key: None,
            limits: CallLimits::default(),
        })
        .unwrap()
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.encode().body).unwrap()
    }

    /// `thinking`, `output_config` and the header `anthropic-beta`.
    fn about_thinking(&self) -> (Value, Value, Option<String>) {
        let body = self.body();
        let beta = self.encode().headers.get("anthropic-beta").cloned();
        let beta = beta.map(|value| value.to_str().unwrap().to_owned());
        (body["thinking"].clone(), body["output_config"].clone(), beta)
    }
}

/// The answer of `model` that `content` makes.
fn answer(model: &Model, content: Vec<ContentBlock>) -> Message {
    Message::Assistant(AssistantMessage {
        provider: model.provider.clone(),
        model: model.id.clone(),
        ..assistant(Api::AnthropicMessages, content)
    })
}

#[test]
fn an_older_model_gets_a_budget_and_with_tools_may_think_between_them() {
    let model = claude("claude-haiku-4-5");
    let at = |level| Asked::new(&model, level).about_thinking();
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(at(ThinkingLevel::Off), (Value::Null, Value::Null, None));
    assert_eq!(at(ThinkingLevel::Minimal), (budget(1_024), Value::Null, None));
    assert_eq!(at(ThinkingLevel::High), (budget(20_480), Value::Null, None));
    // Not offered: the next lower one.
    assert_eq!(at(ThinkingLevel::Xhigh), at(ThinkingLevel::High));
    let tools = tools();
    let with_tools = Asked { tools: &tools, ..Asked::new(&model, ThinkingLevel::Low) };
    let interleaved = Some("interleaved-thinking-2025-05-14".to_owned());
    assert_eq!(with_tools.about_thinking(), (budget(4_096), Value::Null, interleaved));
}

#[test]
fn a_budget_leaves_room_for_the_answer() {
    let model = claude("claude-haiku-4-5");
    let budget = |max_output| {
        let asked =
            Asked { max_output: Some(max_output), ..Asked::new(&model, ThinkingLevel::High) };
        let body = asked.body();
        assert_eq!(body["max_tokens"], max_output);
        body["thinking"]["budget_tokens"].as_u64()
    };
    assert_eq!(budget(50_000), Some(20_480));
    assert_eq!(budget(8_192), Some(4_096));
    assert_eq!(budget(2_048), Some(1_024));
    assert_eq!(budget(2_047), None, "the API takes no smaller budget");
    assert_eq!(budget(1), None);
}

#[test]
fn a_newer_model_gets_an_effort_by_its_own_word() {
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let effort = |word: &str| json!({"effort": word});
    for (id, level, word) in [
        ("claude-opus-4-6", ThinkingLevel::Minimal, "low"),
        ("claude-opus-4-6", ThinkingLevel::High, "high"),
        ("claude-opus-4-6", ThinkingLevel::Xhigh, "max"),
        ("claude-sonnet-5", ThinkingLevel::Xhigh, "xhigh"),
        ("claude-fable-5", ThinkingLevel::Off, "low"),
    ] {
        let model = claude(id);
        let asked = Asked::new(&model, level).about_thinking();
        assert_eq!(asked, (adaptive.clone(), effort(word), None), "{id} {level}");
    }
    // They may think unasked, so that they should not is said.
    let model = claude("claude-sonnet-5");
    let off = Asked::new(&model, ThinkingLevel::Off).about_thinking();
    assert_eq!(off, (json!({"type": "disabled"}), Value::Null, None));
}

#[test]
fn thinking_that_became_invalid_is_passed_over() {
    let model = claude("claude-sonnet-5-5");
    let (field, effort, beta) = Asked::new(&model, ThinkingLevel::Medium).about_thinking();
    let expected = json!({
        "type": "adaptive",
        "display": "summarized",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    });
    assert_eq!((field, effort), (expected, json!({"effort": "medium"})));
    assert_eq!(beta.as_deref(), Some("thinking-binding-controls-2026-08-01"));

    // With thinking off nothing can say so: it is left out.
    let model = claude("claude-haiku-5-5");
    let mut asked = Asked::new(&model, ThinkingLevel::Off);
    let thoughts = thinking("Hm.", Some("c2ln"), false);
    asked.messages.push(answer(&model, vec![thoughts, ContentBlock::text("Yes.")]));
    asked.messages.push(user("sure?"));
    let body = asked.body();
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "Yes."}]));
}

#[test]
fn a_history_with_thinking_stays_as_it_is_when_thinking_is_off() {
    let model = claude("claude-haiku-4-5");
    let mut asked = Asked::new(&model, ThinkingLevel::Off);
    let content = vec![
        thinking("Hm.", Some("c2ln"), false),
        thinking("", Some("ZW5j"), true),
        ContentBlock::text("Yes."),
    ];
    asked.messages.push(answer(&model, content));
    asked.messages.push(user("sure?"));
    let body = asked.body();
    assert_eq!(body.get("thinking"), None);
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "text", "text": "Yes."},
        ])
    );
}

#[test]
fn calls_that_began_without_thinking_are_finished_without() {
    let model = claude("claude-haiku-4-5");
    let tools = tools();
    let with_first_block = |block| {
        let mut asked = Asked { tools: &tools, ..Asked::new(&model, ThinkingLevel::High) };
        asked.messages.push(answer(&model, vec![block, call("one", "a")]));
        asked.messages.push(result("one", vec![ContentBlock::text("text")], false));
        asked.about_thinking().0["type"].as_str().map(str::to_owned)
    };
    assert_eq!(with_first_block(ContentBlock::text("On it.")), None);
    let thoughts = thinking("Hm.", Some("c2ln"), false);
    assert_eq!(with_first_block(thoughts).as_deref(), Some("enabled"));
}

#[test]
fn an_answer_that_was_cut_off_within_its_thoughts_goes_back_without_them() {
    let model = claude("claude-opus-4-6");
    let mut asked = Asked::new(&model, ThinkingLevel::High);
    let thoughts = thinking("Hm.", Some("c2ln"), false);
    asked.messages.push(answer(&model, vec![thoughts.clone()]));
    asked.messages.push(user("still there?"));
    asked.messages.push(answer(&model, vec![ContentBlock::text("Yes, and"), thoughts]));
    asked.messages.push(user("go on"));
    let messages = asked.body()["messages"].clone();
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], json!([{"type": "text", "text": "Yes, and"}]));
}

#[test]
fn every_claude_model_has_a_form_and_levels_that_go_together() {
    for model in ModelCatalog::builtin().iter().filter(|model| model.provider == "anthropic") {
        let levels = model.offered_thinking_levels();
        let form = model.quirks.thinking_form;
        // An effort of the API is a word; a budget has none above `high`.
        let is_right = match form {
            ThinkingForm::Budget => levels.last() == Some(&ThinkingLevel::High),
            ThinkingForm::Adaptive | ThinkingForm::BoundAdaptive => {
                let efforts = levels.iter().filter(|level| **level != ThinkingLevel::Off);
                efforts.clone().count() > 0
                    && efforts.clone().all(|level| {
                        let word = model.thinking_word(*level);
                        ["low", "medium", "high", "xhigh", "max"].contains(&word)
                    })
            }
        };
        assert!(is_right, "{}: {form:?}, {levels:?}", model.id);
    }
}

/// What a request to `model` says about thinking, whatever the format.
fn thinking_fields(model: &Model, level: ThinkingLevel) -> Value {
    let body = Asked::new(model, level).body();
    let mut config = body["generationConfig"]["thinkingConfig"].clone();
    if let Some(config) = config.as_object_mut() {
        // Whether thoughts are shown is another matter.
        config.remove("includeThoughts");
    }
    let names = [
        "thinking",
        "output_config",
        "reasoning_effort",
        "reasoning",
        "enable_thinking",
        "chat_template_kwargs",
        "additionalModelRequestFields",
    ];
    let fields: Vec<Value> = names.iter().map(|name| body[name].clone()).chain([config]).collect();
    json!(fields)
}

#[test]
fn the_level_that_is_reported_is_the_one_that_is_sent() {
    use std::collections::BTreeMap;
    let with_words = |provider: &str, id: &str, words: &[(ThinkingLevel, &str)]| Model {
        reasoning: true,
        thinking_levels: myclaw_llm::ThinkingLevels::new(
            words.iter().map(|(level, word)| (*level, Some((*word).to_owned()))),
        ),
        ..myclaw_llm::resolve_model(myclaw_llm::ResolveModel {
            provider,
            id,
            base_url: None,
            api: Some(Api::OpenaiCompletions),
        })
    };
    let own = [
        with_words(
            "xai",
            "grok-4.3",
            &[(ThinkingLevel::Low, "low"), (ThinkingLevel::High, "high")],
        ),
        with_words("qwen", "qwen3", &[]),
    ];
    let mut wrong = Vec::new();
    for mut model in ModelCatalog::builtin().iter().filter(|model| model.reasoning).chain(own) {
        if model.base_url.is_empty() {
            // Where every customer has an address of their own.
            model.base_url = "https://name.openai.azure.com".to_owned();
        }
        let offered = model.offered_thinking_levels();
        let mut sent: BTreeMap<String, ThinkingLevel> = BTreeMap::new();
        for level in &offered {
            let fields = thinking_fields(&model, *level);
            let is_said = match level {
                _ if offered == [ThinkingLevel::High] => true,
                ThinkingLevel::Off => true,
                _ => fields.as_array().unwrap().iter().any(|field| !field.is_null()),
            };
            if let Some(other) = sent.insert(fields.to_string(), *level) {
                wrong.push(format!("{}/{}: {other} is {level}", model.provider, model.id));
            }
            if !is_said {
                wrong.push(format!("{}/{}: {level} is not sent", model.provider, model.id));
            }
        }
        for level in ThinkingLevel::ALL {
            let reported = model.thinking_level(level);
            if !offered.contains(&reported)
                || thinking_fields(&model, level) != thinking_fields(&model, reported)
            {
                wrong.push(format!(
                    "{}/{}: {level} is reported as {reported}",
                    model.provider, model.id
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn levels_go_out_in_the_words_of_hosts_that_once_got_none() {
    let asked = |provider: &str, id: &str, level| {
        let model = ModelCatalog::builtin().find(provider, id).expect("in the catalog");
        let body = Asked::new(&model, level).body();
        let names = ["reasoning_effort", "reasoning", "thinking"];
        let fields =
            names.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.clone())));
        (model.thinking_level(level), Value::Object(fields.collect()))
    };
    use ThinkingLevel::{High, Low, Minimal, Off, Xhigh};
    for (provider, id, level, reported, sent) in [
        ("mistral", "mistral-large-4", Low, Low, json!({"reasoning_effort": "low"})),
        (
            "vercel-ai-gateway",
            "anthropic/claude-fable-5",
            Low,
            Low,
            json!({"reasoning": {"effort": "low"}}),
        ),
        (
            "vercel-ai-gateway",
            "alibaba/qwen-3-14b",
            Off,
            Off,
            json!({"reasoning": {"enabled": false}}),
        ),
        (
            "deepseek",
            "deepseek-flash",
            Xhigh,
            Xhigh,
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ),
        (
            "zai",
            "glm-5.3",
            Low,
            Low,
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ),
        // It knows no more than on and off.
        ("zai", "glm-4.7", Xhigh, High, json!({"thinking": {"type": "enabled"}})),
        ("moonshot", "kimi-k2.7-code", Minimal, High, json!({"thinking": {"type": "enabled"}})),
        ("together", "openai/gpt-oss-120b", Low, Low, json!({"reasoning_effort": "low"})),
        ("together", "MiniMaxAI/MiniMax-M3", Off, Off, json!({"reasoning": {"enabled": false}})),
        ("google", "gemini-2.5-pro", Off, Minimal, json!({})),
        // No request can control its thinking.
        ("amazon-bedrock", "amazon.nova-2-lite-v1:0", Off, High, json!({})),
    ] {
        assert_eq!(asked(provider, id, level), (reported, sent), "{provider}/{id} {level}");
    }
}
