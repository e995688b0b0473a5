//! Which tools a model gets, and by which names it may call them.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{run, serve};

fn names_offered(profile: Option<&str>) -> Vec<String> {
    let server = ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Hi.")));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    if let Some(profile) = profile {
        config["tools"]["profile"] = json!(profile);
    }
    home.write_config(&config);
    run(&home, &["run", "hello"]).assert_code(0);
    let request = server.last_request();
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_profile_selects_the_tools() {
    let nine = ["read", "bash", "edit", "write", "grep", "find", "ls", "apply_patch", "process"];
    let others =
        ["memory_search", "memory_write", "update_plan", "web_fetch", "image", "sessions_spawn"];
    let all = [&nine[..], &others[..]].concat();
    assert_eq!(names_offered(None), all);
    assert_eq!(names_offered(Some("full")), all);
    assert_eq!(names_offered(Some("myclaw")), nine[..8]);
    assert_eq!(names_offered(Some("pi")), ["read", "bash", "edit", "write"]);
}

#[test]
fn an_unknown_profile_is_refused() {
    let home = TempHome::new();
    home.write_config(&json!({"tools": {"profile": "claude"}}));
    let output = run(&home, &["config", "check"]);
    assert_ne!(output.code(), Some(0));
    assert!(output.stderr().contains("tools.profile"), "{}", output.stderr());
}

/// The text of each result in the last request, by the order of the calls.
fn results(server: &ModelServer) -> Vec<String> {
    let request = server.last_request();
    let blocks = request.messages().iter().filter_map(|message| message["content"].as_array());
    blocks
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| block["content"].to_string())
        .collect()
}

/// One turn with these calls.
fn results_of(home: &TempHome, server: &ModelServer, calls: &[(&str, Value)]) -> Vec<String> {
    let reply =
        calls.iter().enumerate().fold(Reply::anthropic(), |reply, (at, (name, arguments))| {
            reply.tool_call(format!("call_{at}"), *name, arguments.clone())
        });
    server.push(reply);
    server.push(Reply::anthropic().text("Done."));
    run(home, &["run", "go on"]).assert_code(0);
    results(server)
}

#[test]
fn calls_by_names_of_other_agents_are_calls_of_the_tools() {
    let (server, home) = serve(Vec::<myclaw_testkit::Step>::new());
    let found = results_of(
        &home,
        &server,
        &[
            ("Write", json!({"file_path": "a.txt", "content": "one\ntwo\nthree\n"})),
            ("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 1})),
            ("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"})),
            ("exec", json!({"command": "cat a.txt"})),
            ("Bash", json!({"cmd": "echo by bash", "timeout_seconds": "5"})),
            ("Grep", json!({"pattern": "TWO|2", "-i": true, "include": "*.txt"})),
            ("Glob", json!({"pattern": "*.txt"})),
            ("LS", json!({"path": "."})),
            ("ApplyPatch", json!({"input": "--- a/a.txt\n+++ b/a.txt\n@@\n-three\n+3\n"})),
            ("READ", json!({"path": "a.txt", "file_path": "other.txt"})),
            ("NotebookEdit", json!({"prompt": "x"})),
        ],
    );
    let expected = [
        "Created a.txt",
        "two",
        "Edited a.txt",
        "one\\n2\\nthree",
        "by bash",
        "a.txt:2: 2",
        "a.txt",
        "a.txt",
        "Applied to 1 file",
        "`file_path` and `path` are the same argument and have different values",
        "Unknown tool: NotebookEdit",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (result, expected) in found.iter().zip(expected) {
        assert!(result.contains(expected), "{expected:?} is not in {result}");
    }
}

#[test]
fn hooks_see_the_tools_own_names() {
    let server =
        ModelServer::spawn_blocking_thread(Script::from(Vec::<myclaw_testkit::Step>::new()));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["hooks"] = json!({"tool_call": [{"match": ["bash"], "command": "cat > \"$HOME/seen\"; echo no >&2; exit 2"}]});
    home.write_config(&config);
    let found = results_of(&home, &server, &[("Bash", json!({"cmd": "echo by bash"}))]);
    assert!(found[0].contains("no") && !found[0].contains("by bash"), "{found:?}");
    let seen = std::fs::read_to_string(home.path().join("seen")).expect("what the hook read");
    assert!(seen.contains("\"bash\"") && seen.contains("\"command\""), "{seen}");
}
