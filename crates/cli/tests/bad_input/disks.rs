//! Disks that are full or read-only, and limits on the size of files.
//!
//! Faults are made in a mount namespace of the child's own, so nothing has to be cleaned up. Where the system allows
//! no namespaces, the tests say that they were skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use myclaw_testkit::{ChildOutput, Reply, RunningChild, Script, Step, TempHome, WireFormat};
use serde_json::json;

use crate::{
    assert_fails, assert_fit_for_people, assert_goes_on, config, count, home_for, rows, run, said,
    serve, serve_text, valid,
};

/// Runs a command in which mounting is allowed and seen by nobody else.
const NAMESPACE: &[&str] = &["unshare", "--user", "--map-root-user", "--mount"];

fn can_mount(test: &str) -> bool {
    let mut probe = Command::new(NAMESPACE[0]);
    probe.args(&NAMESPACE[1..]).args(["sh", "-c", "mount -t tmpfs none /mnt"]);
    let possible = probe.output().is_ok_and(|output| output.status.success());
    if !possible {
        myclaw_testkit::skip_here(&format!(
            "{test} needs `unshare` and the right to mount in a namespace"
        ));
    }
    possible
}

/// Runs the program with `arguments` behind `preparation`, a shell script, in a namespace of its own.
fn run_in_namespace(home: &TempHome, preparation: &str, arguments: &[&str]) -> ChildOutput {
    let mut command = home.command(NAMESPACE[0]);
    command.args(&NAMESPACE[1..]).args(["sh", "-c", &format!("{preparation}; \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_myclaw")).args(arguments);
    RunningChild::run(&mut command)
}

/// Runs the program with `arguments` behind `preparation`, a shell script.
fn run_in_shell(home: &TempHome, preparation: &str, arguments: &[&str]) -> ChildOutput {
    let mut command = home.command("bash");
    command.args(["-c", &format!("{preparation}; exec \"$@\""), "bash"]);
    command.arg(env!("CARGO_BIN_EXE_myclaw")).args(arguments);
    RunningChild::run(&mut command)
}

/// How many messages of the program stand on standard error.
fn messages_in(output: &ChildOutput) -> usize {
    output.stderr().matches("myclaw: ").count()
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_signal() {
    for format in WireFormat::ALL {
        let long = "words ".repeat(4_000);
        let server = serve(Script::from([
            Reply::new(format).text("First.").step(),
            Reply::new(format).text(long.as_str()).step(),
        ]));
        let home = home_for(&server, format);
        run(&home, &["run", "hello"]).assert_code(0);
        // 16 blocks of 1024 bytes: the question fits, the answer does not.
        let output = run_in_shell(&home, "ulimit -f 16", &["run", "say much"]);
        let transcript = home.transcript_path("main").display().to_string();
        let words =
            [transcript.as_str(), "File too large", "file-size limit", "nothing that was stored"];
        assert_fails(&output, 1, &words);
        assert!(output.stdout().contains("words words"), "the answer was shown");
        assert_eq!(
            rows(&home, "main"),
            said(&[("user", "hello"), ("assistant", "First."), ("user", "say much")])
        );
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "say much"), 1);
    }
}

#[test]
fn a_limit_on_the_size_of_files_holds_for_tools_too() {
    let format = WireFormat::AnthropicMessages;
    let server = serve(Script::from([
        Reply::new(format).tool_call(
            "call_1",
            "write",
            json!({"path": "big", "content": "x".repeat(100_000)}),
        ),
        Reply::new(format).tool_call("call_2", "bash", json!({"command": "seq 100000"})),
        Reply::new(format).text("It is too large."),
    ]));
    let home = home_for(&server, format);
    home.write_in_workspace("big", "as it was");
    // Enough for the transcript, which holds the text to write and the end of the output.
    let output = run_in_shell(&home, "ulimit -f 256", &["run", "write it"]);
    output.assert_code(0);
    assert_fit_for_people(&output);
    assert_goes_on(&home, format, "main");

    let home = TempHome::new();
    let server = serve(Script::from([
        Reply::new(format).tool_call("call_1", "bash", json!({"command": "seq 100000"})),
        Reply::new(format).text("Too long to keep."),
    ]));
    home.write_config(&config(server.url(), format));
    let output = run_in_shell(&home, "ulimit -f 128", &["run", "count"]);
    output.assert_code(0);
    let request = valid(&server.last_request());
    assert_eq!(count(&request, "could not be"), 1, "the side file was cut: {request:#}");
    assert_eq!(count(&request, "99999\\n100000"), 1, "the end is shown");
    assert_goes_on(&home, format, "main");
}

