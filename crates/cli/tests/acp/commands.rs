//! Commands about a session, in prompts.

use std::fs;

use myclaw_testkit::{Gate, ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::json;

use crate::client::{Client, text_of};

/// What a prompt is answered with.
fn told(client: &mut Client, session: &str, text: &str) -> String {
    client.updates();
    let answer = client.converse(session, text);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    text_of(&client.updates(), "agent_message_chunk")
}

fn content(home: &TempHome, name: &str) -> Option<String> {
    fs::read_to_string(home.workspace().join(name)).ok()
}

#[test]
fn an_editor_goes_back_in_talk_and_files() {
    let (home, server, mut client, session) = Client::with_session(Script::new());
    for (message, content) in [("the first", "one\n"), ("the second", "two\n")] {
        let arguments = json!({"path": "a.txt", "content": content});
        server.push(Reply::anthropic().tool_call("call_1", "read", json!({"path": "a.txt"})));
        server.push(Reply::anthropic().tool_call("call_2", "write", arguments));
        server.push(Reply::anthropic().text("Done."));
        client.converse(&session, message);
    }
    assert_eq!(content(&home, "a.txt").as_deref(), Some("two\n"));
    let listed = told(&mut client, &session, "/rewind");
    assert!(
        listed.contains("the first") && listed.contains("/rewind NUMBER goes back"),
        "{listed}"
    );
    assert!(told(&mut client, &session, "/rewind 9").contains("`9` is none of the 2 messages"));
    assert_eq!(content(&home, "a.txt").as_deref(), Some("two\n"));
    let calls = server.requests().len();
    let back = told(&mut client, &session, "/rewind 1");
    assert_eq!(content(&home, "a.txt").as_deref(), Some("one\n"));
    assert!(back.contains("restored") && back.contains("the second"), "{back}");
    // The session that goes on can be opened, and knows what was said before.
    let (_, rest) = back.split_once("Load the session `").expect("a session");
    let (to, _) = rest.split_once('`').expect("its name");
    let loaded = client.request(
        "session/load",
        &json!({"sessionId": to, "cwd": home.workspace(), "mcpServers": []}),
    );
    assert!(loaded["result"].is_object(), "{loaded}");
    let replayed = json!(client.updates()).to_string();
    assert!(replayed.contains("the first") && !replayed.contains("the second"), "{replayed}");
    // None of this was said to the model.
    assert_eq!(server.requests().len(), calls);
    client.finish();
}

#[test]
fn an_editor_undoes_and_asks_for_facts_without_the_model() {
    let (home, server, mut client, session) = Client::with_session(Script::new());
    server.push(Reply::anthropic().tool_call(
        "call_1",
        "write",
        json!({"path": "a.txt", "content": "one\n"}),
    ));
    server.push(Reply::anthropic().text("Done."));
    client.converse(&session, "write it");
    let calls = server.requests().len();
    let difference = told(&mut client, &session, "/diff");
    assert!(difference.contains("a.txt") && difference.contains("+one"), "{difference}");
    told(&mut client, &session, "/undo");
    assert_eq!(content(&home, "a.txt"), None);
    told(&mut client, &session, "/redo");
    assert_eq!(content(&home, "a.txt").as_deref(), Some("one\n"));
    assert!(told(&mut client, &session, "/usage").contains("tokens"));
    assert!(told(&mut client, &session, "/context").contains('%'));
    assert_eq!(server.requests().len(), calls);
    // The model and the thinking level are options; a prompt about them is said.
    server.push(Reply::anthropic().text("I see."));
    assert_eq!(told(&mut client, &session, "/model x/y"), "I see.");
    client.finish();
}

#[test]
fn an_editor_works_on_a_goal_in_one_prompt_and_shows_and_drops_it() {
    let (home, server, mut client, session) = Client::with_session(Script::new());
    assert!(told(&mut client, &session, "/goal").contains("there is no goal"));
    assert!(told(&mut client, &session, "/goal !").contains("needs a condition"));
    for text in ["Not yet.", "All there.\nGOAL REACHED"] {
        server.push(Reply::anthropic().text(text));
    }
    let said = told(&mut client, &session, "/goal three lines");
    assert!(said.contains("Not yet.") && said.contains("All there."), "{said}");
    let sent = json!(server.last_request().messages()).to_string();
    assert!(sent.contains("Work until this holds") && sent.contains("not reached yet"), "{sent}");
    for _ in 0..20 {
        server.push(Reply::anthropic().text("Once more."));
    }
    client.converse(&session, "/goal !false");
    let shown = told(&mut client, &session, "/goal");
    assert!(shown.contains("false (paused, "), "{shown}");
    assert!(told(&mut client, &session, "/goal stop").contains("dropped: false"));
    drop(home);
    client.finish();
}

#[test]
fn a_prompt_is_answered_when_its_sub_agents_in_the_background_are_done_or_it_is_cancelled() {
    let gate = Gate::closed();
    let held = gate.clone();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, number| {
        let last = json!(request.messages().last()).to_string();
        if json!(request.messages().first()).to_string().contains("[Task ") {
            return Reply::anthropic().text("found it").step().hold_after(0, &held);
        }
        if last.contains("begin") && !last.contains("tool_result") {
            let order = json!({"task": "look", "background": true});
            return Reply::anthropic()
                .tool_call(format!("c{number}"), "sessions_spawn", order)
                .step();
        }
        Reply::anthropic().text(format!("answer {number}")).step()
    }));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    // One that is cancelled while it waits: the sub-agent is stopped, and reports that with the next prompt.
    let id = client.prompt(&session, "begin");
    client.line_with("answer");
    // Its turn ends.
    std::thread::sleep(std::time::Duration::from_millis(500));
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    gate.open();
    let said = told(&mut client, &session, "begin");
    assert!(said.matches("answer ").count() >= 2, "{said}");
    let sent = json!(server.last_request().messages()).to_string();
    assert!(sent.contains("was stopped, after") && sent.contains("> found it"), "{sent}");
    client.finish();
}
