use std::fs;
use std::path::Path;

use myclaw_engine::WorkPlace;
use serde_json::json;

use super::state::{MEGABYTE, MOST_DEPTH};
use super::*;
use crate::permissions::tests::calls::prepared;

fn hook(directory: &Path, quota: Quota) -> QuotaHook {
    let key = "agent:main:channel:telegram:account:default:peer:direct:42";
    let (_home, config) = crate::workspace::tests::session(json!({}), key);
    QuotaHook { place: place(directory), quota, config }
}

/// A session without temporary files.
fn place(workspace: &Path) -> CountedPlace {
    CountedPlace { workspace: workspace.to_owned(), scratch: workspace.join("nowhere") }
}

async fn denies(hook: &QuotaHook, tool: &str, arguments: serde_json::Value) -> Option<String> {
    let call = prepared(tool, &arguments);
    let verdict = hook.judge(&call).await.unwrap();
    if verdict == ToolCallVerdict::Allow {
        hook.tool_result(&call, &mut ToolOutput::text("")).await.unwrap();
    }
    match verdict {
        ToolCallVerdict::Allow => None,
        ToolCallVerdict::Deny { reason } => Some(reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_below_counts_and_nothing_behind_a_link() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(other.path().join("large"), [0; 5_000]).unwrap();
    fs::create_dir_all(own.path().join("a/b")).unwrap();
    fs::write(own.path().join("a/b/.hidden"), [0; 100]).unwrap();
    fs::write(own.path().join("file"), [0; 10]).unwrap();
    std::os::unix::fs::symlink(other.path(), own.path().join("link")).unwrap();
    let quota = Quota { bytes: None, files: Some(5) };

    let used = quota.count(&place(own.path())).unwrap();

    let length_of_link = other.path().as_os_str().len() as u64;
    let expected = WorkspaceUse { bytes: 110 + length_of_link, files: 5, has_more: false };
    assert_eq!(used, expected);
    let few = Quota { bytes: None, files: Some(2) };
    let used = few.count(&place(own.path())).unwrap();
    assert_eq!((used.files, used.has_more), (3, true), "no more than the limit is looked at");
    let none = Quota { bytes: None, files: Some(0) };
    let used = none.count(&place(own.path())).unwrap();
    assert_eq!((used.files, used.has_more), (1, true), "what was looked at counts");
}

#[tokio::test]
async fn a_full_workspace_takes_nothing_until_there_is_room() {
    let own = tempfile::tempdir().unwrap();
    let hook = hook(own.path(), Quota { bytes: Some(MEGABYTE), files: Some(3) });
    let write = json!({"path": "x", "content": "y"});

    assert_eq!(denies(&hook, "write", write.clone()).await, None);
    fs::write(own.path().join("large"), vec![0; MEGABYTE as usize]).unwrap();
    let reason = denies(&hook, "write", write.clone()).await.unwrap();
    assert!(
        reason.contains("it has 1 of 1 MB, temporary files included")
            && reason.contains("`rm -r old/`"),
        "{reason}"
    );
    assert!(denies(&hook, "bash", json!({"command": "cp large copy"})).await.is_some());
    assert_eq!(denies(&hook, "bash", json!({"command": "ls"})).await, None);
    assert_eq!(denies(&hook, "read", json!({"path": "x"})).await, None);

    assert_eq!(denies(&hook, "bash", json!({"command": "rm -r 'large'"})).await, None);
    fs::remove_file(own.path().join("large")).unwrap();
    assert_eq!(denies(&hook, "write", write.clone()).await, None);

    for name in ["a", "b", "c"] {
        fs::write(own.path().join(name), "").unwrap();
    }
    let reason = denies(&hook, "write", write).await.unwrap();
    assert!(
        reason.contains("it has 3 files, temporary ones included, which is the limit"),
        "{reason}"
    );
}

#[test]
fn a_large_workspace_is_counted_less_often_than_it_is_changed() {
    let own = tempfile::tempdir().unwrap();
    for number in 0..2_000 {
        fs::write(own.path().join(number.to_string()), "").unwrap();
    }
    let (quota, state) = (Quota { bytes: None, files: None }, QuotaState::default());
    for _ in 0..100 {
        state.used(&quota, &place(own.path())).unwrap();
        state.is_changed();
    }
    let entries = state.counted.lock().entries;
    assert!((2_000..=52_000).contains(&entries), "{entries}");
    assert!(entries > 2_000, "it was counted once only");
}

#[test]
fn what_is_next_to_the_session_counts_but_for_what_undo_keeps() {
    let (own, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(own.path().join("a"), [0; 10]).unwrap();
    for name in ["tmp-1/deep/x", "tmp-2/y", "output/z", "bash-1.log", "changes/old"] {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [0; 100]).unwrap();
    }
    std::os::unix::fs::symlink("/", scratch.path().join("tmp-link")).unwrap();
    let place =
        CountedPlace { workspace: own.path().to_owned(), scratch: scratch.path().to_owned() };
    let quota = Quota { bytes: Some(200), files: Some(100) };
    let used = quota.count(&place).unwrap();
    assert_eq!(used, WorkspaceUse { bytes: 411, files: 10, has_more: false });
    assert!(quota.refusal(&used, 0).is_some());
}

#[test]
fn a_tree_that_is_too_deep_counts_as_full() {
    let own = tempfile::tempdir().unwrap();
    let deep = (0..MOST_DEPTH + 3).fold(own.path().to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    let quota = Quota { bytes: Some(MEGABYTE), files: Some(10_000) };
    let used = quota.count(&place(own.path())).unwrap();
    assert!(used.has_more && quota.refusal(&used, 0).is_some(), "{used:?}");
}

#[tokio::test]
async fn a_full_workspace_refuses_no_tool_that_works_elsewhere() {
    let own = tempfile::tempdir().unwrap();
    let hook = hook(own.path(), Quota { bytes: Some(1), files: None });
    fs::write(own.path().join("large"), "large").unwrap();
    assert!(denies(&hook, "write", json!({"path": "x", "content": "y"})).await.is_some());
    let mut call = prepared("write", &json!({"path": "x", "content": "y"}));
    call.declaration.place = WorkPlace::Here;
    assert_eq!(hook.judge(&call).await.unwrap(), ToolCallVerdict::Allow);
}

#[tokio::test]
async fn a_file_that_comes_with_a_message_counts() {
    let limits = json!({"workspaceMb": 1, "workspaceFiles": 100});
    let config = json!({"agents": {"defaults": {"sandbox": {"confinement": {"limits": limits}}}}});
    let key = "agent:main:channel:telegram:account:default:peer:direct:42";
    let (_directory, session) = crate::workspace::tests::session(config, key);
    session.make_working_directory().unwrap();
    assert_eq!(session.refuses_file(MEGABYTE), None);
    assert!(session.refuses_file(MEGABYTE + 1).is_some());
    let hook = session.quota_hook().unwrap();
    let call = prepared("write", &json!({"path": "x", "content": "y"}));
    assert_eq!(hook.judge(&call).await.unwrap(), ToolCallVerdict::Allow);
    assert_eq!(session.refuses_file(MEGABYTE), None);
    fs::write(session.working_directory().join("came"), vec![0; MEGABYTE as usize]).unwrap();
    let verdict = hook.judge(&call).await.unwrap();
    assert!(matches!(verdict, ToolCallVerdict::Deny { .. }), "{verdict:?}");
}
