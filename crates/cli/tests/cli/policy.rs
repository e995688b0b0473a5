//! Which tools and commands may run, from the config to the effect on the machine.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::run;

/// A home with these values in its config, and a model that makes one call and then says that it is done.
fn home_with_call(config: &Value, tool: &str, arguments: Value) -> (TempHome, ModelServer) {
    let call = Reply::anthropic().tool_call("call_1", tool, arguments);
    let server =
        ModelServer::spawn_blocking_thread(Script::from([call, Reply::anthropic().text("Done.")]));
    let home = TempHome::new();
    let mut whole = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    for (key, value) in config.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    home.write_config(&whole);
    (home, server)
}

/// The tools of the first request.
fn offered(server: &ModelServer) -> Vec<String> {
    let tools = server.requests()[0].json()["tools"].clone();
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    tools.as_array().expect("tools").iter().map(name).collect()
}

/// What the model read of its call.
fn result_read(home: &TempHome) -> String {
    let rows = home.only_transcript();
    let row = rows.iter().find(|row| row["role"] == "tool").expect("a result");
    row["content"].as_str().expect("a text").to_owned()
}

#[test]
fn a_session_gets_the_tools_of_its_kind() {
    const ALL: [&str; 15] = [
        "read",
        "bash",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        "apply_patch",
        "process",
        "memory_search",
        "memory_write",
        "update_plan",
        "web_fetch",
        "image",
        "sessions_spawn",
    ];
    const FEW: [&str; 8] = [
        "read",
        "bash",
        "edit",
        "write",
        "process",
        "memory_search",
        "memory_write",
        "update_plan",
    ];
    let own = json!({"agents": {"defaults": {"sandbox": {
        "mode": "all", "allowlist": ["group:fs", "exec"], "denylist": ["write"],
    }}}});
    let mode = |mode: &str| json!({"agents": {"defaults": {"sandbox": {"mode": mode}}}});
    for (config, session, expected) in [
        (json!({}), "main", &ALL[..]),
        (json!({}), "trip", &FEW),
        (mode("off"), "trip", &ALL[..]),
        (mode("all"), "main", &FEW),
        (own, "main", &["read", "bash", "edit", "grep", "find", "ls", "apply_patch"]),
        (json!({"tools": {"profile": "pi"}}), "main", &ALL[..4]),
        (json!({"tools": {"allow": ["l*", "read"]}}), "main", &["read", "ls"]),
        (
            json!({"tools": {"byProvider": {"anthropic": {"deny": ["group:runtime"]}}}}),
            "trip",
            &["read", "edit", "write", "memory_search", "memory_write", "update_plan"],
        ),
    ] {
        let (home, server) = home_with_call(&config, "read", json!({"path": "x"}));
        run(&home, &["run", "-s", session, "go"]).assert_code(0);
        assert_eq!(offered(&server), expected, "{config} {session}");
    }
}

#[test]
fn a_call_of_a_denied_tool_names_the_tool_and_the_rule() {
    let (home, _server) = home_with_call(&json!({}), "grep", json!({"pattern": "x"}));
    let output = run(&home, &["run", "-s", "trip", "--json", "go"]);
    output.assert_code(0);
    let rule = "Tool 'grep' is not allowed in current security context (non-main session, sandboxed): it is not in \
                `agents.defaults.sandbox.allowlist` for sandboxed sessions";
    assert_eq!(result_read(&home), format!("Not run: {rule}"));
    let notice =
        output.stdout().lines().find(|line| line.contains("tool_denied")).map(str::to_owned);
    let notice: Value = serde_json::from_str(&notice.expect("a notice")).expect("JSON");
    assert_eq!((&notice["tool"], &notice["reason"]), (&json!("grep"), &json!(rule)));
}

/// Lines that an allowlist of `echo`, `ls` and `cat` must not let through. Each would make the file `marker`.
const BYPASSES: [&str; 16] = [
    "touch marker",
    "echo a; touch marker",
    "echo a && touch marker",
    "echo a | tee marker",
    "echo a\ntouch marker",
    "echo a & touch marker",
    "echo $(touch marker)",
    "echo `touch marker`",
    "cat <(touch marker)",
    "echo a > marker",
    "echo a >> marker",
    "cat /dev/null 2> marker",
    "PATH=/usr/bin touch marker",
    "eval 'touch marker'",
    "bash -c 'touch marker'",
    "./echo",
];

