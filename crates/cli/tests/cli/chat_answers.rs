//! Where the chat needs its user: at limits, for approvals, and when a turn is long. And what its terminal can show.

use std::fs;

use myclaw_testkit::{Gate, Reply, Script, Terminal};
use serde_json::json;

use crate::chat_branches::PNG;
use crate::screen::{ROWS, chat, chat_at, chat_of, chat_with, prompt_after, raw};
use crate::{always, change_config, myclaw, run, serve};

/// One white pixel.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

#[test]
fn at_each_limit_of_a_message_the_user_decides_whether_to_go_on() {
    for (limits, command, reason) in [
        (json!({"runSeconds": 1}), "until test -e go; do sleep 0.02; done", "time"),
        (json!({"runTokens": 500}), "true", "tokens"),
        (json!({"runCost": 0.001}), "true", "money"),
    ] {
        let (server, home) = serve(Script::repeat(
            Reply::anthropic()
                .tool_call("call_1", "bash", json!({"command": command}))
                .usage(1_000, 10),
        ));
        change_config(&home, |config| {
            config["agents"] = json!({"defaults": {"limits": limits}});
        });
        let mut terminal = chat_at(&home, 120);
        terminal.send_line("work");
        let asked = |screen: &str| screen.ends_with("Go on? (y)es or (n)o");
        let screen = terminal.expect_screen(asked);
        let question = screen.lines().last().expect("a line");
        assert!(question.contains(reason), "{limits}: {screen}");
        let before = server.requests().len();
        terminal.send("y");
        server.wait_for_requests_blocking(before + 1);
        let said = server.requests()[before].body_text();
        assert!(said.contains("Go on where you stopped."), "{limits}: {said}");
        let screen = terminal.expect_screen(|screen| {
            screen.matches("Go on? (y)es or (n)o").count() == 2 && asked(screen)
        });
        terminal.send("n");
        terminal.expect_screen(|screen| screen.ends_with("You:"));
        assert!(screen.contains("You:"), "{screen}");
    }
}

#[test]
fn at_a_terminal_no_clock_ends_a_command_unless_the_config_says_so() {
    for (seconds, expected) in [(600, "default 86400"), (700, "default 700")] {
        let (server, home) = always("Yes.");
        change_config(&home, |config| {
            config["tools"] = json!({"bash": {"timeoutSeconds": seconds}});
        });
        let mut terminal = chat_at(&home, 80);
        terminal.send_line("hello");
        terminal.expect("Yes.");
        let attended = server.last_request().body_text();
        run(&home, &["run", "-s", "other", "hello"]).assert_code(0);
        let unattended = server.last_request().body_text();
        assert!(attended.contains(expected), "{attended}");
        assert!(unattended.contains(&format!("default {seconds}")), "{unattended}");
    }
}

#[test]
fn a_question_calls_a_user_who_looks_elsewhere_as_the_config_says() {
    let desktop = "\x07\x1b]9;myclaw: a question waits for your answer\x07";
    for (how, expected) in [("auto", Some(desktop)), ("bell", Some("\x07")), ("off", None)] {
        let gate = Gate::closed();
        let call = Reply::anthropic().tool_call("call_1", "bash", json!({"command": "echo run"}));
        let (server, home) =
            serve([call.step().hold_after(0, &gate), Reply::anthropic().text("Done.").step()]);
        change_config(&home, |config| {
            config["tools"] = json!({"exec": {"ask": "always"}});
            config["terminal"] = json!({"notifications": how});
        });
        let mut terminal = chat_with(&home, &[("TERM_PROGRAM", "WezTerm")]);
        terminal.send_line("work");
        server.wait_for_requests_blocking(1);
        // The terminal reports that it has lost the focus.
        terminal.send("\x1b[Ox");
        terminal.expect_screen(|screen| screen.contains("\n> x\n"));
        gate.open();
        terminal.expect("your answer, and Enter");
        // What was drawn before is complete: the title is written when the turn begins.
        let drawn = raw(&terminal);
        let (_, turn) = drawn.rsplit_once("\x1b]0;● myclaw:").expect("a title");
        let (_, turn) = turn.split_once('\x07').expect("the end of the title");
        match expected {
            Some(sequence) => assert!(turn.contains(sequence), "{how}: {turn:?}"),
            None => assert!(!turn.contains('\x07'), "{how}: {turn:?}"),
        }
        assert_eq!(turn.contains("\x1b]9;"), how == "auto", "{how}: {turn:?}");
        terminal.send_line("\x7fy");
        terminal.expect("Done.");
    }
}

#[test]
fn pictures_that_are_sent_and_read_are_shown_in_the_form_of_the_terminal() {
    let kitty = &[("TERM", "xterm-kitty")][..];
    let iterm = &[("TERM_PROGRAM", "iTerm.app")][..];
    for (variables, picture, expected) in [
        (kitty, PNG, Some("\x1b_Ga=T,f=100,r=1,")),
        (kitty, GIF, Some("\x1b_Ga=T,f=32,s=1,v=1,r=1,q=2,m=0;/////w==\x1b\\")),
        (iterm, PNG, Some("\x1b]1337;File=inline=1;size=70;height=1;")),
        (iterm, GIF, Some("\x1b]1337;File=inline=1;size=35;height=1;")),
        (&[("TERM_PROGRAM", "iTerm.app"), ("TMUX", "/tmp/tmux")], PNG, None),
        (&[], PNG, None),
    ] {
        let name = if picture == GIF { "dot.gif" } else { "dot.png" };
        let (_server, home) = serve([
            Reply::anthropic().tool_call("call_1", "read", json!({"path": name})),
            Reply::anthropic().text("Two dots."),
        ]);
        home.write_in_workspace(name, picture);
        let mut command = myclaw(&home, &[]);
        command.env("TERM", "xterm").envs(variables.iter().copied());
        let mut terminal = chat_of(&command, 100);
        terminal.send_line(&format!("compare {name} with itself"));
        terminal.expect("Two dots.");
        let drawn = raw(&terminal);
        let bytes = picture.len();
        assert!(drawn.contains(&format!("{name}, {bytes} bytes")), "{drawn:?}");
        match expected {
            Some(sequence) => assert_eq!(drawn.matches(sequence).count(), 2, "{drawn:?}"),
            None => {
                assert!(!drawn.contains("\x1b_G") && !drawn.contains("1337"), "{drawn:?}");
                assert!(drawn.contains("  a picture of 70 bytes"), "{drawn:?}");
            }
        }
    }
}

