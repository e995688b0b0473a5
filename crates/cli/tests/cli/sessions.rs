//! `myclaw sessions`.

use std::fs::{self, FileTimes};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use myclaw_testkit::{Reply, TempHome};
use serde_json::{Value, json};

use crate::{always, change_config, myclaw, run, serve};

/// A home with two sessions: `main`, in which a tool ran, and `trip`.
fn home_with_sessions() -> TempHome {
    let (server, home) = serve([
        Reply::anthropic().text("Looking.").tool_call(
            "call_1",
            "bash",
            json!({"command": "echo '```'"}),
        ),
        Reply::anthropic().text("Three ticks."),
        Reply::anthropic().text("Have a good trip."),
    ]);
    run(&home, &["run", "What does it print?"]).assert_code(0);
    run(&home, &["run", "--session", "trip", "I am off."]).assert_code(0);
    server.assert_finished();
    home
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn list_names_the_latest_first() {
    let home = home_with_sessions();
    let output = run(&home, &["sessions", "list"]);
    output.assert_code(0);
    let stdout = output.stdout();
    let names: Vec<&str> =
        stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["NAME", "trip", "main"]);
    let listed = json_lines(&run(&home, &["sessions", "list", "--json"]).stdout());
    assert_eq!(listed[0]["name"], "trip");
    assert_eq!(listed[0]["key"], "agent:main:channel:cli:account:default:peer:direct:trip");
    assert_eq!(listed[1]["model"], "anthropic/claude-sonnet-4-20250514");
}

#[test]
fn an_empty_home_has_no_sessions_and_is_left_empty() {
    let home = TempHome::new();
    let output = run(&home, &["sessions", "list"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "");
    assert!(output.stderr().contains("no sessions yet"), "{}", output.stderr());
    assert_eq!(fs::read_dir(home.path()).expect("the home").count(), 0);
}

#[test]
fn show_names_who_said_what() {
    let home = home_with_sessions();
    let output = run(&home, &["sessions", "show", "main"]);
    output.assert_code(0);
    let stdout = output.stdout();
    let heads: Vec<&str> = stdout
        .lines()
        .filter_map(|line| line.split_once(", 20").map(|(speaker, _)| speaker))
        .collect();
    assert_eq!(heads, ["you", "assistant", "bash", "assistant"], "{stdout}");
    assert!(stdout.contains("[calls bash {\"command\":\"echo '```'\"}]"), "{stdout}");

    let last = run(&home, &["sessions", "show", "main", "--last", "1"]).stdout();
    assert!(last.contains("Three ticks.") && !last.contains("Looking."), "{last}");
    let rows = json_lines(&run(&home, &["sessions", "show", "main", "--json"]).stdout());
    assert_eq!(
        rows.iter().map(|row| row["role"].as_str().expect("a role")).collect::<Vec<_>>(),
        ["user", "assistant", "tool", "assistant"]
    );
    // The long form of the name is the same session.
    let key = "agent:main:channel:cli:account:default:peer:direct:main";
    assert_eq!(run(&home, &["sessions", "show", key, "--last", "1"]).stdout(), last);
}

#[test]
fn a_wrong_name_gets_the_nearest() {
    let home = home_with_sessions();
    for command in ["show", "export", "delete"] {
        let output = run(&home, &["sessions", command, "tripp"]);
        output.assert_code(1);
        assert!(output.stderr().contains("did you mean `trip`?"), "{command}: {}", output.stderr());
    }
}

#[test]
fn export_as_jsonl_is_the_transcript() {
    let home = home_with_sessions();
    let output = run(&home, &["sessions", "export", "main"]);
    output.assert_code(0);
    let transcript = TempHome::read_lines(&home.transcript_path("main"));
    assert_eq!(json_lines(&output.stdout()), transcript);
}

#[test]
fn export_as_markdown_writes_a_new_file_only() {
    let home = home_with_sessions();
    let arguments = ["sessions", "export", "main", "--format", "markdown", "-o", "main.md"];
    run(&home, &arguments).assert_code(0);
    let document = fs::read_to_string(home.path().join("main.md")).expect("the file");
    assert!(document.starts_with("# Session main\n\n## you, 20"), "{document}");
    // A fence longer than the one in the text.
    assert!(document.contains("\n````\n```\n````\n"), "{document}");
    assert!(document.ends_with("Three ticks.\n"), "{document}");

    let output = run(&home, &arguments);
    output.assert_code(1);
    assert!(output.stderr().contains("exists already"), "{}", output.stderr());
    assert_eq!(fs::read_to_string(home.path().join("main.md")).expect("the file"), document);
}

#[test]
fn a_damaged_line_is_left_out_and_reported() {
    let home = home_with_sessions();
    let path = home.transcript_path("trip");
    let text = fs::read_to_string(&path).expect("a transcript");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(2, "{\"role\": \"assist");
    fs::write(&path, lines.join("\n") + "\n").expect("written");
    let output = run(&home, &["sessions", "show", "trip"]);
    output.assert_code(0);
    assert!(output.stdout().contains("Have a good trip."), "{}", output.stdout());
    assert!(output.stderr().starts_with("1 damaged line of "), "{}", output.stderr());
}

#[test]
fn delete_asks_first() {
    let home = home_with_sessions();
    let output = run(&home, &["sessions", "delete", "trip"]);
    output.assert_code(2);
    assert!(output.stderr().contains("delete trip --yes"), "{}", output.stderr());
    assert!(home.transcript_path("trip").exists());
    run(&home, &["sessions", "delete", "trip", "--yes"]).assert_code(0);
    assert!(!home.transcript_path("trip").exists());
    let names = run(&home, &["sessions", "list", "--json"]).stdout();
    assert_eq!(json_lines(&names).len(), 1);
}

/// Makes the index say that `trip` was used a hundred days ago.
fn age_trip(home: &TempHome) {
    let path = home.sessions_directory().join("sessions.json");
    let mut index: Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("an index")).expect("JSON");
    let key = "agent:main:channel:cli:account:default:peer:direct:trip";
    let entry = index.as_object_mut().expect("an object").get_mut(key);
    let entry = entry.unwrap_or_else(|| panic!("no entry"));
    let updated = entry["updatedAt"].as_u64().expect("a time");
    entry["updatedAt"] = json!(updated - 100 * 86_400_000);
    fs::write(&path, index.to_string()).expect("written");
}