#[test]
fn no_line_gets_past_an_allowlist() {
    let config = json!({"tools": {"exec": {"security": "allowlist", "ask": "off", "allowlist": ["echo", "ls", "cat"]}}});
    let calls = BYPASSES.iter().enumerate().map(|(index, line)| {
        Reply::anthropic().tool_call(format!("call_{index}"), "bash", json!({"command": line}))
    });
    let script: Vec<Reply> = calls.chain([Reply::anthropic().text("Done.")]).collect();
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let mut whole = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    whole["tools"] = config["tools"].clone();
    home.write_config(&whole);
    home.write_in_workspace("echo", "#!/bin/sh\ntouch marker\n");

    run(&home, &["run", "go"]).assert_code(0);

    assert!(!home.workspace().join("marker").exists());
    let rows = home.only_transcript();
    let results: Vec<&str> = rows
        .iter()
        .filter(|row| row["role"] == "tool")
        .map(|row| row["content"].as_str().expect("a text"))
        .collect();
    assert_eq!(results.len(), BYPASSES.len());
    for (line, result) in BYPASSES.iter().zip(results) {
        assert!(result.starts_with("Not run: the command may not run: "), "{line}: {result}");
        assert!(result.contains("`tools.exec`"), "{line}: {result}");
    }
}

#[test]
fn a_listed_command_runs() {
    let config = json!({"tools": {"exec": {"security": "allowlist", "ask": "off", "allowlist": ["echo", "tr"]}}});
    let (home, _server) =
        home_with_call(&config, "bash", json!({"command": "echo found | tr f F"}));
    run(&home, &["run", "go"]).assert_code(0);
    assert!(result_read(&home).contains("Found"));
}

/// The policy is asked after all hooks, about what will run.
#[test]
fn a_command_that_a_hook_puts_in_its_place_is_checked() {
    let change = r#"cat > /dev/null; echo '{"arguments": {"command": "touch marker"}}'"#;
    let config = json!({
        "tools": {"exec": {"security": "allowlist", "ask": "off", "allowlist": ["echo"]}},
        "hooks": {"tool_call": [{"command": ["sh", "-c", change]}]},
    });
    let (home, _server) = home_with_call(&config, "bash", json!({"command": "echo found"}));
    run(&home, &["run", "go"]).assert_code(0);
    let result = result_read(&home);
    assert!(result.starts_with("Not run: the command may not run: `touch marker`"), "{result}");
    assert!(!home.workspace().join("marker").exists());
}

#[test]
fn a_rule_that_names_nothing_is_a_mistake_in_the_config() {
    for (config, expected) in [
        (json!({"tools": {"deny": ["raed"]}}), "there is no tool `raed`; did you mean `read`?"),
        (json!({"tools": {"allow": ["group:runtme"]}}), "did you mean `group:runtime`?"),
        (json!({"tools": {"exec": {"allowlist": ["./x"]}}}), "tools.exec.allowlist[0]"),
        (json!({"tools": {"profile": "codng"}}), "`coding`"),
        (
            json!({"agents": {"defaults": {"sandbox": {"denylist": ["bsh"]}}}}),
            "did you mean `bash`?",
        ),
    ] {
        let home = TempHome::new();
        home.write_config(&config);
        for arguments in [&["config", "check"][..], &["run", "go"]] {
            let output = run(&home, arguments);
            output.assert_code(3);
            let text = format!("{}{}", output.stdout(), output.stderr());
            assert!(text.contains(expected), "{config}: {text}");
        }
    }
}

#[test]
fn explain_shows_the_verdict_and_the_rule() {
    let home = TempHome::new();
    home.write_config(&json!({"tools": {
        "ask": ["write"],
        "exec": {"security": "allowlist", "allowlist": ["ls"]},
    }}));
    for (arguments, verdict, reason) in [
        (&["browser", "--session", "trip"][..], "denied", "agents.defaults.sandbox.allowlist"),
        (&["browser"], "allowed", "no rule denies it"),
        (&["write"], "ask", "`write` in `tools.ask` asks before each call"),
        (&["bash", "--command", "ls"], "allowed", "no rule denies it"),
        (
            &["bash", "--command", "ls; id"],
            "ask",
            "is not in the allowlist (`tools.exec`, for all agents)",
        ),
    ] {
        let output = run(&home, &[&["policy", "explain"], arguments].concat());
        output.assert_code(0);
        let words: Vec<String> = output.stdout().split_whitespace().map(str::to_owned).collect();
        assert_eq!(
            (words[0].as_str(), words[1].as_str()),
            (arguments[0], verdict),
            "{arguments:?}"
        );
        assert!(output.stdout().contains(reason), "{}", output.stdout());
    }
    let all = run(&home, &["policy", "explain", "--session", "trip", "--json"]);
    let lines: Vec<Value> =
        all.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let allowed: Vec<&str> = lines
        .iter()
        .filter(|line| line["verdict"] != "denied")
        .map(|line| line["tool"].as_str().expect("a name"))
        .collect();
    let of_notes = ["memory_search", "memory_get", "memory_write", "update_plan"];
    assert_eq!(allowed, [&["read", "write", "edit", "exec", "process"], &of_notes[..]].concat());
    // `bash` is another name of a tool.
    for (misspelt, meant) in [("raed", "read"), ("basg", "bash")] {
        let unknown = run(&home, &["policy", "explain", misspelt]);
        unknown.assert_code(2);
        let hint = format!("did you mean `{meant}`?");
        assert!(unknown.stderr().contains(&hint), "{}", unknown.stderr());
    }
}
