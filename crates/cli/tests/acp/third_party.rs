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
        println!("skipped: MYCLAW_ACP_SDK is not set; scripts/test sets it");
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
    assert_eq!(second["listed"], json!(["hello"]));
    assert_eq!(second["said"], "hellowait for me");
    assert_eq!((&second["told"], &second["answered"]), (&first["told"], &json!("end_turn")));
    assert_eq!(second["error"], -32002);
    assert_eq!((&first["code"], &second["code"]), (&json!(0), &json!(0)));
    assert_eq!(seen["complaints"], json!([]));
}
