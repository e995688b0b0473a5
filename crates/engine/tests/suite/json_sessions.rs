//! A run over another store of sessions than the log of JSON lines.

use std::sync::Arc;

use crate::common::{Bench, engine};
use myclaw_engine::RunParams;
use myclaw_session::{JsonSessions, Sessions};
use myclaw_testkit::{Reply, WireFormat};
use serde_json::{Value, json};

fn params(bench: &Bench, store: &JsonSessions, message: &str) -> RunParams {
    let mut params = bench.params(message);
    params.stores.sessions = Arc::new(store.clone());
    params
}

#[tokio::test]
async fn a_turn_with_a_tool_is_kept_in_one_json_file_and_continues_by_its_id() {
    let replies = [
        Reply::anthropic().text("Let me see.").tool_call("call_1", "echo", json!({"text": "seen"})),
        Reply::anthropic().text("Done.").usage(10, 5),
        Reply::anthropic().text("Still here."),
    ];
    let bench = Bench::new(WireFormat::AnthropicMessages, replies).await;
    let directory = bench.home.state_directory().join("json");
    let store = JsonSessions::new(&directory);
    let first = params(&bench, &store, "look");
    let key = first.session_key.clone();
    assert_eq!(engine().run(first).await.unwrap().reply, "Done.");

    let id = store.session_id(&key).unwrap().unwrap();
    let file = std::fs::read(directory.join(format!("{id}.json"))).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let said: Vec<_> = file["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["role"].as_str().unwrap(), row["content"].as_str().unwrap()))
        .collect();
    let expected = [
        ("user", "look"),
        ("assistant", "Let me see."),
        ("tool", "echo: seen"),
        ("assistant", "Done."),
    ];
    assert_eq!(said, expected);
    assert_eq!(
        file["index"]["totalTokens"].as_u64(),
        file["index"]["extra"]["lastRunTokens"].as_u64()
    );
    assert!(!bench.home.sessions_directory().exists(), "nothing is kept anywhere else");

    // Another process that is passed the id.
    let restarted = JsonSessions::new(&directory);
    assert_eq!(restarted.resume(&key, &id), id);
    let second = engine().run_embedded(params(&bench, &restarted, "and now?")).await.unwrap();
    assert_eq!(json!(second)["meta"]["agentMeta"]["sessionId"], json!(id));
    let requests = bench.server.requests();
    let messages = |number: usize| requests[number].json()["messages"].as_array().unwrap().clone();
    assert_eq!((messages(1).len(), messages(2).len()), (3, 5));
    assert_eq!(messages(2)[1], messages(1)[1], "the call is sent again as it was");
    let paths = std::fs::read_dir(&directory).unwrap().map(|found| found.unwrap().path());
    let sessions = paths.filter(|path| path.extension().is_some_and(|found| found == "json"));
    assert_eq!(sessions.count(), 1, "no second session");
}
