//! `myclaw backup` and `myclaw restore`: what is in a backup, what is not, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::{RunningChild, TempHome};
use serde_json::json;

use crate::{mounted, myclaw, run};

const KEY: &str = "sk-0123456789abcdefghijkl";
const TOKEN: &str = "123456:telegram-token-0123456789";

/// A home in which a person has worked for a while.
fn used() -> TempHome {
    let home = TempHome::new();
    home.write_config(&json!({
        "gateway": {"port": 18_999},
        "channels": {"telegram": {"botToken": TOKEN, "allowFrom": ["1"]}},
        "tools": {"web": {"search": {"apiKey": "${SEARCH_KEY}"}}},
    }));
    home.write(".myclaw/.env", format!("EXAMPLE_API_KEY={KEY}\nSEARCH_KEY={KEY}\n"));
    run(&home, &["run", "-q", "--model", "builtin/demo", "write \"tea\" to list.txt"])
        .assert_code(0);
    run(&home, &["memory", "add", "I drink tea"]).assert_code(0);
    home.write(".myclaw/skills/tea/SKILL.md", "---\nname: tea\ndescription: Makes tea\n---\nBoil.");
    home.write(".myclaw/myclaw.json.bak", TOKEN);
    home
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs `backup` with these arguments and a new file in the home.
fn backup(home: &TempHome, name: &str, arguments: &[&str]) -> PathBuf {
    let file = home.path().join(name);
    let file_text = text(&file);
    let arguments: Vec<&str> =
        ["backup", &file_text].into_iter().chain(arguments.iter().copied()).collect();
    run(home, &arguments).assert_code(0);
    file
}

/// Whether the fact is there, once the keys are given that a backup without keys asks for.
fn remembers_tea(home: &TempHome) -> bool {
    let mut list = myclaw(home, &["memory", "list"]);
    list.env("CHANNELS_TELEGRAM_BOT_TOKEN", TOKEN).env("SEARCH_KEY", KEY);
    RunningChild::run(&mut list).stdout().contains("I drink tea")
}

/// What tar and gzip, which know nothing of this program, find in a backup.
fn unpacked(file: &Path) -> TempHome {
    let into = TempHome::new();
    let status = Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(into.path()).status();
    assert!(status.expect("tar").success());
    into
}

/// Whether any file below a directory holds the text.
fn holds(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).expect("a directory").flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let content = std::fs::read(&path).unwrap_or_default();
        content.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[test]
fn a_person_moves_to_another_machine_with_two_commands() {
    let (here, there) = (used(), TempHome::new());
    let file = backup(&here, "claw.backup", &["--with-keys"]);
    let restored = run(&there, &["restore", &text(&file)]);
    restored.assert_code(0);
    assert!(restored.stdout().starts_with("restored "), "{}", restored.stdout());
    assert_eq!(std::fs::read_to_string(there.workspace().join("list.txt")).unwrap(), "tea\n");
    assert!(remembers_tea(&there));
    assert!(run(&there, &["skills", "list"]).stdout().contains("tea"));
    let (before, after) = (here.only_transcript(), there.only_transcript());
    assert_eq!(before, after);
    run(&there, &["run", "-q", "-c", "--model", "builtin/demo", "read list.txt"]).assert_code(0);
    assert!(there.only_transcript().len() > after.len());
    assert!(there.state_directory().join(".env").exists());
}

#[test]
fn keys_are_left_out_unless_they_are_wanted() {
    let home = used();
    let file = backup(&home, "claw.backup", &[]);
    let found = unpacked(&file);
    assert!(!holds(found.path(), KEY) && !holds(found.path(), TOKEN));
    let config = std::fs::read_to_string(found.path().join("state/myclaw.json")).unwrap();
    assert!(config.contains("${CHANNELS_TELEGRAM_BOT_TOKEN}"), "{config}");
    assert!(config.contains("${SEARCH_KEY}"), "{config}");
    let there = TempHome::new();
    let restored = run(&there, &["restore", &text(&file)]);
    restored.assert_code(0);
    assert!(restored.stderr().contains("CHANNELS_TELEGRAM_BOT_TOKEN"), "{}", restored.stderr());
    let checked = run(&there, &["config", "check"]);
    let said = checked.stdout() + &checked.stderr();
    assert!(said.contains("CHANNELS_TELEGRAM_BOT_TOKEN"), "{said}");

    let whole = unpacked(&backup(&home, "whole.backup", &["--with-keys"]));
    assert!(holds(whole.path(), KEY) && holds(whole.path(), TOKEN));
}

#[test]
fn what_is_in_a_database_is_named_as_left_out() {
    let home = used();
    let file = text(&home.path().join("claw.backup"));
    let mut backup = myclaw(&home, &["backup", &file]);
    backup.env("MYCLAW_STORE_URL", "postgresql://claw:tea@127.0.0.1:1/claw");
    let made = RunningChild::run(&mut backup);
    made.assert_code(0);
    assert!(made.stderr().contains("the database of gateway.store"), "{}", made.stderr());
    assert!(!made.stderr().contains("tea@"), "{}", made.stderr());
}

#[test]
fn workspaces_can_be_left_out() {
    let home = used();
    let found = unpacked(&backup(&home, "claw.backup", &["--without-workspaces"]));
    assert!(!found.path().join("state/workspace").exists());
    assert!(!found.path().join("state/skills").exists());
    assert!(found.path().join("state/sessions").exists());
}

#[test]
fn an_encrypted_backup_needs_its_passphrase() {
    let (home, there) = (used(), TempHome::new());
    let right = text(&home.write("right", "correct horse\n"));
    let wrong = text(&home.write("wrong", "battery staple\n"));
    let file = text(&backup(&home, "claw.backup", &["--passphrase-file", &right]));
    assert!(!holds_file(Path::new(&file), "I drink tea"));
    let refused = run(&there, &["restore", &file]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("--passphrase-file"), "{}", refused.stderr());
    run(&there, &["restore", "--passphrase-file", &wrong, &file]).assert_code(2);
    assert!(!there.state_directory().exists());
    run(&there, &["backup", "--check", "--passphrase-file", &right, &file]).assert_code(0);
    run(&there, &["restore", "--passphrase-file", &right, &file]).assert_code(0);
    assert!(remembers_tea(&there));
    // Nobody is there to be asked.
    let refused = run(&home, &["backup", "--encrypt", &text(&home.path().join("x"))]);
    refused.assert_code(2);
    assert!(!home.path().join("x").exists());
}

fn holds_file(file: &Path, text: &str) -> bool {
    let content = std::fs::read(file).expect("a file");
    content.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn a_backup_goes_through_a_pipe() {
    let (here, there) = (used(), TempHome::new());
    let piped = myclaw(&here, &["backup", "-"]).output().expect("started");
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    let mut restore = myclaw(&there, &["restore", "-"]);
    let file = there.write("piped", &piped.stdout);
    restore.stdin(std::fs::File::open(file).expect("a file"));
    let restored = restore.output().expect("started");
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert!(remembers_tea(&there));
}

#[test]
fn what_is_there_is_never_lost() {
    let (here, there) = (used(), TempHome::new());
    let file = text(&backup(&here, "claw.backup", &[]));
    run(&there, &["memory", "add", "I drink coffee"]).assert_code(0);
    let refused = run(&there, &["restore", &file]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("--replace"), "{}", refused.stderr());
    assert!(run(&there, &["memory", "list"]).stdout().contains("coffee"));
    let replaced = run(&there, &["restore", "--replace", &file]);
    replaced.assert_code(0);
    assert!(remembers_tea(&there));
    let line = replaced.stdout();
    let before = line.lines().find_map(|line| line.strip_prefix("what was there before is in "));
    assert!(holds(Path::new(before.expect("a place")), "I drink coffee"));
}

#[test]
fn a_bad_input_gets_a_sentence_and_changes_nothing() {
    let home = used();
    let file = backup(&home, "claw.backup", &[]);
    let whole = std::fs::read(&file).expect("a backup");
    let cut = text(&home.write("cut", &whole[..whole.len() / 2]));
    let other = text(&home.write("other", "hello"));
    let (file, inside) = (text(&file), text(&home.state_directory().join("claw.backup")));
    let missing = text(&home.path().join("missing"));
    let (below, directory) = (text(&home.path().join("none/x")), text(home.path()));
    let linked = home.path().join("link");
    std::os::unix::fs::symlink(home.state_directory(), &linked).expect("a link");
    let linked = text(&linked.join("claw.backup"));
    for (arguments, words) in [
        (vec!["backup", &file], "exists already"),
        (vec!["backup", &inside], "in the state directory"),
        (vec!["backup", &linked], "in the state directory"),
        (vec!["backup", &below], "none is no directory, so the backup cannot be there"),
        (
            vec!["backup", "/proc/x"],
            "cannot write /proc/x: No such file or directory (os error 2); c",
        ),
        (vec!["backup", "--check", &cut], "cut off"),
        (vec!["backup", "--check", &other], "no backup"),
        (vec!["backup", "--check", &missing], "cannot open"),
        (vec!["backup", "--check", "--with-keys", &file], "cannot be used with"),
        (vec!["backup", "--check", &directory], "is a directory; name the file"),
        (vec!["restore", "--replace", &directory], "is a directory; name the file"),
        (vec!["restore", "--replace", &cut], "cut off"),
        (vec!["restore", "--replace", &other], "no backup"),
        (vec!["restore", "--replace", &missing], "cannot open"),
    ] {
        let refused = run(&home, &arguments);
        assert!(refused.code().is_some_and(|code| code != 0), "{arguments:?}");
        assert!(refused.stderr().contains(words), "{arguments:?}: {}", refused.stderr());
    }
    // In the place of a state directory, a file, or a link that leads nowhere.
    let there = TempHome::new();
    let state = there.state_directory();
    for make in [
        |state: &Path| std::fs::write(state, "x"),
        |state: &Path| {
            std::fs::remove_file(state)
                .and_then(|()| std::os::unix::fs::symlink("/nonexistent", state))
        },
    ] {
        make(&state).expect("made");
        for (arguments, words) in [
            (vec!["restore", &file], ".myclaw is no directory; move it away"),
            (vec!["restore", "--replace", &file], ".myclaw is no directory; move it away"),
            (vec!["backup", &below], ".myclaw is no directory"),
        ] {
            let refused = run(&there, &arguments);
            refused.assert_code(2);
            assert!(refused.stderr().contains(words), "{arguments:?}: {}", refused.stderr());
        }
    }
    assert_eq!(std::fs::read(&file).expect("a backup"), whole);
    assert!(remembers_tea(&home));
    let empty = TempHome::new();
    let refused = run(&empty, &["backup", &text(&empty.path().join("x"))]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("nothing to back up"), "{}", refused.stderr());
}

#[test]
fn a_file_system_in_the_place_of_the_state_directory_is_named() {
    let (here, there) = (used(), TempHome::new());
    let file = text(&backup(&here, "claw.backup", &[]));
    for name in ["disk/photo.png", ".myclaw/hidden"] {
        there.write(name, "mine");
    }
    let (disk, state) = (there.path().join("disk"), there.state_directory());
    for replace in [&[][..], &["--replace"]] {
        let arguments = [&["restore", &file][..], replace].concat();
        let Some(mut command) = mounted(&there, &disk, &state, &arguments) else { return };
        let refused = RunningChild::run(&mut command);
        refused.assert_code(2);
        let words = if replace.is_empty() { "is not empty" } else { "a file system is mounted on" };
        assert!(refused.stderr().contains(words), "{}", refused.stderr());
        assert_eq!(refused.stderr().lines().count(), 1, "{}", refused.stderr());
    }
    let names = std::fs::read_dir(there.path()).expect("a home").flatten();
    let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, [".myclaw", "disk"], "nothing of it is left");
    assert_eq!(std::fs::read_to_string(disk.join("photo.png")).expect("read"), "mine");
}
