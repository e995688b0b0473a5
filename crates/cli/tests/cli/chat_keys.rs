//! Keys and reports of the terminal, at the prompt and during a turn.

use std::time::Duration;

use myclaw_testkit::{ModelServer, Reply, Terminal};
use serde_json::json;

use crate::screen::{chat, leave, slow_tool};
use crate::{always, change_config, last_message, run, serve};

/// Reports that a terminal sends late or unasked.
const REPORTS: [&str; 16] = [
    "\x1b]11;rgb:1e1e/1e1e/2e2e\x07",
    "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1bP>|xterm(390)\x1b\\",
    "\x1b_Gi=31;OK\x1b\\",
    "\x1b[>0;276;0c",
    "\x1b[?2026;2$y",
    "\x1b[?62;4;22c",
    "\x1b[4;600;800t",
    // With C1 characters: OSC, DCS, APC, SOS, PM and CSI.
    "\u{9d}11;rgb:1e1e/1e1e/2e2e\u{9c}",
    "\u{9d}52;c;aGVsbG8=\x07",
    "\u{90}>|xterm(390)\u{9c}",
    "\u{9f}Gi=31;OK\x1b\\",
    "\u{98}string\u{9c}",
    "\u{9e}private\u{9c}",
    "\u{9b}?62;4;22c",
];

