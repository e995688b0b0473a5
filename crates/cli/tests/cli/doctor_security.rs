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

/// The check, its severity, where the value belongs, and the value.
type OpenValue = (&'static str, &'static str, &'static str, Value);

/// Who may write, and what sessions may do.
fn open_to_people() -> Vec<OpenValue> {
    let sandbox = "/agents/defaults/sandbox";
    vec![
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
        ("sandbox-tools-wide", "medium", sandbox, json!({"allowlist": ["*"]})),
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
    ]
}

/// What tools and programs may reach, and who may reach the gateway.
fn open_to_programs() -> Vec<OpenValue> {
    vec![
        (
            "web-reaches-private-addresses",
            "high",
            "/tools/web",
            json!({"fetch": {"allowPrivate": true}}),
        ),
        ("log-keeps-keys", "medium", "/logging", json!({"redactSensitive": false})),
        ("state-directory-open", "high", "/tools/bash", json!({"stateDirectory": "open"})),
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
            "high",
            "/gateway",
            json!({"allowedOrigins": ["http://home.example.org"]}),
        ),
        (
            "plain-telemetry",
            "low",
            "/gateway",
            json!({"telemetry": {"endpoint": "http://traces.example.org:4318"}}),
        ),
        ("plain-connection", "high", "/provider/baseUrl", json!("http://models.example.org/v1")),
        ("plain-connection", "high", "/mcp/servers/docs/url", json!("http://mcp.example.org/mcp")),
        ("host-without-sandbox", "medium", "/host", json!({"options": ["--backend=process"]})),
        ("host-without-sandbox", "medium", "/host", json!({"options": ["--backend", "process"]})),
    ]
}

fn put(config: &mut Value, pointer: &str, value: Value) {
    *pointer.split('/').skip(1).fold(config, |place, key| &mut place[key]) = value;
}

#[test]
fn each_open_value_of_the_config_is_found_and_closed() {
    for (check, severity, pointer, value) in open_to_people().into_iter().chain(open_to_programs())
    {
        let (home, mut config) = closed();
        put(&mut config, pointer, value);
        write(&home, &config);
        is_closed_by_its_command(&home, check, severity);
    }
}

/// A list whose entries are all open goes away: an empty one would take every tool from sandboxed sessions.
#[test]
fn a_list_without_other_entries_is_taken_out() {
    for (pointer, value, key) in [
        (
            "/agents/defaults/sandbox",
            json!({"allowlist": ["*"]}),
            "agents.defaults.sandbox.allowlist",
        ),
        (
            "/agents/defaults/sandbox",
            json!({"allowlist": ["sessions_send", "group:nodes"]}),
            "agents.defaults.sandbox.allowlist",
        ),
        (
            "/agents/list",
            json!([{"id": "main", "sandbox": {"allowlist": ["cron"]}}]),
            "agents.list[0].sandbox.allowlist",
        ),
        ("/tools/fs", json!({"stateDirectories": ["sessions"]}), "tools.fs.stateDirectories"),
        ("/gateway", json!({"trustedProxies": ["0.0.0.0/0"]}), "gateway.trustedProxies"),
    ] {
        let (home, mut config) = closed();
        put(&mut config, pointer, value);
        write(&home, &config);
        let (_, found) = findings(&home);
        let fixes: Vec<&str> = found.iter().filter_map(|it| it["fix"].as_str()).collect();
        assert_eq!(fixes.len(), 1, "{fixes:?}");
        let fix = fixes[0].replace('\'', "");
        assert_eq!(fix, format!("myclaw config unset {key}"), "{pointer}");
        is_closed_by_its_command(
            &home,
            found[0]["check"].as_str().expect("text"),
            found[0]["severity"].as_str().expect("text"),
        );
    }
}

#[test]
fn what_is_not_open_is_not_found() {
    for (pointer, value) in [
        ("/channels/telegram/groups", json!({"*": {"allowFrom": ["7"]}})),
        ("/channels/telegram/groups", json!({"-5": {}})),
        ("/provider/baseUrl", json!("http://name:word@127.0.0.1:9/v1")),
        ("/gateway", json!({"trustedProxies": ["10.0.0.0/8", "127.0.0.1"]})),
        ("/tools/fs", json!({"stateDirectories": ["skills"]})),
        ("/host", json!({"options": ["--backend=sandbox"]})),
    ] {
        let (home, mut config) = closed();
        put(&mut config, pointer, value.clone());
        write(&home, &config);
        assert_eq!(findings(&home), (Some(0), Vec::new()), "{pointer} {value}");
    }
}

