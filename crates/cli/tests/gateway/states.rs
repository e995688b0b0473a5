//! State directories that released versions have written (`scripts/make-state`): the program goes on with them, and refuses
//! what a newer one has written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::ChildOutput;

use super::*;

/// The versions, each with its state directory.
pub(super) const STATES: [&str; 2] = ["0.1", "0.2"];
/// The sessions in each of them.
const SESSIONS: [&str; 4] = ["done", "other-trip", "trip", "waits"];

/// A home with the state directory of a version. What it sends goes to `receiver`.
pub(super) fn frozen(version: &str, receiver: &ModelServer) -> (TempHome, u16) {
    let home = TempHome::new();
    let states = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/states");
    let file = states.join(format!("{version}.tar.gz"));
    let status = Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(home.path()).status();
    assert!(status.expect("tar").success());
    let text = fs::read_to_string(home.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let port = free_port();
    config["gateway"]["port"] = json!(port);
    config["channels"]["webhook"]["script"]["url"] =
        json!(format!("{}/v1/messages", receiver.url()));
    home.write_config(&config);
    (home, port)
}

fn myclaw(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(command.env("MYCLAW_LOCAL_SERVERS", "none").args(arguments))
}

/// What a command prints that succeeds.
fn printed(home: &TempHome, arguments: &[&str]) -> String {
    let output = myclaw(home, arguments);
    output.assert_code(0);
    output.stdout()
}

/// All files with content below a directory. Locks do not count, and the log of a closed database has none.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|end| end != "lock" && end != "sqlite-shm") {
            let bytes = fs::read(&path).unwrap();
            found.extend((!bytes.is_empty()).then_some((path, bytes)));
        }
    }
    found
}

/// The texts that the receiver got.
fn received(receiver: &ModelServer) -> Vec<String> {
    receiver.all_requests().iter().map(|request| request.body_text()).collect()
}

#[test]
fn every_released_state_is_opened_and_goes_on_without_a_loss() {
    for version in STATES {
        let receiver = ModelServer::spawn_blocking_thread(answering("taken"));
        let (home, port) = frozen(version, &receiver);
        let before = files(&home.sessions_directory());
        let listed = printed(&home, &["sessions", "list"]);
        for name in SESSIONS {
            assert!(listed.contains(name), "{version}: {name}: {listed}");
        }
        for name in ["trip", "other-trip"] {
            assert!(
                printed(&home, &["sessions", "show", name]).contains("buy tickets"),
                "{version}"
            );
        }
        assert!(
            printed(&home, &["sessions", "search", "buy tickets"]).contains("trip"),
            "{version}"
        );
        assert!(printed(&home, &["auth", "list"]).contains("anthropic"), "{version}");
        assert!(printed(&home, &["approvals", "list"]).contains("echo approved"), "{version}");
        let found = printed(&home, &["memory", "search", "lighthouse"]);
        assert!(found.contains("blue lighthouse"), "{version}: {found}");
        let jobs = printed(&home, &["cron", "list"]);
        assert!(jobs.contains("far") && jobs.contains("yearly"), "{version}: {jobs}");
        for name in ["trip", "other-trip"] {
            let answer = printed(&home, &["run", "-q", "--session", name, "read trip.md"]);
            assert!(answer.contains("buy tickets"), "{version}: {answer}");
        }
        goes_on_in_a_gateway(version, &home, port, &receiver);
        let after = files(&home.sessions_directory());
        for (path, bytes) in
            before.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "jsonl"))
        {
            assert!(after[path].starts_with(bytes), "{version}: {} was changed", path.display());
        }
        let said = printed(&home, &["doctor"]);
        assert!(said.contains("an earlier version did before") || version != "0.1", "{said}");
        let undone = printed(&home, &["sessions", "undo", "trip", "--dry-run"]);
        assert!(undone.contains("trip.md"), "{version}: {undone}");
    }
}

