//! The time zone of the user: where it comes from, and who learns it.

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{myclaw, run};

/// The system prompt of a run under these variables.
fn prompt(config: &Value, variables: &[(&str, &str)]) -> String {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::openai().text("Hi.")));
    let home = TempHome::new();
    let mut merged = TempHome::config_for(server.url(), WireFormat::OpenAiCompletions);
    merged["agents"] = config.clone();
    home.write_config(&merged);
    let output =
        RunningChild::run(myclaw(&home, &["run", "hello"]).envs(variables.iter().copied()));
    output.assert_code(0);
    server.last_request().json()["messages"][0]["content"].as_str().expect("a prompt").to_owned()
}

#[test]
fn the_model_learns_the_zone_once_and_each_message_stays_in_utc() {
    let names_once = |prompt: &str, zone: &str| {
        prompt.matches(&format!("- User's time zone: {zone}\n")).count() == 1
    };
    let of_machine = prompt(&json!({}), &[("TZ", "Europe/Berlin")]);
    assert!(names_once(&of_machine, "Europe/Berlin"), "{of_machine}");
    assert!(of_machine.contains("the time it was sent, in UTC."), "{of_machine}");
    // A machine without zones of its own, as containers often are.
    let bundled = prompt(&json!({}), &[("TZ", "Asia/Tokyo"), ("TZDIR", "/no/such/directory")]);
    assert!(names_once(&bundled, "Asia/Tokyo"), "{bundled}");
    let config = json!({ "defaults": { "userTimezone": "America/Lima" } });
    let configured = prompt(&config, &[("TZ", "Europe/Berlin")]);
    assert!(names_once(&configured, "America/Lima"), "{configured}");
}

#[test]
fn a_zone_that_does_not_exist_is_a_mistake() {
    let home = TempHome::new();
    home.write_config_text("{ agents: { defaults: { userTimezone: 'Europe/Berln' } } }");
    let output = run(&home, &["run", "hello"]);
    output.assert_code(3);
    let stderr = output.stderr();
    assert!(stderr.contains("agents.defaults.userTimezone: there is no time zone"), "{stderr}");
}

#[test]
fn times_are_shown_in_the_zone_of_the_variable() {
    let home = TempHome::new();
    run(&home, &["run", "--session", "s", "hello"]).assert_code(0);
    let listed = |zone: &str| {
        RunningChild::run(myclaw(&home, &["sessions", "list"]).env("TZ", zone)).stdout()
    };
    assert_ne!(listed("Asia/Tokyo"), listed("America/Lima"));
    assert_eq!(listed("Etc/GMT-9"), listed("Asia/Tokyo"));
}
