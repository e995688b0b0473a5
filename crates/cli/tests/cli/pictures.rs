//! `image_generate`: pictures made of words, by models that the config names.

use std::fs;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_testkit::{ModelServer, Reply, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::screen::{chat_with, leave, prompt_after, raw};
use crate::{last_message, run};

const PIXEL: &[u8] = include_bytes!("../data/pixel.png");

/// A model that asks for a picture once, and a service that answers so.
fn home_with(
    service: &ModelServer,
    provider: &str,
    change: impl FnOnce(&mut Value),
) -> (TempHome, ModelServer) {
    let model = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic()
            .tool_call("call_1", "image_generate", json!({"prompt": "a red door"}))
            .usage(10, 1),
        Reply::anthropic().text("Done.").usage(20, 2),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
    config["models"]["providers"][provider] = json!({
        "baseUrl": service.url(), "api": "openai-completions", "apiKey": "the-secret-key",
        "models": [{"id": "painter", "contextWindow": 200_000, "price": {"input": 10.0, "output": 40.0}}],
    });
    config["agents"]["defaults"]["imageGenerationModel"] = json!(format!("{provider}/painter"));
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    change(&mut config);
    home.write_config(&config);
    (home, model)
}

fn service(body: &Value) -> ModelServer {
    let json = [("content-type", "application/json")];
    served(Step::status(200, &json, body.to_string()))
}

/// A service that answers with this step, whatever the path.
fn served(step: Step) -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::from([step]).answer_every_route())
}

fn of_openai() -> Value {
    json!({
        "data": [{"b64_json": BASE64_STANDARD.encode(PIXEL)}],
        "usage": {"input_tokens": 1_000, "output_tokens": 5_000},
    })
}

/// The file that a result names.
fn file_of(result: &str) -> PathBuf {
    let (_, path) = result.rsplit_once(": ").expect("a path");
    PathBuf::from(path.split('"').next().expect("a path"))
}

fn totals(home: &TempHome) -> Value {
    let text = fs::read_to_string(home.state_directory().join("usage.json")).expect("totals");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_picture_becomes_a_file_of_the_session_and_its_cost_counts() {
    let service = service(&of_openai());
    let (home, model) = home_with(&service, "mine", |_| {});
    run(&home, &["run", "draw"]).assert_code(0);
    let result = last_message(&model);
    assert!(result.contains("by mine/painter, $0.2100: "), "{result}");
    assert_eq!(fs::read(file_of(&result)).expect("the picture"), PIXEL);
    assert_eq!(totals(&home)["tokens"], 11 + 22 + 6_000);
    let asked = service.last_request().json().clone();
    assert_eq!(asked["prompt"], "a red door");
}

#[test]
fn openrouter_and_google_are_asked_in_their_own_way() {
    let data = BASE64_STANDARD.encode(PIXEL);
    let chat = service(&json!({
        "choices": [{"message": {"images": [{"image_url": {"url": format!("data:image/png;base64,{data}")}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.04},
    }));
    let (home, model) = home_with(&chat, "openrouter", |_| {});
    run(&home, &["run", "draw"]).assert_code(0);
    let result = last_message(&model);
    assert!(result.contains("by openrouter/painter, $0.0400: "), "{result}");
    assert_eq!(chat.last_request().json()["modalities"], json!(["image", "text"]));
    let google = service(&json!({
        "candidates": [{"content": {"parts": [{"inlineData": {"data": data}}]}}], "usageMetadata": {},
    }));
    let (home, model) = home_with(&google, "mine", |config| {
        config["models"]["providers"]["mine"]["api"] = json!("google-generative-ai");
    });
    run(&home, &["run", "draw"]).assert_code(0);
    let result = last_message(&model);
    assert!(result.contains("of unknown cost: "), "{result}");
    assert_eq!(fs::read(file_of(&result)).expect("the picture"), PIXEL);
}

#[test]
fn without_a_picture_the_model_reads_why() {
    let damaged = json!({"data": [{"b64_json": BASE64_STANDARD.encode(&PIXEL[..20])}]});
    let text = json!({"data": [{"b64_json": BASE64_STANDARD.encode("hello")}]});
    let refused = json!({"error": {"message": "your request was rejected"}});
    let cases: [(Step, &str); 3] = [
        (Step::status(200, &[], damaged.to_string()), "the picture cannot be used"),
        (Step::status(200, &[], text.to_string()), "not a PNG, JPEG, WebP or GIF file"),
        (
            Step::status(400, &[], refused.to_string()),
            "it answered 400 Bad Request: your request was rejected",
        ),
    ];
    for (step, expected) in cases {
        let service = served(step);
        let (home, model) = home_with(&service, "mine", |_| {});
        run(&home, &["run", "draw"]).assert_code(0);
        let result = last_message(&model);
        assert!(result.contains("no picture was made: ") && result.contains(expected), "{result}");
        assert!(!result.contains("the-secret-key"), "{result}");
    }
    let service = service(&of_openai());
    let (home, model) = home_with(&service, "mine", |config| {
        config["models"]["providers"]["mine"]["api"] = json!("anthropic-messages");
    });
    run(&home, &["run", "draw"]).assert_code(0);
    assert!(
        last_message(&model).contains("mine/painter makes no pictures"),
        "{}",
        last_message(&model)
    );
    assert!(service.requests().is_empty());
}

#[test]
fn no_tool_is_offered_without_a_model() {
    let offers = |server: &ModelServer| {
        let tools = server.requests()[0].json()["tools"].to_string();
        tools.contains("image_generate")
    };
    let unused = service(&of_openai());
    let (home, model) = home_with(&unused, "mine", |config| {
        config["agents"]["defaults"]
            .as_object_mut()
            .expect("an object")
            .remove("imageGenerationModel");
    });
    run(&home, &["run", "draw"]).assert_code(0);
    assert!(!offers(&model));
    let (home, model) = home_with(&unused, "mine", |_| {});
    run(&home, &["run", "draw"]).assert_code(0);
    assert!(offers(&model));
}

#[test]
fn the_chat_shows_the_picture_where_the_terminal_can_and_its_path_everywhere() {
    for (term, is_shown) in [("xterm-kitty", true), ("xterm-256color", false)] {
        let service = service(&of_openai());
        let (home, _model) = home_with(&service, "mine", |_| {});
        let mut terminal = chat_with(&home, &[("TERM", term)]);
        terminal.send_line("draw");
        let screen = prompt_after(&mut terminal, "Done.");
        let shown: String = screen.split_whitespace().collect();
        assert!(shown.contains(".png") && shown.contains("picture-"), "{screen}");
        assert_eq!(raw(&terminal).contains("\u{1b}_Ga=T,f=100"), is_shown, "{term}");
        leave(&mut terminal);
    }
}
