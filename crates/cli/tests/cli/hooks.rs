//! Hook commands of the config, with real scripts.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, Signal, TempHome, WireFormat, wait_until_gone,
};
use serde_json::{Value, json};

use crate::{myclaw, run};

/// A model that runs `echo found` and then says that it is done.
fn one_call() -> ModelServer {
    let call = Reply::anthropic().tool_call("call_1", "bash", json!({"command": "echo found"}));
    ModelServer::spawn_blocking_thread(Script::from([call, Reply::anthropic().text("Done.")]))
}

/// A home whose config names `server` and these hooks.
fn home_with_hooks(server: &ModelServer, hooks: &Value) -> TempHome {
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["hooks"] = hooks.clone();
    home.write_config(&config);
    home
}

/// A script next to the config file.
fn write_script(home: &TempHome, name: &str, text: &str) -> PathBuf {
    let path = home.write(home.state_directory().join(name), text);
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, permissions).expect("a script that may run");
    path
}

/// What the model read of its call.
fn result_read(home: &TempHome) -> String {
    let rows = home.only_transcript();
    let row = rows.iter().find(|row| row["role"] == "tool").expect("a result");
    row["content"].as_str().expect("a text").to_owned()
}

/// Runs a turn with one call under these hooks, and gives what the model read and what stood on standard error.
fn turn_under(hooks: &Value) -> (String, String) {
    let server = one_call();
    let home = home_with_hooks(&server, hooks);
    let output = run(&home, &["run", "look"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Done.\n");
    (result_read(&home), output.stderr())
}

#[test]
fn a_hook_gets_the_events_and_the_session() {
    let server = one_call();
    // Each appends its input, as one line, to a file next to the config.
    let keep =
        |timeout: u64| json!([{"command": ["./keep.sh", "--all"], "timeoutSeconds": timeout}]);
    let hooks = json!({
        "before_agent_start": keep(20), "context": keep(20), "tool_call": keep(20),
        "tool_result": keep(20), "agent_end": keep(20),
    });
    let home = home_with_hooks(&server, &hooks);
    write_script(&home, "keep.sh", "#!/bin/sh\ncat >> \"$(dirname \"$0\")/reported\"\n");
    run(&home, &["run", "look"]).assert_code(0);

    let reported = TempHome::read_lines(&home.state_directory().join("reported"));
    let events: Vec<&str> = reported.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(
        events,
        ["before_agent_start", "context", "tool_call", "tool_result", "context", "agent_end"]
    );
    for line in &reported {
        assert_eq!(line["sessionKey"], "agent:main:channel:cli:account:default:peer:direct:main");
        assert_eq!(line["agent"], "main");
        assert_eq!(line["workingDirectory"], json!(home.workspace()));
    }
    assert_eq!(reported[0]["userMessage"], "look");
    assert_eq!(reported[2]["toolName"], "bash");
    assert_eq!(reported[2]["toolCallId"], "call_1");
    assert_eq!(reported[3]["arguments"], json!({"command": "echo found"}));
    assert_eq!(reported[3]["content"], json!([{"type": "text", "text": "found"}]));
    assert_eq!(reported[3]["isError"], false);
    assert_eq!(reported[4]["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(reported[5]["result"]["reply"], "Done.");
}

#[test]
fn a_call_is_allowed_blocked_or_changed() {
    for (answer, read) in [
        ("", "found"),
        (r#"{"decision":"allow"}"#, "found"),
        (
            r#"{"decision":"block","reason":"not on Sundays"}"#,
            "Not run: blocked by answer.py: not on Sundays",
        ),
        (r#"{"arguments":{"command":"echo changed"}}"#, "changed"),
    ] {
        let server = one_call();
        let home =
            home_with_hooks(&server, &json!({"tool_call": [{"command": ["~/bin/answer.py"]}]}));
        // The name that is shown is the command as it stands in the config.
        let shown = read.replace("answer.py", "~/bin/answer.py");
        let script = home.write(
            "bin/answer.py",
            format!("#!/usr/bin/env python3\nimport json, sys\njson.load(sys.stdin)\nprint('''{answer}''')\n"),
        );
        std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        run(&home, &["run", "look"]).assert_code(0);
        assert_eq!(result_read(&home), shown, "{answer}");
    }
}

#[test]
fn hooks_are_run_for_the_tools_that_they_name() {
    let block = r#"echo '{"decision":"block"}'"#;
    let other = json!({"tool_call": [{"command": block, "match": ["write", "memory_*"]}]});
    assert_eq!(turn_under(&other).0, "found");
    let this = json!({"tool_call": [{"command": block, "match": ["write", "b*h"]}]});
    assert_eq!(turn_under(&this).0, format!("Not run: blocked by {block}: it gave no reason"));
}

#[test]
fn a_result_is_changed_before_it_is_stored() {
    let change = r#"sed 's/.*/{"content":"[hidden]","isError":true}/'"#;
    assert_eq!(turn_under(&json!({"tool_result": [{"command": change}]})).0, "[hidden]");
}

#[test]
fn the_start_and_what_is_sent_are_changed() {
    let server = one_call();
    let whisper = "import json, sys\nmessages = json.load(sys.stdin)['messages']\n\
                   messages.append({'role': 'user', 'content': 'Psst.'})\n\
                   print(json.dumps({'messages': messages}))";
    let home = home_with_hooks(
        &server,
        &json!({
            "before_agent_start": [{"command":
                r#"echo '{"appendSystemPrompt":"Speak like a heron.","userMessage":"look twice"}'"#}],
            "context": [{"command": ["python3", "-c", whisper]}],
        }),
    );
    run(&home, &["run", "look"]).assert_code(0);
    let request = server.last_request().json().to_string();
    for text in ["Speak like a heron.", "look twice", "Psst."] {
        assert!(request.contains(text), "{text}: {request}");
    }
    let rows = json!(home.only_transcript()).to_string();
    assert!(rows.contains("look twice") && !rows.contains("Psst."), "{rows}");
}

#[test]
fn a_gate_that_cannot_decide_closes_and_says_why() {
    for (command, reason) in [
        (json!(["./missing"]), "missing was not found; check its name"),
        (json!(["no-such-program"]), "program no-such-program was not found; check its name"),
        (json!(["./myclaw.json"]), "myclaw.json is not executable; give it the permission"),
        (json!("echo nonsense"), "its answer cannot be used: expected"),
        (json!("echo '{\"decison\":\"block\"}'"), "unknown field `decison`"),
        (json!("echo '{\"reason\":\"no\"}'"), "a reason and no decision"),
        (json!("echo '{}'; echo boom >&2; exit 1"), "it ended with exit code 1: boom"),
        (json!("kill -9 $$"), "it was ended by signal 9"),
        (json!("yes"), "bytes and was stopped"),
        (json!("sleep 600 & wait"), "it did not end within 1 s and was stopped"),
    ] {
        let hook = json!([{"command": command, "timeoutSeconds": 1}]);
        // The time of `yes` must not be up before it has printed too much.
        let hook = if command == "yes" {
            json!([{"command": command, "timeoutSeconds": 60}])
        } else {
            hook
        };
        let (read, _) = turn_under(&json!({"tool_call": hook.clone()}));
        assert!(read.starts_with("Not run: blocked by ") && read.contains(reason), "{read}");

        let server = one_call();
        let home = home_with_hooks(&server, &json!({"before_agent_start": hook}));
        let output = run(&home, &["run", "look"]);
        output.assert_code(1);
        let stderr = output.stderr();
        assert!(
            stderr.contains(" did not let the run start: ") && stderr.contains(reason),
            "{stderr}"
        );
        assert!(server.requests().is_empty() && home.transcripts().is_empty());
    }
}

#[test]
fn an_editor_or_observer_that_fails_is_reported() {
    for (event, reported) in [
        ("tool_result", "failed after a tool call: it ended with exit code 3: boom"),
        ("context", "failed before a model call: it ended with exit code 3: boom"),
        ("agent_end", "failed at the end of the run: it ended with exit code 3: boom"),
    ] {
        let hooks = json!({event: [{"command": "echo boom >&2; exit 3"}]});
        let (read, stderr) = turn_under(&hooks);
        assert_eq!(read, "found");
        let line = format!("the hook echo boom >&2; exit 3 {reported}");
        assert!(stderr.contains(&line), "{stderr}");
    }
    // Nobody reads what an observer prints.
    let (_, stderr) = turn_under(&json!({"agent_end": [{"command": "seq 1000000"}]}));
    assert!(!stderr.contains("hook"), "{stderr}");
}

#[test]
fn a_hook_sees_no_key() {
    let server = one_call();
    let home =
        home_with_hooks(&server, &json!({"agent_end": [{"command": "env > \"$HOME/seen\""}]}));
    let mut command = myclaw(&home, &["run", "look"]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-secret").env("MY_TOKEN", "also-secret");
    RunningChild::run(&mut command).assert_code(0);
    let seen = std::fs::read_to_string(home.path().join("seen")).expect("the file");
    assert!(seen.contains("HOME=") && !seen.contains("secret"), "{seen}");
}

#[test]
fn an_abort_ends_a_hook_with_everything_it_started() {
    for event in ["before_agent_start", "context", "tool_call"] {
        let command = "sleep 600 & echo $$ $! > pids; echo hanging >&2; wait";
        let hooks = json!({event: [{"command": command, "timeoutSeconds": 600}]});
        let server = one_call();
        let home = home_with_hooks(&server, &hooks);
        let child = RunningChild::spawn(&mut myclaw(&home, &["run", "look"]));
        let file = home.workspace().join("pids");
        let processes: Vec<u32> = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                break text.split_whitespace().map(|id| id.parse().expect("an id")).collect();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        child.signal(Signal::Interrupt);
        let output = child.wait(Duration::from_secs(30));
        output.assert_code(130);
        assert!(output.stderr().contains("myclaw: aborted"), "{}", output.stderr());
        processes.into_iter().for_each(wait_until_gone);
    }
}

#[test]
fn the_doctor_names_a_hook_that_cannot_be_started() {
    let server = one_call();
    let home = home_with_hooks(
        &server,
        &json!({"tool_call": [{"command": "true"}, {"command": ["./guard"]}]}),
    );
    let output = run(&home, &["doctor"]);
    output.assert_code(3);
    let guard = home.state_directory().join("guard");
    let line = format!("fail  hooks      hooks.tool_call[1]: program {}", guard.display());
    assert!(output.stdout().contains(&line), "{}", output.stdout());

    write_script(&home, "guard", "#!/bin/sh\n");
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    assert!(output.stdout().contains("ok    hooks      2 commands"), "{}", output.stdout());
}
