//! Pipes and devices under the names of files that the program reads by itself. Opening one could wait forever.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use myclaw_testkit::{ModelServer, Reply, TempHome};

use crate::screen::{ask, chat_at, leave};
use crate::{always, run, serve};

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
    let linked = "it is a symbolic link, or its path leads over one";
    for (name, why) in
        [("AGENTS.md", "it is not a regular file"), ("SOUL.md", linked), ("MEMORY.md", linked)]
    {
        let notice = format!("{name} in the workspace could not be read: {why}");
        assert!(output.stderr().contains(&notice), "{}", output.stderr());
    }
}

/// What a sandboxed session may have put into the workspace must not bring a file of the owner into the prompt, nor hold
/// the run up.
#[test]
fn no_bootstrap_file_leads_out_of_the_workspace() {
    const NAMES: [&str; 9] = [
        "SYSTEM.md",
        "AGENTS.md",
        "SOUL.md",
        "USER.md",
        "TOOLS.md",
        "IDENTITY.md",
        "MEMORY.md",
        "HEARTBEAT.md",
        "BOOTSTRAP.md",
    ];
    const SECRET: &str = "the-secret-of-the-owner";
    let link_to = |target: &'static str| move |path: &Path| symlink(target, path).expect("a link");
    type Trap = Box<dyn Fn(&Path)>;
    let traps: [(&str, Trap); 10] = [
        ("a link to the config", Box::new(link_to("../myclaw.json"))),
        ("a link to a file", Box::new(link_to("../../outside/secret"))),
        ("a link over a link", Box::new(link_to("out/secret"))),
        ("a link to a directory", Box::new(link_to("../../outside"))),
        ("a link to a pipe", Box::new(link_to("../../outside/pipe"))),
        ("a link to a device", Box::new(link_to("/dev/zero"))),
        ("a link of the kernel", Box::new(link_to("/proc/self/environ"))),
        ("a link to nothing", Box::new(link_to("nowhere"))),
        ("a pipe", Box::new(make_pipe)),
        ("a directory", Box::new(|path| std::fs::create_dir(path).expect("a directory"))),
    ];
    let (server, home) = always("Hi.");
    home.write("outside/secret", SECRET);
    make_pipe(&home.path().join("outside/pipe"));
    std::fs::create_dir_all(home.workspace()).expect("a workspace");
    symlink("../../outside", home.workspace().join("out")).expect("a link");
    for (kind, put) in traps {
        for name in NAMES {
            put(&home.workspace().join(name));
        }
        let output = run(&home, &["run", "hello"]);
        output.assert_code(0);
        for name in NAMES {
            let notice = format!("{name} in the workspace could not be read: it is ");
            assert!(output.stderr().contains(&notice), "{kind}: {}", output.stderr());
            let path = home.workspace().join(name);
            let gone = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
            gone.expect("nothing there");
        }
        let sent = server.last_request().body_text();
        assert!(!sent.contains(SECRET) && !sent.contains("baseUrl"), "{kind}: {sent}");
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

/// The chat shows the branch before its prompt.
#[test]
fn a_chat_does_not_wait_for_what_is_in_the_place_of_the_head_of_a_repository() {
    let (_server, home) = always("Hi.");
    let head = home.workspace().join(".git/HEAD");
    make_pipe(&head);
    let mut terminal = chat_at(&home, 100);
    ask(&mut terminal, "hello", "Hi.");
    leave(&mut terminal);
    std::fs::remove_file(&head).expect("a pipe");
    symlink("/dev/zero", &head).expect("a link");
    let mut terminal = chat_at(&home, 100);
    ask(&mut terminal, "hello", "Hi.");
    leave(&mut terminal);
}
