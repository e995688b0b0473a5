//! Prompts: what the model gets, what the client receives, how they end.

use myclaw_testkit::{ModelServer, Reply, Script, Step, Stop, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::client::{Client, of_kind, text_of};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn answer(text: &str) -> Reply {
    Reply::anthropic().text(text)
}

/// What the user says in a request to the model.
fn said(request: &Value) -> String {
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn an_answer_is_streamed() {
    let reply = Reply::anthropic().thinking("Let me think.", "signed").text("Hello, ünïcode.");
    let (home, server, mut client, session) = Client::with_session([reply]);
    let answer = client.converse(&session, "Who are you?");
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    let updates = client.updates();
    assert_eq!(text_of(&updates, "agent_message_chunk"), "Hello, ünïcode.");
    assert_eq!(text_of(&updates, "agent_thought_chunk"), "Let me think.");
    assert!(of_kind(&updates, "agent_message_chunk").len() > 1, "{updates:?}");
    let ids: Vec<&Value> = updates.iter().filter_map(|update| update.get("messageId")).collect();
    assert!(ids[0].is_string() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let usage = of_kind(&updates, "usage_update");
    assert_eq!((&usage[0]["used"], &usage[0]["size"]), (&json!(120), &json!(200_000)));
    assert_eq!(usage[0]["cost"]["currency"], "USD");
    assert!(said(server.last_request().json()).contains("Who are you?"));
    assert_eq!(home.only_transcript()[1]["content"], "Who are you?");
    client.finish();
}

#[test]
fn the_end_of_a_turn_says_why() {
    for (stop, reason) in [(Stop::Length, "max_tokens"), (Stop::Refusal, "refusal")] {
        let (_home, _server, mut client, session) =
            Client::with_session([answer("That is").stop(stop)]);
        assert_eq!(stop_reason(&client.converse(&session, "Go on")), reason);
        client.finish();
    }
}

#[test]
fn a_turn_that_reaches_a_limit_is_no_failure() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "true"})),
        answer("I was not done."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agent"] = json!({"maxIterations": 1});
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    assert_eq!(stop_reason(&client.converse(&session, "Work")), "max_turn_requests");
    let updates = client.updates();
    assert!(text_of(&updates, "agent_message_chunk").contains("I was not done."), "{updates:?}");
    let notices = of_kind(&updates, "notice");
    assert!(notices[0]["title"].as_str().unwrap().contains("maxIterations"), "{notices:?}");
    client.finish();
}

#[test]
fn a_turn_that_fails_is_an_error_with_its_class() {
    let refusal = json!({"type": "error", "error": {"type": "authentication_error", "message": "no such key"}});
    let step = Step::status(401, &[], refusal.to_string());
    let script = Script::from([step]).then(answer("Now it works."));
    let (home, _server, mut client, session) = Client::with_session(script);
    let failed = client.converse(&session, "Hello?");
    assert_eq!(failed["error"]["code"], -32603);
    assert_eq!(failed["error"]["data"]["class"], "auth");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no such key"), "{failed}");
    // What was said is kept, and the session continues.
    assert_eq!(home.only_transcript()[1]["content"], "Hello?");
    assert_eq!(stop_reason(&client.converse(&session, "And now?")), "end_turn");
    client.finish();
}

#[test]
fn a_failing_server_is_no_timeout_for_editors() {
    for (status, class) in [(500, "server_error"), (503, "server_error"), (504, "timeout")] {
        let server =
            ModelServer::spawn_blocking_thread(Script::repeat(Step::status(status, &[], "")));
        let home = TempHome::new();
        let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
        config["agent"] = json!({"maxRetries": 0});
        home.write_config(&config);
        let mut client = Client::introduced(&home);
        let session = client.new_session(&home);
        let failed = client.converse(&session, "Hello?");
        assert_eq!(failed["error"]["data"]["class"], class, "{failed}");
        client.finish();
    }
}

#[test]
fn a_retry_is_reported_as_a_notice() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let step = || Step::status(529, &[("retry-after", "0")], overloaded.to_string());
    for shows_notices in [true, false] {
        let server =
            ModelServer::spawn_blocking_thread(Script::from([step()]).then(answer("Done.")));
        let home = TempHome::new();
        home.use_server(&server, WireFormat::AnthropicMessages);
        let mut client = if shows_notices {
            Client::introduced(&home)
        } else {
            let mut client = Client::start(&home, &[]);
            client.request("initialize", &json!({"protocolVersion": 1}));
            client
        };
        let session = client.new_session(&home);
        assert_eq!(stop_reason(&client.converse(&session, "Hello")), "end_turn");
        let updates = client.updates();
        let notices = of_kind(&updates, "notice");
        let reported = if shows_notices {
            assert_eq!(notices[0]["severity"], "warning");
            notices[0]["title"].as_str().unwrap().to_owned()
        } else {
            assert!(notices.is_empty(), "{notices:?}");
            text_of(&updates, "agent_thought_chunk")
        };
        assert!(reported.contains("retry 1"), "{reported}");
        client.finish();
    }
}

