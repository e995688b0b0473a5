//! Going back in the chat, its branches, pictures in messages, and runs in loops of a shell.

use myclaw_testkit::{Reply, RunningChild, Terminal};
use serde_json::json;

use crate::screen::{ask, chat_at, leave, prompt_after};
use crate::{always, last_message, myclaw, run, serve};

/// The smallest PNG file: one pixel.
pub(crate) const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0,
    0x1f, 0x00, 0x05, 0x00, 0x01, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn escape_twice_goes_back_to_a_message_and_tree_shows_the_branches() {
    let (server, home) = always("Yes.");
    for message in ["the first", "the second", "the third"] {
        run(&home, &["run", message]).assert_code(0);
    }
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("/back");
    let screen = terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    assert!(
        screen
            .lines()
            .nth(4)
            .is_some_and(|row| row.starts_with("› ") && row.ends_with("the third")),
        "{screen}"
    );
    terminal.send("\x1b[A");
    terminal.expect_screen(|screen| {
        screen.lines().any(|row| row.starts_with("› ") && row.ends_with("the second"))
    });
    terminal.send("\r");
    terminal.expect_screen(|screen| screen.ends_with("You: the second"));
    terminal.send(" one\r");
    terminal.expect("Yes.");
    terminal.expect("You: ");
    let request = server.last_request();
    assert_eq!(request.messages().len(), 3, "the first exchange and the new message");
    let said = request.messages().last().expect("a message")["content"].to_string();
    assert!(said.contains("the second one"), "{said}");
    terminal.send_line("/tree");
    let screen = terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    let rows: Vec<&str> = screen.lines().collect();
    assert!(rows[2].starts_with("    main"), "{screen}");
    assert!(rows[3].starts_with("› *   "), "{screen}");
    terminal.send("\x1b[A\r");
    terminal.expect("continuing `main`");
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn two_presses_of_escape_open_the_list() {
    let (_server, home) = always("Yes.");
    run(&home, &["run", "the first"]).assert_code(0);
    let mut terminal = chat_at(&home, 80);
    terminal.send("\x1b");
    // Not before the prompt stands again: two such bytes that arrive together are one key.
    prompt_after(&mut terminal, "Esc again goes back to an earlier message");
    terminal.send("\x1b");
    terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    terminal.send("\x1b");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
}

#[test]
fn retry_sends_what_the_user_said_last_not_what_the_program_said_for_them() {
    let write = json!({"path": "notes.txt", "content": "new\n"});
    let (server, home) = serve([
        Reply::anthropic().tool_call("call_1", "write", write),
        Reply::anthropic().text("Written."),
        Reply::anthropic().text("Again."),
    ]);
    let mut terminal = chat_at(&home, 100);
    terminal.send_line("write my notes");
    terminal.expect("Written.");
    for (command, answer) in [("/undo", "undid the file changes"), ("!echo mine", "exit 0")] {
        terminal.expect("You: ");
        terminal.send_line(command);
        terminal.expect(answer);
    }
    terminal.expect("You: ");
    terminal.send_line("/back");
    terminal.expect_screen(|screen| screen.contains("Go back to which message (1)"));
    terminal.send("\x1b");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    terminal.send_line("/retry");
    terminal.expect("Again.");
    let request = server.last_request();
    assert_eq!(request.messages().len(), 1);
    assert!(request.messages()[0].to_string().contains("write my notes"), "{request:?}");
}

#[test]
fn pictures_are_sent_by_option_and_by_path() {
    let (server, home) = always("A dot.");
    let path = home.write_in_workspace("my dot.png", PNG);
    let option = path.to_str().expect("a path");
    let pictures = || {
        let request = server.last_request();
        let last = request.messages().last().cloned().expect("a message");
        last["content"]
            .as_array()
            .map_or(0, |blocks| blocks.iter().filter(|block| block["type"] == "image").count())
    };
    run(&home, &["run", "--image", option, "what is this?"]).assert_code(0);
    assert_eq!(pictures(), 1, "by the option");
    run(&home, &["run", "what is in 'my dot.png'?"]).assert_code(0);
    assert_eq!(pictures(), 1, "by the path");
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["-i", option, "look at it"]), 80, 30);
    terminal.expect("picture: ");
    terminal.expect("A dot.");
    assert_eq!(pictures(), 1, "in the chat");
    terminal.send_line("/image my\\ dot.png and this?");
    terminal.expect_screen(|screen| screen.matches("A dot.").count() == 2);
    assert_eq!(pictures(), 1, "by the command");
    let failed = run(&home, &["run", "--image", "missing.png", "x"]);
    failed.assert_code(2);
    assert!(failed.stderr().contains("missing.png cannot be read"), "{}", failed.stderr());
}

#[test]
fn what_is_no_picture_or_no_session_is_said_and_nothing_is_sent() {
    let (server, home) = always("Yes.");
    home.write_in_workspace("broken.png", "text");
    home.write_in_workspace("notes.txt", "text");
    run(&home, &["run", "the first"]).assert_code(0);
    let mut terminal = chat_at(&home, 200);
    for (line, expected) in [
        ("/image nothing.png what is it?", "nothing.png cannot be read"),
        ("/image broken.png", "broken.png cannot be used"),
        ("/image notes.txt", "notes.txt is no picture"),
        ("/sessions nobody", "there is no session `nobody`"),
    ] {
        ask(&mut terminal, line, expected);
    }
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    assert_eq!(
        screen.matches("Yes.").count(),
        1,
        "the end of a session is not shown again: {screen}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_run_in_a_loop_leaves_the_list_to_the_shell() {
    let (server, home) = always("Yes.");
    let list = home.write("list", "a\nb\nc\n");
    let program = env!("CARGO_BIN_EXE_myclaw");
    for script in [
        format!("cat '{0}' | while read x; do '{program}' run \"say $x\"; done", list.display()),
        format!("while read x; do '{program}' run \"say $x\"; done < '{}'", list.display()),
    ] {
        let before = server.requests().len();
        let template = myclaw(&home, &[]);
        let mut shell = home.command("bash");
        shell.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.args(["-c", &script]);
        RunningChild::run(&mut shell).assert_code(0);
        let requests = server.requests();
        assert_eq!(requests.len() - before, 3, "{script}");
        let last = requests.last().expect("a request").messages().last().cloned();
        let said = last.expect("a message")["content"].to_string();
        assert!(said.contains("say c") && !said.contains("a\\nb"), "{said}");
    }
    // A pipe of one's own is read, as before.
    let mut command = myclaw(&home, &["run", "explain:"]);
    RunningChild::run_with_input(&mut command, "+ a line\n").assert_code(0);
    let said = last_message(&server);
    assert!(said.contains("explain:\\n\\n+ a line"), "{said}");
}
