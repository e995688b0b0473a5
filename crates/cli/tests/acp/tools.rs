//! Tool calls, as the editor receives them.

use myclaw_testkit::{Reply, Script, Stop};
use serde_json::{Value, json};

use crate::client::{Client, of_kind};

#[test]
fn each_call_has_a_kind_a_place_and_an_end() {
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "read", json!({"path": "src/a.rs", "startLine": 2})),
        Reply::anthropic().tool_call(
            "call_1",
            "edit",
            json!({"path": "src/a.rs", "oldText": "two", "newText": "2"}),
        ),
        Reply::anthropic().tool_call(
            "call_1",
            "write",
            json!({"path": "new.txt", "content": "new\n"}),
        ),
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "echo out; exit 3"})),
        Reply::anthropic().text("All done."),
    ]);
    let (home, _server, mut client, session) = Client::with_session(script);
    let file = home.write_in_workspace("src/a.rs", "one\ntwo\nthree\n");
    let answer = client.converse(&session, "Work");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let updates = client.updates();
    let calls = of_kind(&updates, "tool_call");
    let ends: Vec<&Value> = of_kind(&updates, "tool_call_update")
        .into_iter()
        .filter(|update| update["status"] != "in_progress")
        .collect();
    assert_eq!(
        calls.iter().map(|call| call["toolCallId"].as_str()).collect::<Vec<_>>(),
        ends.iter().map(|end| end["toolCallId"].as_str()).collect::<Vec<_>>()
    );
    assert_eq!(calls[0]["kind"], "read");
    assert_eq!(calls[0]["title"], "Read `src/a.rs` (from line 2)");
    assert_eq!(calls[0]["locations"], json!([{"path": file, "line": 2}]));
    assert_eq!(calls[0]["rawInput"], json!({"path": "src/a.rs", "startLine": 2}));
    assert!(ends[0]["content"][0]["content"]["text"].as_str().unwrap().contains("three"));

    assert_eq!((&calls[1]["kind"], &ends[1]["status"]), (&json!("edit"), &json!("completed")));
    assert_eq!(
        ends[1]["content"],
        json!([{
            "type": "diff", "path": file,
            "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n",
        }])
    );
    assert_eq!(ends[1]["locations"], json!([{"path": file, "line": 1}]));
    let new = home.workspace().join("new.txt");
    assert_eq!(ends[2]["content"], json!([{"type": "diff", "path": new, "newText": "new\n"}]));

    assert_eq!(calls[3]["title"], "`echo out; exit 3`");
    assert_eq!((&calls[3]["kind"], &ends[3]["status"]), (&json!("execute"), &json!("failed")));
    assert!(ends[3]["content"][0]["content"]["text"].as_str().unwrap().contains("out"));
    client.finish();
}

#[test]
fn a_call_with_long_arguments_shows_before_it_is_complete() {
    let content = "a line of the file\n".repeat(100);
    let arguments = json!({"path": "notes/long.txt", "content": content});
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "write", arguments.clone()),
        Reply::anthropic().text("Written."),
    ]);
    let (home, _server, mut client, session) = Client::with_session(script);
    client.converse(&session, "Write it");
    let updates = client.updates();
    let calls = of_kind(&updates, "tool_call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    // `pending` is the protocol's default, so it is left out.
    assert_eq!((&calls[0]["status"], &calls[0]["rawInput"]), (&Value::Null, &Value::Null));
    assert_eq!(calls[0]["title"], "Write `notes/long.txt`");
    let place = home.workspace().join("notes/long.txt");
    assert_eq!(calls[0]["locations"], json!([{"path": place}]));
    let later = of_kind(&updates, "tool_call_update");
    assert!(later.iter().all(|update| update["toolCallId"] == calls[0]["toolCallId"]), "{later:?}");
    let begun = later.iter().find(|update| update["status"] == "in_progress").unwrap();
    assert_eq!(begun["rawInput"], arguments);
    assert_eq!(later.last().unwrap()["status"], "completed");
    client.finish();
}

#[test]
fn an_announced_call_whose_message_breaks_off_is_ended() {
    let arguments = json!({"path": "long.txt", "content": "text ".repeat(200)}).to_string();
    let cut = &arguments[..arguments.len() - 20];
    let script = Script::from([
        Reply::anthropic().tool_call_with_raw_arguments("call_1", "write", cut).stop(Stop::Length),
        Reply::anthropic().text("It was too long."),
    ]);
    let (home, _server, mut client, session) = Client::with_session(script);
    client.converse(&session, "Write it");
    let updates = client.updates();
    let calls = of_kind(&updates, "tool_call");
    assert_eq!(calls[0]["status"], Value::Null, "{calls:?}");
    let last = of_kind(&updates, "tool_call_update").pop().unwrap();
    assert_eq!((&last["toolCallId"], &last["status"]), (&calls[0]["toolCallId"], &json!("failed")));
    assert!(!home.workspace().join("long.txt").exists());
    client.finish();
}

#[test]
fn a_command_shows_what_it_prints_while_it_runs() {
    let command = "echo first; until test -e go; do sleep 0.02; done";
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": command})),
        Reply::anthropic().text("Done."),
    ]);
    let (home, _server, mut client, session) = Client::with_session(script);
    let id = client.prompt(&session, "Work");
    let update = &client.line_with("\"sessionUpdate\":\"tool_call_update\"")["params"]["update"];
    assert_eq!(update["status"], "in_progress");
    assert_eq!(update["content"][0]["content"]["text"], "```\nfirst\n```");
    home.write_in_workspace("go", "");
    client.answer(id);
    client.finish();
}

#[test]
fn a_call_that_cannot_be_made_has_failed() {
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "teleport", json!({"to": "Rome"})),
        Reply::anthropic().text("It seems I cannot."),
    ]);
    let (_home, _server, mut client, session) = Client::with_session(script);
    client.converse(&session, "Go to Rome");
    let updates = client.updates();
    assert_eq!(of_kind(&updates, "tool_call")[0]["name"], "teleport");
    assert_eq!(of_kind(&updates, "tool_call_update")[0]["status"], "failed");
    client.finish();
}
