//! What a user of `myclaw chat` sees: whole screens of a terminal emulator.

use myclaw_testkit::{Reply, Terminal};
use serde_json::json;

use crate::screen::{ROWS, WIDTHS, ask, chat_at, chat_of, leave, prompt_after, slow_tool};
use crate::{always, last_message, myclaw, run, serve};

/// Rows of a screen from the last one that begins with `first` on, without the time that a call took.
fn rows_from<'a>(screen: &'a str, first: &str) -> Vec<&'a str> {
    let rows: Vec<&str> = screen.lines().collect();
    let at = rows.iter().rposition(|row| row.starts_with(first));
    at.map_or_else(|| panic!("no row begins with {first:?}:\n{screen}"), |at| rows[at..].to_vec())
}

#[test]
fn an_edit_is_shown_as_a_diff_at_every_width() {
    for columns in WIDTHS {
        let (_server, home) = serve([
            Reply::anthropic().tool_call(
                "call_1",
                "edit",
                json!({"path": "a.txt", "oldText": "two", "newText": "2\n2½"}),
            ),
            Reply::anthropic().text("Done."),
        ]);
        home.write_in_workspace("a.txt", "one\ntwo\nthree\n");
        let mut terminal = chat_at(&home, columns);
        terminal.send_line("change it");
        let screen = prompt_after(&mut terminal, "Done.");
        let rows = rows_from(&screen, "✓ edit a.txt");
        assert!(rows[0].starts_with("✓ edit a.txt  +2 -1, "), "{screen}");
        assert_eq!(
            rows[1..7],
            [
                "      1   one",
                "      2 - two",
                "      2 + 2",
                "      3 + 2½",
                "      4   three",
                "",
            ],
            "{screen}"
        );
        assert_eq!(rows[7], "Done.", "{screen}");
        assert!(
            rows[rows.len() - 2].contains("claude"),
            "the status is above the prompt:\n{screen}"
        );
    }
}

#[test]
fn a_command_shows_its_output_while_it_runs_and_the_status_stays_below() {
    for columns in WIDTHS {
        let command = "for i in 1 2 3 4 5 6 7 8 9; do echo \"line $i 漢字\"; done; until test -e go; do sleep 0.02; done; exit 3";
        let (_server, home) = serve([
            Reply::anthropic().tool_call("call_1", "bash", json!({"command": command})),
            Reply::anthropic().text("It failed."),
        ]);
        let mut terminal = chat_at(&home, columns);
        terminal.send_line("run it");
        terminal.expect_screen(|screen| screen.contains("line 9 漢字"));
        terminal.send("and then");
        let is_drawn =
            |screen: &str| screen.lines().rev().nth(1).is_some_and(|row| row == "> and then");
        let screen = terminal.expect_screen(is_drawn);
        let rows = rows_from(&screen, "  line 6 漢字");
        assert_eq!(rows[1..4], ["  line 7 漢字", "  line 8 漢字", "  line 9 漢字"], "{screen}");
        assert!(rows[4].contains("bash for i in"), "{screen}");
        assert_eq!(rows[5], "> and then", "{screen}");
        assert!(rows[6].contains("claude"), "{screen}");
        assert_eq!(rows.len(), 7, "{screen}");
        // Another size while it runs: nothing is left of what was drawn before.
        terminal.resize(columns + 10, ROWS);
        terminal.send(" more");
        let screen = terminal.expect_screen(|screen| screen.contains("> and then more"));
        assert_eq!(screen.matches("line 9").count(), 1, "{screen}");
        home.write_in_workspace("go", "");
        let is_done = |screen: &str| screen.contains("It failed.") && screen.ends_with("more");
        let screen = terminal.expect_screen(is_done);
        let rows = rows_from(&screen, "✗ bash for i");
        assert!(rows[0].contains("exit 3, "), "{screen}");
        assert_eq!(rows[1], "  line 1 漢字", "{screen}");
        assert_eq!(rows[9], "  line 9 漢字", "{screen}");
    }
}

