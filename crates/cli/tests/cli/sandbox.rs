//! Sandboxed sessions: file tools and commands run in a helper that the operating system confines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, Signal, TempHome, WireFormat, wait_until_gone,
};
use serde_json::{Value, json};

use crate::{myclaw, run};

/// Longest wait for something to happen, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SECRET: &str = "secret-5b1f90";

pub(crate) fn serve(calls: &[(&str, Value)]) -> ModelServer {
    let mut reply = Reply::anthropic();
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        reply = reply.tool_call(format!("call_{number}"), *tool, arguments.clone());
    }
    ModelServer::spawn_blocking_thread(Script::from([reply, Reply::anthropic().text("Done.")]))
}

/// A home whose sandbox is as `sandbox` says.
pub(crate) fn home(server: &ModelServer, mut sandbox: Value) -> TempHome {
    let home = TempHome::new();
    // All tools, also those that the built-in lists of sandboxed sessions leave out.
    sandbox["allowlist"] = json!(["*"]);
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"] = sandbox;
    home.write_config(&config);
    home
}

/// What the calls returned, in their order.
pub(crate) fn results_of(home: &TempHome, session: &str) -> Vec<String> {
    let text = fs::read_to_string(home.transcript_path(session)).expect("the transcript");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
    rows.filter(|row| row["role"] == "tool")
        .map(|row| row["content"].as_str().expect("a text").to_owned())
        .collect()
}

/// Makes the calls in one turn of `session`, which is sandboxed as `sandbox` says.
pub(crate) fn turn(
    session: &str,
    sandbox: Value,
    prepare: impl FnOnce(&TempHome),
    calls: &[(&str, Value)],
) -> (TempHome, Vec<String>) {
    let server = serve(calls);
    let home = home(&server, sandbox);
    prepare(&home);
    let mut command = myclaw(&home, &["run", "--session", session, "go on"]);
    let output = RunningChild::run(command.env("MY_API_KEY", SECRET));
    output.assert_code(0);
    let results = results_of(&home, session);
    assert_eq!(results.len(), calls.len());
    (home, results)
}

pub(crate) fn bash(command: impl Into<String>) -> (&'static str, Value) {
    ("bash", json!({"command": command.into()}))
}

fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} never happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn everyday_work_is_possible_in_a_sandboxed_session() {
    let calls = [
        ("write", json!({"path": "notes/a.txt", "content": "one\ntwo\n"})),
        ("edit", json!({"path": "notes/a.txt", "oldText": "two", "newText": "three"})),
        bash("t=$(mktemp) && echo four > \"$t\" && cat notes/a.txt \"$t\" && ls"),
        ("grep", json!({"pattern": "three"})),
        ("find", json!({"pattern": "*.txt"})),
        ("ls", json!({"path": "notes"})),
        bash("seq 100000"),
        (
            "apply_patch",
            json!({"patch": "--- a/notes/a.txt\n+++ b/notes/a.txt\n@@ -1 +1 @@\n-one\n+first\n"}),
        ),
    ];
    let (home, results) = turn("trip", json!({}), |_| {}, &calls);
    assert_eq!(results[2], "one\nthree\nfour\nAGENTS.md\nnotes", "{results:?}");
    assert!(results[3].contains("notes/a.txt") && results[4].contains("notes/a.txt"));
    assert_eq!(results[5], "a.txt");
    // The large output is next to the transcript, and the model can read it.
    let (_, path) = results[6].split_once("full output: ").expect("the path of the output");
    let path = path.trim_end_matches(']');
    assert_eq!(fs::read_to_string(path).expect("the output").lines().count(), 100_000);
    assert_eq!(
        fs::read_to_string(home.workspace().join("notes/a.txt")).unwrap_or_default(),
        "first\nthree\n"
    );
    let server = serve(&[("read", json!({"path": path, "startLine": 99_999}))]);
    home.use_server(&server, WireFormat::AnthropicMessages);
    run(&home, &["run", "--session", "trip", "go on"]).assert_code(0);
    assert!(results_of(&home, "trip")[8].contains("100000"));
    // The directory for temporary files is gone. The output and the record of changes stay.
    let left = fs::read_dir(Path::new(path).parent().expect("a directory")).expect("the files");
    assert_eq!(left.count(), 2);
}

