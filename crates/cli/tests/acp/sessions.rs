//! Sessions: where they work, and how they are found again.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::client::{Client, of_kind, text_of};

fn load(client: &mut Client, session: &str, home: &TempHome) -> Value {
    let params = json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    client.request("session/load", &params)
}

#[test]
fn tools_work_where_the_editor_says() {
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "pwd > here"})),
        Reply::anthropic().text("Done."),
    ]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let file = home.write("projects/one/file", "");
    let project = file.parent().unwrap();
    let mut client = Client::introduced(&home);
    for (cwd, why) in [
        (json!("projects/one"), "not an absolute path"),
        (json!(file), "not an existing directory"),
        (json!("/nowhere/at/all"), "not an existing directory"),
    ] {
        let answer = client.request("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!(answer["error"]["code"], -32602);
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    }
    let answer = client.request("session/new", &json!({"cwd": project, "mcpServers": []}));
    let session = answer["result"]["sessionId"].as_str().unwrap();
    client.converse(session, "Where are you?");
    let here = std::fs::read_to_string(project.join("here")).unwrap();
    assert_eq!(here.trim(), project.to_str().unwrap());
    client.finish();
}

#[test]
fn servers_that_are_not_known_or_not_named_keep_no_session_closed() {
    let home = TempHome::new();
    std::fs::create_dir_all(home.workspace()).unwrap();
    let mut client = Client::introduced(&home);
    let cwd = home.workspace();
    for params in [
        json!({"cwd": cwd}),
        json!({"cwd": cwd, "mcpServers": null, "additionalDirectories": null, "_meta": null}),
    ] {
        let answer = client.request("session/new", &params);
        assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    }
    let servers = json!([
        {"type": "acp", "name": "of tomorrow", "id": "1"},
        {"name": "files", "command": "/bin/files", "args": [], "env": []},
        {"type": "http", "url": "http://127.0.0.1:9"},
    ]);
    let answer = client.request("session/new", &json!({"cwd": cwd, "mcpServers": servers}));
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    client.line_with("of tomorrow: servers of this type are not known");
    client.line_with("a server without a name: it has no name that can be used");
    client.line_with("the tools of the MCP server files are not approved: `/mcp approve files`");
    client.finish();
}

#[test]
fn sessions_of_the_same_second_have_names_of_their_own() {
    let home = TempHome::new();
    let (mut one, mut other) = (Client::introduced(&home), Client::introduced(&home));
    let mut names = vec![
        one.new_session(&home),
        one.new_session(&home),
        one.new_session(&home),
        other.new_session(&home),
    ];
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
    one.finish();
    other.finish();
}

#[test]
fn a_session_is_replayed_and_continues() {
    let script = Script::from([
        Reply::anthropic()
            .thinking("I should look.", "signed")
            .text("Let me change it.")
            .tool_call("call_1", "edit", json!({"path": "a", "oldText": "x", "newText": "y"})),
        Reply::anthropic().text("Changed."),
        Reply::anthropic().text("It was x."),
    ]);
    let (home, server, mut client, session) = Client::with_session(script);
    home.write_in_workspace("a", "x\n");
    client.converse(&session, "Change it");
    let reported = client.updates();
    client.finish();

    let mut client = Client::introduced(&home);
    let answer = load(&mut client, &session, &home);
    assert!(answer["result"]["configOptions"].is_array(), "{answer}");
    let again = client.updates();
    assert_eq!(text_of(&again, "user_message_chunk"), "Change it");
    for kind in ["agent_message_chunk", "agent_thought_chunk"] {
        assert_eq!(text_of(&again, kind), text_of(&reported, kind));
    }
    let without_id = |updates: &[Value], kind: &str| {
        let mut found: Vec<Value> = of_kind(updates, kind).into_iter().cloned().collect();
        for update in &mut found {
            update["toolCallId"] = Value::Null;
        }
        found
    };
    for kind in ["tool_call", "tool_call_update"] {
        assert_eq!(without_id(&again, kind), without_id(&reported, kind));
        assert_eq!(of_kind(&again, kind).len(), 1);
    }
    assert_eq!(of_kind(&again, "usage_update").last(), of_kind(&reported, "usage_update").last());

    client.converse(&session, "What was it?");
    assert_eq!(text_of(&client.updates(), "agent_message_chunk"), "It was x.");
    assert_eq!(server.last_request().messages().len(), 5);
    client.finish();
}

