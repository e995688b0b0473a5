//! The agent reads and changes nothing of what decides about it: config, keys, approvals and records are closed to tools.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::sandbox::results_of;
use crate::{myclaw, run};

/// The key of the config.
const KEY: &str = "sk-own-4f5d1c77e0a96b";
/// The token of a bot in the config.
const TOKEN: &str = "81726354:AAF-own_token-0d9c";
/// Something in the state directory that is no key.
const RECORD: &str = "a record of 7b21";

/// A home with keys and records in its state directory.
fn home(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    write_config(&home, server, |_| {});
    home.write(".myclaw/approvals.json", RECORD);
    home.write(".myclaw/agents/main/agent/notes.txt", RECORD);
    home.write(".myclaw/.env", format!("EXTRA={RECORD}\n"));
    home.write(
        ".myclaw/skills/one/SKILL.md",
        "---\nname: one\ndescription: A skill.\n---\nDo it.\n",
    );
    home
}

fn write_config(home: &TempHome, server: &ModelServer, change: impl FnOnce(&mut Value)) {
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["provider"]["authProfiles"][0]["apiKey"] = json!(KEY);
    config["channels"]["telegram"]["botToken"] = json!(TOKEN);
    change(&mut config);
    home.write_config(&config);
}

fn serve(calls: &[(&str, Value)]) -> ModelServer {
    let mut script = Vec::new();
    for (round, calls) in calls.chunks(60).enumerate() {
        let mut reply = Reply::anthropic();
        for (number, (tool, arguments)) in calls.iter().enumerate() {
            reply = reply.tool_call(format!("call_{round}_{number}"), *tool, arguments.clone());
        }
        script.push(reply);
    }
    script.push(Reply::anthropic().text("Done."));
    ModelServer::spawn_blocking_thread(Script::from(script))
}

/// Each way in which a call can name what is in the state directory: from the workspace, in which links were made before.
fn ways(home: &TempHome, file: &str) -> Vec<String> {
    let state = home.state_directory();
    let (shown, workspace) = (state.display(), home.workspace());
    fs::create_dir_all(&workspace).expect("the workspace");
    let name = file.replace('/', "-");
    let _ = symlink(state.join(file), workspace.join(format!("link-to-{name}")));
    let _ = symlink("..", workspace.join("up"));
    let _ = symlink(format!("link-to-{name}"), workspace.join(format!("twice-{name}")));
    let _ = fs::hard_link(state.join("myclaw.json"), workspace.join("hard-link"));
    vec![
        format!("{shown}/{file}"),
        format!("~/.myclaw/{file}"),
        format!("../{file}"),
        format!("./../workspace/../{file}"),
        format!("file://{shown}/{file}"),
        format!("@../{file}"),
        format!("link-to-{name}"),
        format!("twice-{name}"),
        format!("up/{file}"),
        format!("/proc/self/root{shown}/{file}"),
        format!("/proc/self/cwd/../{file}"),
        format!("/proc/thread-self/root{shown}/{file}"),
        format!("/proc/1/root{shown}/{file}"),
        format!("//{shown}//{file}"),
    ]
}

const FILES: [&str; 4] = ["myclaw.json", ".env", "approvals.json", "agents/main/agent/notes.txt"];

fn assert_untouched(home: &TempHome, before: &[Vec<u8>]) {
    let now: Vec<Vec<u8>> =
        FILES.map(|file| fs::read(home.state_directory().join(file)).expect(file)).to_vec();
    assert!(now == before, "something was changed in the state directory");
    assert!(!home.state_directory().join("new").exists(), "a file was made in the state directory");
}

/// What the model was sent holds nothing of the state directory.
fn assert_nothing_seen(server: &ModelServer) {
    let encoded = [KEY, TOKEN].map(|key| STANDARD.encode(key));
    for request in server.requests() {
        let seen = request.body_text();
        for secret in [KEY, TOKEN, RECORD].into_iter().chain(encoded.iter().map(String::as_str)) {
            assert!(!seen.contains(secret), "the model was sent {secret:?}");
        }
    }
}

