//! `myclaw acp` at the other end of an editor that was not written for this project: one made with the protocol's
//! official TypeScript SDK, `@agentclientprotocol/sdk` from npm.
//!
//! `MYCLAW_ACP_SDK` names the directory of the installed package; `scripts/test` installs it and sets the variable. Without
//! this test says that it was skipped.

use std::path::{Path, PathBuf};

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::{Value, json};

#[test]
fn an_editor_made_with_the_official_sdk_understands_all_of_it() {
    let Some(package) = std::env::var_os("MYCLAW_ACP_SDK").map(PathBuf::from) else {
        myclaw_testkit::skip_without("MYCLAW_ACP_SDK is not set; scripts/test sets it");
        return;
    };
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().thinking("A greeting.", "signed").text("Good morning."),
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 600"})),
        Reply::anthropic().text("Still here."),
    ]));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let project = home.write("project/file", "");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/acp-client.mjs");
    let output = RunningChild::run(
        home.command("node")
            .arg(script)
            .arg(package)
            .arg(project.parent().unwrap())
            .args([env!("CARGO_BIN_EXE_myclaw"), "acp"]),
    );
    output.assert_code(0);
    let seen: Value = serde_json::from_str(&output.stdout()).unwrap();

    let first = &seen["first"];
    assert_eq!(first["initialized"]["agentInfo"]["name"], "myclaw");
    assert_eq!((&first["answered"], &first["told"]), (&json!("end_turn"), &json!("Good morning.")));
    assert_eq!(first["cancelled"], "cancelled");
    let calls = first["calls"].as_array().unwrap();
    assert_eq!((&calls[0], calls.last().unwrap()), (&json!("in_progress"), &json!("failed")));
    let second = &seen["second"];
    // The title of the first exchange: "hello" says too little.
    assert_eq!(second["listed"], json!(["Good morning"]));
    assert_eq!(second["said"], "hellowait for me");
    assert_eq!((&second["told"], &second["answered"]), (&first["told"], &json!("end_turn")));
    assert_eq!(second["error"], -32002);
    assert_eq!((&first["code"], &second["code"]), (&json!(0), &json!(0)));
    assert_eq!(seen["complaints"], json!([]));
}

/// The Python SDK of the protocol, `agent-client-protocol` from PyPI. `MYCLAW_ACP_PYTHON` names a Python that has it.
#[test]
fn an_editor_made_with_the_python_sdk_lends_its_files_and_terminals() {
    let Some(python) = std::env::var_os("MYCLAW_ACP_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_ACP_PYTHON is not set; scripts/test sets it");
        return;
    };
    let steps = json!([
        {"text": "Read", "status": "completed"}, {"text": "Change", "status": "in_progress"},
    ]);
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "update_plan", json!({"steps": steps})),
        Reply::anthropic().tool_call("call_2", "read", json!({"path": "notes.txt"})),
        Reply::anthropic().tool_call(
            "call_3",
            "edit",
            json!({"path": "notes.txt", "oldText": "not saved", "newText": "changed"}),
        ),
        Reply::anthropic().tool_call("call_4", "bash", json!({"command": "cat notes.txt; exit 3"})),
        Reply::anthropic().text("Done."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"ask": ["bash"]});
    config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
    home.write_config(&config);
    let notes = home.write("project/notes.txt", "one\ntwo\n");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/acp_client.py");
    let output = RunningChild::run(
        home.command(python)
            .arg(script)
            .arg(notes.parent().unwrap())
            .args([env!("CARGO_BIN_EXE_myclaw"), "acp"]),
    );
    output.assert_code(0);
    let seen: Value = serde_json::from_str(&output.stdout()).unwrap();
    assert_eq!((&seen["answered"], &seen["text"]), (&json!("end_turn"), &json!("Done.")), "{seen}");
    assert_eq!(seen["plans"], json!([[["Read", "completed"], ["Change", "in_progress"]]]));
    let results = tool_results(&server);
    assert!(
        results[1].contains("two, not saved") && results[1].contains("not saved;"),
        "{results:?}"
    );
    // What was not saved is saved before the change, and the editor gets the new text.
    let (unsaved, changed) = ("one\ntwo, not saved\n", "one\ntwo, changed\n");
    assert_eq!(seen["written"], json!([["notes.txt", unsaved], ["notes.txt", changed]]), "{seen}");
    assert_eq!(seen["file"], changed);
    assert_eq!((&seen["asked"], &seen["commands"]), (&json!(1), &json!(["cat notes.txt; exit 3"])));
    assert!(
        results[3].contains("two, changed") && results[3].contains("[exit code 3]"),
        "{results:?}"
    );
    assert_eq!(seen["shown"][0], "terminal-1");
    assert_eq!(seen["released"], json!(["terminal-1"]));
}

/// The texts of all results in the last request.
fn tool_results(server: &ModelServer) -> Vec<String> {
    let last = server.last_request();
    let blocks = last.messages().iter().filter_map(|message| message["content"].as_array());
    blocks
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| match &block["content"] {
            Value::String(text) => text.clone(),
            content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}