#[test]
fn sessions_are_listed_resumed_closed_and_deleted() {
    let script = Script::from([Reply::anthropic().text("Hi."), Reply::anthropic().text("Again.")]);
    let (home, server, mut client, session) = Client::with_session(script);
    client.converse(&session, "Good morning\nto you");
    let list = client.request("session/list", &json!({}))["result"].clone();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    let listed = &list["sessions"][0];
    assert_eq!(listed["sessionId"], session.as_str());
    assert_eq!(listed["title"], "Good morning");
    assert_eq!(listed["cwd"], json!(home.workspace()));
    assert!(listed["updatedAt"].as_str().unwrap().ends_with('Z'), "{listed}");
    let elsewhere = client.request("session/list", &json!({"cwd": "/elsewhere"}));
    assert_eq!(elsewhere["result"]["sessions"], json!([]));
    let wrong = client.request("session/list", &json!({"cursor": "x"}));
    assert_eq!(wrong["error"]["code"], -32602);

    assert_eq!(
        client.request("session/close", &json!({"sessionId": session}))["result"],
        json!({})
    );
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hello?"}]});
    assert_eq!(client.request("session/prompt", &prompt)["error"]["code"], -32002);
    client.updates();
    let resumed =
        client.request("session/resume", &json!({"sessionId": session, "cwd": home.workspace()}));
    assert!(resumed["result"].is_object(), "{resumed}");
    client.converse(&session, "Hello again");
    let updates = client.updates();
    assert_eq!(text_of(&updates, "user_message_chunk"), "", "nothing is reported again");
    assert_eq!(server.last_request().messages().len(), 3);

    assert_eq!(
        client.request("session/delete", &json!({"sessionId": session}))["result"],
        json!({})
    );
    assert_eq!(client.request("session/list", &json!({}))["result"]["sessions"], json!([]));
    assert_eq!(home.transcripts().len(), 0);
    client.finish();
}

#[test]
fn the_list_comes_in_pages() {
    let home = TempHome::new();
    home.use_server(
        &ModelServer::spawn_blocking_thread(Script::new()),
        WireFormat::AnthropicMessages,
    );
    for number in 0..53 {
        let header = json!({"type": "session", "version": 1, "createdAt": number,
            "sessionKey": format!("agent:main:channel:cli:account:default:peer:direct:talk-{number}")});
        let row =
            json!({"id": "a", "role": "user", "content": format!("talk {number}"), "ts": number});
        std::fs::create_dir_all(home.sessions_directory()).unwrap();
        let path = home.transcript_path(&format!("talk-{number}"));
        std::fs::write(path, format!("{header}\n{row}\n")).unwrap();
    }
    let mut client = Client::introduced(&home);
    let first = client.request("session/list", &json!({}))["result"].clone();
    assert_eq!(first["sessions"].as_array().unwrap().len(), 50);
    let next =
        client.request("session/list", &json!({"cursor": first["nextCursor"]}))["result"].clone();
    assert_eq!(next["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(next.get("nextCursor"), None);
    client.finish();
}

#[test]
fn closing_a_session_ends_its_turn() {
    let script = Script::from([Reply::anthropic().tool_call(
        "call_1",
        "bash",
        json!({"command": "sleep 600"}),
    )]);
    let (home, _server, mut client, session) = Client::with_session(script);
    let prompt = client.prompt(&session, "Wait");
    client.line_with("\"sessionUpdate\":\"tool_call\"");
    // What is at work is neither loaded nor deleted.
    assert_eq!(load(&mut client, &session, &home)["error"]["code"], -32600);
    let delete = client.request("session/delete", &json!({"sessionId": session}));
    assert_eq!(delete["error"]["code"], -32600);
    let close = client.ask("session/close", &json!({"sessionId": session}));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer(close)["result"], json!({}));
    client.finish();
}

#[test]
fn closing_a_session_ends_its_jobs() {
    let command = "echo $$ > pid; exec sleep 600";
    let job = json!({"command": command, "background": true});
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "bash", job),
        Reply::anthropic().text("It runs."),
    ]);
    let (home, _server, mut client, session) = Client::with_session(script);
    client.converse(&session, "Work");
    let file = home.workspace().join("pid");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    while !read().ends_with('\n') {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = read().trim().parse().unwrap();
    assert!(myclaw_testkit::is_running(pid), "the job outlives its turn");
    let closed = client.request("session/close", &json!({"sessionId": session}));
    assert_eq!(closed["result"], json!({}));
    assert!(!myclaw_testkit::is_running(pid));
    client.finish();
}