fn file_calls(home: &TempHome) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for file in FILES {
        for path in ways(home, file) {
            calls.push(("read", json!({"path": path})));
            calls.push(("grep", json!({"pattern": ".", "path": path})));
            calls.push(("write", json!({"path": path, "content": "{}"})));
            calls.push(("edit", json!({"path": path, "oldText": "e", "newText": "f"})));
            calls.push(("image", json!({"image": path})));
            calls.push(("memory_get", json!({"path": path})));
        }
    }
    for directory in ways(home, "") {
        calls.push(("ls", json!({"path": directory})));
        calls.push(("find", json!({"pattern": "*", "path": directory})));
        calls.push(("grep", json!({"pattern": ".", "path": directory})));
        calls.push(("find", json!({"pattern": format!("{directory}/**/*.json")})));
        calls.push(("write", json!({"path": format!("{directory}/new"), "content": "x"})));
        calls.push(("bash", json!({"command": "ls", "workdir": directory})));
    }
    calls.push(("read", json!({"path": "hard-link"})));
    calls.push(("grep", json!({"pattern": ".", "path": "hard-link"})));
    calls.push(("grep", json!({"pattern": ".", "path": "."})));
    calls.push(("edit", json!({"path": "hard-link", "oldText": "provider", "newText": "x"})));
    calls.push((
        "apply_patch",
        json!({
            "patch": "--- a/link-to-.env\n+++ b/link-to-.env\n@@ -0,0 +1 @@\n+x\n"
        }),
    ));
    calls.push((
        "apply_patch",
        json!({"patch": "--- /dev/null\n+++ b/../new\n@@ -0,0 +1 @@\n+x\n"}),
    ));
    calls.push((
        "apply_patch",
        json!({"patch": "--- /dev/null\n+++ b/up/new\n@@ -0,0 +1 @@\n+x\n"}),
    ));
    calls
}

