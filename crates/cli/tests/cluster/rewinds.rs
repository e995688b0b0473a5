//! Going back in talk and files on the gateway that took a session over.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use myclaw_testkit::{RecordedRequest, Step};

use super::web_socket::{Socket, block_on};
use super::*;

/// Writes what the message says into a file.
fn writer(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    let word = ["one", "two"].into_iter().find(|word| last.contains(&format!("say {word}")));
    match word {
        Some(word) if !last.contains("tool_result") => Reply::anthropic()
            .tool_call(
                format!("call_{number}"),
                "bash",
                json!({"command": format!("echo {word} > a.txt")}),
            )
            .step(),
        _ => echo(request).step(),
    }
}

#[test]
fn a_rewind_works_on_the_gateway_that_takes_a_session_over() {
    let Some((_server, url)) = database() else { return };
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(writer));
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    // Both mount the workspace.
    let workspace = machines[0].home.workspace();
    for (machine, name) in machines.iter().zip(["one", "two"]) {
        machine.configure(name, &model, |config| {
            config["agents"]["defaults"]["workspace"] = json!(workspace);
            config["agents"]["defaults"]["sandbox"] = json!({"mode": "off"});
        });
    }
    let first = machines[0].start();
    let file = workspace.join("a.txt");
    for (id, text) in [("a", "say one <m1>"), ("b", "say two <m2>")] {
        let message = first.client.send("main", id, text).unwrap();
        assert_eq!(first.client.outcome(&message).unwrap()["state"], "answered");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    let mode = || fs::metadata(&file).unwrap().permissions().mode();
    let before = mode();
    // Before that it could have taken the session.
    let second = machines[1].start();
    first.kill();
    // Its disk is gone with it.
    fs::remove_dir_all(machines[0].home.state_directory().join("side-files")).unwrap();
    let message = second.client.send("main", "c", "look <m3>").unwrap();
    assert_eq!(second.client.outcome(&message).unwrap()["state"], "answered");
    block_on(async {
        let mut socket = Socket::open(&second.client).await;
        let mut ask = async |id: &str, text: &str| {
            socket.ask(id, "command", json!({"session": "main", "text": text})).await
        };
        let listed = ask("l", "/rewind").await.to_string();
        assert!(listed.contains("say one") && listed.contains("say two"), "{listed}");
        let wrong = ask("w", "/rewind 9").await;
        assert_eq!(wrong["ok"], false, "{wrong}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
        // Before the second message; the first one in the list is the last.
        let back = ask("b", "/rewind 2").await;
        assert_eq!(back["ok"], true, "{back}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\n", "{back}");
        assert_eq!(mode(), before);
        assert!(back["result"]["unsent"].to_string().contains("say two"), "{back}");
        assert!(back["result"]["session"].is_string(), "{back}");
    });
    second.stop();
}
