//! Pipes and devices under the names of files that the program reads by itself. Opening one could wait for ever.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use myclaw_testkit::{ModelServer, Reply, TempHome};

use crate::{run, serve};

fn make_pipe(path: &Path) {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).expect("a directory");
    }
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

fn answering_home() -> (ModelServer, TempHome) {
    let (server, home) = serve(Reply::anthropic().text("Hi."));
    (server, home)
}

#[test]
fn a_bootstrap_file_that_is_a_pipe_or_a_device_is_reported_and_left_out() {
    let (_server, home) = answering_home();
    make_pipe(&home.workspace().join("AGENTS.md"));
    symlink("/dev/zero", home.workspace().join("SOUL.md")).expect("a link");
    symlink("/dev/tty", home.workspace().join("MEMORY.md")).expect("a link");
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    for name in ["AGENTS.md", "SOUL.md", "MEMORY.md"] {
        let notice = format!("{name} in the workspace could not be read: it is not a regular file");
        assert!(output.stderr().contains(&notice), "{}", output.stderr());
    }
}

#[test]
fn other_files_that_are_pipes_are_errors_or_left_out() {
    for (name, code) in [
        (".myclaw/myclaw.json", 3),
        (".myclaw/.env", 0),
        (".myclaw/agents/main/agent/auth-profiles.json", 0),
    ] {
        let (_server, home) = answering_home();
        let path = home.path().join(name);
        drop(std::fs::remove_file(&path));
        make_pipe(&path);
        let output = run(&home, &["run", "hello"]);
        assert_eq!(output.code(), Some(code), "{name}: {}", output.stderr());
    }
}