#[test]
fn files_links_and_pictures_reach_the_model() {
    let (_home, server, mut client, session) = Client::with_session([answer("I see.")]);
    let prompt = json!([
        {"type": "text", "text": "Compare "},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"},
        {"type": "resource", "resource": {"uri": "file:///p/b.rs", "text": "fn main() {}"}},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    ]);
    let answer = client.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    assert_eq!(stop_reason(&answer), "end_turn");
    let request = server.last_request();
    let content = &request.json()["messages"][0]["content"];
    let text = content[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Compare [@a.rs](file:///p/a.rs)\n\nfile:///p/b.rs:\n```\nfn main() {}\n```"
        ),
        "{text}"
    );
    assert_eq!(content[1]["source"]["media_type"], "image/png");
    client.finish();
}

#[test]
fn a_prompt_that_no_model_can_read_is_refused() {
    let (home, server, mut client, session) = Client::with_session(Script::new());
    for prompt in [
        json!([]),
        json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]),
        json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
        json!([{"type": "smell"}]),
        json!("hello"),
    ] {
        let answer =
            client.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert!(server.all_requests().is_empty());
    assert_eq!(home.transcripts().len(), 0);
    client.finish();
}

#[test]
fn a_cancelled_prompt_says_so_and_ends_its_tools() {
    let script = Script::from([
        Step::from(answer("I begin").tool_call(
            "call_1",
            "bash",
            json!({"command": "echo on; sleep 600"}),
        )),
        Step::from(answer("Again.")),
    ]);
    let (_home, _server, mut client, session) = Client::with_session(script);
    let id = client.prompt(&session, "Take your time");
    client.line_with("\"sessionUpdate\":\"tool_call\"");
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(stop_reason(&client.answer(id)), "cancelled");
    let updates = client.updates();
    let last = of_kind(&updates, "tool_call_update");
    assert_eq!(last.last().unwrap()["status"], "failed");
    // There is nothing more to cancel.
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(stop_reason(&client.converse(&session, "Once more")), "end_turn");
    client.finish();
}

#[test]
fn a_request_can_be_cancelled_by_its_id() {
    let script = Script::from([Step::from(answer("I begin and never end")).stall_after(700)]);
    let (_home, server, mut client, session) = Client::with_session(script);
    let id = client.prompt(&session, "Take your time");
    server.wait_for_requests_blocking(1);
    client.notify("$/cancel_request", &json!({"requestId": 999}));
    client.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(stop_reason(&client.answer(id)), "cancelled");
    client.finish();
}

#[test]
fn a_summary_can_be_cancelled_as_any_prompt() {
    let (_home, server, mut client, session) = Client::with_session(Script::new());
    for question in 0..3 {
        server.push(answer(&format!("Answer {question}. {}", "word ".repeat(100))));
        client.converse(&session, "And now?");
    }
    let cancel: [fn(&mut Client, &str, u64); 2] = [
        |client, _, id| client.notify("$/cancel_request", &json!({"requestId": id})),
        |client, session, _| client.notify("session/cancel", &json!({"sessionId": session})),
    ];
    for cancel in cancel {
        server.push(Step::from(answer("They spoke of nothing.")).stall_after(100));
        let asked = server.requests().len();
        let id = client.prompt(&session, "/compact");
        server.wait_for_requests_blocking(asked + 1);
        cancel(&mut client, &session, id);
        assert_eq!(stop_reason(&client.answer(id)), "cancelled");
        // Right behind it as well, whether or not the model was asked already.
        let id = client.prompt(&session, "/compact");
        cancel(&mut client, &session, id);
        assert_eq!(stop_reason(&client.answer(id)), "cancelled");
    }
    client.finish();
}