#[test]
fn the_background_that_the_terminal_tells_decides_the_colours_and_keys_are_kept() {
    for (background, keyword) in
        [("ffff/ffff/ffff", "\x1b[38;5;90mlet"), ("0000/0000/0000", "\x1b[38;5;176mlet")]
    {
        let (_server, home) = serve(Reply::anthropic().text("```rust\nlet x = 1;\n```\n"));
        let mut terminal = Terminal::spawn_sized(&myclaw(&home, &[]), 80, ROWS);
        terminal.send(&format!("\x1b]11;rgb:{background}\x1b\\\x1b[?62cshow it\r"));
        prompt_after(&mut terminal, "    let x = 1;");
        let drawn = raw(&terminal);
        assert!(drawn.contains(keyword), "{background}: {drawn:?}");
        assert!(drawn.contains("\x1b]11;?"), "the terminal was asked: {drawn:?}");
    }
}

#[test]
fn a_turn_is_long_after_the_seconds_that_the_config_says() {
    let desktop = "\x1b]777;notify;myclaw;done in";
    for (seconds, how, expected) in [
        (1, "auto", Some(desktop)),
        (1, "bell", Some("\x07")),
        (1, "off", None),
        (100_000, "auto", None),
    ] {
        let (_server, home) = serve([
            Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 1"})),
            Reply::anthropic().text("Done."),
        ]);
        change_config(&home, |config| {
            config["terminal"] = json!({"notifications": how, "longTurnSeconds": seconds});
        });
        let mut terminal = chat_with(&home, &[("TERM", "foot")]);
        // The terminal reports that it has the focus.
        terminal.send("\x1b[Iwork\r");
        prompt_after(&mut terminal, "Done.");
        let drawn = raw(&terminal);
        // The title tells the end of the turn; the user is called then.
        let (_, after) = drawn.split_once("Done.").expect("an answer");
        let (_, after) = after.split_once("\x1b]0;myclaw:").expect("a title");
        let (_, after) = after.split_once('\x07').expect("the end of the title");
        match expected {
            Some(sequence) => assert!(after.contains(sequence), "{seconds}, {how}: {after:?}"),
            None => assert!(!after.contains('\x07'), "{seconds}, {how}: {after:?}"),
        }
        assert_eq!(after.contains("\x1b]777"), expected == Some(desktop), "{how}: {after:?}");
    }
}

/// Kilobytes of memory that a program has and that no file holds.
fn taken(terminal: &Terminal) -> u64 {
    let path = format!("/proc/{}/status", terminal.id());
    let status = fs::read_to_string(path).expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a field");
    let number = line.split_whitespace().next().expect("a number");
    number.parse().expect("a number of kilobytes")
}

#[test]
fn what_colours_code_takes_no_memory_before_the_first_code() {
    let held = |text: &str| {
        let gate = Gate::closed();
        let reply = Reply::anthropic().text(text).in_deltas(4);
        // All but the end of the stream.
        let bytes = reply.stream_body("claude-sonnet-4-20250514").len() - 200;
        (reply.step().hold_after(bytes, &gate), gate)
    };
    let (prose, end_of_prose) = held("Nothing here is code, but there are some words.\n\nMore.\n");
    let (code, end_of_code) = held("Here is some:\n\n```rust\nlet words = \"x\";\n```\nMore.\n");
    let (_server, home) = serve([prose, code]);
    let mut terminal = chat(&home);
    terminal.send_line("tell");
    terminal.expect_screen(|screen| screen.contains("some words."));
    let with_prose = taken(&terminal);
    end_of_prose.open();
    prompt_after(&mut terminal, "More.");
    terminal.send_line("show");
    terminal.expect_screen(|screen| screen.contains("    let words"));
    let with_code = taken(&terminal);
    end_of_code.open();
    // Measured: 11.6 MB with prose, 17.9 MB with code.
    assert!(with_code > with_prose + with_prose / 4, "{with_prose} KB, {with_code} KB");
}

#[test]
fn a_turn_gives_back_the_memory_that_drawing_took() {
    let line = |number| format!("    let value_{number} = compute(\"text {number}\", {number});\n");
    let code: String = (0..2_000).map(line).collect();
    let gate = Gate::closed();
    let reply = Reply::anthropic().text(format!("```rust\n{code}```\n")).in_deltas(2_000);
    // The last lines are held back.
    let bytes = reply.stream_body("claude-sonnet-4-20250514").len() - 20_000;
    let (_server, home) = serve(reply.step().hold_after(bytes, &gate));
    let mut terminal = chat(&home);
    let before = taken(&terminal);
    terminal.send_line("show it");
    terminal.expect_screen(|screen| screen.contains("value_17"));
    let meanwhile = taken(&terminal);
    gate.open();
    prompt_after(&mut terminal, "value_1999");
    let after = taken(&terminal);
    // It is about 0.7 of it; without giving anything back, a little more than 1.
    assert!(after * 100 < meanwhile * 88, "{before}, then {meanwhile}, then {after} kilobytes");
}