#[test]
fn file_tools_cannot_leave_the_workspace() {
    let prepare = |home: &TempHome| {
        home.write("outside/secret", SECRET);
        home.write_in_workspace("plain", "plain");
        symlink(home.path().join("outside"), home.workspace().join("link")).expect("a link");
    };
    let calls = [
        ("read", json!({"path": "~/outside/secret"})),
        ("read", json!({"path": "link/secret"})),
        ("read", json!({"path": "../myclaw.json"})),
        ("read", json!({"path": "/etc/shadow"})),
        ("read", json!({"path": "/proc/self/environ"})),
        // Not the whole machine, which may be large.
        ("grep", json!({"pattern": SECRET, "path": "~"})),
        ("grep", json!({"pattern": SECRET, "path": "~/outside"})),
        ("ls", json!({"path": "~/outside"})),
        ("find", json!({"pattern": "*", "path": ".."})),
        ("write", json!({"path": "~/outside/new", "content": "x"})),
        ("write", json!({"path": "link/new", "content": "x"})),
        ("edit", json!({"path": "~/outside/secret", "oldText": "secret", "newText": "x"})),
        (
            "apply_patch",
            json!({"patch": "--- a/link/secret\n+++ /dev/null\n@@ -1 +0,0 @@\n-secret-5b1f90\n"}),
        ),
        ("write", json!({"path": "../skills/evil/SKILL.md", "content": "x"})),
    ];
    for level in ["landlock", "bubblewrap"] {
        if level == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists() {
            myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
            continue;
        }
        let sandbox = json!({"confinement": {"level": level}});
        let (home, results) = turn("trip", sandbox, prepare, &calls);
        for (result, (tool, arguments)) in results.iter().zip(&calls) {
            let is_held = !result.contains("test-key")
                && (!result.contains(SECRET)
                    || arguments["pattern"] == SECRET
                    || *tool == "apply_patch")
                && !result.contains("root:");
            assert!(is_held, "{level}: {tool} {arguments}: {result}");
        }
        assert_eq!(
            fs::read_to_string(home.path().join("outside/secret")).unwrap_or_default(),
            SECRET
        );
        assert_eq!(fs::read_dir(home.path().join("outside")).expect("the directory").count(), 1);
        assert!(!home.state_directory().join("skills").exists());
        let server = serve(&[("read", json!({"path": "plain"}))]);
        home.use_server(&server, WireFormat::AnthropicMessages);
        run(&home, &["run", "--session", "trip", "go on"]).assert_code(0);
        assert_eq!(results_of(&home, "trip").last().map(String::as_str), Some("plain"));
    }
}

#[test]
fn commands_cannot_leave_either() {
    let server = ModelServer::spawn_blocking_thread(Reply::anthropic().text("unused"));
    let port = server.address().port();
    let reached = "&& echo REACHED";
    let calls = [
        bash(format!("cat ~/outside/secret {reached}")),
        bash(format!("echo x > ~/outside/new {reached}")),
        bash(format!("exec 9<>/dev/tcp/127.0.0.1/{port} {reached}")),
        bash(format!("echo x > /dev/udp/127.0.0.1/9 {reached}")),
        bash(format!("kill -0 {} {reached}", std::process::id())),
        bash(format!(
            "tr '\\0' '\\n' < /proc/{}/environ | grep -c KEY {reached}",
            std::process::id()
        )),
        bash(format!("env | grep -i {SECRET} {reached}")),
        bash(format!("ls /proc/$PPID/fd {reached}")),
        bash(format!("cat ~/.myclaw/myclaw.json {reached}")),
        bash(format!("unshare -r true {reached}")),
        bash(format!("mkdir ~/.myclaw/skills {reached}")),
        bash(
            "for fd in 3 4 5 6 7 8 9; do { echo x >&$fd; } 2>/dev/null && echo \"REACHED $fd\"; done; true",
        ),
    ];
    let (home, results) =
        turn("trip", json!({}), |home| drop(home.write("outside/secret", SECRET)), &calls);
    for (result, (_, arguments)) in results.iter().zip(&calls) {
        assert!(!result.contains("REACHED") && !result.contains(SECRET), "{arguments}: {result}");
    }
    assert_eq!(fs::read_dir(home.path().join("outside")).expect("the directory").count(), 1);
    assert_eq!(server.connections(), 0);
    // The same attempts succeed without a sandbox, so they are attempts.
    let (_, open) =
        turn("main", json!({}), |home| drop(home.write("outside/secret", SECRET)), &calls[..5]);
    assert!(open.iter().all(|result| result.contains("REACHED")), "{open:?}");
}

