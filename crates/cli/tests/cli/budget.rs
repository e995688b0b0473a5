//! The limits of a day and of a message: who is refused, and which key of the config decides.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::json;

use crate::run;

/// A home in which 999 dollars were spent today. A stored day that is far ahead counts as today.
fn spent_home(config: &serde_json::Value) -> TempHome {
    let home = TempHome::new();
    home.write_config(config);
    home.write(".myclaw/usage.json", r#"{"day":"2999-01-01","tokens":5,"microDollars":999000000}"#);
    home
}

#[test]
fn a_limit_of_money_keeps_no_free_model_from_answering() {
    let home = spent_home(&json!({ "agents": { "defaults": { "limits": { "dayCost": 1 } } } }));
    let output = run(&home, &["run", "List the files in my workspace"]);
    output.assert_code(0);
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    assert!(!output.stdout().contains("budget"), "{}", output.stdout());
}

#[test]
fn a_used_up_day_is_reported_by_the_run_and_by_the_doctor() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("Hi.")));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["list"] = json!([{ "id": "main", "limits": { "dayCost": 1 } }]);
    let home = spent_home(&config);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(1);
    let stderr = output.stderr();
    assert!(stderr.contains("raise agents.list[0].limits.dayCost in the config file"), "{stderr}");
    let output = run(&home, &["doctor"]);
    output.assert_code(1);
    let stdout = output.stdout();
    assert!(stdout.contains("fail  budget     the money of this day is used up"), "{stdout}");
    assert!(stdout.contains("raise agents.list[0].limits.dayCost"), "{stdout}");
}

#[test]
fn the_message_names_the_key_that_decides() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().tool_call(
        "call-1",
        "ls",
        json!({ "path": "." }),
    )));
    let config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    for (limits, key) in [
        (json!({ "agent": { "maxIterations": 1 } }), "agent.maxIterations"),
        (
            json!({ "agents": { "defaults": { "maxIterations": 1 } } }),
            "agents.defaults.maxIterations",
        ),
        (
            json!({ "agents": { "list": [{ "id": "other" }, { "id": "main", "default": true, "maxIterations": 1 }] } }),
            "agents.list[1].maxIterations",
        ),
    ] {
        let home = TempHome::new();
        let mut config = config.clone();
        for (section, value) in limits.as_object().expect("an object") {
            config[section] = value.clone();
        }
        home.write_config(&config);
        let output = run(&home, &["run", "hello"]);
        output.assert_code(1);
        let stderr = output.stderr();
        assert!(stderr.contains(&format!("raise {key} in the config file")), "{key}: {stderr}");
    }
}