#[test]
fn prune_forgets_the_old_and_keeps_their_transcripts_by_default() {
    let home = home_with_sessions();
    age_trip(&home);
    let output = run(&home, &["sessions", "prune", "--older-than", "30d", "--dry-run"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "trip\n");
    assert!(
        output.stderr().contains("1 session would be taken off the list"),
        "{}",
        output.stderr()
    );
    assert_eq!(json_lines(&run(&home, &["sessions", "list", "--json"]).stdout()).len(), 2);

    let output = run(&home, &["sessions", "prune", "--older-than", "200d"]);
    assert_eq!(output.stdout(), "");
    let output = run(&home, &["sessions", "prune", "--older-than", "30d"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "trip\n");
    assert!(home.transcript_path("trip").exists());
    assert_eq!(json_lines(&run(&home, &["sessions", "list", "--json"]).stdout()).len(), 1);

    run(&home, &["sessions", "delete", "main", "--yes"]).assert_code(0);
    let listed = run(&home, &["sessions", "list"]).stderr();
    assert!(listed.contains("are kept: `myclaw sessions search TEXT`"), "{listed}");
}

#[test]
fn a_transcript_that_was_put_into_the_directory_is_on_the_list_and_pruned_ones_are_not() {
    let home = home_with_sessions();
    let (trip, copies) = (home.transcript_path("trip"), ["copy", "later"]);
    let text = fs::read_to_string(&trip).expect("a transcript");
    let copy = |name: &str| {
        let path = home.transcript_path(name);
        let key = |name: &str| format!("peer:direct:{name}");
        fs::write(&path, text.replace(&key("trip"), &key(name))).expect("written");
        // As `cp -p` does.
        let past = SystemTime::now() - Duration::from_secs(400 * 86_400);
        let file = fs::File::options().write(true).open(&path).expect("a file");
        file.set_times(FileTimes::new().set_modified(past)).expect("times");
    };
    let listed = || -> Vec<String> {
        let output = run(&home, &["sessions", "list", "--json"]);
        let lines = json_lines(&output.stdout());
        let mut names: Vec<_> =
            lines.iter().map(|line| line["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    };
    copy(copies[0]);
    assert_eq!(listed(), ["copy", "main", "trip"]);
    age_trip(&home);
    run(&home, &["sessions", "prune", "--older-than", "30d"]).assert_code(0);
    assert_eq!(listed(), ["main"], "the copy is as old as its file");
    copy(copies[1]);
    assert_eq!(listed(), ["later", "main"]);
    let table = run(&home, &["sessions", "list"]).stdout();
    assert!(table.contains("later") && !table.contains("trip"), "{table}");
}

#[test]
fn a_transcript_that_was_deleted_by_hand_is_off_the_list() {
    let home = home_with_sessions();
    fs::remove_file(home.transcript_path("trip")).expect("removed");
    for arguments in [&["sessions", "list"][..], &["sessions", "list", "--json"]] {
        let listed = run(&home, arguments).stdout();
        assert!(listed.contains("main") && !listed.contains("trip"), "{listed}");
    }
    fs::remove_file(home.transcript_path("main")).expect("removed");
    let listed = run(&home, &["sessions", "list"]);
    assert!(listed.stderr().contains("no sessions yet"), "{}", listed.stderr());
}

#[test]
fn a_session_that_was_pruned_and_is_used_again_has_its_title() {
    for owned in [None, Some("Days away")] {
        let (_server, home) = always("Have a good trip.");
        run(&home, &["run", "--session", "trip", "Where does the night train stop?"])
            .assert_code(0);
        if let Some(title) = owned {
            run(&home, &["sessions", "title", "trip", title]).assert_code(0);
        }
        let title = || {
            let lines = json_lines(&run(&home, &["sessions", "list", "--json"]).stdout());
            let line = lines.iter().find(|line| line["name"] == "trip").expect("the session");
            (line["title"].clone(), line["automaticTitle"].clone())
        };
        let before = title();
        age_trip(&home);
        run(&home, &["sessions", "prune", "--older-than", "30d"]).assert_code(0);
        run(&home, &["run", "--session", "trip", "and then?"]).assert_code(0);
        assert_eq!(title(), before);
        assert_eq!(before.0.as_str(), owned);
    }
}

#[test]
fn prune_with_transcripts_deletes_them() {
    let home = home_with_sessions();
    age_trip(&home);
    run(&home, &["sessions", "prune", "--older-than", "30d", "--with-transcripts"]).assert_code(0);
    assert!(!home.transcript_path("trip").exists());
    assert!(home.transcript_path("main").exists());
}

#[test]
fn sessions_can_be_looked_at_while_the_config_file_is_broken() {
    let home = home_with_sessions();
    home.write_config_text("{ nonsense");
    run(&home, &["sessions", "list"]).assert_code(0);
    run(&home, &["sessions", "show", "trip"]).assert_code(0);
}

#[test]
fn a_reader_that_leaves_ends_an_export_quietly() {
    let home = home_with_sessions();
    let long = "words ".repeat(100_000);
    let row = json!({"id": "00000000-0000-7000-8000-000000000001", "role": "user", "content": long, "ts": 1});
    let path = home.transcript_path("trip");
    let mut text = fs::read_to_string(&path).expect("a transcript");
    text.push_str(&format!("{row}\n"));
    fs::write(&path, text).expect("written");
    let mut child = myclaw(&home, &["sessions", "show", "trip"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()));
}

#[test]
fn the_oldest_files_beside_sessions_are_removed_when_they_take_too_much_room() {
    let (_server, home) = always("Hi.");
    change_config(&home, |config| config["sideFiles"] = json!({"sessionMb": 2, "totalMb": 3}));
    let beside = |session: &str| {
        let name = format!("agent__main__channel__cli__account__default__peer__direct__{session}");
        home.sessions_directory().join(format!("{name}.files"))
    };
    let put = |session: &str, name: &str, megabytes: u64, hours: u64| {
        let path = beside(session).join(name);
        fs::create_dir_all(beside(session)).expect("a directory");
        let file = fs::File::create(path).expect("a file");
        file.set_len(megabytes * 1024 * 1024).expect("room");
        let then = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
        file.set_times(FileTimes::new().set_modified(then)).expect("a time");
    };
    let names = |session: &str| -> Vec<String> {
        let entries = fs::read_dir(beside(session)).expect("the directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    for (name, megabytes, hours) in [("a", 1, 9), ("b", 3, 8), ("young", 0, 0)] {
        put("main", name, megabytes, hours);
    }
    for (name, hours) in [("d", 20), ("e", 6), ("f", 5), ("g", 4)] {
        put("trip", name, 1, hours);
    }
    run(&home, &["run", "hello"]).assert_code(0);
    // First the session's own limit, of which nine tenths are kept, then that of all others together.
    assert_eq!(names("main"), ["young"]);
    assert_eq!(names("trip"), ["f", "g"]);
}
