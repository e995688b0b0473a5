//! Going back in talk and files at once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, Signal, Step, TempHome, Terminal,
    WireFormat, number_from,
};
use serde_json::{Value, json};

use crate::rpc::Client;
use crate::sandbox::until;
use crate::screen::{ask, chat, leave};
use crate::{myclaw, run};

/// Two turns in the main session: the first makes `a.txt`, the second changes it and makes `b.txt`.
fn two_turns() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::from(Vec::<Step>::new()));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    // As in a project: a copy of the main session has the same rights.
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    home.write_config(&config);
    let turns = [
        ("the first", vec![("write", json!({"path": "a.txt", "content": "one\n"}))]),
        (
            "the second",
            vec![
                ("edit", json!({"path": "a.txt", "oldText": "one", "newText": "two"})),
                ("write", json!({"path": "b.txt", "content": "new\n"})),
            ],
        ),
    ];
    for (message, calls) in turns {
        for (at, (tool, arguments)) in calls.into_iter().enumerate() {
            server.push(Reply::anthropic().tool_call(format!("call_{at}"), tool, arguments));
        }
        server.push(Reply::anthropic().text("Done."));
        run(&home, &["run", message]).assert_code(0);
    }
    (home, server)
}

fn content(home: &TempHome, name: &str) -> Option<String> {
    fs::read_to_string(home.workspace().join(name)).ok()
}

/// The ids and texts of the user's messages in the current session.
fn said(client: &mut Client, id: u64) -> Vec<(Value, String)> {
    let reply = client.ask(json!({"type": "get_messages"}), id);
    let rows = reply["data"]["messages"].as_array().cloned().unwrap_or_default();
    let rows = rows.into_iter().filter(|row| row["role"] == "user");
    rows.map(|row| (row["id"].clone(), row["content"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

#[test]
fn a_program_goes_back_in_talk_and_files_and_further_back_from_there() {
    let (home, _server) = two_turns();
    let mut client = Client::start(&home);
    let messages = said(&mut client, 1);
    let id = messages[1].0.clone();
    let back = client.ask(json!({"type": "rewind", "messageId": id}), 2);
    assert_eq!(back["data"]["message"], "the second", "{back}");
    assert_eq!(back["data"]["undone"].as_array().map(Vec::len), Some(1), "{back}");
    assert_eq!(
        (content(&home, "a.txt").as_deref(), content(&home, "b.txt")),
        (Some("one\n"), None)
    );
    let left = said(&mut client, 3);
    assert_eq!(left.len(), 1, "{left:?}");
    let further = client.ask(json!({"type": "rewind", "messageId": left[0].0}), 4);
    assert_eq!(further["data"]["message"], "the first", "{further}");
    assert_eq!(content(&home, "a.txt"), None);
    let wrong = client.ask(json!({"type": "rewind", "messageId": "nothing"}), 5);
    assert!(wrong["error"].to_string().contains("no message of the user"), "{wrong}");
    client.finish();
    // What the first session says about itself stays true.
    let rows = TempHome::read_lines(&home.transcript_path("main"));
    assert!(json!(rows).to_string().contains("The user has undone file changes"), "{rows:?}");
}

#[test]
fn a_person_goes_back_in_the_chat_and_reads_what_became_of_the_files() {
    let (home, _server) = two_turns();
    // Somebody else has changed it since.
    fs::write(home.workspace().join("b.txt"), "mine\n").expect("written");
    let mut terminal = chat(&home);
    ask(&mut terminal, "/rewind now", "/rewind takes no argument");
    terminal.send_line("/rewind");
    terminal.expect_screen(|screen| {
        screen.contains("with the files") && screen.contains("Enter chooses")
    });
    terminal.send("\r");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You: the second"));
    assert!(screen.contains("restored    a.txt"), "{screen}");
    assert!(screen.contains("left alone  b.txt: it changed since"), "{screen}");
    assert_eq!(content(&home, "a.txt").as_deref(), Some("one\n"));
    assert_eq!(content(&home, "b.txt").as_deref(), Some("mine\n"));
    terminal.send("\x15");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    leave(&mut terminal);
}

/// A git project with an own config of filters and hooks that would leave traces, a file that is committed, one that is not, and
/// one that is ignored.
fn git_project(home: &TempHome) -> PathBuf {
    let project = home.path().join("thing");
    fs::create_dir_all(&project).expect("a directory");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        let output = command.current_dir(&project).output().expect("git");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    fs::write(project.join(".gitignore"), "ignored\n").expect("written");
    fs::write(project.join("committed"), "one\n").expect("written");
    fs::write(project.join("staged"), "one\n").expect("written");
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    fs::write(project.join("staged"), "two\n").expect("written");
    git(&["add", "staged"]);
    fs::write(project.join("untracked"), "mine\n").expect("written");
    let secret = project.join("secret");
    fs::write(&secret, "key\n").expect("written");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::write(project.join("ignored"), "a\n").expect("written");
    fs::write(project.join(".gitattributes"), "*.large filter=trap text eol=crlf\n")
        .expect("written");
    fs::write(project.join("x.large"), "raw\n").expect("written");
    let trap = format!("touch {}", home.path().join("trapped").display());
    for key in ["filter.trap.clean", "filter.trap.smudge", "core.fsmonitor"] {
        git(&["config", key, &trap]);
    }
    project
}

/// The names and contents of the files of a directory, without those of git.
fn files_of(directory: &Path) -> BTreeMap<String, (String, u32)> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(place) = left.pop() {
        for entry in fs::read_dir(place).expect("a directory").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if entry.file_name() == ".git" => {}
                true => left.push(path),
                false => {
                    let name = path.strip_prefix(directory).expect("below").display().to_string();
                    let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
                    found.insert(name, (fs::read_to_string(&path).unwrap_or_default(), mode));
                }
            }
        }
    }
    found
}

const DESTROYING: &str = "echo two > committed; rm untracked secret; echo new > staged; mkdir -p deep/er; \
                          echo x > deep/er/new; mv x.large y.large; chmod +x committed; echo b > ignored";

/// A server for which each message is one command, and a home with a config in which sessions may be forked.
fn command_home(commands: &[&str]) -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::from(Vec::<Step>::new()));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    home.write_config(&config);
    for command in commands {
        server.push(Reply::anthropic().tool_call("call_1", "bash", json!({"command": command})));
        server.push(Reply::anthropic().text("Done."));
    }
    (home, server)
}