#[test]
fn the_workspace_can_be_closed_or_read_only() {
    let calls = [
        ("read", json!({"path": "plain"})),
        ("write", json!({"path": "new", "content": "x"})),
        bash("echo x > other || echo refused"),
    ];
    let prepare = |home: &TempHome| drop(home.write_in_workspace("plain", "plain"));
    for (access, is_readable) in [("ro", true), ("none", false)] {
        let sandbox = json!({"confinement": {"workspaceAccess": access}});
        let (home, results) = turn("trip", sandbox, prepare, &calls);
        assert_eq!(results[0] == "plain", is_readable, "{access}: {results:?}");
        assert!(results[1].contains("permission denied"), "{access}: {results:?}");
        assert!(results[2].contains("refused"), "{access}: {results:?}");
        assert!(!home.workspace().join("new").exists() && !home.workspace().join("other").exists());
    }
}

#[test]
fn the_mode_decides_which_sessions_are_sandboxed() {
    let calls = [bash("cat ~/outside && echo REACHED")];
    for (mode, session, is_sandboxed) in [
        ("off", "trip", false),
        ("off", "main", false),
        ("non-main", "trip", true),
        ("non-main", "main", false),
        ("all", "main", true),
        ("all", "trip", true),
    ] {
        let prepare = |home: &TempHome| drop(home.write("outside", "text"));
        let (_, results) = turn(session, json!({"mode": mode}), prepare, &calls);
        assert_eq!(!results[0].contains("REACHED"), is_sandboxed, "{mode} {session}: {results:?}");
    }
}

