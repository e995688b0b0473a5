//! Undo of file changes, and files that change under the model, through the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat,
};
use serde_json::{Value, json};

use crate::{last_message, myclaw, run};

/// How long a killed program may take to be gone.
const PATIENCE: Duration = Duration::from_secs(30);

fn server() -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::from(Vec::<Step>::new()))
}

/// One turn of `session` with these calls, one message each; gives the text of the last result.
fn turn(home: &TempHome, server: &ModelServer, session: &str, calls: &[(&str, Value)]) -> String {
    for (at, (name, arguments)) in calls.iter().enumerate() {
        server.push(Reply::anthropic().tool_call(format!("call_{at}"), *name, arguments.clone()));
    }
    server.push(Reply::anthropic().text("Done."));
    run(home, &["run", "--session", session, "go on"]).assert_code(0);
    last_message(server)
}

fn file(home: &TempHome, name: &str) -> PathBuf {
    home.workspace().join(name)
}

fn put(home: &TempHome, name: &str, content: &str, mode: u32) {
    home.write(file(home, name), content);
    fs::set_permissions(file(home, name), PermissionsExt::from_mode(mode)).expect("a mode");
}

/// Names, modes and contents of the files of the workspace that are not there from the beginning.
fn files(home: &TempHome) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![home.workspace()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            let mode = entry.metadata().expect("metadata").permissions().mode();
            let content = if path.is_dir() { Vec::new() } else { fs::read(&path).expect("a file") };
            if path.is_dir() {
                directories.push(path.clone());
            }
            found.push((path, mode, content));
        }
    }
    found.sort();
    found
}

fn patch() -> Value {
    json!({"patch": "*** Begin Patch\n*** Delete File: gone\n*** Update File: script\n@@\n-two\n+2\n\
                     *** Add File: new/sub/x\n+x\n*** End Patch"})
}

fn calls() -> [(&'static str, Value); 3] {
    [
        ("write", json!({"path": "made/by/write", "content": "x"})),
        ("edit", json!({"path": "script", "oldText": "one", "newText": "1"})),
        ("apply_patch", patch()),
    ]
}

fn config(server: &ModelServer, sandbox: &str) -> Value {
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"] = json!({"mode": sandbox});
    config
}

fn home_with_files(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.write_config(&config(server, "off"));
    put(&home, "script", "one\r\ntwo\n", 0o750);
    put(&home, "gone", "\u{1}\u{2}", 0o600);
    // The first run fills the workspace.
    turn(&home, server, "other", &[("ls", json!({}))]);
    home
}

#[test]
fn a_turn_is_undone_and_the_model_is_told() {
    let server = server();
    let home = home_with_files(&server);
    let before = files(&home);
    let result = turn(&home, &server, "work", &calls());
    assert!(result.contains("Applied to 3 files"), "{result}");
    let after = files(&home);
    assert_ne!(before, after);

    let shown = run(&home, &["sessions", "undo", "work", "--dry-run"]);
    shown.assert_code(0);
    assert_eq!(files(&home), after);
    let undone = run(&home, &["sessions", "undo", "work"]);
    undone.assert_code(0);
    assert_eq!(files(&home), before);
    let lines: Vec<String> = undone.stdout().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "  restored    gone",
            "  removed     made/by/write",
            "  removed     new/sub/x",
            "  restored    script"
        ]
    );
    let dry: Vec<String> = shown.stdout().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(dry, lines);

    // What was undone was read by the model in its new state, so it has to be read again.
    let result = turn(
        &home,
        &server,
        "work",
        &[("edit", json!({"path": "script", "oldText": "two", "newText": "2"}))],
    );
    assert!(result.contains("Read it again"), "{result}");
    let request = server.last_request();
    let said = request.messages().iter().map(|message| message["content"].to_string());
    let told: Vec<String> = said.filter(|text| text.contains("has undone file changes")).collect();
    assert_eq!(told.len(), 1);
    for name in ["- gone", "- script", "- made/by/write", "- new/sub/x"] {
        assert!(told[0].contains(name), "{told:?}");
    }
    // Nothing else is to be undone, and redo makes all of it again.
    let nothing = run(&home, &["sessions", "undo", "work"]);
    assert_eq!(nothing.code(), Some(1));
    assert!(nothing.stderr().contains("nothing to undo"), "{}", nothing.stderr());
    run(&home, &["sessions", "undo", "work", "--redo"]).assert_code(0);
    assert_eq!(files(&home), after);
}

#[test]
fn sessions_have_their_own_changes() {
    let server = server();
    let home = home_with_files(&server);
    turn(&home, &server, "one", &[("write", json!({"path": "a", "content": "by one"}))]);
    turn(&home, &server, "two", &[("write", json!({"path": "b", "content": "by two"}))]);
    turn(&home, &server, "two", &[("write", json!({"path": "a", "content": "by two"}))]);
    // The other session changed it since.
    let undone = run(&home, &["sessions", "undo", "one", "--json"]);
    undone.assert_code(0);
    let report: Value = serde_json::from_str(&undone.stdout()).expect("JSON");
    assert_eq!(
        report["files"],
        json!([{"path": "a", "outcome": "leftAlone", "reason": "changed since"}])
    );
    run(&home, &["sessions", "undo", "two"]).assert_code(0);
    assert_eq!(fs::read(file(&home, "a")).expect("a file"), b"by one");
    let turns = run(&home, &["sessions", "undo", "two", "--list", "--json"]);
    let turns: Vec<Value> =
        turns.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(turns.len(), 2);
    assert_eq!((&turns[0]["undone"], &turns[1]["undone"]), (&json!(true), &json!(false)));
    run(&home, &["sessions", "undo", "one", "--turn", "1"]).assert_code(0);
    assert!(!file(&home, "a").exists());
    let missing = run(&home, &["sessions", "undo", "one", "--turn", "2"]);
    assert_eq!(missing.code(), Some(1));
    assert!(missing.stderr().contains("no turn 2"), "{}", missing.stderr());
    // A fork has nothing of its own to undo, and a deleted session leaves nothing behind.
    run(&home, &["sessions", "fork", "two", "branch"]).assert_code(0);
    assert_eq!(run(&home, &["sessions", "undo", "branch"]).code(), Some(1));
    run(&home, &["sessions", "delete", "two", "--yes"]).assert_code(0);
    let left = fs::read_dir(home.sessions_directory()).expect("a directory").flatten();
    let left: Vec<String> =
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.contains("direct__two")), "{left:?}");
}

