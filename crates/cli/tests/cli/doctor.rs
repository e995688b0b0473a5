//! `myclaw doctor` and keys that are not there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use myclaw_testkit::{ChildOutput, RunningChild, TempHome};
use serde_json::{Value, json};

use crate::{myclaw, run};

/// A home whose model has these keys, by their names.
fn home_with_keys(keys: &[(&str, &str)]) -> TempHome {
    let home = TempHome::new();
    let keys: Vec<Value> = keys.iter().map(|(id, key)| json!({"id": id, "apiKey": key})).collect();
    home.write_config(&json!({
        "provider": {"name": "lab", "model": "m", "baseUrl": "http://127.0.0.1:9", "authProfiles": keys},
    }));
    home
}

/// The lines about keys.
fn reported(output: &ChildOutput) -> String {
    let stdout = output.stdout();
    let lines: Vec<&str> = stdout.lines().filter(|line| line.contains("  key  ")).collect();
    lines.join("\n")
}

#[test]
fn doctor_fails_where_the_only_key_cannot_be_had() {
    for (written, why) in [
        ("env:NO_SUCH_KEY", "the variable NO_SUCH_KEY is not set"),
        ("file:/no/such/key", "the key file /no/such/key cannot be read"),
        ("file:/dev", "the key file /dev cannot be read"),
        ("keyring:lab/me", "not installed (in Debian and Ubuntu it is in libsecret-tools)"),
    ] {
        let home = home_with_keys(&[("k1", written)]);
        let output = RunningChild::run(myclaw(&home, &["doctor"]).env("PATH", "/no/such/bin"));
        let reported = reported(&output);
        output.assert_code(1);
        assert!(
            reported.starts_with("fail  key        k1 for lab cannot be fetched: "),
            "{reported}"
        );
        assert!(reported.contains(why), "{reported}");
    }
}

#[test]
fn doctor_warns_of_a_key_that_cannot_be_had_beside_others_and_runs_no_command() {
    let home = TempHome::new();
    let trace = home.path().join("trace");
    let command = format!("!touch {}", trace.display());
    let home = home_with_keys(&[("k1", "env:NO_SUCH_KEY"), ("k2", &command), ("k3", "env:K3")]);
    let output = RunningChild::run(myclaw(&home, &["doctor"]).env("K3", "key-0123456789"));
    output.assert_code(0);
    assert_eq!(
        reported(&output),
        "ok    key        2 keys for lab: k2 (from a command, not tried), k3 (from K3)\n\
         warn  key        k1 for lab cannot be fetched: the variable NO_SUCH_KEY is not set"
    );
    assert!(!trace.exists());
}

#[test]
fn doctor_names_key_files_that_others_can_read() {
    let home = home_with_keys(&[("k1", "file:lab.key")]);
    let path = home.config_path().with_file_name("lab.key");
    home.write(&path, "key-0123456789");
    let with_mode = |mode: u32| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        run(&home, &["doctor"]).stdout()
    };
    let chmod = format!("-> chmod 600 {}", path.display());
    let open = with_mode(0o644);
    assert!(open.contains(&chmod), "{open}");
    let private = with_mode(0o600);
    assert!(!private.contains(&chmod) && private.contains("1 key for lab: k1"), "{private}");
}

#[test]
fn doctor_says_what_a_cloud_lacks() {
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "amazon-bedrock/global.anthropic.claude-sonnet-4-6"}},
    }));
    let with = |variables: &[(&str, &str)]| {
        RunningChild::run(myclaw(&home, &["doctor"]).envs(variables.iter().copied()))
    };
    let nothing = with(&[]);
    nothing.assert_code(1);
    assert!(
        reported(&nothing).starts_with("fail  key        no AWS region"),
        "{}",
        reported(&nothing)
    );
    let region = ("AWS_REGION", "us-east-1");
    let located = with(&[region]);
    located.assert_code(0);
    assert!(
        reported(&located).starts_with("warn  key        no AWS cred"),
        "{}",
        reported(&located)
    );
    let complete = with(&[region, ("AWS_ACCESS_KEY_ID", "AKIA")]);
    complete.assert_code(0);
    assert_eq!(
        reported(&complete),
        "ok    key        AWS credentials for amazon-bedrock, not tried"
    );
}

