//! Code mode: scripts that call the tools of MCP servers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use myclaw_testkit::{ModelServer, RunningChild, Signal, TempHome, send_signal};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, home_of, results};
use crate::{myclaw, run};

/// Commands of a script that makes some calls of the server.
const ECHO: &str = "myclaw mcp call faults echo";

/// A home in code mode whose model runs these scripts, one after the other; `change` changes its config.
fn home_with_scripts(
    scripts: &[&str],
    change: impl FnOnce(&mut Value),
) -> (TempHome, ModelServer, std::path::PathBuf) {
    let wanted: Vec<(&str, Value)> =
        scripts.iter().map(|script| ("mcp__script", json!({"script": script}))).collect();
    let server = calls(&wanted);
    let (home, tools) = home_of(&server, "sessions", |config| {
        config["mcp"]["codeMode"] = json!(true);
        config["agents"]["defaults"]["limits"]["repeatedCalls"] = json!(0);
        change(config);
    });
    approve(&home);
    (home, server, tools)
}

/// What a model reads of these scripts.
fn outputs(scripts: &[&str], change: impl FnOnce(&mut Value)) -> Vec<String> {
    let (home, server, _) = home_with_scripts(scripts, change);
    run(&home, &["run", "go on"]).assert_code(0);
    results(&server)
}

/// The events of a run.
fn events(home: &TempHome) -> Vec<Value> {
    let output = run(home, &["run", "--json", "go on"]);
    output.assert_code(0);
    output.stdout().lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// The events of this kind about calls of scripts: ids, names of tools, whether it failed.
fn inner(events: &[Value], kind: &str) -> Vec<(String, String, bool)> {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let found = events
        .iter()
        .filter(|event| event["type"] == kind && text(event, "toolCallId").contains('.'));
    found
        .map(|event| (text(event, "toolCallId"), text(event, "toolName"), event["isError"] == true))
        .collect()
}

#[test]
fn a_script_makes_several_calls_and_the_model_reads_its_output_only() {
    let script =
        format!("for n in 1 2 3; do {ECHO} \"{{\\\"text\\\": \\\"number $n\\\"}}\"; done | wc -l");
    let (home, server, _) = home_with_scripts(&[&script], |_| {});
    let events = events(&home);
    let request = server.requests()[0].json().clone();
    let offered: Vec<&str> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str().filter(|name| name.contains("__")))
        .collect();
    assert_eq!(offered, ["mcp__tools", "mcp__script"]);
    let read = &results(&server)[0];
    assert!(read.contains("\\n3\\n") && read.contains("They are data"), "{read}");
    assert!(!server.last_request().json().to_string().contains("echo: number"));
    let started: Vec<_> = inner(&events, "tool_start");
    let expected = ["call_0.1", "call_0.2", "call_0.3"]
        .map(|id| (id.to_owned(), "faults__echo".to_owned(), false));
    assert_eq!(started, expected);
    assert_eq!(inner(&events, "tool_end").len(), 3);
    // The log has the calls as part of the script's result.
    let ended =
        events.iter().find(|event| event["type"] == "tool_end" && event["toolCallId"] == "call_0");
    let made =
        ended.expect("the end of the script")["details"]["calls"].as_array().unwrap().clone();
    let made: Vec<_> =
        made.iter().map(|call| (&call["tool"], &call["arguments"]["text"])).collect();
    let (tool, texts) =
        (json!("faults__echo"), [json!("number 1"), json!("number 2"), json!("number 3")]);
    assert_eq!(made, texts.iter().map(|text| (&tool, text)).collect::<Vec<_>>());
}

#[test]
fn each_call_of_a_script_is_judged_as_one_of_the_model() {
    let script = format!("{ECHO} '{{\"text\": \"one\"}}'");
    let read = outputs(&[&script], |config| config["tools"] = json!({"ask": ["faults__echo"]}));
    assert!(read[0].contains("Not run: ") && read[0].contains("exit code 1"), "{}", read[0]);
    assert!(!read[0].contains("echo: one"), "{}", read[0]);
    let read = outputs(&[&script], |config| config["tools"] = json!({"deny": ["faults__echo"]}));
    assert!(read[0].contains("there is no MCP tool"), "{}", read[0]);
    // Where commands are restricted, the script itself needs an approval too.
    let restricted = json!({"exec": {"security": "allowlist"}});
    let read = outputs(&["echo hello"], |config| config["tools"] = restricted);
    assert!(read[0].contains("Not run: ") && !read[0].contains("hello\\n"), "{}", read[0]);
    // What the server describes in another way than when it was approved is not called.
    let change = "myclaw mcp call faults change; myclaw mcp call faults echo";
    let read = outputs(&[change], |_| {});
    assert!(read[0].contains("describes this tool in another way"), "{}", read[0]);
    // The server's own list of tools holds.
    let read = outputs(&[&script], |config| {
        config["mcp"]["servers"]["faults"]["tools"] = json!({"deny": ["echo"]});
    });
    assert!(read[0].contains("there is no MCP tool"), "{}", read[0]);
}

