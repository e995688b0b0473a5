//! What a question about a call shows in the chat, and how it is answered there.

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, Terminal, WireFormat};
use serde_json::{Value, json};

use crate::approvals::home_asking;
use crate::screen::{chat, leave};
use crate::{myclaw, run};

/// A chat in which `tool` is called with `arguments` and asked about.
fn asked(
    tool: &'static str,
    arguments: Value,
    prepare: impl FnOnce(&TempHome),
) -> (TempHome, Terminal, ModelServer) {
    let tools = json!({"exec": {"ask": "always"}, "ask": ["write", "edit"]});
    let (home, server) = home_asking(&tools, tool, arguments);
    prepare(&home);
    let mut terminal = chat(&home);
    terminal.send_line("go");
    // The line that asks is broken where the terminal ends.
    terminal.expect("(n)o?");
    terminal.expect("your answer, and Enter");
    (home, terminal, server)
}

/// Says no, and leaves.
fn refuse(mut terminal: Terminal) {
    terminal.send_line("n");
    terminal.expect("Done.");
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn everything_that_decides_is_shown_and_can_be_read_page_by_page() {
    let long = format!("true {}; echo the-very-end", "x".repeat(20_000));
    let lines =
        |word: &str| (0..2_000).map(|number| format!("{word} {number}\n")).collect::<String>();
    let edit = json!({"path": "notes.txt", "content": lines("new")});
    let cases = [
        ("bash", json!({"command": long}), "echo the-very-end"),
        (
            "bash",
            json!({"command": format!("true\n{}echo the-very-end", "\n".repeat(300))}),
            "echo the-very-end",
        ),
        ("write", edit, "+new 1999"),
    ];
    for (tool, arguments, end) in cases {
        let (_home, mut terminal, _server) = asked(tool, arguments, |home| {
            home.write_in_workspace("notes.txt", lines("old"));
        });
        assert!(terminal.text().contains("confinement: not sandboxed"), "{}", terminal.text());
        terminal.send_line("v");
        let first = terminal.expect_screen(|screen| screen.contains("Ctrl-O or q closes"));
        assert!(first.contains(&format!("{tool} wants to run:")), "{first}");
        // From the first row to the last, none is left out.
        terminal.send("G");
        terminal.expect_screen(|screen| screen.contains("or (n)o?"));
        for _ in 0..200 {
            if terminal.expect_screen(|_| true).contains(end) {
                break;
            }
            terminal.send("b");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        terminal.expect_screen(|screen| screen.contains(end));
        terminal.send("q");
        terminal.expect_screen(|screen| {
            !screen.contains("Ctrl-O or q closes") && screen.contains("your answer, and Enter")
        });
        // The same with the key for outputs.
        terminal.send("\u{f}");
        terminal.expect_screen(|screen| {
            screen.contains(&format!("{tool} wants to run:")) && screen.contains("q closes")
        });
        terminal.send("q");
        terminal.expect_screen(|screen| {
            !screen.contains("Ctrl-O or q closes") && screen.contains("your answer, and Enter")
        });
        refuse(terminal);
    }
}

#[test]
fn marks_in_paths_directories_and_variables_are_written_out() {
    let mark = "a\u{202e}b\u{200b}";
    let shown = r"a\u{202e}b\u{200b}";
    let cases = [
        ("write", json!({"path": format!("{mark}.txt"), "content": "x"}), format!("{shown}.txt")),
        ("bash", json!({"command": "ls", "env": {"FOO": mark}}), format!("variable FOO: {shown}")),
        ("bash", json!({"command": "ls", "cwd": mark}), format!("{shown}\ndirectory")),
    ];
    for (tool, arguments, expected) in cases {
        let (_home, terminal, _server) = asked(tool, arguments, |home| {
            std::fs::create_dir_all(home.workspace().join(mark)).unwrap();
        });
        let expected = expected.split('\n').next().unwrap_or_default();
        let text = terminal.text();
        // Lines are broken where the terminal ends.
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        assert!(joined(&text).contains(&joined(expected)), "{tool}: {text}");
        assert!(!text.contains('\u{202e}') && !text.contains('\u{200b}'), "{tool}: {text}");
        refuse(terminal);
    }
}

#[test]
fn always_covers_the_file_or_the_directory_that_the_answer_names() {
    for (answer, other) in [("a", false), ("d", true)] {
        let arguments = json!({"path": "src/a.txt", "content": "x"});
        let (home, mut terminal, _server) = asked("write", arguments, |home| {
            std::fs::create_dir_all(home.workspace().join("src")).unwrap();
        });
        let text = terminal.text().replace('\n', " ");
        assert!(text.contains("(a)lways for write on /"), "{text}");
        assert!(text.contains("always in this (d)irectory for write on every file in /"), "{text}");
        terminal.send_line(answer);
        terminal.expect("Done.");
        terminal.expect("You: ");
        leave(&mut terminal);
        let list = run(&home, &["approvals", "list"]).stdout();
        let covers = if other { "write on every file in /" } else { "src/a.txt, not sandboxed" };
        assert!(list.contains(covers), "{list}");
        // Another file of the same directory.
        let call = json!({"path": "src/b.txt", "content": "y"});
        let server = ModelServer::spawn_blocking_thread(Script::from([
            Reply::anthropic().tool_call("other", "write", call),
            Reply::anthropic().text("Done."),
        ]));
        let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
        config["tools"] = json!({"ask": ["write"]});
        home.write_config(&config);
        run(&home, &["run", "again"]).assert_code(0);
        assert_eq!(home.workspace().join("src/b.txt").exists(), other, "{answer}");
    }
}

#[test]
fn a_directory_is_no_answer_for_a_command() {
    let (home, mut terminal, _server) = asked("bash", json!({"command": "touch made"}), |_| {});
    terminal.send_line("d");
    terminal.expect("still asked: (v)iew it all, (o)nce");
    assert!(!home.workspace().join("made").exists());
    refuse(terminal);
}

#[test]
fn a_no_may_say_why_and_other_words_are_a_message_while_the_question_waits() {
    for (line, reason) in [
        ("no, use git clean instead", "the user said no: use git clean instead"),
        ("n: ask me first", "the user said no: ask me first"),
        ("Don't touch that", "the user said no: Don't touch that"),
        ("nope. later", "the user said no: later"),
    ] {
        let (home, mut terminal, server) = asked("bash", json!({"command": "touch made"}), |_| {});
        terminal.send_line("nothing else, please");
        terminal.expect("is read at the next step: nothing else, please");
        terminal.expect("still asked:");
        terminal.send_line(line);
        terminal.expect("Done.");
        terminal.expect("You: ");
        leave(&mut terminal);
        assert!(!home.workspace().join("made").exists(), "{line}");
        let read = server.last_request().body_text();
        assert!(read.contains(reason), "{line}: {read}");
    }
}

#[test]
fn a_single_run_pages_its_question_too() {
    let command = format!("true {}; echo the-very-end", "x".repeat(20_000));
    let tools = json!({"exec": {"ask": "always"}});
    let (home, _server) = home_asking(&tools, "bash", json!({"command": command}));
    let mut terminal = Terminal::spawn(&myclaw(&home, &["run", "go"]));
    terminal.expect("or (n)o?");
    terminal.send("v");
    terminal.expect_screen(|screen| {
        screen.contains("bash wants to run: true") && screen.contains("q closes")
    });
    terminal.send("G");
    terminal.expect_screen(|screen| {
        screen.contains("echo the-very-end") && screen.contains("q closes")
    });
    terminal.send("q");
    terminal.expect_screen(|screen| !screen.contains("q closes"));
    terminal.send("n");
    terminal.expect("Done.");
    assert!(terminal.wait().success());
}
