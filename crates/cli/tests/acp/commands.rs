//! Commands about a session, in prompts.

use std::fs;

use myclaw_testkit::{Reply, Script, TempHome};
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