/// Makes the calls in one turn of `session`, and checks that nothing came out and nothing was changed.
fn attack(
    session: &str,
    make: impl Fn(&TempHome) -> Vec<(&'static str, Value)>,
    change: impl Fn(&mut Value),
) -> Vec<String> {
    // The paths of the calls depend on the home, and the home on the address of the server.
    let placeholder = ModelServer::spawn_blocking_thread(Script::from([Reply::anthropic()]));
    let home = home(&placeholder);
    let calls = make(&home);
    let server = serve(&calls);
    write_config(&home, &server, &change);
    let before: Vec<Vec<u8>> =
        FILES.map(|file| fs::read(home.state_directory().join(file)).expect(file)).to_vec();
    let _ = fs::remove_file(home.workspace().join("hard-link"));
    let _ = fs::hard_link(home.config_path(), home.workspace().join("hard-link"));
    run(&home, &["run", "--session", session, "go on"]).assert_code(0);
    assert_untouched(&home, &before);
    assert_nothing_seen(&server);
    let results = results_of(&home, session);
    assert_eq!(results.len(), calls.len());
    results
}

#[test]
fn file_tools_of_the_main_session_find_no_way_into_the_state_directory() {
    let results = attack("main", file_calls, |_| {});
    let refused =
        results.iter().filter(|result| result.contains("config, keys and records")).count();
    assert!(refused > results.len() / 2, "{refused} of {}", results.len());
}

#[test]
fn file_tools_of_a_sandboxed_session_find_no_way_into_the_state_directory() {
    attack("stranger", file_calls, |config| {
        config["agents"]["defaults"]["sandbox"] = json!({"mode": "non-main", "allowlist": ["*"]});
    });
}

#[test]
fn a_walk_from_above_leaves_the_state_directory_out_and_says_so() {
    let calls = |_: &TempHome| {
        vec![
            ("grep", json!({"pattern": "sk-own|record", "path": "~"})),
            ("find", json!({"pattern": "*", "path": "~"})),
        ]
    };
    let results = attack("main", calls, |_| {});
    for result in &results {
        assert!(result.contains("1 closed to tools"), "{result}");
    }
    assert!(!results[1].contains("myclaw.json"), "{}", results[1]);
}

#[test]
fn what_is_open_in_the_state_directory_stays_so() {
    let calls = [
        ("write", json!({"path": "notes.md", "content": "mine"})),
        ("read", json!({"path": "notes.md"})),
        ("read", json!({"path": "~/.myclaw/skills/one/SKILL.md"})),
        ("write", json!({"path": "~/.myclaw/skills/one/SKILL.md", "content": "Do evil."})),
        ("bash", json!({"command": "cat ~/.myclaw/skills/one/SKILL.md && seq 100000"})),
        ("write", json!({"path": "~/.myclaw/shared/list.txt", "content": "opened"})),
        (
            "bash",
            json!({"command": "cat ~/.myclaw/shared/list.txt && echo more >> ~/.myclaw/shared/list.txt"}),
        ),
    ];
    let server = serve(&calls);
    let home = home(&server);
    home.write(".myclaw/shared/first.txt", "");
    write_config(&home, &server, |config| {
        config["tools"]["fs"]["stateDirectories"] = json!(["shared"]);
    });
    run(&home, &["run", "go on"]).assert_code(0);
    let results = results_of(&home, "main");
    assert!(results[1].contains("mine") && results[2].contains("Do it."), "{results:?}");
    assert!(results[3].contains("may read but not change"), "{}", results[3]);
    let (_, path) = results[4].split_once("full output: ").expect("the path of the output");
    let path = path.trim_end_matches(']');
    assert_eq!(results[6], "opened");
    let list =
        fs::read_to_string(home.state_directory().join("shared/list.txt")).expect("the list");
    assert_eq!(list, "openedmore\n");
    // The large output is readable by the tool and by commands, and not changeable.
    let calls = [
        ("read", json!({"path": path, "startLine": 100_004})),
        ("bash", json!({"command": format!("tail -n 1 {path}")})),
        ("write", json!({"path": path, "content": ""})),
    ];
    let server = serve(&calls);
    write_config(&home, &server, |_| {});
    run(&home, &["run", "go on"]).assert_code(0);
    let results = results_of(&home, "main");
    assert!(results[7].contains("100000"), "{}", results[7]);
    assert!(results[8].starts_with("100000"), "{}", results[8]);
    assert!(results[9].contains("may read but not change"), "{}", results[9]);
}

/// Shell lines that try to read or change what is in the state directory.
fn commands(home: &TempHome) -> Vec<(&'static str, Value)> {
    ways(home, "myclaw.json");
    let state = home.state_directory().display().to_string();
    let lines = [
        "cat ~/.myclaw/myclaw.json",
        "cat $STATE/.env $STATE/approvals.json $STATE/agents/main/agent/notes.txt",
        "cat link-to-myclaw.json up/myclaw.json ../myclaw.json",
        "cat /proc/self/root$STATE/myclaw.json",
        "cat /proc/$PPID/root$STATE/myclaw.json",
        "cat /proc/1/root$STATE/myclaw.json",
        "cat /proc/$PPID/cwd/../.myclaw/myclaw.json",
        "for d in /proc/[0-9]*; do cat $d/root$STATE/myclaw.json; done",
        "for f in /proc/$PPID/fd/*; do cat $f; done",
        "base64 ~/.myclaw/myclaw.json; xxd -p $STATE/myclaw.json",
        "ln ~/.myclaw/myclaw.json new-link && cat new-link",
        "cp -r ~/.myclaw copied; cat copied/myclaw.json; rm -rf copied",
        "tar c ~/.myclaw | base64",
        "grep -r record ~",
        "find / -maxdepth 5 -name 'myclaw.json*' -exec cat {} +",
        "python3 -c \"print(open('$STATE/myclaw.json').read())\"",
        "cd .. && ls -a && cat myclaw.json",
        "echo '{}' > ~/.myclaw/myclaw.json",
        "mv ~/.myclaw ~/moved; rm -rf ~/.myclaw; mkdir -p ~/.myclaw/x",
        "touch ~/.myclaw/new; mkdir ~/.myclaw/new",
        "rm -f ~/.myclaw/approvals.json; sed -i s/record/x/ ~/.myclaw/approvals.json",
    ];
    lines
        .into_iter()
        .map(|line| ("bash", json!({"command": line.replace("$STATE", &state)})))
        .collect()
}

/// Whether commands lose sight of the state directory without a setting: for root, where namespaces can be made.
fn hides_by_default() -> bool {
    let hides = rustix::process::geteuid().is_root()
        && std::process::Command::new("unshare")
            .args(["-m", "true"])
            .status()
            .is_ok_and(|end| end.success());
    if !hides {
        myclaw_testkit::skip_here("only root hides the state directory from commands by default");
    }
    hides
}

#[test]
fn commands_of_the_main_session_do_not_find_the_state_directory() {
    if !hides_by_default() {
        return;
    }
    let results = attack("main", commands, |_| {});
    assert!(results[0].contains("No such file"), "{}", results[0]);
    // In the background, at a terminal, and in a job that is written to.
    let background = |_: &TempHome| {
        vec![
            ("bash", json!({"command": "cat ~/.myclaw/.env; sleep 30", "background": true})),
            ("bash", json!({"command": "sh", "background": true, "pty": true})),
            ("process", json!({"action": "submit", "id": "j2", "data": "cat ~/.myclaw/.env"})),
            ("process", json!({"action": "poll", "id": "j2", "timeout": 2000})),
            ("process", json!({"action": "kill", "id": "j1"})),
            ("process", json!({"action": "kill", "id": "j2"})),
        ]
    };
    attack("main", background, |_| {});
}

#[test]
fn the_owner_can_open_the_state_directory_to_commands_and_keys_are_still_replaced() {
    let calls = [
        ("bash", json!({"command": "cat ~/.myclaw/myclaw.json ~/.myclaw/approvals.json"})),
        ("bash", json!({"command": "base64 -w0 ~/.myclaw/myclaw.json; rev ~/.myclaw/.env"})),
        ("bash", json!({"command": format!("printf %s $MY_TOKEN {}", &KEY[..3])})),
        ("bash", json!({"command": "cat ~/.myclaw/myclaw.json; seq 100000"})),
    ];
    let server = serve(&calls);
    let home = home(&server);
    write_config(&home, &server, |config| {
        config["tools"]["bash"]["stateDirectory"] = json!("open");
    });
    let mut command = myclaw(&home, &["run", "go on"]);
    RunningChild::run(command.env("MY_TOKEN", "of-the-environment-1")).assert_code(0);
    let results = results_of(&home, "main");
    assert!(
        results[0].contains(RECORD) && results[0].contains("\"apiKey\": \"[redacted]\""),
        "{}",
        results[0]
    );
    assert!(results[1].contains("[redacted]"), "{}", results[1]);
    for request in server.requests() {
        let seen = request.body_text();
        for secret in [KEY, TOKEN, "of-the-environment-1"] {
            assert!(!seen.contains(secret), "the model was sent {secret:?}");
        }
    }
    // The session on disk holds them neither.
    let transcript = fs::read_to_string(home.transcript_path("main")).expect("the transcript");
    assert!(!transcript.contains(KEY) && !transcript.contains(TOKEN));
}

#[test]
fn a_config_and_a_key_elsewhere_are_closed_too() {
    let placeholder = ModelServer::spawn_blocking_thread(Script::from([Reply::anthropic()]));
    let home = home(&placeholder);
    let config = home.path().join("elsewhere/agent.json");
    let calls = [
        ("read", json!({"path": "~/elsewhere/agent.json"})),
        ("read", json!({"path": "~/elsewhere/key.txt"})),
        ("write", json!({"path": "~/elsewhere/agent.json", "content": "{}"})),
        ("write", json!({"path": "~/elsewhere/hook.sh", "content": "exit 0"})),
        ("read", json!({"path": "~/elsewhere/notes.txt"})),
        ("bash", json!({"command": "cat ~/elsewhere/agent.json ~/elsewhere/key.txt"})),
        (
            "bash",
            json!({"command": "echo > ~/elsewhere/hook.sh; mv ~/elsewhere/notes.txt ~/elsewhere/agent.json"}),
        ),
    ];
    let server = serve(&calls);
    let hook = home.write("elsewhere/hook.sh", "#!/bin/sh\nexit 0\n");
    home.write("elsewhere/key.txt", KEY);
    home.write("elsewhere/notes.txt", "plain");
    let mut values = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    values["provider"]["authProfiles"][0]["apiKey"] = json!("file:key.txt");
    values["hooks"]["agent_end"] = json!([{"command": format!("sh {}", hook.display())}]);
    fs::write(&config, values.to_string()).expect("the config");
    let before = fs::read(&config).expect("the config");
    let mut command = myclaw(&home, &["run", "go on"]);
    RunningChild::run(command.env("MYCLAW_CONFIG_PATH", &config)).assert_code(0);
    let results = results_of(&home, "main");
    for refused in [0, 1, 2] {
        assert!(results[refused].contains("config, keys and records"), "{}", results[refused]);
    }
    assert!(results[3].contains("may read but not change"), "{}", results[3]);
    assert!(results[4].contains("plain"), "{}", results[4]);
    assert_nothing_seen(&server);
    let read = |path: &Path| fs::read(path).expect("a file");
    assert_eq!(read(&config), before);
    if hides_by_default() {
        assert_eq!(read(&hook), b"#!/bin/sh\nexit 0\n");
    }
}

#[test]
fn where_commands_are_restricted_nothing_is_written_from_which_programs_start() {
    let places = [
        "~/.bashrc",
        "~/.gitconfig",
        "~/.config/autostart/x.desktop",
        "~/.local/bin/ls",
        "~/bin/tool",
        "link-to-profile",
        "up/../../.zshrc",
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        ".envrc",
        "package.json",
        "Makefile",
        ".vscode/tasks.json",
        "tool.sh",
        "/etc/profile.d/x.sh",
    ];
    let mut calls: Vec<(&str, Value)> =
        places.map(|path| ("write", json!({"path": path, "content": "evil"}))).to_vec();
    calls.extend([
        ("edit", json!({"path": "tool.sh", "oldText": "echo", "newText": "evil"})),
        (
            "apply_patch",
            json!({"patch": "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+evil\n"}),
        ),
        ("apply_patch", json!({"patch": "--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+evil\n"})),
        ("bash", json!({"command": "echo evil > ~/.bashrc"})),
        ("bash", json!({"command": "ls > ~/.bashrc"})),
        ("write", json!({"path": "~/.myclaw/myclaw.json", "content": "{}"})),
    ]);
    let asked = calls.len();
    calls.push(("write", json!({"path": "notes/a.md", "content": "fine"})));
    calls.push(("bash", json!({"command": "ls notes"})));
    let server = serve(&calls);
    let home = home(&server);
    write_config(&home, &server, |config| {
        config["tools"]["exec"] = json!({"security": "allowlist", "allowlist": ["ls"]});
    });
    let tool = home.write_in_workspace("tool.sh", "echo fine\n");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    ways(&home, "myclaw.json");
    symlink(home.path().join(".profile"), home.workspace().join("link-to-profile"))
        .expect("a link");
    run(&home, &["run", "go on"]).assert_code(0);
    let results = results_of(&home, "main");
    for (call, result) in calls.iter().zip(&results).take(asked) {
        let is_refused = result.contains("approval") || result.contains("config, keys and records");
        assert!(is_refused, "{call:?}: {result}");
    }
    assert_eq!(results[asked + 1], "a.md", "{results:?}");
    let found = std::process::Command::new("grep").args(["-rl", "evil"]).arg(home.path()).output();
    let found = String::from_utf8(found.expect("grep").stdout).expect("paths");
    assert!(found.lines().all(|path| path.contains("/.myclaw/sessions/")), "{found}");
    // With everything permitted nothing asks.
    let server = serve(&[("write", json!({"path": ".envrc", "content": "mine"}))]);
    write_config(&home, &server, |_| {});
    run(&home, &["run", "go on"]).assert_code(0);
    let written = fs::read_to_string(home.workspace().join(".envrc")).expect("the file");
    assert_eq!(written, "mine");
}
