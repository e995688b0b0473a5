use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{Source, create};
use crate::{Contents, FileRole, LeftOut, Passphrase, Why, check, restore};

fn part_of(path: &Path) -> FileRole {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.components().next().unwrap().as_os_str().to_str() {
        Some("work") => FileRole::Work,
        Some("key") => FileRole::Key,
        _ if name.ends_with(".lock") => FileRole::Skipped,
        _ if name.ends_with(".jsonl") => FileRole::Log,
        _ if name.ends_with(".sqlite") => FileRole::Database,
        _ => FileRole::Other,
    }
}

fn source(state: &Path) -> Source<'_> {
    Source {
        state,
        part_of: &part_of,
        replaced: BTreeMap::new(),
        left_out: Vec::new(),
        program: "1.2.3",
        with_keys: true,
        with_work: true,
    }
}

fn backup(source: Source<'_>) -> (Contents, Vec<u8>) {
    create(source, Vec::new(), None).expect("a backup")
}

/// Every path below a directory with what it is.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            let what = if metadata.is_dir() {
                waiting.push(path.clone());
                "directory".to_owned()
            } else if metadata.is_symlink() {
                format!("link to {}", fs::read_link(&path).expect("a link").display())
            } else {
                let mode = metadata.permissions().mode() & 0o777;
                format!("{mode:o} {:?}", fs::read(&path).expect("a file"))
            };
            found.insert(path.strip_prefix(root).expect("below").to_owned(), what);
        }
    }
    found
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, content).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn a_directory_comes_back_as_it_was() {
    let home = TempDir::new().expect("a directory");
    let state = home.path().join("state");
    write(&state.join("usage.json"), "{}");
    write(&state.join("empty"), "");
    write(&state.join("sessions/a.jsonl"), "{\"a\":1}\n{\"b\":2}\n");
    write(&state.join("sessions/a.lock"), "");
    write(&state.join("work/.hidden/Cargo.lock"), "lock");
    write(&state.join("work").join("ä b".repeat(60)).join("x".repeat(200)), "long");
    write(&state.join("work").join(std::ffi::OsStr::from_bytes(b"\xff\xfe\n")), "no text");
    write(&state.join("work/run.sh"), "#!/bin/sh\n");
    fs::set_permissions(state.join("work/run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir_all(state.join("work/empty directory")).unwrap();
    symlink("/etc/hostname", state.join("work/out")).unwrap();
    symlink("run.sh", state.join("work/in")).unwrap();
    symlink("../..", state.join("work/up")).unwrap();
    write(&state.join("big"), vec![7; 3_000_000]);
    assert!(Command::new("mkfifo").arg(state.join("work/pipe")).status().unwrap().success());

    let (contents, bytes) = backup(source(&state));
    assert_eq!(check(bytes.as_slice(), None).expect("whole").files, contents.files);
    let there = home.path().join("elsewhere/state");
    let restored = restore(bytes.as_slice(), None, &there, false).expect("restored");
    assert!(restored.before.is_none());
    let mut expected = tree_without(&state, &["work/pipe"]);
    expected.remove(Path::new("sessions/a.lock"));
    assert_eq!(tree(&there), expected);
    // Nothing is left next to it.
    assert_eq!(fs::read_dir(there.parent().unwrap()).unwrap().count(), 1);
}

fn tree_without(root: &Path, names: &[&str]) -> BTreeMap<PathBuf, String> {
    for name in names {
        fs::remove_file(root.join(name)).expect("removed");
    }
    tree(root)
}

#[test]
fn a_line_that_is_being_written_is_not_in_the_copy() {
    let home = TempDir::new().expect("a directory");
    let (state, there) = (home.path().join("state"), home.path().join("there"));
    let line = "x".repeat(200_000);
    write(&state.join("torn.jsonl"), format!("{{}}\n{line}"));
    write(&state.join("begun.jsonl"), &line);
    let (_, bytes) = backup(source(&state));
    restore(bytes.as_slice(), None, &there, false).expect("restored");
    assert_eq!(fs::read_to_string(there.join("torn.jsonl")).unwrap(), "{}\n");
    assert_eq!(fs::read_to_string(there.join("begun.jsonl")).unwrap(), "");
}

#[test]
fn keys_and_work_are_left_out_and_named() {
    let home = TempDir::new().expect("a directory");
    let state = home.path().join("state");
    write(&state.join("key/a"), "secret-key");
    write(&state.join("work/b"), "work");
    write(&state.join("config"), "secret-token");
    write(&state.join("other"), "other");
    symlink("/srv/x", state.join("linked")).unwrap();
    let mut wanted = source(&state);
    (wanted.with_keys, wanted.with_work) = (false, false);
    wanted.replaced.insert("config".into(), b"${TOKEN}".to_vec());
    let (contents, bytes) = backup(wanted);
    let left_out = |path: &str, why| LeftOut { path: path.to_owned(), why };
    let expected = [
        left_out("key", Why::Key),
        left_out("work", Why::Work),
        left_out("linked", Why::LeadsTo("/srv/x".to_owned())),
    ];
    for one in &expected {
        assert!(contents.left_out.contains(one), "{one:?}: {:?}", contents.left_out);
    }
    let there = home.path().join("there");
    restore(bytes.as_slice(), None, &there, false).expect("restored");
    let names: Vec<_> = tree(&there).into_keys().collect();
    assert_eq!(names, [Path::new("config"), Path::new("linked"), Path::new("other")]);
    assert_eq!(fs::read_to_string(there.join("config")).unwrap(), "${TOKEN}");
}

#[test]
fn an_encrypted_backup_holds_nothing_in_clear() {
    let home = TempDir::new().expect("a directory");
    let (state, there) = (home.path().join("state"), home.path().join("there"));
    write(&state.join("note"), "a very secret note");
    let tea = Passphrase::new("tea").unwrap();
    let (_, bytes) = create(source(&state), Vec::new(), Some(&tea)).expect("a backup");
    let refused = restore(bytes.as_slice(), None, &there, false).expect_err("refused").to_string();
    assert!(refused.contains("encrypted"), "{refused}");
    let wrong = Passphrase::new("coffee");
    let refused = check(bytes.as_slice(), wrong.as_ref()).expect_err("refused").to_string();
    assert!(refused.contains("does not open"), "{refused}");
    restore(bytes.as_slice(), Some(&tea), &there, false).expect("restored");
    assert_eq!(fs::read_to_string(there.join("note")).unwrap(), "a very secret note");
}

#[test]
fn a_file_that_cannot_be_read_fails_the_backup_unless_it_is_work() {
    let home = TempDir::new().expect("a directory");
    let state = home.path().join("state");
    write(&state.join("damaged.sqlite"), "no database");
    let refused = create(source(&state), Vec::new(), None).expect_err("refused").to_string();
    assert!(refused.contains("damaged.sqlite"), "{refused}");
}