#[test]
fn what_is_said_right_behind_a_cancellation_is_answered() {
    let script = Script::from([
        Step::from(Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 600"}))),
        Step::from(answer("The other thing.")),
    ]);
    let (_home, server, mut client, session) = Client::with_session(script);
    let first = client.prompt(&session, "Do this");
    client.line_with("\"sessionUpdate\":\"tool_call\"");
    client.notify("session/cancel", &json!({"sessionId": session}));
    let second = client.prompt(&session, "Do that");
    assert_eq!(stop_reason(&client.answer(first)), "cancelled");
    assert_eq!(stop_reason(&client.answer(second)), "end_turn");
    assert!(said(server.last_request().json()).contains("Do that"));
    client.finish();
}

#[test]
fn a_second_prompt_waits_for_its_turn_and_both_are_answered() {
    let script = Script::from([
        Step::from(Reply::anthropic().tool_call(
            "call_1",
            "bash",
            json!({"command": "until test -e go; do sleep 0.02; done"}),
        )),
        Step::from(answer("This is done.")),
        Step::from(answer("That is done.")),
    ]);
    let (home, server, mut client, session) = Client::with_session(script);
    let first = client.prompt(&session, "Do this");
    client.line_with("\"sessionUpdate\":\"tool_call\"");
    let second = client.prompt(&session, "And that");
    // It is answered behind the prompt, so the prompt is taken.
    client.request("session/list", &json!({}));
    home.write_in_workspace("go", "");
    assert_eq!(stop_reason(&client.answer(first)), "end_turn");
    assert_eq!(stop_reason(&client.answer(second)), "end_turn");
    assert_eq!(server.requests().len(), 3);
    assert!(said(server.last_request().json()).contains("And that"));
    client.finish();
}

#[test]
fn a_prompt_may_interrupt_the_turn() {
    let script = Script::from([
        Step::from(Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 600"}))),
        Step::from(answer("I stopped.")),
    ]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["messages"] = json!({"queue": {"mode": "interrupt"}});
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    let first = client.prompt(&session, "Do this");
    client.line_with("\"sessionUpdate\":\"tool_call\"");
    let second = client.prompt(&session, "Stop");
    assert_eq!(stop_reason(&client.answer(first)), "cancelled");
    assert_eq!(stop_reason(&client.answer(second)), "end_turn");
    client.finish();
}

#[test]
fn older_messages_are_summarised_on_command() {
    let (_home, server, mut client, session) = Client::with_session(Script::new());
    let commands = client.line_with("available_commands_update");
    assert_eq!(commands["params"]["update"]["availableCommands"][0]["name"], "compact");
    // A word that only begins like the command is said.
    server.push(answer("What?"));
    assert_eq!(stop_reason(&client.converse(&session, "/compactor")), "end_turn");
    client.updates();
    let done = client.converse(&session, "/compact the numbers");
    assert_eq!(stop_reason(&done), "end_turn");
    let updates = client.updates();
    assert!(
        text_of(&updates, "agent_message_chunk").contains("nothing to summarise"),
        "{updates:?}"
    );
    let compactions = of_kind(&updates, "compaction_update");
    assert_eq!(compactions[0]["status"], "in_progress");
    assert_eq!(compactions[1]["status"], "completed");
    assert_eq!(compactions[0]["compactionId"], compactions[1]["compactionId"]);
    assert_eq!(server.requests().len(), 1);
    client.finish();
}

#[test]
fn a_prompt_may_ask_for_a_skill() {
    let (home, server, mut client, session) = Client::with_session(Script::new());
    let commands = client.line_with("available_commands_update");
    assert_eq!(commands["params"]["update"]["availableCommands"][1]["name"], "skill");
    client.converse(&session, "/skill");
    assert!(text_of(&client.updates(), "agent_message_chunk").contains("There are no skills"));

    let text = "---\nname: notes\ndescription: Writes notes.\n---\nWrite.\n";
    let path = home.write(".claude/skills/notes/SKILL.md", text);
    client.converse(&session, "/skill");
    assert_eq!(text_of(&client.updates(), "agent_message_chunk"), "- notes: Writes notes.");
    let refused = client.converse(&session, "/skill nots");
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("did you mean `notes`?"), "{why}");

    server.push(answer("Done."));
    assert_eq!(stop_reason(&client.converse(&session, "/skill notes about it")), "end_turn");
    let request =
        format!("Use the skill notes: read {} and follow it.\\n\\nabout it", path.display());
    let said = said(server.last_request().json());
    assert!(said.contains(&request), "{said}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_editor_is_asked_for_permission() {
    let write = || json!({"path": "a.txt", "content": "one\n"});
    let call = |id: &str| Reply::anthropic().tool_call(id, "write", write());
    let server = ModelServer::spawn_blocking_thread(Script::from([
        call("call_1"),
        answer("Not written."),
        call("call_2"),
        answer("Written."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"ask": ["write"]});
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    for (number, option, exists) in [(1, "no", false), (2, "once", true)] {
        let prompt = client.prompt(&session, "Write it");
        let asked = client.line_with(&format!("\"id\":\"myclaw-{number}\""));
        assert_eq!(asked["method"], "session/request_permission");
        let options: Vec<&str> = asked["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["optionId"].as_str().unwrap())
            .collect();
        assert_eq!(options, ["once", "always", "always-1", "no"]);
        let content = asked["params"]["toolCall"]["content"].to_string();
        assert!(content.contains("tools.ask") && content.contains("+one"), "{content}");
        client.send_line(
            &json!({"jsonrpc": "2.0", "id": format!("myclaw-{number}"), "result": {
                "outcome": {"outcome": "selected", "optionId": option},
            }})
            .to_string(),
        );
        assert_eq!(stop_reason(&client.answer(prompt)), "end_turn");
        assert_eq!(home.workspace().join("a.txt").exists(), exists, "{option}");
    }
    client.finish();
}

/// All that decides what happens reaches the editor, and each scope of "always" is an option that names it.
#[test]
fn a_permission_request_shows_everything_and_names_what_always_covers() {
    let long = format!("true {}; echo the-very-end", "x".repeat(20_000));
    let text: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
    let calls = [
        ("bash", json!({"command": long}), vec!["echo the-very-end", "sandboxed"]),
        (
            "bash",
            json!({"command": "git diff", "env": {"GIT_EXTERNAL_DIFF": "./evil.sh"}}),
            vec!["variable GIT_EXTERNAL_DIFF", "./evil.sh"],
        ),
        ("bash", json!({"command": "ls # \u{202e}\u{1b}[2J"}), vec![r"ls # \\u{202e}\\u{1b}[2J"]),
        (
            "write",
            json!({"path": "a\u{202e}b.txt", "content": text}),
            vec![r"a\\u{202e}b.txt", "+line 1999"],
        ),
    ];
    let mut steps = Vec::new();
    for (number, (tool, arguments, _)) in calls.iter().enumerate() {
        steps.push(Reply::anthropic().tool_call(
            format!("call_{number}"),
            *tool,
            arguments.clone(),
        ));
        steps.push(answer("Over."));
    }
    let server = ModelServer::spawn_blocking_thread(Script::from(steps));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"ask": ["write"], "exec": {"ask": "always"}});
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    for (number, (tool, _, expected)) in calls.iter().enumerate() {
        let id = format!("myclaw-{}", number + 1);
        let prompt = client.prompt(&session, "Do it");
        let asked = client.line_with(&format!("\"id\":\"{id}\""));
        let content = asked["params"]["toolCall"]["content"].to_string();
        for part in expected {
            assert!(content.contains(part), "{part}: {content}");
        }
        let shown = [&content, &asked["params"]["toolCall"]["title"].to_string()];
        assert!(shown.iter().all(|text| !text.contains('\u{202e}')), "{shown:?}");
        let always: Vec<&str> = asked["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|option| option["kind"] == "allow_always")
            .map(|option| option["name"].as_str().unwrap())
            .collect();
        match *tool {
            "bash" => assert!(
                always[0].starts_with("Always allow exactly this command in /"),
                "{always:?}"
            ),
            _ => assert!(
                always[1].starts_with("Always allow write on every file in /"),
                "{always:?}"
            ),
        }
        client.send_line(
            &json!({"jsonrpc": "2.0", "id": id, "result": {
                "outcome": {"outcome": "selected", "optionId": "no"},
            }})
            .to_string(),
        );
        client.answer(prompt);
    }
    client.finish();
}

#[test]
fn what_changed_while_the_editor_asked_is_asked_again_with_the_difference() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sh t.sh"})),
        answer("Over."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"exec": {"ask": "always"}});
    home.write_config(&config);
    home.write_in_workspace("t.sh", "echo one > ran\n");
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    let prompt = client.prompt(&session, "Do it");
    for (number, option) in [(1, "once"), (2, "no")] {
        let asked = client.line_with(&format!("\"id\":\"myclaw-{number}\""));
        let content = asked["params"]["toolCall"]["content"].to_string();
        let is_again = content.contains("this is different since you were asked:");
        assert_eq!(is_again, number == 2, "{content}");
        assert_eq!(content.contains("+echo evil > ran"), number == 2, "{content}");
        home.write_in_workspace("t.sh", "echo evil > ran\n");
        client.send_line(
            &json!({"jsonrpc": "2.0", "id": format!("myclaw-{number}"), "result": {
                "outcome": {"outcome": "selected", "optionId": option},
            }})
            .to_string(),
        );
    }
    client.answer(prompt);
    assert!(!home.workspace().join("ran").exists());
    client.finish();
}