#[test]
fn a_level_that_is_not_available_fails_before_the_model_is_asked() {
    let server = serve(&[bash("echo hi")]);
    for (confinement, words) in [
        (json!({"level": "podman", "image": "x"}), ["podman is not in PATH", "apt install podman"]),
        (json!({"level": "bubblewrap"}), ["bwrap is not in PATH", "apt install bubblewrap"]),
        (json!({"level": "podman"}), ["no image is named", "sandbox.confinement.image"]),
        (json!({"readWrite": ["~"]}), ["would open", "keys"]),
        (json!({"readOnly": ["~/nowhere"]}), ["readOnly", "nowhere"]),
    ] {
        let home = home(&server, json!({"confinement": confinement}));
        let mut command = myclaw(&home, &["run", "--session", "trip", "go on"]);
        let output = RunningChild::run(command.env("PATH", "/nowhere"));
        assert_ne!(output.code(), Some(0));
        for word in words {
            assert!(
                output.stderr().contains(word),
                "{confinement}: no {word}: {}",
                output.stderr()
            );
        }
        assert_eq!(output.stdout(), "");
        // The main session is not concerned.
        if confinement.get("image").is_some() {
            let mut explain = myclaw(&home, &["sandbox", "explain"]);
            RunningChild::run(explain.env("PATH", "/nowhere")).assert_code(0);
            let mut explain = myclaw(&home, &["sandbox", "explain", "-s", "trip"]);
            RunningChild::run(explain.env("PATH", "/nowhere")).assert_code(1);
        }
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_program_that_cannot_set_the_sandbox_up_fails_the_run() {
    use std::os::unix::fs::PermissionsExt;

    let server = serve(&[bash("echo REACHED > reached")]);
    let home = home(&server, json!({"confinement": {"level": "bubblewrap"}}));
    let broken =
        home.write("bin/bwrap", "#!/bin/sh\necho 'bwrap: no namespace for you' >&2; exit 1\n");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("an executable");
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let mut command = myclaw(&home, &["run", "--session", "trip", "go on"]);
    let output = RunningChild::run(command.env("PATH", path));
    assert_ne!(output.code(), Some(0));
    for words in [":trip is sandboxed, and", "no namespace for you"] {
        assert!(output.stderr().contains(words), "no {words:?}: {}", output.stderr());
    }
    assert_eq!((server.requests().len(), output.stdout().as_str()), (0, ""));
    assert!(!home.workspace().join("reached").exists());
}

/// At this level commands see the helper, which runs as the same user, in `/proc`.
#[test]
fn a_command_cannot_reach_into_the_helper() {
    if !Path::new("/usr/bin/bwrap").exists() {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
        return;
    }
    let attempts = "tr '\\0' ' ' < /proc/$PPID/cmdline; \
                    (exec 3< /proc/$PPID/environ) && echo REACHED environ; \
                    (exec 3<> /proc/$PPID/mem) && echo REACHED memory; \
                    (exec 3> /proc/$PPID/fd/1) && echo REACHED pipe";
    let sandbox = json!({"confinement": {"level": "bubblewrap"}});
    let (_home, results) = turn("trip", sandbox, |_| {}, &[bash(attempts)]);
    assert!(results[0].contains("myclaw"), "this is not the helper: {results:?}");
    assert!(!results[0].contains("REACHED"), "{results:?}");
    // What is opened for writing fails at the read-only `/proc` or at its owner, whichever the kernel asks first.
    let refused = ["Permission denied", "Read-only file system"];
    let refused = refused.map(|words| results[0].matches(words).count());
    assert_eq!(refused.iter().sum::<usize>(), 3, "{results:?}");
}

#[test]
fn a_directory_that_holds_the_keys_is_refused_as_workspace() {
    let server = serve(&[bash("echo hi")]);
    let home = home(&server, json!({"mode": "all"}));
    let output = run(&home, &["run", "-s", "trip", "-C", &home.path().to_string_lossy(), "go on"]);
    output.assert_code(1);
    assert!(output.stderr().contains("could read keys"), "{}", output.stderr());
    assert_eq!(server.requests().len(), 0);
}

/// Starts a run whose command leaves a process in a session of its own, and waits until it is there.
fn start_with_daemon(home: &TempHome) -> (RunningChild, String) {
    let child = RunningChild::spawn(&mut myclaw(home, &["run", "--session", "trip", "go on"]));
    let file = home.workspace().join("pid");
    until("the daemon starts", || fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n')));
    (child, fs::read_to_string(file).expect("the process id"))
}

/// The daemon writes its id, as this namespace sees it, and waits.
fn daemon() -> (&'static str, Value) {
    bash("setsid sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 < /dev/null & sleep 1000")
}

#[test]
fn nothing_outlives_a_killed_or_aborted_run() {
    for signal in [Signal::Kill, Signal::Terminate] {
        let server = serve(&[daemon()]);
        let home = home(&server, json!({}));
        let (child, daemon) = start_with_daemon(&home);
        let id = child.id();
        child.signal(signal);
        child.wait(PATIENCE);
        wait_until_gone(id);
        until("the daemon ends", || is_gone(&daemon));
    }
}

#[test]
fn what_a_command_leaves_running_ends_with_the_run() {
    let leave = "setsid sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 < /dev/null & \
                 until [ -s pid ]; do :; done; cat pid";
    let (_home, results) = turn("trip", json!({}), |_| {}, &[bash(leave)]);
    let pid = results[0].lines().next().expect("the process id").to_owned();
    until("the process ends", || is_gone(&pid));
}

#[test]
fn the_sandbox_is_explained() {
    let home = TempHome::new();
    let output = run(&home, &["sandbox", "explain"]);
    output.assert_code(0);
    assert!(output.stdout().contains("no: it is the main session"), "{}", output.stdout());
    let output = run(&home, &["sandbox", "explain", "--session", "trip", "--json"]);
    output.assert_code(0);
    let explained: Value = serde_json::from_str(&output.stdout()).expect("JSON");
    let chosen = json!({
        "mode": explained["mode"], "main": explained["main"], "sandboxed": explained["sandboxed"],
        "available": explained["available"], "level": explained["confinement"]["level"],
        "access": explained["confinement"]["access"], "network": explained["confinement"]["network"],
        "workspace": explained["confinement"]["workspace"],
    });
    let expected = json!({
        "mode": "non-main", "main": false, "sandboxed": true, "available": true,
        "level": "landlock", "access": "rw", "network": "none", "workspace": home.workspace(),
    });
    assert_eq!(chosen, expected);
}

#[test]
fn the_sandbox_holds_on_this_machine() {
    let home = TempHome::new();
    let output = run(&home, &["sandbox", "test"]);
    output.assert_code(0);
    let table = output.stdout();
    assert!(
        table.contains("read a file outside")
            && table.contains(" 0 known gaps, 0 unknown, 0 escaped"),
        "{table}"
    );
}

#[test]
fn the_hidden_commands_are_not_for_people() {
    let home = TempHome::new();
    for command in ["__sandbox-exec", "__tool-executor"] {
        let output = run(&home, &[command]);
        assert_ne!(output.code(), Some(0));
        assert!(output.stderr().contains("is not for people"), "{command}: {}", output.stderr());
    }
}
