//! Plans and questions of an editor: approved, changed, refused with a reason, and shown again.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::client::{Client, of_kind};

/// A model that proposes a plan, and makes a file when it is approved.
fn planner() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(|request, number| {
        let last = json!(request.messages().last()).to_string();
        let id = format!("call_{number}");
        let reply = Reply::anthropic();
        let reply = if last.contains("has approved the plan") || last.contains("run it") {
            reply.tool_call(id, "bash", json!({"command": "echo x > made.txt"}))
        } else if last.contains("plan it") {
            let steps = json!([{"text": "Look"}, {"text": "Change"}]);
            reply.tool_call(id, "update_plan", json!({ "steps": steps }))
        } else {
            reply.text("Done.")
        };
        reply.step()
    }));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    home.write_config(&config);
    (home, server)
}

/// An editor with these abilities, and its session in this mode.
fn editor(home: &TempHome, abilities: &Value, mode: &str) -> (Client, String) {
    let mut client = Client::start(home, &[]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": abilities});
    client.request("initialize", &hello);
    let session = client.new_session(home);
    client.request("session/set_mode", &json!({"sessionId": session, "modeId": mode}));
    (client, session)
}

fn respond(client: &mut Client, number: usize, result: &Value) {
    let id = format!("myclaw-{number}");
    client.send_line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

/// Chooses an option of the question with this number; gives all of them.
fn choose(client: &mut Client, number: usize, option: &str) -> Vec<String> {
    let asked = client.line_with(&format!("\"id\":\"myclaw-{number}\""));
    assert_eq!(asked["method"], "session/request_permission", "{asked}");
    let options = asked["params"]["options"].as_array().expect("options").iter();
    let options = options.map(|one| one["optionId"].as_str().expect("an id").to_owned()).collect();
    respond(client, number, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    options
}

/// Fills the form with this number.
fn fill(client: &mut Client, number: usize, words: &str) {
    let asked = client.line_with(&format!("\"id\":\"myclaw-{number}\""));
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    respond(client, number, &json!({"action": "accept", "content": {"answer": words}}));
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn a_plan_is_refused_with_a_reason_and_then_changed_in_an_editor_with_forms() {
    let (home, server) = planner();
    let (mut client, session) = editor(&home, &forms(), "plan");
    let prompt = client.prompt(&session, "plan it");
    let options = choose(&mut client, 1, "no-because");
    assert_eq!(options, ["once", "instead", "no", "no-because"]);
    fill(&mut client, 2, "one step only");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let last = json!(server.last_request().messages().last()).to_string();
    assert!(last.contains("the user said no: one step only"), "{last}");
    // The form is closed: nothing is approved.
    let prompt = client.prompt(&session, "plan it");
    choose(&mut client, 3, "instead");
    client.line_with("\"id\":\"myclaw-4\"");
    respond(&mut client, 4, &json!({"action": "cancel"}));
    client.answer(prompt);
    assert!(!home.workspace().join("made.txt").exists());
    let prompt = client.prompt(&session, "plan it");
    choose(&mut client, 5, "instead");
    client.updates();
    fill(&mut client, 6, "Read it\nTest it; ");
    client.answer(prompt);
    assert!(home.workspace().join("made.txt").exists());
    let updates = client.updates();
    let plan = of_kind(&updates, "plan");
    let steps: Vec<&Value> = plan[0]["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|step| &step["content"])
        .collect();
    assert_eq!(steps, ["Read it", "Test it"]);
    assert_eq!(of_kind(&updates, "current_mode_update")[0]["currentModeId"], "auto");
    client.finish();
    // Another process shows the plan again.
    let (mut client, _) = editor(&home, &json!({}), "auto");
    client.updates();
    let load = json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    client.request("session/load", &load);
    let updates = client.updates();
    assert!(json!(of_kind(&updates, "plan")).to_string().contains("Test it"), "{updates:?}");
    client.finish();
}

#[test]
fn another_command_runs_in_an_editor_with_forms_and_others_approve_or_refuse() {
    let (home, server) = planner();
    let (mut client, session) = editor(&home, &forms(), "ask");
    let prompt = client.prompt(&session, "run it");
    choose(&mut client, 1, "instead");
    fill(&mut client, 2, "echo y > other.txt");
    client.answer(prompt);
    assert!(home.workspace().join("other.txt").exists());
    assert!(!home.workspace().join("made.txt").exists());
    let last = json!(server.last_request().messages().last()).to_string();
    assert!(last.contains("The user ran another command in place of yours"), "{last}");
    client.finish();
    let (mut client, session) = editor(&home, &json!({}), "plan");
    let prompt = client.prompt(&session, "plan it");
    assert_eq!(choose(&mut client, 1, "no"), ["once", "no"]);
    client.answer(prompt);
    let prompt = client.prompt(&session, "plan it");
    choose(&mut client, 2, "once");
    client.answer(prompt);
    assert!(home.workspace().join("made.txt").exists());
    client.finish();
}