#[test]
fn a_full_disk_keeps_what_was_stored() {
    if !can_mount("a full disk") {
        return;
    }
    for format in WireFormat::ALL {
        let server = serve(Script::from([
            Reply::new(format).text("First.").step(),
            Reply::new(format).text("words ".repeat(4_000)).step(),
        ]));
        let home = home_for(&server, format);
        run(&home, &["run", "hello"]).assert_code(0);
        // The disk is full when the answer comes, and has room again after the report.
        let sessions = home.sessions_directory().display().to_string();
        let prepare = format!(
            "cp -a '{sessions}' /tmp/kept.$$ && mount -t tmpfs -o size=48k none '{sessions}' && \
             cp -a /tmp/kept.$$/. '{sessions}' && rm -r /tmp/kept.$$ && \
             head -c 28672 /dev/zero > '{sessions}/ballast'"
        );
        let shell = format!(
            "{prepare}; \"$@\"; code=$?; rm '{sessions}/ballast'; cat '{sessions}'/*.jsonl; exit $code"
        );
        let mut command = home.command(NAMESPACE[0]);
        command.args(&NAMESPACE[1..]).args(["sh", "-c", &shell, "sh"]);
        command.args([env!("CARGO_BIN_EXE_myclaw"), "run", "--quiet", "say much"]);
        let output = RunningChild::run(&mut command);
        let words = ["No space left on device", "free some space", "nothing that was stored"];
        assert_fails(&output, 1, &words);
        let stdout = output.stdout();
        let stored: Vec<&str> = stdout.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(stored.len(), 4, "header, turn, question: {stored:?}");
        assert!(stored[3].contains("say much"), "{}", stored[3]);
        // What lies on the disk then is a session that continues.
        fs::write(home.transcript_path("main"), stored.join("\n") + "\n").expect("writes");
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_disk_that_is_full_from_the_start() {
    if !can_mount("a full disk") {
        return;
    }
    let format = WireFormat::AnthropicMessages;
    let server = serve_text(format, "never");
    let home = home_for(&server, format);
    let state = home.state_directory().display().to_string();
    let config = home.config_path().display().to_string();
    let prepare = format!(
        "cp '{config}' /tmp/config.$$ && mount -t tmpfs -o size=32k none '{state}' && \
         mv /tmp/config.$$ '{config}' && cat /dev/zero > '{state}/ballast' 2>/dev/null"
    );
    let output = run_in_namespace(&home, &prepare, &["run", "hello"]);
    assert_fails(&output, 1, &["No space left on device"]);
    assert_eq!(server.requests().len(), 0, "what cannot be kept is not sent");
    assert_goes_on(&home, format, "main");
}

#[test]
fn a_read_only_home_is_named_and_what_is_in_it_can_be_read() {
    if !can_mount("a read-only home") {
        return;
    }
    for format in WireFormat::ALL {
        let server = serve_text(format, "First.");
        let home = home_for(&server, format);
        let path = home.path().display().to_string();
        let read_only =
            format!("mount --bind '{path}' '{path}' && mount -o remount,bind,ro '{path}'");
        // The first run ever, which has everything to make.
        let output = run_in_namespace(&home, &read_only, &["run", "hello"]);
        assert_fails(&output, 1, &[&path, "ead-only"]);

        run(&home, &["run", "hello"]).assert_code(0);
        let output = run_in_namespace(&home, &read_only, &["run", "and now?"]);
        assert_fails(&output, 1, &[&path, "read-only", "MYCLAW_STATE_DIR"]);
        for arguments in
            [&["sessions", "show", "main"][..], &["sessions", "list"], &["config", "check"]]
        {
            let output = run_in_namespace(&home, &read_only, arguments);
            output.assert_code(0);
            assert_eq!(messages_in(&output), 0, "{}", output.stderr());
        }
        assert_eq!(server.requests().len(), 1);
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_read_only_workspace_is_the_models_to_hear_of() {
    if !can_mount("a read-only workspace") {
        return;
    }
    let format = WireFormat::AnthropicMessages;
    let server = serve(Script::from([
        Reply::new(format).tool_call("call_1", "write", json!({"path": "a.txt", "content": "a"})),
        Reply::new(format).text("It cannot be written."),
    ]));
    let home = home_for(&server, format);
    let workspace = home.workspace().display().to_string();
    fs::create_dir_all(home.workspace()).expect("a workspace");
    let prepare = format!(
        "mount --bind '{workspace}' '{workspace}' && mount -o remount,bind,ro '{workspace}'"
    );
    let output = run_in_namespace(&home, &prepare, &["run", "write a.txt"]);
    output.assert_code(0);
    assert_fit_for_people(&output);
    let request = valid(&server.last_request());
    assert!(request["messages"].to_string().contains("ead-only"), "{request:#}");
    assert_goes_on(&home, format, "main");
}

#[test]
fn a_state_directory_that_may_not_be_written() {
    let format = WireFormat::AnthropicMessages;
    let server = serve_text(format, "never");
    let home = home_for(&server, format);
    let state = home.state_directory();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o555)).expect("chmod");
    if fs::write(state.join("probe"), "").is_ok() {
        myclaw_testkit::skip_here("this user may write everywhere");
        return;
    }
    assert_fails(&run(&home, &["run", "hello"]), 1, &["ermission denied"]);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("chmod");
    assert_goes_on(&home, format, "main");
}

/// Many servers take a refresh token only once: it must not be spent where the next one cannot be kept.
#[test]
fn a_login_is_not_renewed_where_its_new_tokens_could_not_be_kept() {
    if !can_mount("a full disk under the keys") {
        return;
    }
    let tokens = json!({"access_token": "new", "refresh_token": "next", "expires_in": 3600});
    let answer = move || Step::status(200, &[], tokens.to_string());
    let server = serve(Script::answer_with(move |_, _| answer()).answer_every_route());
    // Files can be made there, as those of locks, but there is no room in them.
    let full = "mount -t tmpfs none /mnt && cp KEYS /mnt && mount -t tmpfs -o size=16k none DIRECTORY && \
                cp /mnt/* DIRECTORY && { cat /dev/zero >DIRECTORY/rest 2>/dev/null; true; }";
    let read_only = "mount --bind DIRECTORY DIRECTORY && mount -o remount,bind,ro DIRECTORY";
    for (fault, words) in [(full, "No space left"), (read_only, "Read-only file system")] {
        let home = TempHome::new();
        home.write_config(&json!({
            "agents": {"defaults": {"model": "lab/m"}},
            "agent": {"maxRetries": 0},
            "models": {"providers": {"lab": {
                "baseUrl": server.url(), "api": "anthropic-messages",
                "models": [{"id": "m", "contextWindow": 200_000}],
            }}},
        }));
        let directory = home.state_directory().join("agents/main/agent");
        let keys = directory.join("auth-profiles.json");
        let login = json!({
            "type": "oauth", "provider": "lab", "access": "old", "refresh": "one", "expires": 1,
            "tokenUrl": format!("{}/oauth/token", server.url()), "clientId": "app",
        });
        home.write(&keys, json!({"version": 1, "profiles": {"lab:me": login}}).to_string());
        let fault = fault
            .replace("KEYS", &keys.display().to_string())
            .replace("DIRECTORY", &directory.display().to_string());
        let output = run_in_namespace(&home, &fault, &["run", "hello"]);
        assert_fails(&output, 4, &["was not renewed", words, "check the free space"]);
    }
    assert!(server.all_requests().is_empty(), "nothing was asked");
}