#[test]
fn groups_of_tools_and_places_in_other_spellings_are_found() {
    let sandbox = "/agents/defaults/sandbox";
    for (check, severity, pointer, value) in [
        ("sandbox-tools-wide", "medium", sandbox, json!({"allowlist": ["read", "group:nodes"]})),
        ("sandbox-tools-wide", "medium", sandbox, json!({"allowlist": ["sessions_send"]})),
        (
            "command-wildcard",
            "high",
            sandbox,
            json!({"exec": {"security": "allowlist", "allowlist": ["ls", "*"]}}),
        ),
        (
            "plain-connection",
            "high",
            "/provider/baseUrl",
            json!("http://127.0.0.1:9@models.example.org/v1"),
        ),
    ] {
        let (home, mut config) = closed();
        put(&mut config, pointer, value);
        write(&home, &config);
        is_closed_by_its_command(&home, check, severity);
    }
}

#[test]
fn the_worst_comes_first() {
    let (home, mut config) = closed();
    config["logging"] = json!({"redactSensitive": false});
    config["gateway"] = json!({"token": "0123456789abcdef01"});
    config["channels"]["telegram"]["groupPolicy"] = json!("open");
    write(&home, &config);
    let (_, found) = findings(&home);
    let severities: Vec<&str> = found.iter().filter_map(|it| it["severity"].as_str()).collect();
    assert_eq!(severities, ["high", "medium", "low"], "{found:#?}");
}

#[test]
fn an_open_mailbox_is_closed_by_what_mails_have() {
    let (home, mut config) = closed();
    config["channels"]["email"] = json!({
        "address": "claw@example.org", "password": "x-0123456789", "dmPolicy": "open", "authservId": "mx.example.org",
        "imap": {"host": "imap.example.org"}, "smtp": {"host": "smtp.example.org"},
    });
    write(&home, &config);
    is_closed_by_its_command(&home, "open-direct-messages", "low");
}

#[test]
fn programs_of_hooks_and_the_directories_above_count() {
    let modes: [(&str, &str, u32, bool); 5] = [
        ("hook", "tools/guard.sh", 0o777, true),
        ("hook", "tools", 0o777, true),
        ("skills", "shared", 0o777, true),
        // Nobody replaces what others own there.
        ("skills", "shared", 0o1777, false),
        ("hook", "tools", 0o755, false),
    ];
    for (kind, opened, mode, is_open) in modes {
        let (home, mut config) = closed();
        let script = home.write(home.path().join("tools/guard.sh"), "#!/bin/sh\n");
        let skills = home.path().join("shared/skills");
        fs::create_dir_all(&skills).expect("a directory");
        match kind {
            "hook" => config["hooks"] = json!({"tool_call": [{"command": [script, "--strict"]}]}),
            _ => config["skills"] = json!({"load": {"extraDirs": [skills]}}),
        }
        write(&home, &config);
        for path in ["tools", "tools/guard.sh", "shared", "shared/skills"] {
            let permissions = fs::Permissions::from_mode(0o755);
            fs::set_permissions(home.path().join(path), permissions).expect("chmod");
        }
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(home.path().join(opened), permissions).expect("chmod");
        match is_open {
            true => is_closed_by_its_command(&home, "obeyed-file-open-to-others", "high"),
            false => assert_eq!(findings(&home), (Some(0), Vec::new()), "{opened} {mode:o}"),
        }
    }
}

#[test]
fn a_state_directory_in_a_cloud_is_found_and_moved_out() {
    for cloud in ["Dropbox", "onedrive", "Mobile Documents", "Sync"] {
        let (home, _) = closed();
        let state = home.state_directory();
        let real = home.path().join(cloud).join("state");
        fs::create_dir_all(home.path().join(cloud)).expect("a directory");
        if cloud == "Sync" {
            // Syncthing names its directories as it likes.
            fs::create_dir(home.path().join("Sync/.stfolder")).expect("a directory");
        }
        fs::rename(&state, &real).expect("a move");
        std::os::unix::fs::symlink(&real, &state).expect("a link");
        is_closed_by_its_command(&home, "synced-state-directory", "high");
        assert!(state.join("myclaw.json").is_file() && !real.exists());
    }
}

#[test]
fn answers_that_are_old_are_found_and_revoked() {
    let (home, _) = closed();
    let grant = |digest: &str, ts: u64, format: u32| {
        json!({"digest": digest.repeat(16), "audience": "agent:main:cli", "tool": "bash", "call": "ls",
            "covers": "exactly this command in /", "ts": ts, "format": format})
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    let now = u64::try_from(now.as_millis()).expect("a number");
    let always = [grant("aa01", 1_000, 2), grant("bb02", now, 1), grant("cc03", now, 2)];
    let path = home.state_directory().join("approvals.json");
    home.write(&path, json!({"version": 2, "always": always, "waiting": []}).to_string());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    is_closed_by_its_command(&home, "old-approvals", "low");
    let left = fs::read_to_string(&path).expect("the file");
    assert!(left.contains("cc03") && !left.contains("aa01") && !left.contains("bb02"), "{left}");
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
