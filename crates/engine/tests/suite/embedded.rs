//! The result in the form for embedding programs: payloads, and facts about the run.

use crate::common::{Bench, engine};
use myclaw_engine::RunError;
use myclaw_session::SessionStore;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::json;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

/// More than is read of a bootstrap file.
const SOUL_BYTES: usize = 300_000;

fn overflow() -> Step {
    let error = json!({"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens > 200000 maximum"});
    Step::status(400, &[], json!({"type": "error", "error": error}).to_string())
}

#[tokio::test]
async fn an_answer_is_a_payload_with_facts_about_its_run() {
    let bench = Bench::new(FORMAT, [Reply::anthropic().text("Hi.").usage(10, 5)]).await;
    bench.home.write_in_workspace("SOUL.md", "x".repeat(SOUL_BYTES));
    let params = bench.params("hi");
    let store = SessionStore::new(bench.home.sessions_directory());
    let key = params.session_key.clone();
    let result = json!(engine().run_embedded(params).await.unwrap());
    assert_eq!(result["payloads"], json!([{"text": "Hi."}]));
    let meta = &result["meta"];
    assert!(meta["durationMs"].is_u64());
    assert_eq!(meta["aborted"], false);
    let entry = store.index().get(&key).unwrap().unwrap();
    let agent = &meta["agentMeta"];
    assert_eq!(agent["sessionId"], entry.session_id);
    assert_eq!((&agent["provider"], &agent["model"]), (&json!("anthropic"), &json!("test-model")));
    assert_eq!(agent["usage"]["totalTokens"], 15);
    let files = meta["systemPromptReport"]["files"].as_array().unwrap();
    let soul = files.iter().find(|file| file["name"] == "SOUL.md").unwrap();
    assert_eq!((&soul["truncated"], &soul["fileBytes"]), (&json!(true), &json!(SOUL_BYTES)));
    assert!(soul["chars"].as_u64().unwrap() < 60_000);
    assert!(meta["systemPromptReport"]["totalChars"].as_u64() > soul["chars"].as_u64());
    assert_eq!(entry.extra.unwrap()["lastRunTokens"], 15);
}

#[tokio::test]
async fn an_overflow_is_a_payload_and_still_an_error_of_the_engine() {
    let bench = Bench::new(FORMAT, Script::repeat(overflow())).await;
    let engine = engine();
    let error = engine.run(bench.params("hi")).await.unwrap_err();
    assert!(matches!(error, RunError::ContextOverflow { .. }), "{error}");
    let result = json!(engine.run_embedded(bench.params("hi")).await.unwrap());
    assert_eq!(result["payloads"][0]["isError"], true);
    assert!(result["payloads"][0]["text"].as_str().unwrap().starts_with("Context overflow"));
    assert_eq!(result["meta"]["aborted"], false);
}

#[tokio::test]
async fn an_abort_has_no_payload_and_says_so() {
    let bench = Bench::new(FORMAT, [Reply::anthropic().text("Hi.")]).await;
    let params = bench.params("hi");
    params.cancel.cancel();
    let result = json!(engine().run_embedded(params).await.unwrap());
    assert_eq!((result.get("payloads"), &result["meta"]["aborted"]), (None, &json!(true)));
}

#[tokio::test]
async fn any_other_failure_stays_an_error() {
    let body =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "no such model"}});
    let bench = Bench::new(FORMAT, [Step::status(404, &[], body.to_string())]).await;
    let error = engine().run_embedded(bench.params("hi")).await.unwrap_err();
    assert!(matches!(error, RunError::Model(_)), "{error}");
}
