//! Files that somebody else changes while the model works on them.

use serde_json::{Value, json};

use crate::harness::Workspace;

/// Each tool with a call that changes `a`, which holds "one\ntwo\n" and a third line by now.
fn changes() -> [(&'static str, Value); 4] {
    [
        ("write", json!({"path": "a", "content": "new\n"})),
        ("edit", json!({"path": "a", "oldText": "two", "newText": "2"})),
        ("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@\n-two\n+2\n"})),
        ("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"})),
    ]
}

#[test]
fn a_file_that_changed_since_it_was_read_has_to_be_read_again() {
    for (name, arguments) in changes() {
        let workspace = Workspace::with(&[("a", "one\ntwo\n")]);
        workspace.ok("read", json!({"path": "a"}));
        workspace.put("a", "one\ntwo\nby somebody else\n");
        let error = workspace.refused(name, arguments.clone());
        assert!(error.contains("a was not changed") && error.contains("Read it again"), "{error}");
        workspace.ok("read", json!({"path": "a", "startLine": 3}));
        workspace.ok(name, arguments);
    }
}

#[test]
fn the_same_size_and_time_do_not_hide_a_change() {
    let workspace = Workspace::with(&[("a", "one\ntwo\n")]);
    workspace.ok("read", json!({"path": "a"}));
    let modified = std::fs::metadata(workspace.path("a")).unwrap().modified().unwrap();
    let file = std::fs::File::options().write(true).open(workspace.path("a")).unwrap();
    std::io::Write::write_all(&mut &file, b"two\n").unwrap();
    file.set_modified(modified).unwrap();
    assert!(
        workspace
            .refused("edit", json!({"path": "a", "oldText": "two", "newText": "2", "all": true}))
            .contains("Read it again")
    );
}

#[test]
fn a_file_with_the_same_content_is_the_same_file() {
    for (name, arguments) in changes() {
        let workspace = Workspace::with(&[("a", "one\ntwo\n")]);
        workspace.ok("read", json!({"path": "a"}));
        // As a version control system does that goes to another branch and back.
        std::fs::remove_file(workspace.path("a")).unwrap();
        workspace.put("a", "one\ntwo\n");
        workspace.ok(name, arguments);
    }
}

/// A file of a megabyte that was not changed in the last minute.
fn settled_megabyte(workspace: &Workspace, content: &str) {
    workspace.put("a", content);
    let a_minute_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let file = std::fs::File::options().write(true).open(workspace.path("a")).unwrap();
    file.set_modified(a_minute_ago).unwrap();
}

/// Waits until the hash of the file that was read last is recorded.
fn wait_for_hash(workspace: &Workspace) {
    let seen = workspace.context.artifact_directory.join("changes/seen.jsonl");
    let begin = std::time::Instant::now();
    while !std::fs::read_to_string(&seen).unwrap().lines().next_back().unwrap().contains("hash") {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "no hash is recorded");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_hash_of_a_file_of_some_size_follows_the_result() {
    let content = "a line of a file\n".repeat(60_000);
    for (is_changed, time_of_change) in [(false, "new"), (true, "new"), (true, "old")] {
        let workspace = Workspace::in_memory();
        settled_megabyte(&workspace, &content);
        workspace.ok("read", json!({"path": "a", "limit": 1}));
        wait_for_hash(&workspace);
        let modified = std::fs::metadata(workspace.path("a")).unwrap().modified().unwrap();
        let now = if is_changed { content.replacen("line", "LINE", 1) } else { content.clone() };
        workspace.put("a", now);
        if time_of_change == "old" {
            let file = std::fs::File::options().write(true).open(workspace.path("a")).unwrap();
            file.set_modified(modified).unwrap();
        }
        let call = json!({"path": "a", "content": "new\n"});
        match is_changed {
            true => assert!(workspace.refused("write", call).contains("Read it again")),
            false => drop(workspace.ok("write", call)),
        }
    }
}

#[test]
fn a_large_file_is_compared_by_its_time() {
    let big = "line of a large file\n".repeat(500_000);
    let workspace = Workspace::with(&[("a", &big)]);
    workspace.ok("read", json!({"path": "a", "limit": 1}));
    workspace.put("a", big.replacen("line", "LINE", 1));
    let call = json!({"path": "a", "content": "small"});
    assert!(workspace.refused("write", call.clone()).contains("Read it again"));
    workspace.ok("read", json!({"path": "a", "limit": 1}));
    workspace.ok("write", call);
}

#[test]
fn what_the_model_wrote_or_never_saw_may_be_changed() {
    let workspace = Workspace::with(&[("a", "one\ntwo\n")]);
    // Never read.
    workspace.ok("edit", json!({"path": "a", "oldText": "two", "newText": "2"}));
    // Its own change.
    workspace.ok("write", json!({"path": "a", "content": "all\n"}));
    workspace.ok("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@\n-all\n+none\n"}));
    workspace.ok("edit", json!({"path": "a", "oldText": "none", "newText": "some"}));
    // Somebody else's after its own.
    workspace.put("a", "other\n");
    let error = workspace.refused("write", json!({"path": "a", "content": "x"}));
    assert!(error.contains("Read it again"), "{error}");
    // What it wants is there already, so it knows the content now.
    workspace.ok("write", json!({"path": "a", "content": "other\n"}));
    workspace.ok("write", json!({"path": "a", "content": "x"}));
    // A file that is gone is not overwritten.
    std::fs::remove_file(workspace.path("a")).unwrap();
    workspace.ok("write", json!({"path": "a", "content": "again"}));
}

#[test]
fn a_refused_file_spoils_the_whole_patch_and_has_no_preview() {
    let workspace = Workspace::with(&[("a", "one\n"), ("b", "one\n")]);
    workspace.ok("read", json!({"path": "b"}));
    workspace.put("b", "changed\none\n");
    let patch =
        json!({"patch": "--- a/a\n+++ b/a\n@@\n-one\n+1\n--- a/b\n+++ b/b\n@@\n-one\n+1\n"});
    let error = workspace.refused("apply_patch", patch.clone());
    assert!(error.contains("- a: fits") && error.contains("- b: b was not changed"), "{error}");
    assert_eq!(workspace.preview("apply_patch", &patch), None);
}

#[test]
fn the_list_of_what_was_seen_stays_short() {
    let workspace = Workspace::in_memory();
    let seen = workspace.context.artifact_directory.join("changes/seen.jsonl");
    let mut longest = 0;
    for number in 0..6_000 {
        let name = format!("a-rather-long-name-of-a-file-{}", number % 40);
        workspace.put(&name, "x\n");
        workspace.ok("read", json!({"path": name}));
        longest = longest.max(std::fs::metadata(&seen).unwrap().len());
    }
    assert!(longest < 600 * 1024, "{longest}");
    workspace.put("a-rather-long-name-of-a-file-39", "y\n");
    let call = json!({"path": "a-rather-long-name-of-a-file-39", "content": "z"});
    assert!(workspace.refused("write", call).contains("Read it again"));
}
