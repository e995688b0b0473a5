//! The editor's own files.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::client::Client;

/// An editor with files of its own, and a session in its workspace.
fn with_files(script: impl Into<Script>) -> (TempHome, ModelServer, Client, String) {
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    // A sandboxed session keeps its own files.
    config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
    home.write_config(&config);
    let mut client = Client::start(&home, &[]);
    let files = json!({"readTextFile": true, "writeTextFile": true});
    let abilities = json!({"protocolVersion": 1, "clientCapabilities": {"fs": files}});
    client.request("initialize", &abilities);
    let session = client.new_session(&home);
    (home, server, client, session)
}

/// Answers the request of the agent with this number.
fn answer(client: &mut Client, number: u32, result: &Value) -> Value {
    let id = format!("\"id\":\"myclaw-{number}\"");
    let asked = client.line_with(&id);
    let response = json!({"jsonrpc": "2.0", "id": format!("myclaw-{number}"), "result": result});
    client.send_line(&response.to_string());
    asked
}

#[test]
fn a_file_with_changes_that_the_model_has_not_read_is_not_changed() {
    let edit = json!({"path": "a.txt", "oldText": "one", "newText": "two"});
    let (home, server, mut client, session) = with_files(Script::from([
        Reply::anthropic().tool_call("call_1", "read", json!({"path": "a.txt"})),
        Reply::anthropic().tool_call("call_2", "edit", edit),
        Reply::anthropic().text("I see."),
    ]));
    let file = home.write_in_workspace("a.txt", "one\n");
    let prompt = client.prompt(&session, "Change it");
    // It is saved when the model reads it.
    let asked = answer(&mut client, 1, &json!({"content": "one\n"}));
    assert_eq!(
        (&asked["method"], &asked["params"]["path"]),
        (&json!("fs/read_text_file"), &json!(file))
    );
    answer(&mut client, 2, &json!({"content": "one\nthe user types\n"}));
    client.answer(prompt);
    let result = server.last_request().body_text();
    assert!(result.contains("changes in") && result.contains("that you have not read"), "{result}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    client.finish();
}

#[test]
fn an_editor_that_cannot_say_what_it_has_leaves_the_file_on_disk() {
    let (home, _server, mut client, session) = with_files(Script::from([
        Reply::anthropic().tool_call(
            "call_1",
            "write",
            json!({"path": "a.txt", "content": "new\n"}),
        ),
        Reply::anthropic().text("Written."),
    ]));
    let prompt = client.prompt(&session, "Write it");
    // The file is new, so there is nothing to ask; the editor gets its text, and refuses it.
    let asked = client.line_with("fs/write_text_file");
    assert_eq!(asked["params"]["content"], "new\n");
    let error = json!({"code": -32603, "message": "read only"});
    client.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).unwrap(), "new\n");
    client.finish();
}

#[test]
fn a_session_can_be_loaded_before_its_first_prompt() {
    let script = Script::from([Reply::anthropic().text("Hello.")]);
    let (home, _server, client, session) = Client::with_session(script);
    client.finish();
    // Another process, as after a restart of the editor.
    let mut client = Client::introduced(&home);
    let place = json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    let loaded = client.request("session/load", &place);
    assert!(loaded["result"].is_object(), "{loaded}");
    let answer = client.converse(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let unknown = json!({"sessionId": "nobody", "cwd": home.workspace(), "mcpServers": []});
    assert_eq!(client.request("session/load", &unknown)["error"]["code"], -32002);
    client.finish();
}