#[test]
fn the_model_and_its_thinking_are_options() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().text("Hi."),
        Reply::anthropic().text("Ho."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["provider"]["model"] = json!("claude-sonnet-4-6");
    home.write_config(&config);
    let mut client = Client::introduced(&home);
    let session = client.new_session(&home);
    let answer = load(&mut client, &session, &home);
    let options = &answer["result"]["configOptions"];
    assert_eq!(options[0]["category"], "model");
    assert_eq!(options[0]["currentValue"], "anthropic/claude-sonnet-4-6");
    assert_eq!(
        (&options[1]["id"], &options[1]["category"]),
        (&json!("thinking"), &json!("thought_level"))
    );
    assert_eq!(options[1]["currentValue"], "high");

    client.converse(&session, "Think");
    assert!(server.last_request().json().get("thinking").is_some());
    let mut set = |option: &str, value: &str| {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        client.request("session/set_config_option", &params)
    };
    let answer = set("thinking", "off");
    assert_eq!(answer["result"]["configOptions"][1]["currentValue"], "off");
    for (option, value, why) in [
        ("thinking", "wildly", "not a thinking level"),
        ("colour", "red", "there is no option `colour`"),
        ("model", "nobody/nothing", "nobody"),
    ] {
        let answer = set(option, value);
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    }
    // A model that does not think has no such option, and another model's levels are not taken in silence.
    let answer = set("model", "builtin/demo");
    let options = answer["result"]["configOptions"].as_array().unwrap();
    let ids: Vec<&Value> = options.iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["model", "mode"]);
    let answer = set("thinking", "high");
    let why = "builtin/demo does not offer the thinking level high; it offers: off";
    assert!(answer["error"]["message"].as_str().unwrap_or_default().contains(why), "{answer}");
    let answer = set("model", "anthropic/claude-opus-4-6");
    assert_eq!(answer["result"]["configOptions"][0]["currentValue"], "anthropic/claude-opus-4-6");
    client.converse(&session, "Do not think");
    let request = server.last_request();
    assert_eq!(request.json()["model"], "claude-opus-4-6");
    assert_eq!(request.json()["thinking"], json!({"type": "disabled"}));
    client.finish();
}

#[test]
fn what_does_not_work_is_said_and_not_passed_over() {
    let home = TempHome::new();
    for shows_notices in [true, false] {
        let mut client = if shows_notices {
            Client::introduced(&home)
        } else {
            let mut client = Client::start(&home, &[]);
            client.request("initialize", &json!({"protocolVersion": 1}));
            client
        };
        std::fs::create_dir_all(home.workspace()).unwrap();
        let servers = json!([
            {"name": "files", "command": "/bin/files", "args": [], "env": []},
            {"type": "http", "name": "web", "url": "http://127.0.0.1:9/", "headers": []},
        ]);
        let answer =
            client.request("session/new", &json!({"cwd": home.workspace(), "mcpServers": servers}));
        let session = answer["result"]["sessionId"].as_str().unwrap();
        if shows_notices {
            let notice = client.line_with("the tools of the MCP server files are not approved");
            assert_eq!(notice["params"]["update"]["sessionUpdate"], "notice");
        }
        client.converse(session, "list files");
        let updates = client.updates();
        let reported = if shows_notices {
            let notices = of_kind(&updates, "notice");
            notices.iter().map(|notice| notice["title"].to_string()).collect()
        } else {
            text_of(&updates, "agent_thought_chunk")
        };
        assert!(reported.contains("builtin/demo answers"), "{reported}");
        assert!(
            reported.contains("the tools of the MCP server files are not approved"),
            "{reported}"
        );
        let stderr = client.finish().stderr();
        assert!(stderr.contains("builtin/demo answers"), "{stderr}");
    }
}

