//! Going back in talk and files at once.

use std::fs;

use myclaw_testkit::{ModelServer, Reply, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::rpc::Client;
use crate::run;
use crate::screen::{ask, chat, leave};

/// Two turns in the main session: the first makes `a.txt`, the second changes it and makes `b.txt`.
fn two_turns() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::from(Vec::<Step>::new()));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    // As in a project: a copy of the main session has the same rights.
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    home.write_config(&config);
    let turns = [
        ("the first", vec![("write", json!({"path": "a.txt", "content": "one\n"}))]),
        (
            "the second",
            vec![
                ("edit", json!({"path": "a.txt", "oldText": "one", "newText": "two"})),
                ("write", json!({"path": "b.txt", "content": "new\n"})),
            ],
        ),
    ];
    for (message, calls) in turns {
        for (at, (tool, arguments)) in calls.into_iter().enumerate() {
            server.push(Reply::anthropic().tool_call(format!("call_{at}"), tool, arguments));
        }
        server.push(Reply::anthropic().text("Done."));
        run(&home, &["run", message]).assert_code(0);
    }
    (home, server)
}

fn content(home: &TempHome, name: &str) -> Option<String> {
    fs::read_to_string(home.workspace().join(name)).ok()
}

/// The ids and texts of the user's messages in the current session.
fn said(client: &mut Client, id: u64) -> Vec<(Value, String)> {
    let reply = client.ask(json!({"type": "get_messages"}), id);
    let rows = reply["data"]["messages"].as_array().cloned().unwrap_or_default();
    let rows = rows.into_iter().filter(|row| row["role"] == "user");
    rows.map(|row| (row["id"].clone(), row["content"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

#[test]
fn a_program_goes_back_in_talk_and_files_and_further_back_from_there() {
    let (home, _server) = two_turns();
    let mut client = Client::start(&home);
    let messages = said(&mut client, 1);
    let id = messages[1].0.clone();
    let back = client.ask(json!({"type": "rewind", "messageId": id}), 2);
    assert_eq!(back["data"]["message"], "the second", "{back}");
    assert_eq!(back["data"]["undone"].as_array().map(Vec::len), Some(1), "{back}");
    assert_eq!(
        (content(&home, "a.txt").as_deref(), content(&home, "b.txt")),
        (Some("one\n"), None)
    );
    let left = said(&mut client, 3);
    assert_eq!(left.len(), 1, "{left:?}");
    let further = client.ask(json!({"type": "rewind", "messageId": left[0].0}), 4);
    assert_eq!(further["data"]["message"], "the first", "{further}");
    assert_eq!(content(&home, "a.txt"), None);
    let wrong = client.ask(json!({"type": "rewind", "messageId": "nothing"}), 5);
    assert!(wrong["error"].to_string().contains("no message of the user"), "{wrong}");
    client.finish();
    // What the first session says about itself stays true.
    let rows = TempHome::read_lines(&home.transcript_path("main"));
    assert!(json!(rows).to_string().contains("The user has undone file changes"), "{rows:?}");
}

#[test]
fn a_person_goes_back_in_the_chat_and_reads_what_became_of_the_files() {
    let (home, _server) = two_turns();
    // Somebody else has changed it since.
    fs::write(home.workspace().join("b.txt"), "mine\n").expect("written");
    let mut terminal = chat(&home);
    ask(&mut terminal, "/rewind now", "/rewind takes no argument");
    terminal.send_line("/rewind");
    terminal.expect_screen(|screen| {
        screen.contains("with the files") && screen.contains("Enter chooses")
    });
    terminal.send("\r");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You: the second"));
    assert!(screen.contains("restored    a.txt"), "{screen}");
    assert!(screen.contains("left alone  b.txt: it changed since"), "{screen}");
    assert_eq!(content(&home, "a.txt").as_deref(), Some("one\n"));
    assert_eq!(content(&home, "b.txt").as_deref(), Some("mine\n"));
    terminal.send("\x15");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    leave(&mut terminal);
}
