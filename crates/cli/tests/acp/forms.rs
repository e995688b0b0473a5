//! Questions of MCP servers that want words: a form in editors that have some, the choices as options in others.

use std::path::PathBuf;

use myclaw_testkit::{ModelServer, Reply, TempHome};
use serde_json::{Value, json};

use crate::client::Client;
use crate::mcp::{approved, begin};

/// A home with an MCP server that asks for a field of this kind, a model that calls it, and the directory of a project.
fn asking(field: &Value) -> (TempHome, ModelServer, PathBuf) {
    let question = json!({
        "message": "Which one?",
        "requestedSchema": {"type": "object", "required": ["it"], "properties": {"it": field}},
    });
    let call = json!({"text": question.to_string()});
    approved([
        Reply::anthropic().tool_call("call_1", "faults__ask", call),
        Reply::anthropic().text("Done."),
    ])
}

/// The server's answer when the editor, which has these abilities, responds so to a request of this method.
fn heard(abilities: &Value, field: &Value, method: Option<&str>, response: &Value) -> String {
    let (home, server, project) = asking(field);
    let mut client = Client::start(&home, &[]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": abilities});
    client.request("initialize", &hello);
    let session = begin(&mut client, &project);
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
