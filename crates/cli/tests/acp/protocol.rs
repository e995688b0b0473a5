//! The connection: introductions, mistakes, and the end.

use myclaw_testkit::{
    ModelServer, Reply, Script, Signal, Step, TempHome, WireFormat, wait_until_gone,
};
use serde_json::{Value, json};

use crate::client::Client;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[test]
fn the_agent_says_what_it_can() {
    let home = TempHome::new();
    let mut client = Client::start(&home, &[]);
    // A later client receives the version that is spoken.
    let answer = client.request("initialize", &json!({"protocolVersion": 7}));
    let result = &answer["result"];
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "myclaw");
    assert_eq!(result["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(
        capabilities["promptCapabilities"],
        json!({"image": true, "audio": false, "embeddedContext": true})
    );
    assert_eq!(
        capabilities["sessionCapabilities"],
        json!({"list": {}, "delete": {}, "resume": {}, "close": {}})
    );
    client.finish();
}

#[test]
fn mistakes_are_answered_with_what_is_wrong() {
    let home = TempHome::new();
    let mut client = Client::start(&home, &[]);
    let early = client.request("session/list", &json!({}));
    assert_eq!(code(&early), -32600);
    assert!(message(&early).contains("`initialize` comes first"));
    let wrong = client.request("initialize", &json!({"protocolVersion": "one"}));
    assert_eq!(code(&wrong), -32602);
    assert!(message(&wrong).starts_with("initialize: "), "{wrong}");
    client.request("initialize", &json!({"protocolVersion": 1}));

    let unknown = client.request("session/dance", &json!({}));
    assert_eq!(code(&unknown), -32601);
    assert!(message(&unknown).contains("`session/dance`"));
    let authenticate = client.request("authenticate", &json!({"methodId": "key"}));
    assert_eq!(code(&authenticate), -32602);
    assert!(message(&authenticate).contains("myclaw auth add"));

    client.send_line("this is no JSON");
    let answer = client.line_with("-32700");
    assert_eq!(answer["id"], Value::Null);
    client.send_line("[]");
    let answer = client.line_with("batches");
    assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null));

    // The connection continues as before.
    assert!(client.request("session/list", &json!({}))["result"]["sessions"].is_array());
    client.finish();
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let home = TempHome::new();
    let mut client = Client::introduced(&home);
    let prompt = json!([{"type": "text", "text": "hello"}]);
    for (method, params) in [
        ("session/prompt", json!({"sessionId": "nobody", "prompt": prompt})),
        ("session/close", json!({"sessionId": "nobody"})),
        (
            "session/set_config_option",
            json!({"sessionId": "nobody", "configId": "a", "value": "b"}),
        ),
        ("session/load", json!({"sessionId": "nobody", "cwd": "/", "mcpServers": []})),
        ("session/resume", json!({"sessionId": "nobody", "cwd": "/"})),
        ("session/delete", json!({"sessionId": "nobody"})),
        ("session/load", json!({"sessionId": "not : a / key\n", "cwd": "/", "mcpServers": []})),
    ] {
        let answer = client.request(method, &params);
        assert_eq!(code(&answer), -32002, "{method}: {answer}");
    }
    // Of a notification nobody hears.
    client.notify("session/cancel", &json!({"sessionId": "nobody"}));
    client.notify("session/cancel", &json!(3));
    client.notify("editor/blinks", &json!({}));
    client.finish();
}

#[test]
fn a_config_file_with_a_mistake_is_reported_at_once() {
    let home = TempHome::new();
    home.write_config_text("{agents: 3}");
    let output =
        myclaw_testkit::RunningChild::run(home.command(env!("CARGO_BIN_EXE_myclaw")).arg("acp"));
    output.assert_code(3);
    assert_eq!(output.stdout(), "");
    assert!(output.stderr().contains("the config file has to be changed"), "{}", output.stderr());
}

/// A client whose turn runs a command that takes long, and the command's process id.
fn with_running_command() -> (TempHome, ModelServer, Client, u32) {
    let command = json!({"command": "echo $$ > pid; mv pid ready; exec sleep 600"});
    let script =
        Script::from([Step::from(Reply::anthropic().tool_call("call_1", "bash", command))]);
    let (home, server, mut client, session) = Client::with_session(script);
    client.prompt(&session, "wait for me");
    let path = home.workspace().join("ready");
    let pid = loop {
        match std::fs::read_to_string(&path) {
            Ok(text) => break text.trim().parse().unwrap(),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    (home, server, client, pid)
}

#[test]
fn an_editor_that_leaves_ends_the_turn_in_good_order() {
    for signal in [None, Some(Signal::Terminate)] {
        let (home, _server, client, pid) = with_running_command();
        if let Some(signal) = signal {
            client.signal(signal);
        }
        // The end of standard input, and exit code 0 either way.
        let output = client.finish();
        assert!(output.stdout().contains(r#""result":{"stopReason":"cancelled"}"#));
        wait_until_gone(pid);
        let rows = home.only_transcript();
        assert_eq!(rows[1]["content"], "wait for me");
        let result = rows.last().unwrap();
        assert_eq!((&result["role"], &result["toolCallId"]), (&json!("tool"), &json!("call_1")));
    }
}

#[test]
fn requests_may_be_named_by_text() {
    let home = TempHome::new();
    home.write_config(&TempHome::config_for("http://127.0.0.1:9", WireFormat::AnthropicMessages));
    let mut client = Client::start(&home, &[]);
    client.send_line(r#"{"jsonrpc":"2.0","id":"ein s","method":"session/new"}"#);
    let answer = client.line_with("comes first");
    assert_eq!(answer["id"], "ein s");
    client.finish();
}
