//! Undo and redo of what the file tools did.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use myclaw_engine::TurnId;
use myclaw_tools::{Direction, FileOutcome, Undo, Undone, WhichTurn, changed_turns};
use serde_json::json;

use crate::harness::Workspace;

impl Workspace {
    fn next_turn(&mut self) {
        self.context.turn = TurnId::generate();
    }

    fn go(&self, direction: Direction, which: WhichTurn) -> Option<Undone> {
        let undo = Undo::plan(&self.context, direction, which).unwrap()?;
        undo.apply().unwrap();
        undo.finish().unwrap();
        Some(undo.report().clone())
    }

    fn undo(&self) -> Option<Undone> {
        self.go(Direction::Undo, WhichTurn::Next)
    }

    fn redo(&self) -> Option<Undone> {
        self.go(Direction::Redo, WhichTurn::Next)
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn images(&self) -> Vec<std::path::PathBuf> {
        let images = self.context.artifact_directory.join("changes/images");
        let Ok(listing) = fs::read_dir(images) else { return Vec::new() };
        listing.map(|entry| entry.unwrap().path()).collect()
    }
}

/// What became of each file, in short.
fn outcomes(undone: &Undone) -> Vec<(&str, &str)> {
    let word = |outcome: &'_ FileOutcome| match outcome {
        FileOutcome::Restored => "restored",
        FileOutcome::Removed => "removed",
        FileOutcome::Unchanged => "unchanged",
        FileOutcome::LeftAlone { .. } => "left alone",
    };
    undone.files.iter().map(|file| (file.path.as_str(), word(&file.outcome))).collect()
}