fn run_in(home: &TempHome, directory: &Path, args: &[&str]) -> ChildOutput {
    RunningChild::run(myclaw(home, args).current_dir(directory))
}

#[test]
fn what_commands_changed_in_a_git_project_is_undone_and_made_again() {
    let (home, _server) = command_home(&["echo harmless", DESTROYING]);
    let project = git_project(&home);
    let git_of = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(&project).output().expect("git");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run_in(&home, &project, &["run", "-s", "work", "look"]).assert_code(0);
    let (before, index) =
        (files_of(&project), fs::read(project.join(".git/index")).expect("index"));
    run_in(&home, &project, &["run", "-s", "work", "destroy"]).assert_code(0);
    let after = files_of(&project);
    assert_ne!(before, after);
    let undone = run_in(&home, &project, &["sessions", "undo", "work"]);
    undone.assert_code(0);
    let text = undone.stdout();
    for (what, name) in [("restored", "committed"), ("restored", "secret"), ("removed", "new")] {
        let is_it = |line: &str| line.trim_start().starts_with(what) && line.ends_with(name);
        assert!(text.lines().any(is_it), "{text}");
    }
    // What is ignored is not kept.
    let mut expected = before;
    expected.insert("ignored".to_owned(), after["ignored"].clone());
    assert_eq!(files_of(&project), expected);
    assert!(!project.join("deep").exists());
    run_in(&home, &project, &["sessions", "undo", "work", "--redo"]).assert_code(0);
    assert_eq!(files_of(&project), after);
    // The project's own git has noticed nothing, and nothing that it names was started.
    assert_eq!(fs::read(project.join(".git/index")).expect("index"), index);
    assert_eq!(git_of(&["stash", "list"]), "");
    assert_eq!(git_of(&["for-each-ref"]).lines().count(), 1);
    assert!(!home.path().join("trapped").exists());
    // The command that changed nothing is no turn to undo.
    let listed = run_in(&home, &project, &["sessions", "undo", "work", "--list"]);
    assert_eq!(listed.stdout().lines().count(), 1, "{}", listed.stdout());
}