#[test]
fn calls_are_reported_apart_and_one_that_was_interrupted_has_failed() {
    let home = TempHome::new();
    let key = "agent:main:channel:cli:account:default:peer:direct:killed";
    // Other agents, whose sessions can be imported, use the ids of calls again.
    let call = |command: &str| {
        json!({"contentBlocks": [
            {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": command}},
        ]})
    };
    let rows = [
        json!({"type": "session", "version": 1, "createdAt": 1, "sessionKey": key}),
        json!({"id": "a", "role": "user", "content": "look", "ts": 1}),
        json!({"id": "b", "role": "assistant", "content": "", "ts": 2, "meta": call("ls")}),
        json!({"id": "c", "role": "tool", "content": "a b", "ts": 3, "toolCallId": "call_1"}),
        json!({"id": "d", "role": "assistant", "content": "", "ts": 4, "meta": call("pwd")}),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    home.write(home.transcript_path("killed"), text);
    std::fs::create_dir_all(home.workspace()).unwrap();
    let mut client = Client::introduced(&home);
    // The name by which the user calls it does as well as its key.
    load(&mut client, "killed", &home);
    let updates = client.updates();
    let (calls, ends) = (of_kind(&updates, "tool_call"), of_kind(&updates, "tool_call_update"));
    assert_eq!((&calls[0]["title"], &calls[1]["title"]), (&json!("`ls`"), &json!("`pwd`")));
    assert_ne!(calls[0]["toolCallId"], calls[1]["toolCallId"]);
    for (number, status) in [(0, "completed"), (1, "failed")] {
        assert_eq!(ends[number]["toolCallId"], calls[number]["toolCallId"]);
        assert_eq!(ends[number]["status"], status);
    }
    client.finish();
}

#[test]
fn an_editor_changes_the_permission_mode_and_is_notified_of_each_change() {
    let write = json!({"path": "made.txt", "content": "x"});
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "write", write),
        Reply::anthropic().text("Done."),
    ]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    std::fs::create_dir_all(home.workspace()).unwrap();
    let mut client = Client::start(&home, &["--mode", "ask"]);
    client.request("initialize", &json!({"protocolVersion": 1}));
    let opened = client.request("session/new", &json!({"cwd": home.workspace(), "mcpServers": []}));
    let modes = &opened["result"]["modes"];
    assert_eq!(modes["currentModeId"], "ask", "{opened}");
    assert_eq!(modes["availableModes"].as_array().unwrap().len(), 5, "{modes}");
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let mut set = |mode: &str| {
        client.request("session/set_mode", &json!({"sessionId": session, "modeId": mode}))
    };
    let bad = set("yolo");
    assert!(bad["error"]["message"].as_str().unwrap().contains("there is no mode `yolo`"), "{bad}");
    assert!(set("read-only")["result"].is_object());
    client.line_with("\"currentModeId\":\"read-only\"");
    client.converse(&session, "go");
    assert!(!home.workspace().join("made.txt").exists());
    let option = json!({"sessionId": session, "configId": "mode", "value": "auto"});
    let answer = client.request("session/set_config_option", &option);
    assert!(answer["result"]["configOptions"].to_string().contains("\"currentValue\":\"auto\""));
    client.line_with("\"currentModeId\":\"auto\"");
    client.finish();
}