#[test]
fn a_call_of_a_script_waits_for_an_approval_and_leaves_no_question_behind() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let script = format!("{ECHO} '{{\"text\": \"one\"}}'");
    let asking = || {
        let (home, server, _) = home_with_scripts(&[&script], |config| {
            config["tools"] = json!({"ask": ["faults__echo"]});
        });
        let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
        child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
        let asked: Value =
            serde_json::from_str(&child.wait_for_stdout_line("approval_requested")).unwrap();
        assert_eq!(
            (&asked["toolName"], &asked["toolCallId"]),
            (&json!("faults__echo"), &json!("call_0.1"))
        );
        (home, server, child)
    };
    let (_home, server, mut child) = asking();
    child.send("{\"type\":\"approve\",\"toolCallId\":\"call_0.1\",\"decision\":\"once\"}\n");
    child.wait_for_stdout("Done.");
    assert!(results(&server)[0].contains("echo: one"), "{}", results(&server)[0]);
    // The script is gone with its process, so nobody waits for the answer.
    let (home, server, child) = asking();
    send_signal(child.id(), Signal::Kill);
    child.wait(PATIENCE);
    assert!(run(&home, &["approvals", "list"]).stdout().starts_with("waiting"));
    run(&home, &["run", "and now?"]).assert_code(0);
    let request = server.last_request().json().to_string();
    assert!(
        request.contains("session was interrupted") && !request.contains("echo: one"),
        "{request}"
    );
    assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
}

#[test]
fn a_script_reaches_neither_files_nor_hosts() {
    let model = calls(&[]);
    let port = model.url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let (home, server, _) = home_with_scripts(&["placeholder"], |_| {});
    let secret = home.write("private/note.txt", "the owner's note");
    let socket = home.path().join("agent.sock");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let python = format!(
        "#!/usr/bin/python3\nimport socket\n\
         for address in [('127.0.0.1', {port}), ('192.0.2.1', 443)]:\n    \
             try:\n        socket.create_connection(address, 3)\n        print('reached', address)\n    \
             except OSError as error:\n        print('refused')\n\
         for name in ['{}', '\\0x11']:\n    \
             try:\n        socket.socket(socket.AF_UNIX).connect(name)\n        print('reached', name)\n    \
             except OSError as error:\n        print('refused')\n",
        socket.display()
    );
    let sh = format!(
        "cat {0} 2>/dev/null && echo read; echo x > {0} 2>/dev/null && echo wrote; ls {1} 2>/dev/null && echo listed; echo end",
        Path::new(&secret).display(),
        home.state_directory().display(),
    );
    drop(server);
    let wanted = [&sh, &python].map(|script| ("mcp__script", json!({"script": script})));
    let server = calls(&wanted);
    let mut config: Value =
        serde_json::from_str(&fs::read_to_string(home.config_path()).unwrap()).unwrap();
    config["provider"]["baseUrl"] = json!(server.url());
    home.write_config(&config);
    run(&home, &["run", "go on"]).assert_code(0);
    let read = results(&server);
    assert!(read[0].contains("\\nend\\n"), "{}", read[0]);
    for done in ["read", "wrote", "listed"] {
        assert!(!read[0].contains(&format!("{done}\\n")), "{done}: {}", read[0]);
    }
    if Path::new("/usr/bin/python3").exists() {
        assert_eq!(read[1].matches("refused").count(), 4, "{}", read[1]);
        assert!(!read[1].contains("reached"), "{}", read[1]);
    }
}

#[test]
fn what_a_script_does_is_bounded_and_its_end_ends_its_calls() {
    let many = format!("for n in $(seq 101); do {ECHO} >/dev/null || exit 7; done");
    let left = "myclaw mcp call faults silent & sleep 1; echo done";
    let gone = "timeout 1 myclaw mcp call faults silent; myclaw mcp call faults echo '{\"text\": \"later\"}'";
    let long = "seq 200000; echo the end";
    let (home, server, _) = home_with_scripts(&[&many, left, gone, long], |config| {
        config["mcp"]["servers"]["faults"]["timeoutSeconds"] = json!(86_400);
    });
    let events = events(&home);
    let read = results(&server);
    assert!(
        read[0].contains("at most 100 calls") && read[0].contains("exit code 7"),
        "{}",
        read[0]
    );
    assert!(read[1].contains("\\ndone\\n"), "{}", read[1]);
    assert!(read[2].contains("echo: later"), "{}", read[2]);
    assert!(read[3].contains("the end") && read[3].contains("full output: "), "{}", read[3].len());
    let ended: Vec<_> = inner(&events, "tool_end")
        .into_iter()
        .filter(|(_, _, failed)| *failed)
        .map(|(id, ..)| id)
        .collect();
    assert_eq!(ended, ["call_1.1", "call_2.1"]);
}

#[test]
fn wrong_calls_of_a_script_say_what_to_do() {
    let broken = "myclaw mcp call faults echo '{text: 1}'; myclaw mcp call faults eco; myclaw mcp call faults echo '{\"txt\": {}}'; \
                  myclaw mcp call faults fail";
    let read = outputs(&[broken, " ", "#!/no/such/program\n", "exit 3"], |_| {});
    for said in [
        "the arguments are no JSON object",
        "the nearest names are faults__echo",
        "it did not work",
    ] {
        assert!(read[0].contains(said), "{said}: {}", read[0]);
    }
    assert!(read[1].contains("the script is empty"), "{}", read[1]);
    assert!(read[2].contains("check its first line"), "{}", read[2]);
    assert!(read[3].contains("printed nothing") && read[3].contains("exit code 3"), "{}", read[3]);
    // Outside of a script.
    let home = TempHome::new();
    let output = run(&home, &["mcp", "call", "faults", "echo"]);
    output.assert_code(2);
    assert!(output.stderr().contains("works in scripts of code mode only"), "{}", output.stderr());
    // One agent may have it for itself.
    let server = calls(&[]);
    let (home, _) = home_of(&server, "sessions", |config| {
        config["agents"]["list"] = json!([{"id": "main", "mcp": {"codeMode": true}}]);
    });
    approve(&home);
    let output = RunningChild::run(&mut myclaw(&home, &["run", "go on"]));
    output.assert_code(0);
    assert!(server.last_request().json()["tools"].to_string().contains("mcp__script"));
}
