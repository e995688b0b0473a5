//! Sandboxed sessions in a container of podman, with an image made of files of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use myclaw_testkit::{ModelServer, RunningChild, Signal, TempHome, WireFormat, wait_until_gone};
use serde_json::{Value, json};

use crate::sandbox::{PATIENCE, SECRET, bash, home, results_of, serve, turn, until};
use crate::sandbox_network::{ASK, turn_with_hosts};
use crate::{myclaw, run};

const IMAGE: &str = "localhost/myclaw-cli-test";
/// What the commands of these tests need; the helper needs the libraries of MyClaw itself.
const PROGRAMS: [&str; 7] = [
    "/bin/bash",
    "/bin/cat",
    "/bin/ls",
    "/bin/sleep",
    "/usr/bin/env",
    "/usr/bin/mktemp",
    "/usr/bin/setsid",
];

/// Whether there is an image to run containers from. It is built once; `false` where podman is missing.
fn has_image() -> bool {
    static BUILT: OnceLock<bool> = OnceLock::new();
    *BUILT.get_or_init(|| {
        if !["/usr/bin/podman", "/usr/sbin/runc"].into_iter().all(|path| Path::new(path).exists()) {
            myclaw_testkit::skip_without(
                "podman or runc is not installed (apt install podman runc)",
            );
            return false;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("root");
        for file in needed_files() {
            let place = root.join(file.strip_prefix("/").expect("an absolute path"));
            fs::create_dir_all(place.parent().expect("a directory")).expect("a directory");
            fs::copy(&file, place).expect("a copy");
        }
        fs::write(directory.path().join("Dockerfile"), "FROM scratch\nCOPY root /\n")
            .expect("a file");
        let output = Command::new("podman")
            .args(["--runtime", "runc", "build", "--quiet", "--tag", IMAGE])
            .arg(directory.path())
            .output()
            .expect("podman");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    })
}

/// The programs, and the libraries that they and MyClaw load.
fn needed_files() -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    for program in PROGRAMS.into_iter().chain([env!("CARGO_BIN_EXE_myclaw")]) {
        let output = Command::new("ldd").arg(program).output().expect("ldd");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        files.extend(
            text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from),
        );
    }
    files
}

fn podman() -> Value {
    json!({"level": "podman", "image": IMAGE})
}

/// The names of the containers that share the workspace of this home: other tests have their own at the same time.
fn containers(home: &TempHome) -> String {
    let output = Command::new("podman")
        .args(["ps", "--all", "--format", "{{.Names}} {{.Mounts}}"])
        .output()
        .expect("podman");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let home = home.path().to_string_lossy().into_owned();
    text.lines().filter(|line| line.contains(&home)).collect()
}

#[test]
fn tools_work_in_a_container() {
    if !has_image() {
        return;
    }
    let calls = [
        ("write", json!({"path": "notes/a.txt", "content": "one\ntwo\n"})),
        ("edit", json!({"path": "notes/a.txt", "oldText": "two", "newText": "three"})),
        bash("t=$(mktemp) && echo four > \"$t\" && cat notes/a.txt \"$t\" && ls && exit 3"),
        ("grep", json!({"pattern": "three"})),
        ("read", json!({"path": "notes/a.txt"})),
        bash("kill -0 1 && echo \"$$ sees its own processes only\""),
    ];
    let (home, results) = turn("trip", json!({"confinement": podman()}), |_| {}, &calls);
    assert_eq!(results[2], "one\nthree\nfour\nAGENTS.md\nnotes\n[exit code 3]", "{results:?}");
    assert!(results[3].contains("notes/a.txt") && results[4].contains("three"), "{results:?}");
    let written = fs::read_to_string(home.workspace().join("notes/a.txt")).unwrap_or_default();
    assert_eq!(written, "one\nthree\n");
    until("the container ends", || containers(&home).is_empty());
}

