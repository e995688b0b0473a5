use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use myclaw_engine::Tool;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::*;
use crate::support::testing::Workspace;
use crate::{GrepTool, LsTool, ReadTool, WriteTool};

/// Rounds of each tool. Without confinement, one of a hundred gets out.
const ROUNDS: usize = 400;

/// Swaps a directory of the workspace with a link to one outside, again and again.
struct Swapping<'scope> {
    stop: &'scope AtomicBool,
}

impl Drop for Swapping<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn swap(one: &Path, other: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }
}

#[test]
fn a_link_that_is_swapped_during_a_call_leads_nowhere() {
    if !can_confine_threads() {
        myclaw_testkit::skip_here("this kernel has no Landlock");
        return;
    }
    let mut workspace = Workspace::new(&[("dir/file", "plain\n")]);
    workspace.context.workspace_only = true;
    let outside = workspace.base.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "secret\n").unwrap();
    fs::write(outside.join("only-outside"), "").unwrap();
    symlink(&outside, workspace.path("link")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _swapping = Swapping { stop: &stop };
        let (dir, link) = (workspace.path("dir"), workspace.path("link"));
        let stop = &stop;
        scope.spawn(move || swap(&dir, &link, stop));
        let call = |tool: &dyn Tool, arguments| {
            format!("{:?}", runtime.block_on(workspace.call(tool, arguments)))
        };
        for round in 0..ROUNDS {
            let read = call(&ReadTool::new(), json!({"path": "dir/file"}));
            let grep = call(&GrepTool::new(), json!({"pattern": "secret", "path": "dir"}));
            let ls = call(&LsTool::new(), json!({"path": "dir"}));
            call(&WriteTool::new(), json!({"path": "dir/new", "content": "x"}));
            assert!(!read.contains("secret"), "{round}: {read}");
            assert!(!grep.contains("1: secret"), "{round}: {grep}");
            assert!(!ls.contains("only-outside"), "{round}: {ls}");
            assert!(!outside.join("new").exists(), "{round}");
        }
    });
}

#[tokio::test]
async fn the_workspace_and_the_side_files_can_be_used() {
    let mut workspace = Workspace::new(&[("a/file", "text\n")]);
    workspace.context.workspace_only = true;
    fs::create_dir(&workspace.context.artifact_directory).unwrap();
    let side_file = workspace.context.artifact_directory.join("log");
    fs::write(&side_file, "output\n").unwrap();
    let write = json!({"path": "new/deep/file", "content": "x"});
    workspace.text(&WriteTool::new(), write).await;
    let read = json!({"path": side_file.to_str().unwrap()});
    assert!(workspace.text(&ReadTool::new(), read).await.contains("output"));
    let grep = json!({"pattern": "text"});
    assert!(workspace.text(&GrepTool::new(), grep).await.contains("a/file"));
    // Other threads of the process stay as they were.
    fs::write(workspace.base.join("outside"), "").unwrap();
    workspace.context.workspace_only = false;
    workspace.text(&ReadTool::new(), json!({"path": "../outside"})).await;
}
