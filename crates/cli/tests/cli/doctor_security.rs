//! `myclaw doctor --security`: each finding has a command that closes it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use myclaw_testkit::{RunningChild, TempHome};
use serde_json::{Value, json};

use crate::{myclaw, run};

/// A set-up in which nothing is open.
fn closed() -> (TempHome, Value) {
    let home = TempHome::new();
    let config = json!({
        "provider": {"name": "lab", "model": "m", "baseUrl": "http://127.0.0.1:9",
            "authProfiles": [{"id": "k", "apiKey": "key-0123456789"}]},
        "tools": {"exec": {"ask": "always"}},
        "channels": {"telegram": {"botToken": "${BOT}"}},
    });
    write(&home, &config);
    (home, config)
}

fn write(home: &TempHome, config: &Value) {
    home.write_config(config);
    fs::set_permissions(home.config_path(), fs::Permissions::from_mode(0o600)).expect("chmod");
    fs::set_permissions(home.state_directory(), fs::Permissions::from_mode(0o700)).expect("chmod");
}

/// The exit code, and the findings.
fn findings(home: &TempHome) -> (Option<i32>, Vec<Value>) {
    let mut command = myclaw(home, &["doctor", "--security", "--json"]);
    let output = RunningChild::run(command.env("BOT", "12345:token"));
    let lines = output.stdout();
    let found = lines.lines().map(|line| serde_json::from_str(line).expect("a finding"));
    (output.status.code(), found.collect())
}