#[test]
fn a_backup_of_every_released_state_is_restored_and_goes_on() {
    for version in STATES {
        let receiver = ModelServer::spawn_blocking_thread(answering("taken"));
        let (home, _) = frozen(version, &receiver);
        let file = home.path().join("state.backup").to_str().unwrap().to_owned();
        printed(&home, &["backup", "--with-keys", &file]);
        // In the place of what this version has written.
        let there = TempHome::new();
        printed(&there, &["run", "-q", "--session", "trip", "read nothing.md"]);
        let restored = printed(&there, &["restore", "--replace", &file]);
        assert!(restored.contains("what was there before is in"), "{version}: {restored}");
        let config = fs::read_to_string(there.config_path()).unwrap();
        let mut config: Value = serde_json::from_str(&config).unwrap();
        let port = free_port();
        config["gateway"]["port"] = json!(port);
        there.write_config(&config);
        for name in ["trip", "other-trip"] {
            let answer = printed(&there, &["run", "-q", "--session", name, "read trip.md"]);
            assert!(answer.contains("buy tickets"), "{version}: {answer}");
        }
        goes_on_in_a_gateway(version, &there, port, &receiver);
    }
}

/// What waited in the store: an answer that was not sent, and a call that waits for an approval.
fn goes_on_in_a_gateway(version: &str, home: &TempHome, port: u16, receiver: &ModelServer) {
    let gateway = Gateway::of(spawn(home), home, port);
    until("the undelivered answer", || {
        received(receiver).iter().any(|text| text.contains("undelivered-0001"))
    });
    let outcome = allow_what_waits(&gateway.client);
    assert!(outcome["reply"].as_str().unwrap().contains("approved"), "{version}: {outcome}");
    gateway.stop();
    assert_waited_once(home);
    let sent = received(receiver).iter().filter(|text| text.contains("undelivered-0001")).count();
    assert_eq!(sent, 1, "{version}: the answer is sent once");
}

/// Allows the call that waits for an approval. Returns what comes of its message.
pub(super) fn allow_what_waits(client: &Client) -> Value {
    let waiting = || client.get("/api/approvals").unwrap().1["approvals"][0]["id"].clone();
    until("the question", || waiting().is_string());
    let path = format!("/api/approvals/{}", waiting().as_str().unwrap());
    assert_eq!(client.post(&path, &json!({"answer": "once"})).unwrap().0, 200);
    // The same id is the same message.
    let id = client.send("waits", "waiting-0001", "run \"echo approved\"").unwrap();
    client.outcome(&id).unwrap()
}

/// The message whose call waited is in its session once.
pub(super) fn assert_waited_once(home: &TempHome) {
    let rows = TempHome::read_lines(&home.transcript_path("waits"));
    assert_eq!(rows.iter().filter(|row| row["role"] == "user").count(), 1, "{rows:?}");
}

/// Refused with one sentence that says what to do, and no byte is changed.
fn refused(home: &TempHome, arguments: &[&str], what: &str) {
    let before = files(&home.state_directory());
    let output = myclaw(home, arguments);
    let said = output.stderr();
    assert_ne!(output.code(), Some(0), "{what}, {arguments:?}: {}", output.stdout());
    for part in [what, "nothing was changed", "Install the newer version"] {
        assert!(said.contains(part), "{arguments:?}: `{part}` is not in {said}");
    }
    let after = files(&home.state_directory());
    let changed: Vec<_> =
        before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
    assert!(
        changed.is_empty() && after.len() == before.len(),
        "{what}, {arguments:?}: {:?}",
        changed.first()
    );
}

