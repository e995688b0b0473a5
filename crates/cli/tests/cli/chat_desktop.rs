//! What the chat has to do with the desktop around the terminal: its focus, its clipboard, and pictures.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, Terminal};

use crate::chat_branches::PNG;
use crate::jobs::{WAITING, pid_in, starts_job};
use crate::screen::{ask, chat_with, raw, slow_tool};
use crate::{always, home_with, last_message, myclaw, serve};

#[test]
fn a_turn_that_begins_by_itself_calls_a_user_who_looks_elsewhere() {
    let (_server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let mut terminal = chat_with(&home, &[("TERM", "foot")]);
    let calls =
        |terminal: &Terminal| raw(terminal).matches("\x1b]777;notify;myclaw;done in").count();
    ask(&mut terminal, "work", "answer 1");
    pid_in(&home, "pid");
    assert_eq!(calls(&terminal), 0, "the user looks on");
    // The terminal reports at the prompt that it has lost the focus.
    terminal.send("\x1b[Ohalf");
    terminal.expect("half");
    home.write_in_workspace("go", "");
    terminal.expect("answer 2");
    terminal.expect("You: ");
    assert_eq!(calls(&terminal), 1, "the user looks elsewhere");
    ask(&mut terminal, " a line", "answer 3");
    assert_eq!(calls(&terminal), 1, "the user has typed");
    let written = raw(&terminal);
    let asked = |sequence: &str| written.matches(sequence).count();
    assert!(asked("\x1b[?1004h") > 0 && asked("\x1b[?1004h") >= asked("\x1b[?1004l"), "{written}");
}

/// A directory with a program of this name.
fn program(home: &TempHome, name: &str, script: &str) -> String {
    let path = home.write(format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    let others = std::env::var("PATH").unwrap_or_default();
    format!("{}:{others}", path.parent().expect("a directory").display())
}

#[test]
fn ctrl_v_takes_a_picture_from_the_clipboard() {
    let (server, home) = always("A dot.");
    let picture = home.write("dot.png", PNG);
    let print = format!(
        "test \"$*\" = \"-selection clipboard -target image/png -out\" && cat '{}'",
        picture.display()
    );
    let path = program(&home, "xclip", &print);
    let variables = [("DISPLAY", ":99"), ("WAYLAND_DISPLAY", ""), ("PATH", &path)];
    let mut terminal = chat_with(&home, &variables);
    terminal.send("see \x16");
    terminal.expect("chat_pictures/");
    terminal.send_line("what is it?");
    terminal.expect("A dot.");
    let said = last_message(&server);
    assert!(said.contains("\"image\"") && said.contains("what is it?"), "{said}");
    let kept = fs::read_dir(home.state_directory().join("chat_pictures")).expect("a directory");
    let kept = kept.map(|entry| entry.expect("a file").path()).next().expect("a picture");
    assert_eq!(fs::read(&kept).expect("a picture"), PNG);
    let mode = fs::metadata(&kept).expect("a file").permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may not read it");
}

#[test]
fn ctrl_v_takes_a_picture_while_the_agent_works_too() {
    let (server, home) = serve([slow_tool("call_1"), Reply::anthropic().text("A dot.")]);
    let picture = home.write("dot.png", PNG);
    let path = program(&home, "xclip", &format!("cat '{}'", picture.display()));
    let variables = [("DISPLAY", ":99"), ("WAYLAND_DISPLAY", ""), ("PATH", &path)];
    let mut terminal = chat_with(&home, &variables);
    terminal.send_line("begin");
    terminal.expect("bash until");
    // What follows the key in the same read stands behind the path.
    terminal.send("see \x16what is it?\r");
    terminal.expect("picture: ");
    terminal.expect("is read at the next step: see ");
    home.write_in_workspace("go", "");
    terminal.expect("A dot.");
    let said = last_message(&server);
    assert!(said.contains("\"image\"") && said.contains(".png what is it?"), "{said}");
}

#[test]
fn without_a_picture_ctrl_v_says_what_is_missing_and_keeps_the_line() {
    let server =
        ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("Yes.")));
    for (script, display, expected) in [
        ("echo text", ":99", "the clipboard holds no picture"),
        ("exit 1", ":99", "the clipboard holds no picture"),
        ("", "", "neither WAYLAND_DISPLAY nor DISPLAY is set"),
    ] {
        let home = home_with(&server);
        let path = program(&home, "xclip", script);
        let mut terminal = chat_with(&home, &[("DISPLAY", display), ("PATH", &path)]);
        terminal.send("begun\x16");
        terminal.expect(expected);
        terminal.send_line(" and ended");
        terminal.expect("Yes.");
        let said = last_message(&server);
        assert!(said.contains("begun and ended"), "{said}");
    }
    let home = home_with(&server);
    // The terminal of the test needs this program.
    let bin = home.path().join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    std::os::unix::fs::symlink("/usr/bin/setsid", bin.join("setsid")).expect("a link");
    let path = bin.display().to_string();
    let mut terminal = chat_with(&home, &[("DISPLAY", ":99"), ("PATH", &path)]);
    terminal.send("\x16");
    terminal.expect("install xclip to paste pictures");
}

#[test]
fn a_terminal_that_says_so_shows_pictures_as_sixels() {
    for (answer, is_shown) in [("\x1b[?62;4;22c", true), ("\x1b[?62;22c", false)] {
        let (_server, home) = always("A dot.");
        let picture = home.write("dot.png", PNG);
        let mut terminal = Terminal::spawn(&myclaw(&home, &[]));
        // The terminal's answer waits until the program reads it together with that about the cursor.
        terminal.send(answer);
        terminal.expect("You: ");
        terminal.send_line(&format!("/image {} look", picture.display()));
        terminal.expect("A dot.");
        let written = raw(&terminal);
        assert_eq!(written.contains("\x1bP0;1q\"1;1;1;1"), is_shown, "{written}");
        assert!(written.contains("\x1b[c"), "the terminal was asked: {written}");
    }
}
