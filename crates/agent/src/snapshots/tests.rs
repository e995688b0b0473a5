use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Each change: the name, the old content, and its permissions.
fn shown(root: &Path, difference: &Difference) -> Vec<(String, Option<(String, u32)>)> {
    let mut all: Vec<_> = difference
        .changes
        .iter()
        .map(|change| {
            let name = change.path.strip_prefix(root).unwrap().display().to_string();
            let text = |old: &OldContent| String::from_utf8(old.bytes.clone()).unwrap();
            (name, change.before.as_ref().map(|old| (text(old), old.mode)))
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn trees_say_what_is_different_and_what_was_there_before() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("work"), directory.path().join("place"));
    write(&root, "same", "x");
    write(&root, "changed", "old");
    write(&root, "gone/too", "twin");
    write(&root, "gone/one", "twin");
    fs::set_permissions(root.join("gone/one"), fs::Permissions::from_mode(0o600)).unwrap();
    write(&root, "program", "run");
    fs::set_permissions(root.join("program"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("same", root.join("link")).unwrap();
    write(&root, "becomes/a", "directory");
    let mut files = Snapshots::of(&root, &place).await.unwrap();
    let before = files.take().await.unwrap();
    assert_eq!(files.take().await.unwrap(), before);
    write(&root, "changed", "new");
    fs::remove_dir_all(root.join("gone")).unwrap();
    fs::remove_dir_all(root.join("becomes")).unwrap();
    write(&root, "becomes", "a file");
    fs::remove_file(root.join("link")).unwrap();
    write(&root, "deep/er/new", "y");
    fs::set_permissions(root.join("program"), fs::Permissions::from_mode(0o644)).unwrap();
    // What comes of files that are no files, or too large.
    fs::write(root.join("large"), vec![b'x'; (16 << 20) + 1]).unwrap();
    let after = files.take().await.unwrap();
    let difference = files.difference(&before, &after).await.unwrap();
    let old = |text: &str, mode: u32| Some((text.to_owned(), mode));
    let usual = before.usual.0;
    let expected = [
        ("becomes", None),
        ("becomes/a", old("directory", usual)),
        ("changed", old("old", usual)),
        ("deep/er/new", None),
        ("gone/one", old("twin", 0o600)),
        ("gone/too", old("twin", usual)),
        ("program", old("run", 0o755)),
    ];
    let expected = expected.map(|(name, old)| (name.to_owned(), old));
    assert_eq!(shown(&root, &difference), expected);
    assert_eq!(difference.made, [root.join("deep"), root.join("deep/er")]);
    // The other way round, after a restart.
    let mut files = Snapshots::of(&root, &place).await.unwrap();
    assert_eq!(files.take().await.unwrap().id, after.id);
    let back = files.difference(&after, &before).await.unwrap();
    assert_eq!(back.changes.len(), 7);
}

#[tokio::test]
async fn two_processes_look_at_the_same_files_and_neither_misses_what_the_other_saw() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("work"), directory.path().join("place"));
    write(&root, "a", "1");
    let mut one = Snapshots::of(&root, &place).await.unwrap();
    let mut other = Snapshots::of(&root, &place).await.unwrap();
    let first = one.take().await.unwrap();
    write(&root, "a", "22");
    let seen = other.take().await.unwrap();
    assert_eq!(one.take().await.unwrap().id, seen.id);
    assert_ne!(seen.id, first.id);
}

#[tokio::test]
async fn what_the_program_keeps_itself_is_no_part_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().to_owned(), directory.path().join("state/place"));
    write(&root, "a", "1");
    write(&root, "state/key", "1");
    let mut files = Snapshots::of(&root, &place).await.unwrap();
    let first = files.take().await.unwrap();
    write(&root, "state/key", "22");
    assert_eq!(files.take().await.unwrap().id, first.id);
}

#[tokio::test]
async fn a_directory_that_is_too_large_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("work"), directory.path().join("place"));
    for number in 0..=MOST_OUTSIDE {
        write(&root, &number.to_string(), "");
    }
    let refused = Snapshots::of(&root, &place).await.unwrap_err();
    assert!(refused.contains("is in no git project and has more than 5000 files"), "{refused}");
    let made = Command::new("git").args(["init", "-q"]).current_dir(&root).status().unwrap();
    assert!(made.success());
    let mut files = Snapshots::of(&root, &place).await.unwrap();
    let before = files.take().await.unwrap();
    fs::remove_file(root.join("7")).unwrap();
    let now = files.take().await.unwrap();
    assert_eq!(files.difference(&before, &now).await.unwrap().changes.len(), 1);
    // A repository that is damaged says so.
    fs::write(place.join("x"), "").unwrap();
    fs::remove_dir_all(files.repository.join("objects")).unwrap();
    assert!(files.difference(&before, &now).await.is_err());
}

/// Prints what a look costs, beside what `git status` costs: `cargo test -p myclaw-agent --lib cost_of_a_look -- --ignored`.
#[tokio::test]
#[ignore = "it measures"]
async fn cost_of_a_look() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("work"), directory.path().join("place"));
    for number in 0..10_000 {
        let text = format!("{number}\n").repeat(400);
        write(&root, &format!("d{}/e{}/f{number}", number % 40, number % 7), &text);
    }
    let git = |args: &[&str]| {
        let begun = std::time::Instant::now();
        let all = ["-c", "user.name=a", "-c", "user.email=a@b"].iter().chain(args);
        assert!(
            Command::new("git").args(all).current_dir(&root).output().unwrap().status.success()
        );
        begun.elapsed()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    let mut files = Snapshots::of(&root, &place).await.unwrap();
    for what in ["the first look", "a look without changes", "the next"] {
        let begun = std::time::Instant::now();
        files.take().await.unwrap();
        println!("{what}: {:?}; git status: {:?}", begun.elapsed(), git(&["status", "--short"]));
    }
    write(&root, "d1/new", "x");
    let begun = std::time::Instant::now();
    files.take().await.unwrap();
    println!("a look with a change: {:?}", begun.elapsed());
}