/// Sends text in pieces that do not arrive together.
fn send_split(terminal: &mut Terminal, pieces: &[&str]) {
    for piece in pieces {
        terminal.send(piece);
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// Checks that the last message is `text`, which is written as JSON writes it.
fn assert_said(server: &ModelServer, text: &str) {
    let said = last_message(server);
    assert!(said.contains(&format!("\"text\":\"{text}\"")), "{text}: {said}");
}

#[test]
fn reports_of_the_terminal_are_not_typed_at_the_prompt() {
    let (server, home) = always("Good.");
    let mut terminal = chat(&home);
    for report in REPORTS {
        let (before, after) = report.split_at(3);
        send_split(&mut terminal, &["x", before, after, "y"]);
    }
    terminal.send_line("");
    terminal.expect("Good.");
    assert_said(&server, &"xy".repeat(REPORTS.len()));
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn reports_of_the_terminal_are_not_typed_during_a_turn() {
    let (server, home) =
        serve([slow_tool("call_1").step(), Reply::anthropic().text("Good.").step()]);
    let mut terminal = chat(&home);
    terminal.send_line("work");
    terminal.expect("bash until");
    for report in REPORTS {
        let (before, after) = report.split_at(3);
        send_split(&mut terminal, &["x", before, after, "y"]);
    }
    terminal.send_line("");
    terminal.expect("is read at the next step: xyxy");
    home.write_in_workspace("go", "");
    terminal.expect("Good.");
    assert!(
        last_message(&server).contains(&"xy".repeat(REPORTS.len())),
        "{}",
        last_message(&server)
    );
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn a_key_that_arrives_in_pieces_is_that_key() {
    let (server, home) = serve([
        Reply::anthropic().text("One.").step(),
        slow_tool("call_1").step(),
        Reply::anthropic().text("Two.").step(),
    ]);
    let mut terminal = chat(&home);
    // Left, twice: what is typed next stands before the last two letters.
    terminal.send("acd");
    terminal.expect("acd");
    send_split(&mut terminal, &["\x1b", "[D", "\x1b[", "D", "\x1b", "O", "D", "\x1b[", "C", "b"]);
    terminal.send_line("");
    terminal.expect("One.");
    assert_said(&server, "abcd");
    terminal.expect("You: ");
    terminal.send_line("work");
    terminal.expect("bash until");
    send_split(&mut terminal, &["a", "\x1b", "[D", "b", "\x1b[", "A", "c"]);
    terminal.send_line("");
    terminal.expect("is read at the next step: abc");
    home.write_in_workspace("go", "");
    terminal.expect("Two.");
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn ctrl_j_and_shift_enter_are_new_lines() {
    for key in ["\n", "\x1b[27;2;13~", "\x1b[13;2u", "\x1b[27;5;106~"] {
        let (server, home) = serve([
            Reply::anthropic().text("One.").step(),
            slow_tool("call_1").step(),
            Reply::anthropic().text("Two.").step(),
        ]);
        let mut terminal = chat(&home);
        send_split(&mut terminal, &["first", key, "second"]);
        terminal.send_line("");
        terminal.expect("One.");
        assert_said(&server, r"first\nsecond");
        terminal.expect("You: ");
        terminal.send_line("work");
        terminal.expect("bash until");
        send_split(&mut terminal, &["third", key, "fourth"]);
        terminal.send_line("");
        terminal.expect("is read at the next step: third");
        home.write_in_workspace("go", "");
        terminal.expect("Two.");
        terminal.expect("You: ");
        assert!(last_message(&server).contains("third\\nfourth"), "{}", last_message(&server));
        leave(&mut terminal);
    }
}

#[test]
fn the_escape_key_alone_still_stops_a_turn() {
    let (_server, home) =
        serve([slow_tool("call_1").step(), Reply::anthropic().text("Good.").step()]);
    let mut terminal = chat(&home);
    terminal.send_line("work");
    terminal.expect("bash until");
    terminal.send("\x1b");
    terminal.expect("aborted; the session is kept");
    terminal.expect("You: ");
    leave(&mut terminal);
}

#[test]
fn a_continued_chat_shows_how_full_the_context_is_and_what_the_session_cost() {
    let (_server, home) = serve([Reply::anthropic().text("Good.").usage(50_000, 100).step()]);
    let mut terminal = chat(&home);
    terminal.send_line("hello");
    terminal.expect("Good.");
    let percent =
        terminal.expect_screen(|screen| screen.contains("% of ") && screen.ends_with("You:"));
    let part = |screen: &str| {
        let at = screen.rfind("% of ").unwrap_or(0);
        screen[..at].rsplit(' ').next().unwrap_or_default().to_owned()
    };
    leave(&mut terminal);
    let mut again = crate::screen::chat_of(&crate::myclaw(&home, &["-c"]), 100);
    let screen = again.expect_screen(|screen| screen.contains("% of ") && screen.ends_with("You:"));
    assert_eq!(part(&screen), part(&percent), "{screen}");
    leave(&mut again);
}

#[test]
fn the_usage_counts_summaries() {
    let long = format!("{}One.", "word ".repeat(3_000));
    let (_server, home) = serve([
        Reply::anthropic().text(long).usage(1_000, 10).step(),
        Reply::anthropic().text("Two.").usage(1_100, 10).step(),
        Reply::anthropic().text("A short summary.").usage(700, 5).step(),
    ]);
    let mut terminal = chat(&home);
    for (message, answer) in [("hello", "One."), ("and now?", "Two.")] {
        terminal.send_line(message);
        terminal.expect(answer);
        terminal.expect("You: ");
    }
    let counted = |terminal: &mut Terminal| {
        terminal.send_line("/usage");
        terminal.expect("this chat: 2 turns, ");
        terminal.expect("\n")
    };
    let before = counted(&mut terminal);
    terminal.send_line("/compact");
    terminal.expect("became a summary");
    terminal.expect("You: ");
    assert_ne!(counted(&mut terminal), before, "the summary is counted");
    leave(&mut terminal);
}

#[test]
fn lines_are_edited_with_the_keys_of_vi_where_the_config_says_so() {
    let (server, home) = always("Good.");
    run(&home, &["config", "set", "terminal.keys", "vi"]).assert_code(0);
    let mut terminal = chat(&home);
    terminal.send("an old line");
    terminal.expect_screen(|screen| screen.ends_with("You: an old line"));
    // Esc alone needs a pause behind it.
    send_split(&mut terminal, &["\x1b", "0", "w", "cw", "new", "\x1b", "A", "s"]);
    terminal.expect_screen(|screen| screen.ends_with("You: an new lines"));
    terminal.send_line("");
    terminal.expect("Good.");
    assert_said(&server, "an new lines");
    // The keys of the chat are there in each mode.
    terminal.expect("You: ");
    send_split(&mut terminal, &["ab", "\x1b", "x"]);
    terminal.expect_screen(|screen| screen.ends_with("You: a"));
    terminal.send("\x1b[Z");
    terminal.expect("mode sandbox: ");
    terminal.expect_screen(|screen| screen.ends_with("You: a"));
    terminal.send("\x03");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    // `u` undoes a command as a whole, and the one before it.
    terminal.send("ione two three four five");
    terminal.expect_screen(|screen| screen.ends_with("You: one two three four five"));
    send_split(&mut terminal, &["\x1b", "0", "2dw", "x"]);
    terminal.expect_screen(|screen| screen.ends_with("You: hree four five"));
    send_split(&mut terminal, &["2x", "u"]);
    terminal.expect_screen(|screen| screen.ends_with("You: hree four five"));
    send_split(&mut terminal, &["2u"]);
    terminal.expect_screen(|screen| screen.ends_with("You: one two three four five"));
    // What was typed until Escape is one change, with the command before it.
    send_split(&mut terminal, &["A", " six seven\x7f\x7f x", "\x1b", "0", "cw", "a b c", "\x1b"]);
    terminal.expect_screen(|screen| screen.ends_with("You: a b c two three four five six sev x"));
    send_split(&mut terminal, &["u"]);
    terminal.expect_screen(|screen| screen.ends_with("You: one two three four five six sev x"));
    send_split(&mut terminal, &["u"]);
    terminal.expect_screen(|screen| screen.ends_with("You: one two three four five"));
    send_split(&mut terminal, &["u"]);
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    terminal.send("\x03");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    leave(&mut terminal);
}

#[test]
fn keys_that_the_config_binds_do_what_the_usual_ones_did_and_mistakes_are_named() {
    let (server, home) = serve([slow_tool("call_1"), Reply::anthropic().text("Done.")]);
    change_config(&home, |config| {
        config["terminal"]["bindings"] =
            json!({"thinking": "f2", "mode": "ctrl-t", "newline": "alt-n"});
    });
    let mut terminal = chat(&home);
    // Both forms of a function key. The usual key of a moved action does nothing.
    for key in ["\x1bOQ", "\x1b[12~"] {
        terminal.send(key);
        terminal.expect_screen(|screen| {
            screen.contains("what the model thinks is") && screen.ends_with("You:")
        });
    }
    terminal.send("\x1b[Z");
    for mode in ["sandbox", "read-only", "plan", "ask", "auto"] {
        terminal.send("\x14");
        let said = format!("mode {mode}: ");
        terminal.expect_screen(|screen| screen.contains(&said) && screen.ends_with("You:"));
    }
    terminal.send("one\x1bntwo\r");
    // The same while the agent works.
    server.wait_for_requests_blocking(1);
    terminal.send("\x1bOQ");
    terminal.expect("what the model thinks is");
    home.write_in_workspace("go", "");
    terminal.expect_screen(|screen| screen.contains("Done.") && screen.ends_with("You:"));
    let sent = json!(server.requests()[0].messages()).to_string();
    assert!(sent.contains("one\\ntwo"), "{sent}");
    leave(&mut terminal);
    for (bindings, why) in [
        (json!({"editor": "ctrl-t", "thinking": "ctrl-t"}), "ctrl-t is the key for `thinking` too"),
        (json!({"editor": "ctrl-o"}), "ctrl-o is the key for `unfold` too"),
        (json!({"editor": "ctrl-c"}), "ctrl-c cannot be bound, because it aborts"),
        (json!({"editor": "space"}), "a key such as"),
        (json!({"editor": "f13"}), "a key such as"),
        (json!({"fly": "f3"}), "fly"),
    ] {
        change_config(&home, |config| config["terminal"]["bindings"] = bindings.clone());
        let checked = run(&home, &["config", "check"]);
        checked.assert_code(3);
        let said = checked.stderr() + &checked.stdout();
        assert!(said.contains(why), "{bindings}: {said}");
    }
}

#[test]
fn keys_that_arrive_with_the_key_of_a_command_are_kept() {
    let (server, home) =
        serve([Reply::anthropic().text("First."), Reply::anthropic().text("Second.")]);
    let mut terminal = chat(&home);
    // Ctrl-T, Shift-Tab, Ctrl-C of a search, and a line that goes on after its Enter.
    terminal.send("one \x14two \x1b[Zthree \x12x\x03four\\\rfive \x14\x14six\r");
    terminal.expect_screen(|screen| screen.contains("First.") && screen.ends_with("You:"));
    terminal.send("seven \x1b[200~ei\rght\x1b[201~ \x14nine\r");
    terminal.expect_screen(|screen| screen.contains("Second.") && screen.ends_with("You:"));
    let sent = json!(server.requests()[1].messages()).to_string();
    assert!(sent.contains("one two three four\\nfive six"), "{sent}");
    assert!(sent.contains("seven ei\\nght nine"), "{sent}");
    leave(&mut terminal);
}