#[test]
fn a_directory_that_a_newer_program_wrote_is_refused_whatever_is_newer() {
    let receiver = ModelServer::spawn_blocking_thread(answering("taken"));
    let (home, _) = frozen("0.2", &receiver);
    printed(&home, &["run", "-q", "--session", "trip", "read trip.md"]);
    let path = home.state_directory().join("formats.json");
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let kinds: Vec<String> = written["formats"].as_object().unwrap().keys().cloned().collect();
    for kind in
        ["log", "index", "inbox", "store", "approvals", "keys", "config", "documents", "memory"]
    {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {written}");
    }
    for kind in &kinds {
        let mut newer = written.clone();
        newer["program"] = json!("9.0.0");
        newer["formats"][kind] = json!(written["formats"][kind].as_u64().unwrap() + 1);
        // A newer program that was killed has written this, and may have written nothing else.
        fs::write(&path, newer.to_string()).unwrap();
        refused(&home, &["run", "-q", "--session", "trip", "read trip.md"], "formats.json");
    }
    for arguments in [
        &["run", "--no-session", "read trip.md"][..],
        &["sessions", "list"],
        &["sessions", "delete", "trip", "--yes"],
        &["memory", "add", "I drink tea"],
        &["config", "set", "terminal.theme", "dark"],
        &["auth", "remove", "anthropic"],
        &["cron", "list"],
        &["approvals", "revoke", "--all"],
        &["gateway"],
        &["host"],
        &["doctor"],
        &["backup", "/nonexistent/file"],
    ] {
        refused(&home, arguments, "formats.json");
    }
    // What goes back works: another state directory, or removing this one.
    let dry = printed(&home, &["uninstall", "--dry-run"]);
    assert!(dry.contains("formats.json"), "{dry}");
    fs::write(&path, written.to_string()).unwrap();
    printed(&home, &["run", "-q", "--session", "trip", "read trip.md"]);
}

#[test]
fn a_newer_file_of_each_kind_is_refused_by_what_reads_it() {
    let receiver = ModelServer::spawn_blocking_thread(answering("taken"));
    let (home, _) = frozen("0.2", &receiver);
    // This empties the log of the database, which counts more than the file.
    printed(&home, &["cron", "list"]);
    // And this removes lists for prompts that nobody has used for an hour.
    printed(&home, &["run", "-q", "--session", "trip", "read trip.md"]);
    let state = home.state_directory();
    let newer = |path: PathBuf, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let before = fs::read(&path).unwrap();
        let after = change(before.clone());
        assert_ne!(before, after, "{}", path.display());
        fs::write(&path, after).unwrap();
        (path, before)
    };
    let numbered = |name: &'static str| {
        move |bytes: Vec<u8>| {
            let mut value: Value = serde_json::from_slice(&bytes).unwrap();
            value[name] = json!(9);
            // Later fields are no damage.
            for list in ["always", "profiles"] {
                if !value[list].is_null() {
                    value[list] = json!("in another form");
                }
            }
            value.to_string().into_bytes()
        }
    };
    let put_back = |(path, bytes): (PathBuf, Vec<u8>)| fs::write(path, bytes).unwrap();

    let log = newer(home.transcript_path("trip"), &|bytes| {
        String::from_utf8(bytes).unwrap().replacen("\"version\":1", "\"version\":9", 1).into_bytes()
    });
    refused(
        &home,
        &["run", "-q", "--session", "trip", "read trip.md"],
        "a session's log has format 9",
    );
    refused(&home, &["sessions", "show", "trip"], "a session's log has format 9");
    put_back(log);

    let store = newer(state.join("gateway/store.sqlite"), &|mut bytes| {
        // The version of the tables is at byte 60 of every SQLite file.
        bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
        bytes
    });
    refused(&home, &["gateway"], "the database has format 9");
    refused(&home, &["cron", "list"], "the database has format 9");
    put_back(store);

    let approvals = newer(state.join("approvals.json"), &numbered("version"));
    refused(&home, &["approvals", "list"], "the list of approvals has format 9");
    refused(&home, &["approvals", "revoke", "--all"], "the list of approvals has format 9");
    put_back(approvals);

    let keys = newer(state.join("agents/main/agent/auth-profiles.json"), &numbered("version"));
    refused(&home, &["auth", "remove", "anthropic"], "the store of keys has format 9");
    put_back(keys);

    let config = newer(home.config_path(), &|bytes| {
        let mut value: Value = serde_json::from_slice(&bytes).unwrap();
        value["format"] = json!(9);
        value["later"] = json!({"key": "${OF_A_NEWER_VERSION}"});
        value.to_string().into_bytes()
    });
    refused(&home, &["run", "-q", "hello"], "the config file has format 9");
    refused(&home, &["gateway"], "the config file has format 9");
    put_back(config);

    home.write(".myclaw/packages/lock.json", "{\"format\": 9, \"packages\": []}");
    refused(&home, &["packages", "list"], "the list of packages has format 9");
    fs::remove_dir_all(state.join("packages")).unwrap();
    printed(&home, &["run", "-q", "--session", "trip", "read trip.md"]);
}
