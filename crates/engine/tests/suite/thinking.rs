//! The thinking level: the requested one, else that of the config, else `high`, as far as the model offers it.

use crate::common::{Bench, run_agent};
use myclaw_engine::ActiveModel;
use myclaw_llm::{Model, ThinkingLevel};
use myclaw_testkit::{Reply, Script, WireFormat};
use serde_json::json;

/// Runs one turn of a model that offers `off` to `high`; gives the budget that was asked for, and the notices.
async fn turn(
    asked: Option<ThinkingLevel>,
    defaults: serde_json::Value,
    reasoning: bool,
) -> (Option<u64>, Vec<String>) {
    let script = Script::repeat(Reply::anthropic().text("Well."));
    let mut bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    bench.config.agents = serde_json::from_value(json!({ "defaults": defaults })).unwrap();
    let mut params = bench.params("hello");
    let model = Model { reasoning, max_output: 64_000, ..bench.model() };
    params.models = vec![ActiveModel::new(model, Vec::new())];
    params.thinking = asked;
    run_agent(params).await.unwrap();
    let notices = bench.events_named("notice");
    let texts = notices.iter().map(|notice| notice["message"].as_str().unwrap().to_owned());
    let budget = bench.server.last_request().json()["thinking"]["budget_tokens"].as_u64();
    (budget, texts.collect())
}

#[tokio::test]
async fn a_request_precedes_the_config_and_the_config_precedes_high() {
    let low = json!({"thinkingDefault": "low"});
    let silent = |budget| (budget, Vec::<String>::new());
    assert_eq!(turn(None, json!({}), true).await, silent(Some(20_480)));
    assert_eq!(turn(None, low.clone(), true).await, silent(Some(4_096)));
    assert_eq!(turn(Some(ThinkingLevel::Medium), low.clone(), true).await, silent(Some(10_240)));
    assert_eq!(turn(Some(ThinkingLevel::Off), low, true).await, silent(None));
}

#[tokio::test]
async fn a_level_that_is_not_offered_is_reported_only_if_it_was_requested() {
    let (budget, notices) = turn(Some(ThinkingLevel::Xhigh), json!({}), true).await;
    assert_eq!(budget, Some(20_480));
    assert_eq!(
        notices,
        [
            "anthropic/test-model does not offer the thinking level xhigh but off, minimal, low, medium, high; high is \
          used"
        ]
    );
    let (budget, notices) = turn(Some(ThinkingLevel::Low), json!({}), false).await;
    assert_eq!(budget, None);
    assert_eq!(
        notices,
        ["anthropic/test-model cannot think before it answers; the thinking level is off"]
    );
    let unoffered = json!({"thinkingDefault": "xhigh"});
    assert_eq!(turn(None, unoffered, true).await, (Some(20_480), Vec::new()));
    assert_eq!(turn(None, json!({}), false).await, (None, Vec::new()));
}