#[test]
fn tools_cannot_leave_a_container() {
    if !has_image() {
        return;
    }
    let server = ModelServer::spawn_blocking_thread(myclaw_testkit::Reply::anthropic().text("x"));
    let port = server.address().port();
    let prepare = |home: &TempHome| {
        home.write("outside/secret", SECRET);
        home.write_in_workspace("plain", "plain");
        std::os::unix::fs::symlink(home.path().join("outside"), home.workspace().join("link"))
            .expect("a link");
    };
    let reached = "&& echo REACHED";
    let calls = [
        ("read", json!({"path": "link/secret"})),
        ("read", json!({"path": "../myclaw.json"})),
        ("write", json!({"path": "link/new", "content": "x"})),
        ("grep", json!({"pattern": "test-key", "path": "/"})),
        bash(format!("cat link/secret ../myclaw.json /etc/shadow {reached}")),
        bash(format!("echo x > /outside {reached}")),
        bash(format!("exec 9<>/dev/tcp/127.0.0.1/{port} {reached}")),
        bash(format!("kill -0 {} {reached}", std::process::id())),
        bash(format!("echo x > /sys/kernel/uevent_helper {reached}")),
        bash("env"),
        bash("ls /sys/class/net"),
    ];
    let (home, results) = turn("trip", json!({"confinement": podman()}), prepare, &calls);
    for (result, (tool, arguments)) in results.iter().zip(&calls) {
        let is_held = !result.contains("REACHED") && !result.contains(SECRET);
        assert!(is_held && !result.contains("\"apiKey\""), "{tool} {arguments}: {result}");
    }
    // Git's own settings for commands have such a name.
    let mut names = results[9].lines().filter(|line| !line.starts_with("GIT_CONFIG_KEY_"));
    assert!(!names.any(|line| line.contains("KEY")), "{}", results[9]);
    assert_eq!(results[10], "lo", "the container has a way out");
    assert_eq!(fs::read_dir(home.path().join("outside")).expect("the directory").count(), 1);
    assert_eq!(server.connections(), 0);
}

#[test]
fn no_container_outlives_a_killed_or_aborted_run() {
    if !has_image() {
        return;
    }
    for signal in [Signal::Kill, Signal::Terminate] {
        let server = serve(&[bash("setsid sleep 1000 & echo > ready; sleep 1000")]);
        let home = home(&server, json!({"confinement": podman()}));
        let child = RunningChild::spawn(&mut myclaw(&home, &["run", "--session", "trip", "go on"]));
        until("the command runs", || home.workspace().join("ready").exists());
        assert!(!containers(&home).is_empty());
        let id = child.id();
        child.signal(signal);
        child.wait(PATIENCE);
        wait_until_gone(id);
        until("the container ends", || containers(&home).is_empty());
    }
}

#[test]
fn commands_in_a_container_reach_only_the_listed_hosts() {
    if !has_image() {
        return;
    }
    let server = ModelServer::spawn_blocking_thread(myclaw_testkit::Reply::anthropic().text("x"));
    let host = [server.address().to_string()];
    let calls = [
        bash(format!("{ASK} ask GET http://{}/", host[0])),
        bash(format!("{ASK} ask GET http://192.0.2.1/")),
        bash(format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo REACHED", server.address().port())),
    ];
    let results = turn_with_hosts(&podman(), &host, &host, &calls);
    assert!(results[0].starts_with("HTTP/1.1 ") && !results[0].contains("403"), "{results:?}");
    assert!(results[1].contains("192.0.2.1:80 is not on the list"), "{results:?}");
    assert!(results[2].contains("Connection refused"), "{results:?}");
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_missing_image_is_found_before_and_during_a_run() {
    if !has_image() {
        return;
    }
    let server = serve(&[]);
    let missing = json!({"level": "podman", "image": "localhost/myclaw-no-such-image"});
    for (mode, code, doctor) in [("non-main", 0, "warn  sandbox"), ("all", 3, "fail  sandbox")] {
        let home = home(&server, json!({"mode": mode, "confinement": missing}));
        let output = run(&home, &["config", "check"]);
        output.assert_code(code);
        assert!(output.stderr().contains("podman pull localhost/myclaw-no-such-image"));
        assert!(run(&home, &["doctor"]).stdout().contains(doctor));
        let output = run(&home, &["run", "--session", "trip", "go on"]);
        assert_ne!(output.code(), Some(0));
        let said = output.stderr();
        assert!(said.contains("podman pull localhost/myclaw-no-such-image"), "{said}");
        assert!(!said.contains("Error:"), "podman's own message: {said}");
        assert!(results_of_nothing(&home));
    }
    assert_eq!(server.requests().len(), 0);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"]["confinement"] = podman();
    home.write_config(&config);
    let output = run(&home, &["config", "check"]);
    output.assert_code(0);
    assert_eq!(output.stderr(), "");
}

/// Whether no tool ran in the session.
fn results_of_nothing(home: &TempHome) -> bool {
    !home.transcript_path("trip").exists() || results_of(home, "trip").is_empty()
}
