//! A process that is killed while it patches.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::harness::Workspace;

/// Set in the process that is to be killed: the directory it works in.
const DIRECTORY: &str = "MYCLAW_TEST_PATCHED_DIRECTORY";
const FILES: [&str; 3] = ["a", "b", "c"];
const LINES: usize = 20_000;

fn content(word: &str) -> String {
    format!("{word}\n").repeat(LINES)
}

fn patch(old: &str, new: &str) -> String {
    FILES
        .iter()
        .map(|name| {
            let removed = format!("-{old}\n").repeat(LINES);
            let added = format!("+{new}\n").repeat(LINES);
            format!("--- a/{name}\n+++ b/{name}\n@@ -1,{LINES} +1,{LINES} @@\n{removed}{added}")
        })
        .collect()
}

/// Not a test of its own: what the killed process runs.
#[test]
fn patches_for_ever_in_a_process_of_its_own() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let mut workspace = Workspace::new();
    workspace.context.working_directory = directory.into();
    for name in FILES {
        workspace.put(name, content("old"));
    }
    let (there, back) = (patch("old", "new"), patch("new", "old"));
    loop {
        workspace.ok("apply_patch", json!({"patch": there}));
        workspace.ok("apply_patch", json!({"patch": back}));
    }
}

#[test]
fn every_file_is_whole_after_a_kill() {
    let (old, new) = (content("old"), content("new"));
    for round in 0..6 {
        let workspace = Workspace::new();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::patches_for_ever_in_a_process_of_its_own"])
            .env(DIRECTORY, &workspace.context.working_directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until it has begun to patch: then another name is next to the three.
        let names = || std::fs::read_dir(&workspace.context.working_directory).unwrap().count();
        while names() <= FILES.len() {
            assert_eq!(process.try_wait().unwrap(), None);
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(7 * round));
        process.kill().unwrap();
        process.wait().unwrap();
        for name in FILES {
            let text = workspace.text(name);
            assert!(text == old || text == new, "{name} has {} bytes", text.len());
        }
    }
}