#[test]
fn what_a_sandboxed_session_may_not_change_is_not_changed_for_it() {
    let server = server();
    let home = home_with_files(&server);
    let write = ("write", json!({"path": home.path().join("outside"), "content": "x"}));
    turn(&home, &server, "work", &[write]);
    home.write_config(&config(&server, "non-main"));
    let undone = run(&home, &["sessions", "undo", "work"]);
    assert!(undone.stdout().contains("left alone"), "{}", undone.stdout());
    assert!(home.path().join("outside").exists());
    home.write_config(&config(&server, "off"));
    run(&home, &["sessions", "undo", "work", "--turn", "1"]).assert_code(0);
    assert!(!home.path().join("outside").exists());
}

#[test]
fn what_was_read_is_known_after_a_restart() {
    let server = server();
    let home = home_with_files(&server);
    turn(&home, &server, "work", &[("read", json!({"path": "script"}))]);
    put(&home, "script", "one\ntwo\nthree\n", 0o750);
    let edit = ("edit", json!({"path": "script", "oldText": "one", "newText": "1"}));
    let refused = turn(&home, &server, "work", std::slice::from_ref(&edit));
    assert!(
        refused.contains("script was not changed") && refused.contains("Read it again"),
        "{refused}"
    );
    // Another session has not read it.
    let write = ("write", json!({"path": "script", "content": "all\n"}));
    assert!(turn(&home, &server, "fresh", &[write]).contains("Overwrote script"));
    let read = ("read", json!({"path": "script"}));
    let edit = ("edit", json!({"path": "script", "oldText": "all", "newText": "none"}));
    assert!(turn(&home, &server, "work", &[read, edit]).contains("Edited script"));
}

#[test]
fn the_chat_and_rpc_undo_too() {
    let server = server();
    let home = home_with_files(&server);
    let before = files(&home);
    turn(&home, &server, "work", &calls());
    let after = files(&home);
    let chat = RunningChild::run_with_input(
        &mut myclaw(&home, &["chat", "--session", "work"]),
        "/undo\n/undo\n/redo\n/undo now\n",
    );
    chat.assert_code(0);
    let said = chat.stdout();
    for text in [
        "undid the file changes of turn 1",
        "nothing to undo",
        "restored the file changes",
        "takes no argument",
    ] {
        assert!(said.contains(text), "{said}");
    }
    assert_eq!(files(&home), after);
    let rpc = RunningChild::run_with_input(
        &mut myclaw(&home, &["rpc", "--session", "work"]),
        "{\"type\":\"undo\",\"dryRun\":true}\n{\"type\":\"undo\"}\n{\"type\":\"undo\"}\n{\"type\":\"undo\",\"redo\":true}\n\
         {\"type\":\"undo\",\"turn\":1}\n",
    );
    let lines: Vec<Value> =
        rpc.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let replies: Vec<&Value> = lines.iter().filter(|line| line["type"] == "response").collect();
    assert_eq!(replies[0]["data"], replies[1]["data"]);
    assert_eq!(replies[1]["data"]["files"][0], json!({"path": "gone", "outcome": "restored"}));
    assert_eq!(replies[2]["class"], "nothing_to_do");
    assert!(replies[3]["success"] == true && replies[4]["success"] == true);
    assert_eq!(files(&home), before);
}

#[test]
fn an_interrupted_turn_can_be_undone_and_continued() {
    let server = server();
    let home = home_with_files(&server);
    let before = files(&home);
    // Killed while a command runs, after two changes.
    for (at, (name, arguments)) in calls().into_iter().enumerate() {
        server.push(Reply::anthropic().tool_call(format!("call_{at}"), name, arguments));
    }
    let wait = json!({"command": "touch ../../started; while test -e \"$PWD\" && test -e ../../started; do sleep 0.05; done"});
    server.push(Reply::anthropic().tool_call("call_last", "bash", wait));
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "--session", "work", "go"]));
    // Commands may not see the state directory.
    let started = home.path().join("started");
    while !started.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let busy = run(&home, &["sessions", "undo", "work"]);
    assert_ne!(busy.code(), Some(0));
    child.signal(Signal::Kill);
    child.wait(PATIENCE);
    fs::remove_file(&started).expect("the command ends");
    run(&home, &["sessions", "undo", "work"]).assert_code(0);
    assert_eq!(files(&home), before);
    // The calls of the log have their results, and the model knows.
    server.push(Reply::anthropic().text("I see."));
    run(&home, &["run", "--session", "work", "what happened?"]).assert_code(0);
    let request = server.last_request().json().to_string();
    assert!(request.contains("has undone file changes"), "{request}");
    let rows = TempHome::read_lines(&home.transcript_path("work"));
    let results = rows.iter().filter(|row| row["role"] == "tool").count();
    assert_eq!(results, 4);
}