/// A turn that uses all three tools in every way.
fn busy_turn(workspace: &mut Workspace) {
    workspace.next_turn();
    workspace.ok("write", json!({"path": "new/deep/file", "content": "made\n"}));
    workspace.ok("write", json!({"path": "kept", "content": "overwritten\n"}));
    workspace.ok("edit", json!({"path": "script", "oldText": "one", "newText": "1"}));
    workspace.ok("edit", json!({"path": "script", "oldText": "two", "newText": "2"}));
    workspace.ok("edit", json!({"path": "link", "oldText": "target", "newText": "by the link"}));
    workspace.ok(
        "apply_patch",
        json!({"patch": "diff --git a/gone b/gone\ndeleted file mode 100640\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
            diff --git a/old b/moved/here\nsimilarity index 100%\nrename from old\nrename to moved/here\n\
            diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n"}),
    );
}

fn busy_workspace() -> Workspace {
    let workspace = Workspace::with(&[
        ("kept", "kept\r\n\u{0}"),
        ("script", "one\ntwo\n"),
        ("real", "target\n"),
        ("gone", "gone\n"),
        ("old", "moved\n"),
        ("mode", "x\n"),
    ]);
    for (name, mode) in [("script", 0o751), ("gone", 0o640), ("old", 0o600), ("mode", 0o644)] {
        workspace.set_mode(name, mode);
    }
    symlink("real", workspace.path("link")).unwrap();
    workspace
}

fn modes(workspace: &Workspace) -> Vec<(String, u32)> {
    let files = workspace.everything();
    files.into_iter().map(|(name, _)| (name.clone(), workspace.mode(&name))).collect()
}

#[test]
fn a_turn_goes_back_and_forth_byte_for_byte() {
    let mut workspace = busy_workspace();
    let before = (workspace.everything(), modes(&workspace));
    busy_turn(&mut workspace);
    let after = (workspace.everything(), modes(&workspace));
    for _ in 0..2 {
        let undone = workspace.undo().unwrap();
        assert_eq!((workspace.everything(), modes(&workspace)), before);
        assert_eq!(undone.turn, 1);
        assert_eq!(
            outcomes(&undone),
            [
                ("gone", "restored"),
                ("kept", "restored"),
                ("mode", "restored"),
                ("moved/here", "removed"),
                ("new/deep/file", "removed"),
                ("old", "restored"),
                ("real", "restored"),
                ("script", "restored"),
            ]
        );
        assert!(workspace.path("link").is_symlink());
        assert_eq!(workspace.undo(), None);
        workspace.redo().unwrap();
        assert_eq!((workspace.everything(), modes(&workspace)), after);
        assert_eq!(workspace.redo(), None);
    }
}

#[test]
fn each_undo_goes_one_turn_further_back() {
    let mut workspace = Workspace::with(&[("a", "0")]);
    for text in ["1", "2", "3"] {
        workspace.next_turn();
        workspace.ok("write", json!({"path": "a", "content": text}));
    }
    for (turn, text) in [(1, "2"), (2, "1")] {
        assert_eq!(workspace.undo().unwrap().turn, turn);
        assert_eq!(workspace.text("a"), text);
    }
    assert_eq!(workspace.redo().unwrap().turn, 2);
    assert_eq!(workspace.text("a"), "2");
    assert_eq!(workspace.undo().unwrap().turn, 2);
    assert_eq!(workspace.undo().unwrap().turn, 3);
    assert_eq!(workspace.text("a"), "0");
    assert_eq!(workspace.undo(), None);
    let undone: Vec<bool> =
        changed_turns(&workspace.context).unwrap().iter().map(|turn| turn.undone).collect();
    assert_eq!(undone, [true, true, true]);
    // Redo goes the same way in the other direction.
    for text in ["1", "2", "3"] {
        workspace.redo().unwrap();
        assert_eq!(workspace.text("a"), text);
    }
    assert_eq!(workspace.redo(), None);
}

#[test]
fn what_changed_since_is_left_alone() {
    let mut workspace = Workspace::with(&[("a", "0"), ("b", "0"), ("c", "0"), ("d", "0")]);
    workspace.next_turn();
    for name in ["a", "b", "c", "d", "new/x", "new/y"] {
        workspace.ok("write", json!({"path": name, "content": "1"}));
    }
    workspace.put("a", "by somebody else");
    workspace.set_mode("b", 0o600);
    fs::remove_file(workspace.path("c")).unwrap();
    fs::remove_file(workspace.path("d")).unwrap();
    symlink("elsewhere", workspace.path("d")).unwrap();
    workspace.put("new/theirs", "");
    let undone = workspace.undo().unwrap();
    let left = |name| (name, "left alone");
    assert_eq!(
        outcomes(&undone),
        [left("a"), left("b"), left("c"), left("d"), ("new/x", "removed"), ("new/y", "removed")]
    );
    assert_eq!(
        undone.files[0].outcome,
        FileOutcome::LeftAlone { reason: "changed since".to_owned() }
    );
    assert_eq!(workspace.text("a"), "by somebody else");
    assert_eq!(workspace.text("b"), "1");
    assert!(!workspace.path("c").exists() && workspace.path("d").is_symlink());
    // The directory holds what somebody else put there.
    assert!(workspace.path("new/theirs").exists() && !workspace.path("new/x").exists());
}

#[test]
fn a_change_between_two_of_the_turn_keeps_the_file_as_it_is() {
    let mut workspace = Workspace::with(&[("a", "0\n")]);
    workspace.next_turn();
    workspace.ok("write", json!({"path": "a", "content": "1\n"}));
    workspace.put("a", "1\nby a command\n");
    workspace.ok("read", json!({"path": "a"}));
    workspace.ok("edit", json!({"path": "a", "oldText": "1", "newText": "2"}));
    assert_eq!(outcomes(&workspace.undo().unwrap()), [("a", "left alone")]);
    assert_eq!(workspace.text("a"), "2\nby a command\n");
}

#[test]
fn an_older_turn_is_undone_where_no_newer_one_changed_the_file() {
    let mut workspace = Workspace::with(&[("a", "0"), ("b", "0")]);
    workspace.next_turn();
    for name in ["a", "b"] {
        workspace.ok("write", json!({"path": name, "content": "1"}));
    }
    workspace.next_turn();
    workspace.ok("write", json!({"path": "b", "content": "2"}));
    let undone = workspace.go(Direction::Undo, WhichTurn::Number(2)).unwrap();
    assert_eq!(outcomes(&undone), [("a", "restored"), ("b", "left alone")]);
    assert_eq!((workspace.text("a"), workspace.text("b")), ("0".to_owned(), "2".to_owned()));
    assert_eq!(workspace.undo().unwrap().turn, 1);
    assert_eq!(workspace.go(Direction::Undo, WhichTurn::Number(3)), None);
    assert_eq!(workspace.go(Direction::Undo, WhichTurn::Number(0)), None);
}

#[test]
fn a_path_that_leads_elsewhere_now_is_not_followed() {
    let mut workspace = Workspace::with(&[("folder/a", "0"), ("other/a", "1")]);
    workspace.next_turn();
    workspace.ok("write", json!({"path": "folder/a", "content": "1"}));
    fs::rename(workspace.path("folder"), workspace.path("was")).unwrap();
    symlink("other", workspace.path("folder")).unwrap();
    assert_eq!(outcomes(&workspace.undo().unwrap()), [("folder/a", "left alone")]);
    assert_eq!(workspace.text("other/a"), "1");
}

#[test]
fn files_outside_the_workspace_stay_if_only_the_workspace_may_change() {
    let mut workspace = Workspace::new();
    let outside = workspace.outside().join("outside");
    fs::write(&outside, "0").unwrap();
    workspace.next_turn();
    workspace.ok("write", json!({"path": outside, "content": "1"}));
    workspace.ok("write", json!({"path": "../made/x", "content": "1"}));
    workspace.context.workspace_only = true;
    let undone = workspace.undo().unwrap();
    assert!(outcomes(&undone).iter().all(|(_, outcome)| *outcome == "left alone"), "{undone:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "1");
    workspace.context.workspace_only = false;
    workspace.go(Direction::Undo, WhichTurn::Number(1)).unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "0");
    assert!(!workspace.outside().join("made").exists());
}

#[test]
fn calls_that_changed_nothing_are_no_turn_to_undo() {
    let mut workspace = Workspace::with(&[("a", "0")]);
    workspace.next_turn();
    workspace.ok("write", json!({"path": "a", "content": "1"}));
    workspace.next_turn();
    workspace.ok("write", json!({"path": "a", "content": "1"}));
    workspace.ok("read", json!({"path": "a"}));
    workspace.refused("edit", json!({"path": "a", "oldText": "absent", "newText": "x"}));
    assert_eq!(workspace.undo().unwrap().turn, 1);
    assert_eq!(workspace.text("a"), "0");
}

#[test]
fn an_old_content_is_linked_unless_the_file_has_more_names() {
    let workspace = Workspace::with(&[("a", "0"), ("b", "0")]);
    fs::hard_link(workspace.path("b"), workspace.path("other-name")).unwrap();
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let (a, b) = (inode(&workspace.path("a")), inode(&workspace.path("b")));
    workspace.ok("write", json!({"path": "a", "content": "1"}));
    assert_eq!(workspace.images().iter().map(|path| inode(path)).collect::<Vec<_>>(), [a]);
    workspace.ok("write", json!({"path": "b", "content": "1"}));
    let inodes: Vec<u64> = workspace.images().iter().map(|path| inode(path)).collect();
    assert!(inodes.len() == 2 && !inodes.contains(&b));
    // Whoever writes to the other name does not change what undo restores.
    fs::write(workspace.path("other-name"), "9").unwrap();
    workspace.undo().unwrap();
    assert_eq!((workspace.text("a"), workspace.text("b")), ("0".to_owned(), "0".to_owned()));
    // What is restored is a file of its own, too: later writes do not reach the kept content.
    assert_eq!(fs::metadata(workspace.path("a")).unwrap().nlink(), 1);
}

#[test]
fn a_kept_content_that_was_spoiled_is_not_restored() {
    let workspace = Workspace::with(&[("a", "0"), ("b", "0")]);
    workspace.ok("write", json!({"path": "a", "content": "1"}));
    fs::write(&workspace.images()[0], "spoiled").unwrap();
    workspace.ok("write", json!({"path": "b", "content": "1"}));
    assert_eq!(outcomes(&workspace.undo().unwrap()), [("a", "left alone"), ("b", "restored")]);
    assert_eq!(workspace.text("a"), "1");
}

#[test]
fn a_damaged_list_loses_only_the_damaged_lines() {
    let mut workspace = Workspace::with(&[("a", "0")]);
    let journal = workspace.context.artifact_directory.join("changes/journal.jsonl");
    workspace.ok("write", json!({"path": "a", "content": "1"}));
    // A crash in the middle of an append: the change was not made.
    let mut lines = fs::read(&journal).unwrap();
    lines.extend_from_slice(b"{\"type\":\"change\",\"id\":\"x\",\"fi");
    fs::write(&journal, lines).unwrap();
    workspace.next_turn();
    workspace.ok("write", json!({"path": "a", "content": "2"}));
    workspace.undo().unwrap();
    assert_eq!(workspace.text("a"), "1");
    workspace.undo().unwrap();
    assert_eq!(workspace.text("a"), "0");
}

#[test]
fn a_change_that_cannot_be_kept_is_made_and_says_so() {
    let mut workspace = Workspace::with(&[("a", "0")]);
    fs::write(workspace.outside().join("file"), "").unwrap();
    workspace.context.artifact_directory = workspace.outside().join("file/artifacts");
    let output = workspace.call("write", json!({"path": "a", "content": "1"})).unwrap();
    assert_eq!(workspace.text("a"), "1");
    let problem = output.details.unwrap()["notUndoable"].as_str().unwrap().to_owned();
    assert!(problem.contains("could not be kept"), "{problem}");
}

#[test]
fn a_file_that_is_too_large_is_changed_and_reported() {
    let workspace = Workspace::in_memory();
    let file = fs::File::create(workspace.path("a")).unwrap();
    file.set_len(65 * 1024 * 1024).unwrap();
    let output = workspace.call("write", json!({"path": "a", "content": "1"})).unwrap();
    let problem = output.details.unwrap()["notUndoable"].as_str().unwrap().to_owned();
    assert_eq!(problem, "a: it was larger than 64 MiB, so its old content was not kept");
    let undone = workspace.undo().unwrap();
    let reason = "was larger than 64 MiB, so its old content was not kept".to_owned();
    assert_eq!(undone.files[0].outcome, FileOutcome::LeftAlone { reason });
    assert_eq!(workspace.text("a"), "1");
}

#[test]
fn old_changes_are_removed_when_there_are_many() {
    let mut workspace = Workspace::in_memory();
    let size = 40 * 1024 * 1024;
    let directory = workspace.context.artifact_directory.join("changes");
    for number in 0..12 {
        workspace.next_turn();
        let name = format!("file-{number}");
        fs::File::create(workspace.path(&name)).unwrap().set_len(size).unwrap();
        workspace.ok("write", json!({"path": name, "content": "1"}));
        let kept: u64 =
            workspace.images().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(kept <= 256 * 1024 * 1024, "{kept}");
    }
    let turns = changed_turns(&workspace.context).unwrap();
    assert!((3..=6).contains(&turns.len()), "{turns:?}");
    assert_eq!(turns.len(), workspace.images().len());
    while workspace.undo().is_some() {}
    assert_eq!(fs::metadata(workspace.path("file-11")).unwrap().len(), size);
    assert_eq!(workspace.text("file-0"), "1");
    assert!(fs::read_dir(&directory).unwrap().count() <= 3);
}

#[test]
fn an_undo_that_was_cut_short_is_finished_by_the_next() {
    let mut workspace = busy_workspace();
    let before = workspace.everything();
    busy_turn(&mut workspace);
    let after = workspace.everything();
    // Applied, but killed before it was noted.
    Undo::plan(&workspace.context, Direction::Undo, WhichTurn::Next)
        .unwrap()
        .unwrap()
        .apply()
        .unwrap();
    assert_eq!(workspace.everything(), before);
    // Killed in the middle: one file was not reached.
    workspace.put("kept", "overwritten\n");
    let undone = workspace.undo().unwrap();
    assert_eq!(undone.turn, 1);
    assert_eq!(workspace.everything(), before);
    assert_eq!(workspace.undo(), None);
    workspace.redo().unwrap();
    assert_eq!(workspace.everything(), after);
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_others_use_stays() {
    let mut workspace = Workspace::with(&[("d/a", "old\n"), ("other/b", "old\n")]);
    workspace.ok("write", json!({"path": "d/a", "content": "new\n"}));
    workspace.next_turn();
    // A turn without an effect on files: its directories are cleaned up as well.
    workspace.ok("write", json!({"path": "other/b", "content": "new\n"}));
    workspace.put("other/b", "old\n");
    workspace.next_turn();
    for name in ["d/.myclaw-new-a1", "other/.myclaw-new-a2"] {
        workspace.put(name, "half");
    }
    let kept = [
        // Another process writes it now.
        ("d/.myclaw-new-locked", "half"),
        // Just made, and not locked yet.
        ("d/.myclaw-new-empty", ""),
        // Perhaps the only copy of an old content.
        ("d/.myclaw-old-b1", "old"),
        ("d/.myclaw-newer", "of the user"),
        ("elsewhere/.myclaw-new-a3", "half"),
    ];
    kept.iter().for_each(|(name, content)| workspace.put(name, content));
    let held = fs::File::open(workspace.path("d/.myclaw-new-locked")).unwrap();
    held.lock().unwrap();
    symlink(workspace.path("d/a"), workspace.path("d/.myclaw-new-link")).unwrap();

    let undo = Undo::plan(&workspace.context, Direction::Undo, WhichTurn::Next).unwrap().unwrap();
    assert!(workspace.path("d/.myclaw-new-a1").exists(), "planning changes nothing");
    undo.apply().unwrap();
    undo.finish().unwrap();

    assert_eq!(workspace.text("d/a"), "old\n");
    for name in ["d/.myclaw-new-a1", "other/.myclaw-new-a2"] {
        assert!(!workspace.path(name).exists(), "{name}");
    }
    for (name, content) in kept {
        assert_eq!(workspace.text(name), content, "{name}");
    }
    assert!(workspace.path("d/.myclaw-new-link").is_symlink());
}
