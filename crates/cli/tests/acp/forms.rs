//! Questions of MCP servers that want words: a form in editors that have some, the choices as options in others.

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat, mcp_server};
use serde_json::{Value, json};

use crate::client::Client;

/// A home with an MCP server that asks for a field of this kind, and a model that calls it.
fn asking(field: &Value) -> (TempHome, ModelServer) {
    let question = json!({
        "message": "Which one?",
        "requestedSchema": {"type": "object", "required": ["it"], "properties": {"it": field}},
    });
    let call = json!({"text": question.to_string()});
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "faults__ask", call),
        Reply::anthropic().text("Done."),
    ]));
    let home = TempHome::new();
    let (entry, _) = mcp_server(&home, "sessions");
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["mcp"]["servers"]["faults"] = entry;
    home.write_config(&config);
    let mut approve = home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(approve.args(["mcp", "approve", "faults", "--yes"])).assert_code(0);
    (home, server)
}

/// The server's answer when the editor, which has these abilities, responds so to a request of this method.
fn heard(abilities: &Value, field: &Value, method: Option<&str>, response: &Value) -> String {
    let (home, server) = asking(field);
    let mut client = Client::start(&home, &[]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": abilities});
    client.request("initialize", &hello);
    let project = home.write("projects/one/file", "");
    let project = project.parent().expect("a directory");
    let opened = client.request("session/new", &json!({"cwd": project, "mcpServers": []}));
    let session = opened["result"]["sessionId"].as_str().expect("an id").to_owned();
    let prompt = client.prompt(&session, "Go");
    if let Some(method) = method {
        let asked = client.line_with("\"id\":\"myclaw-1\"");
        assert_eq!(asked["method"], method);
        let text = asked.to_string();
        assert!(text.contains("Which one?"), "{text}");
        client.send_line(
            &json!({"jsonrpc": "2.0", "id": "myclaw-1", "result": response}).to_string(),
        );
    }
    client.answer(prompt);
    client.finish();
    server.last_request().json().to_string()
}

#[test]
fn an_editor_with_forms_shows_one_and_another_the_choices() {
    let forms = json!({"elicitation": {"form": {}}});
    let (word, choice) =
        (json!({"type": "string"}), json!({"type": "string", "enum": ["red", "blue"]}));
    let accepted = json!({"action": "accept", "content": {"answer": "blue"}});
    let chosen = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
    let (form, permission) = (Some("elicitation/create"), Some("session/request_permission"));
    for (abilities, field, method, response, expected) in [
        (&forms, &word, form, &accepted, "content: {'it': 'blue'}"),
        (&forms, &choice, form, &accepted, "content: {'it': 'blue'}"),
        (&forms, &word, form, &json!({"action": "decline"}), "action: decline"),
        (&forms, &word, form, &json!({"action": "cancel"}), "action: cancel"),
        (&json!({}), &choice, permission, &chosen("choice-0"), "content: {'it': 'red'}"),
        (&json!({}), &choice, permission, &chosen("no"), "action: decline"),
        (
            &json!({}),
            &choice,
            permission,
            &json!({"outcome": {"outcome": "cancelled"}}),
            "action: cancel",
        ),
        (&json!({}), &word, None, &json!(null), "this editor cannot show a form"),
    ] {
        let heard = heard(abilities, field, method, response);
        assert!(heard.contains(expected), "{expected}: {heard}");
    }
}