/// A limit of nothing on the size of files stands for a disk that is full: files can be made, but hold nothing.
#[cfg(unix)]
#[test]
fn doctor_fails_where_nothing_can_be_written_into_a_file() {
    let home = TempHome::new();
    home.write_in_workspace("file.txt", "");
    let doctor = myclaw(&home, &["doctor"]);
    let mut limited = home.command("sh");
    limited
        .env("MYCLAW_LOCAL_SERVERS", "none")
        .args(["-c", "ulimit -f 0; exec \"$0\" doctor"])
        .arg(doctor.get_program());
    let output = RunningChild::run(&mut limited);
    output.assert_code(1);
    let stdout = output.stdout();
    assert!(stdout.contains("fail  sessions   "), "{stdout}");
    assert!(stdout.contains("cannot be written: File too large"), "{stdout}");
    let left = std::fs::read_dir(home.state_directory()).expect("the state directory").count();
    assert_eq!(left, 1, "the probe is removed, the workspace stays");
}

/// A turn can run with the default agent, so what another one lacks is a warning that names it.
#[test]
fn doctor_looks_at_every_agent_of_the_list() {
    let home = TempHome::new();
    home.write(".myclaw/file", "");
    home.write_config(&json!({
        "agents": {"list": [
            {"id": "main", "model": "lab/m"},
            {"id": "ops", "model": "lab/o", "workspace": "file/workspace"},
            {"id": "paid", "model": "dear/m"},
        ]},
        "models": {"providers": {
            "lab": {"baseUrl": "http://127.0.0.1:9", "apiKey": "key-0123456789"},
            "dear": {"baseUrl": "http://127.0.0.1:9", "apiKey": "env:NO_SUCH_KEY"},
        }},
    }));
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    let stdout = output.stdout();
    let of_agents: Vec<&str> = stdout.lines().filter(|line| line.contains("  agent ")).collect();
    let begins = [
        "ok    model      agent ops: lab/o, as the config file says",
        "warn  workspace  agent ops: ",
        "ok    model      agent paid: dear/m, as the config file says",
        "warn  key        agent paid: ",
    ];
    assert_eq!(of_agents.len(), begins.len(), "{stdout}");
    for (line, begin) in of_agents.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn doctor_names_the_command_that_installs_a_missing_browser() {
    for (enabled, expected) in [
        (json!(null), "ok    browser    none: the browser tool needs the program agent-browser"),
        (json!(true), "warn  browser    the browser tool needs the program agent-browser"),
        (json!(false), "ok    browser    none, as the config file says"),
    ] {
        let home = TempHome::new();
        home.write_config(&json!({"tools": {"browser": {"enabled": enabled}}}));
        let output = RunningChild::run(myclaw(&home, &["doctor"]).env("PATH", "/no/such/bin"));
        let stdout = output.stdout();
        let line = stdout.lines().find(|line| line.contains("  browser  ")).unwrap();
        assert!(line.starts_with(expected), "{line}");
        assert_eq!(line.contains("npm install -g agent-browser"), enabled != false, "{line}");
    }
}

#[test]
fn a_damaged_store_of_the_gateway_is_reported_and_a_sound_one_is_not() {
    let home = home_with_keys(&[("k1", "sk-test")]);
    let store = home.state_directory().join("gateway/store.sqlite");
    let about_the_store = || {
        let output = run(&home, &["doctor", "--json"]);
        let lines: Vec<Value> =
            output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        lines.into_iter().filter(|line| line.to_string().contains("store")).collect::<Vec<_>>()
    };
    assert_eq!(about_the_store(), Vec::<Value>::new(), "there is none");
    // A job makes a store without a gateway.
    run(&home, &["cron", "add", "Call Ann", "--every", "6h"]).assert_code(0);
    assert_eq!(about_the_store()[0]["status"], "ok");
    let sound = fs::read(&store).expect("a store");
    for damaged in [
        // No database; the beginning of one; one whose pages are overwritten; another program's.
        b"not a database, but long enough to be looked at as one".repeat(50),
        sound[..100].to_vec(),
        [&sound[..4096], &vec![0xA5; sound.len() - 4096][..]].concat(),
        [&sound[..68], &[0; 4], &sound[72..]].concat(),
    ] {
        for extra in ["store.sqlite-wal", "store.sqlite-shm"] {
            let _ = fs::remove_file(store.with_file_name(extra));
        }
        fs::write(&store, damaged).expect("written");
        let found = about_the_store();
        assert_eq!(found[0]["status"], "warn", "{found:?}");
        assert!(found[0].to_string().contains("damaged"), "{found:?}");
    }
}