#[test]
fn a_command_that_only_reads_costs_no_look_and_a_later_process_remembers_the_last_one() {
    let reading =
        ["ls -l | head -3", "git status --short && git log --oneline", "cd . && cat committed"];
    let (home, _server) = command_home(&[&reading[..], &["sh -c true", "sh -c true"]].concat());
    let project = git_project(&home);
    let (bin, log) = (home.path().join("bin"), home.path().join("git.log"));
    let found = Command::new("sh").args(["-c", "command -v git"]).output().expect("git");
    let git = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    fs::create_dir_all(&bin).expect("a directory");
    let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec {git} \"$@\"\n", log.display());
    fs::write(bin.join("git"), script).expect("written");
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let go = || {
        let mut command = myclaw(&home, &["run", "-s", "work", "go"]);
        let child = command.current_dir(&project).env("PATH", &path);
        RunningChild::run(child).assert_code(0);
        let text = fs::read_to_string(&log).unwrap_or_default();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        (count("ls-files -z --others"), count("write-tree"))
    };
    for command in reading {
        assert_eq!(go(), (0, 0), "{command}");
    }
    assert_eq!(go(), (2, 1));
    assert_eq!(go(), (4, 1));
}

#[test]
fn a_person_goes_back_before_a_command_and_what_they_changed_since_stays() {
    let (home, _server) = command_home(&[DESTROYING]);
    let project = git_project(&home);
    let before = files_of(&project);
    let mut command = myclaw(&home, &["chat", "--session", "work"]);
    let mut terminal = Terminal::spawn(command.current_dir(&project));
    terminal.expect("You:");
    terminal.send_line("destroy");
    terminal.expect_screen(|screen| screen.contains("Done.") && screen.ends_with("You:"));
    fs::write(project.join("staged"), "by hand\n").expect("written");
    ask(&mut terminal, "/diff", "deep/er/new");
    terminal.send_line("/rewind");
    terminal.expect("Enter chooses");
    terminal.send("\r");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You: destroy"));
    assert!(screen.contains("left alone  staged: it changed since"), "{screen}");
    terminal.send("\x15");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    leave(&mut terminal);
    let now = files_of(&project);
    assert_eq!(now["untracked"], before["untracked"]);
    assert_eq!(now["committed"], before["committed"]);
    assert_eq!(now["staged"].0, "by hand\n");
}

#[test]
fn outside_of_git_small_directories_are_kept_and_large_ones_are_named() {
    let (home, server) = command_home(&["rm mine; echo x > new", "rm many/1"]);
    home.write_in_workspace("mine", "precious\n");
    run(&home, &["run", "go"]).assert_code(0);
    run(&home, &["sessions", "undo", "main"]).assert_code(0);
    assert_eq!(content(&home, "mine").as_deref(), Some("precious\n"));
    assert_eq!(content(&home, "new"), None);
    let many = home.workspace().join("many");
    fs::create_dir_all(&many).expect("a directory");
    for number in 0..5_001 {
        fs::write(many.join(number.to_string()), "").expect("written");
    }
    let output = run(&home, &["run", "--json", "go"]);
    output.assert_code(0);
    assert!(output.stdout().contains("has more than 5000 files"), "{}", output.stdout());
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_kill_in_the_middle_of_a_command_leaves_what_can_be_undone() {
    let kills = number_from("MYCLAW_KILLS").unwrap_or(5);
    for kill in 0..kills {
        let slowly =
            "for i in 1 2 3 4 5 6 7 8; do echo $i > f$i; rm -f g$i; sleep 0.02; done; sleep 30";
        let (home, _server) = command_home(&[slowly]);
        let project = git_project(&home);
        for number in 1..9 {
            fs::write(project.join(format!("g{number}")), "old\n").expect("written");
        }
        let before = files_of(&project);
        let mut command = myclaw(&home, &["run", "-s", "work", "go"]);
        let child = RunningChild::spawn(command.current_dir(&project));
        until("the command", || project.join("f1").exists());
        std::thread::sleep(Duration::from_millis(kill * 17));
        child.signal(Signal::Kill);
        child.wait(Duration::from_secs(30));
        // The command may go on without it, but not for long.
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(100));
            if !project.join("g8").exists() {
                break;
            }
        }
        let after = files_of(&project);
        run_in(&home, &project, &["sessions", "undo", "work"]).assert_code(0);
        assert_eq!(files_of(&project), before, "kill {kill}");
        run_in(&home, &project, &["sessions", "undo", "work", "--redo"]).assert_code(0);
        assert_eq!(files_of(&project), after, "kill {kill}");
    }
}