/// Whether something is found that has this name and this severity, and whether its command closes it.
fn is_closed_by_its_command(home: &TempHome, check: &str, severity: &str) {
    let (code, found) = findings(home);
    let names: Vec<(&str, &str)> = found
        .iter()
        .map(|it| (it["check"].as_str().expect("text"), it["severity"].as_str().expect("text")))
        .collect();
    assert_eq!((code, names.contains(&(check, severity))), (Some(1), true), "{check}: {found:#?}");
    for finding in &found {
        let fix = finding["fix"].as_str().expect("a command");
        let program = Path::new(env!("CARGO_BIN_EXE_myclaw"));
        let mut shell = home.command("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().expect("a directory").display());
        let done =
            RunningChild::run(shell.args(["-c", fix]).env("PATH", path).env("BOT", "12345:token"));
        assert!(done.status.success(), "{fix}: {}", done.stderr());
    }
    assert_eq!(findings(home), (Some(0), Vec::new()), "{check}");
}

#[test]
fn a_closed_set_up_has_no_finding() {
    let (home, _) = closed();
    assert_eq!(findings(&home), (Some(0), Vec::new()));
    let mut command = myclaw(&home, &["doctor", "--security"]);
    let shown = RunningChild::run(command.env("BOT", "12345:token"));
    shown.assert_code(0);
    assert!(shown.stdout().starts_with("nothing is open"), "{}", shown.stdout());
}

#[test]
fn the_default_set_up_says_what_the_main_session_may_do() {
    let home = TempHome::new();
    let shown = run(&home, &["doctor", "--security"]);
    shown.assert_code(1);
    assert!(
        shown.stdout().starts_with("medium  your main session runs commands"),
        "{}",
        shown.stdout()
    );
    assert!(
        shown.stdout().contains("-> myclaw config set tools.exec.ask always"),
        "{}",
        shown.stdout()
    );
}

#[test]
fn each_open_value_of_the_config_is_found_and_closed() {
    let sandbox = "/agents/defaults/sandbox";
    let cases: Vec<(&str, &str, &str, Value)> = vec![
        ("open-direct-messages", "low", "/channels/telegram/dmPolicy", json!("open")),
        ("open-groups", "low", "/channels/telegram/groupPolicy", json!("open")),
        ("open-groups", "low", "/channels/telegram/groups", json!({"*": {}})),
        ("shared-main-session", "high", "/channels/dmScope", json!("main")),
        (
            "shared-workspace",
            "high",
            "/agents/defaults/sandbox",
            json!({"confinement": {"workspaceAccess": "rw"}}),
        ),
        (
            "shared-workspace",
            "high",
            "/agents/list",
            json!([{"id": "main", "sandbox": {"confinement": {"workspaceAccess": "rw"}}}]),
        ),
        ("sandbox-off", "high", sandbox, json!({"mode": "off"})),
        (
            "sandbox-off",
            "high",
            "/agents/list",
            json!([{"id": "main"}, {"id": "b", "sandbox": {"mode": "off"}}]),
        ),
        ("sandbox-network-open", "medium", sandbox, json!({"confinement": {"network": "open"}})),
        (
            "sandbox-hosts-wide",
            "medium",
            sandbox,
            json!({"confinement": {"network": "allowlist", "allowHosts": ["*.org", "crates.io"]}}),
        ),
        (
            "sandbox-shares-home",
            "high",
            sandbox,
            json!({"confinement": {"readOnly": ["/home", "/opt/x"]}}),
        ),
        ("sandbox-tools-wide", "medium", sandbox, json!({"allowlist": ["read", "*"]})),
        ("sessions-reach-others", "medium", "/tools/sessions", json!({"others": "all"})),
        ("sessions-reach-others", "medium", "/tools/message", json!({"otherChats": "all"})),
        (
            "command-wildcard",
            "high",
            "/tools/exec",
            json!({"ask": "always", "allowlist": ["ls", "*"]}),
        ),
        (
            "command-wildcard",
            "high",
            "/tools/exec",
            json!({"ask": "always", "allowlist": [{"program": "/**"}]}),
        ),
        (
            "web-reaches-private-addresses",
            "high",
            "/tools/web",
            json!({"fetch": {"allowPrivate": true}}),
        ),
        ("log-keeps-keys", "medium", "/logging", json!({"redactSensitive": false})),
        ("state-directory-open", "medium", "/tools/bash", json!({"stateDirectory": "open"})),
        (
            "state-directory-open",
            "high",
            "/tools/fs",
            json!({"stateDirectories": ["skills", "sessions"]}),
        ),
        ("main-session-reads-the-web", "medium", "/tools/exec", json!({})),
        (
            "gateway-without-tls",
            "medium",
            "/gateway",
            json!({"bind": "lan", "protectedLink": true}),
        ),
        ("short-gateway-token", "high", "/gateway", json!({"token": "0123456789abcdef01"})),
        (
            "wide-trusted-proxies",
            "high",
            "/gateway",
            json!({"trustedProxies": ["0.0.0.0/0", "10.0.0.0/8"]}),
        ),
        (
            "plain-origin",
            "medium",
            "/gateway",
            json!({"allowedOrigins": ["http://home.example.org"]}),
        ),
        (
            "plain-telemetry",
            "low",
            "/gateway",
            json!({"telemetry": {"endpoint": "http://traces.example.org:4318"}}),
        ),
        ("plain-connection", "medium", "/provider/baseUrl", json!("http://models.example.org/v1")),
    ];
    for (check, severity, pointer, value) in cases {
        let (home, mut config) = closed();
        let mut place = &mut config;
        for key in pointer.split('/').skip(1) {
            place = &mut place[key];
        }
        *place = value;
        write(&home, &config);
        is_closed_by_its_command(&home, check, severity);
    }
}

#[test]
fn an_open_bot_matters_more_where_its_sessions_may_more() {
    let (home, mut config) = closed();
    config["channels"]["telegram"]["dmPolicy"] = json!("open");
    config["agents"]["defaults"]["sandbox"]["confinement"]["workspaceAccess"] = json!("rw");
    write(&home, &config);
    is_closed_by_its_command(&home, "open-direct-messages", "high");
}

#[test]
fn each_file_that_others_can_read_or_change_is_found_and_closed() {
    let cases: [(&str, &str, &str, u32); 8] = [
        ("file-open-to-others", "high", ".myclaw/myclaw.json", 0o644),
        ("file-open-to-others", "high", ".myclaw/.env", 0o640),
        ("file-open-to-others", "high", ".myclaw/gateway/token", 0o604),
        ("file-open-to-others", "high", ".myclaw/approvals.json", 0o660),
        ("directory-open-to-others", "medium", ".myclaw", 0o755),
        ("directory-open-to-others", "medium", ".myclaw/sessions", 0o750),
        ("obeyed-file-open-to-others", "high", ".myclaw/skills", 0o777),
        ("obeyed-file-open-to-others", "high", ".myclaw/workspace", 0o775),
    ];
    for (check, severity, name, mode) in cases {
        let (home, _) = closed();
        let path = home.path().join(name);
        if name.contains('.') && !path.exists() && !name.ends_with("skills") {
            match name.rsplit('/').next() {
                Some("sessions" | "workspace") => fs::create_dir_all(&path).expect("a directory"),
                _ => drop(home.write(&path, "")),
            }
        }
        fs::create_dir_all(home.state_directory().join("skills")).expect("a directory");
        for directory in [home.path().to_owned(), home.state_directory().join("skills")] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("chmod");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        is_closed_by_its_command(&home, check, severity);
    }
}