#[test]
fn ctrl_o_shows_the_last_output_in_full_and_ctrl_o_hides_it() {
    let (_server, home) = serve([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "seq 1 60"})),
        Reply::anthropic().text("Counted."),
    ]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("count");
    let before = prompt_after(&mut terminal, "Counted.");
    assert!(before.contains("  2\n  … 55 more lines (Ctrl-O)\n  58\n"), "{before}");
    terminal.send("half a line\x0f");
    let screen = terminal.expect_screen(|screen| screen.contains("Ctrl-O or q closes"));
    assert!(
        screen.starts_with("✓ bash seq 1 60  exit 0, ") && screen.contains("\n28\n"),
        "{screen}"
    );
    terminal.send("\x0f");
    let after = terminal.expect_screen(|screen| screen.ends_with("You: half a line"));
    assert!(after.contains("… 55 more lines (Ctrl-O)"), "{after}");
}

#[test]
fn queued_messages_and_the_status_stay_below_a_streaming_answer() {
    let lines: String = (0..60).map(|number| format!("Line {number} of it.\n\n")).collect();
    let (_server, home) = serve([
        slow_tool("call_1"),
        Reply::anthropic().text(lines).in_deltas(300),
        Reply::anthropic().text("Later it is."),
    ]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("begin");
    terminal.expect_screen(|screen| screen.contains("bash until"));
    terminal.send_line("/later and this");
    let is_drawn =
        |screen: &str| screen.lines().rev().nth(2).is_some_and(|row| row == "later: and this");
    let screen = terminal.expect_screen(is_drawn);
    let rows = rows_from(&screen, "later: and this");
    assert!(rows[1] == ">" && rows[2].contains("claude"), "{screen}");
    home.write_in_workspace("go", "");
    let screen = prompt_after(&mut terminal, "Later it is.");
    assert!(!screen.contains("later: and this"), "{screen}");
    let rows = rows_from(&screen, "Line 58 of it.");
    assert_eq!(rows[..3], ["Line 58 of it.", "", "Line 59 of it."], "{screen}");
}

#[test]
fn escape_stops_a_turn() {
    let (_server, home) =
        serve([Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 600"}))]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("wait");
    terminal.expect_screen(|screen| screen.contains("bash sleep 600"));
    terminal.send("\x1b");
    terminal.expect("aborted; the session is kept");
}

#[test]
fn what_a_command_of_the_user_prints_is_shown_to_the_model_if_it_is_meant_to_be() {
    let (server, home) = always("I see.");
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("!echo for-both; exit 4");
    prompt_after(&mut terminal, "\nfor-both\nexit 4, ");
    terminal.send_line("!!echo for-me");
    prompt_after(&mut terminal, "\nfor-me\nexit 0, ");
    terminal.send_line("what was that?");
    terminal.expect("I see.");
    let request = server.last_request();
    let request = request.body_text();
    assert!(request.contains("$ echo for-both; exit 4\\nfor-both"), "{request}");
    assert!(request.contains(": exit 4]") && !request.contains("for-me"), "{request}");
}

#[test]
fn tab_finds_files_and_ctrl_g_opens_the_editor() {
    let (server, home) = always("Read.");
    for path in ["src/server.rs", "sand.txt", "target/server.o"] {
        home.write_in_workspace(path, "");
    }
    home.write_in_workspace(".gitignore", "target/\n");
    let mut command = myclaw(&home, &[]);
    command.env("EDITOR", "sed -i s/world/everyone/");
    let mut terminal = chat_of(&command, 80);
    terminal.send("explain @serv\t");
    terminal.expect_screen(|screen| screen.ends_with("You: explain @src/server.rs"));
    // Several fit: the prompt stays above the menu, and Enter takes the first.
    terminal.send("\x15@s\t");
    terminal.expect_screen(|screen| {
        let menu = screen.split_once("You: @s\n").map(|(_, menu)| menu.split_whitespace());
        menu.is_some_and(|menu| menu.eq(["@sand.txt", "@src/", "@src/server.rs"]))
    });
    terminal.send("\r");
    terminal.expect_screen(|screen| screen.ends_with("You: @sand.txt"));
    terminal.send("\x15hello world\x07");
    terminal.expect_screen(|screen| screen.ends_with("You: hello everyone"));
    // A long paste is one line, and the message gets all of it.
    let paste: String = (0..200).map(|number| format!("row {number}\n")).collect();
    terminal.send(" (");
    terminal.expect_screen(|screen| screen.ends_with("You: hello everyone ("));
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    let is_folded = |screen: &str| {
        screen.contains("You: hello everyone ([paste ")
            && screen.ends_with(": 200 lines, 1490 bytes]")
    };
    terminal.expect_screen(is_folded);
    terminal.send("\r");
    terminal.expect("Read.");
    let said = last_message(&server);
    assert!(said.contains("hello everyone (row 0\\n") && said.contains("row 199"), "{said}");
}

#[test]
fn a_typed_message_breaks_between_words_while_it_is_typed_and_after_it_was_sent() {
    let (server, home) = always("Read.");
    let mut terminal = chat_at(&home, 40);
    let said = "Replace the discount in the shop by a percentage and run all of its tests";
    let rows = [
        "You: Replace the discount in the shop",
        "     by a percentage and run all of its",
        "     tests",
    ];
    terminal.send(said);
    let is_typed = |screen: &str| rows_from(screen, "You:") == rows;
    terminal.expect_screen(is_typed);
    // The cursor is where the text is: five words back, in the row above.
    terminal.send("\x1bb\x1bb\x1bb\x1bb\x1bb\x0b");
    terminal
        .expect_screen(|screen| rows_from(screen, "You:") == [rows[0], "     by a percentage and"]);
    terminal.send("\x19\r");
    let screen = prompt_after(&mut terminal, "Read.");
    let sent: Vec<&str> = screen.lines().skip_while(|row| *row != rows[0]).take(3).collect();
    assert_eq!(sent, rows, "{screen}");
    let request = server.last_request();
    assert_eq!(request.messages().last().expect("a message")["content"][0]["text"], said);
}

#[test]
fn a_session_is_continued_with_its_end_and_its_title() {
    let (server, home) = always("Take the **train**.\nIt is fast.");
    run(&home, &["run", "How do I get to Rome?"]).assert_code(0);
    let mut terminal = chat_at(&home, 80);
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    let rows = rows_from(&screen, "> How do I get to Rome?");
    assert_eq!(rows[1..3], ["Take the train.", "It is fast."], "{screen}");
    terminal.send_line("/title Rome by train");
    terminal.expect("`main`: Rome by train");
    terminal.send_line("/fork plan-b");
    terminal.expect("`plan-b` goes on from here; `main` stays as it is");
    ask(&mut terminal, "/retry", "Take the train.");
    terminal.send_line("/export talk.md");
    terminal.expect("written to ");
    assert!(home.workspace().join("talk.md").exists());
    assert_eq!(server.last_request().messages().len(), 1, "the first message alone");
}

#[test]
fn a_message_on_the_command_line_begins_the_chat_and_piped_input_belongs_to_a_run() {
    let (server, home) = always("Yes.");
    let mut terminal =
        Terminal::spawn_sized(&myclaw(&home, &["--session", "trip", "pack my bags"]), 80, ROWS);
    terminal.expect("You: pack my bags");
    terminal.expect("Yes.");
    terminal.expect("You: ");
    leave(&mut terminal);
    let mut command = myclaw(&home, &["--session", "trip", "run", "explain this:"]);
    let output = myclaw_testkit::RunningChild::run_with_input(&mut command, "+ a line\n");
    output.assert_code(0);
    let request = server.last_request();
    let said = request.messages().last().expect("a message")["content"].to_string();
    assert!(said.contains("explain this:\\n\\n+ a line"), "{said}");
    assert_eq!(request.messages().len(), 3, "the session before the command counts");
}
