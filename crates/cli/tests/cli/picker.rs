//! The lists of `--resume`, `/resume` and `/model`: whole screens of a terminal emulator.

use std::fs;

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, Terminal};
use serde_json::json;

use crate::screen::WIDTHS;
use crate::{home_with, myclaw, run};

const ROWS: u16 = 24;

/// A home with sessions in two directories.
fn with_sessions(server: &ModelServer) -> TempHome {
    let home = home_with(server);
    home.write("src/thing/AGENTS.md", "");
    for (directory, message) in [
        ("", "Plan a trip to Rome"),
        ("src/thing", "Please fix the parser. It fails."),
        ("src/thing", "What is 漢字?"),
    ] {
        let mut command = myclaw(&home, &["run", "-q", message]);
        command.current_dir(home.path().join(directory));
        myclaw_testkit::RunningChild::run(&mut command).assert_code(0);
    }
    home
}

fn server() -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("An answer.")))
}

#[test]
fn resume_lists_sessions_finds_them_by_typing_and_shows_the_end() {
    for columns in WIDTHS {
        let server = server();
        let home = with_sessions(&server);
        let mut command = myclaw(&home, &["--resume"]);
        command.current_dir(home.path().join("src/thing"));
        let mut terminal = Terminal::spawn_sized(&command, columns, ROWS);
        let screen = terminal.expect_screen(|screen| screen.contains("Enter chooses"));
        let rows: Vec<&str> = screen.lines().collect();
        assert_eq!(rows[..2], ["Resume a session (3)", ">"], "{screen}");
        assert!(rows[2].starts_with("› What is 漢字?") && rows[2].contains("now"), "{screen}");
        assert!(rows[3].starts_with("  fix the parser "), "{screen}");
        assert!(rows[4].starts_with("  Plan a trip to Rome "), "sessions of elsewhere: {screen}");
        assert_eq!(rows[3].contains("~/src/thing"), columns >= 80, "{screen}");
        assert_eq!(rows[3].contains("2 msg"), columns >= 80, "{screen}");
        // All words count: others have the first one too.
        terminal.send("p fix");
        // The title of the list is drawn before its rows.
        terminal.expect_screen(|screen| {
            let row = screen.lines().nth(2);
            screen.contains("(1 of 3)")
                && row.is_some_and(|row| row.starts_with("› fix the parser"))
        });
        terminal.resize(columns + 5, ROWS);
        terminal.send("\r");
        let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
        assert!(screen.contains("> Please fix the parser."), "{screen}");
        assert!(screen.contains("An answer."), "{screen}");
        terminal.send_line("go on");
        terminal.expect_screen(|screen| screen.matches("An answer.").count() == 2);
    }
}

#[test]
fn escape_leaves_the_list_and_without_a_terminal_it_is_printed() {
    let server = server();
    let home = with_sessions(&server);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["-r"]), 80, ROWS);
    terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    terminal.send("\x1b");
    assert!(terminal.wait().success());
    let output = run(&home, &["--resume"]);
    output.assert_code(0);
    let stdout = output.stdout();
    assert_eq!(stdout.lines().count(), 3, "{stdout}");
    assert!(stdout.starts_with("main ") && stdout.contains("Plan a trip to Rome"), "{stdout}");
    run(&home, &["--resume", "-s", "main"]).assert_code(2);
    run(&home, &["-c", "run", "-s", "main", "x"]).assert_code(2);
    run(&home, &["--resume", "run", "x"]).assert_code(2);
    run(&TempHome::new(), &["--resume"]).assert_code(1);
}

#[test]
fn a_session_is_chosen_in_the_chat() {
    let server = server();
    let home = with_sessions(&server);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["-s", "new"]), 120, ROWS);
    terminal.expect("You: ");
    terminal.send_line("/resume");
    terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    terminal.send("parser\r");
    let screen =
        terminal.expect_screen(|screen| screen.ends_with("You:") && screen.contains("An answer."));
    assert!(screen.contains("continuing `thing-"), "{screen}");
    assert!(screen.contains("~/src/thing"), "the status shows its directory: {screen}");
}

#[test]
fn a_model_is_chosen_kept_and_made_a_favourite() {
    let server = server();
    let home = home_with(&server);
    let before = fs::read_to_string(home.config_path()).expect("the config");
    let commented = before.replacen('{', "{\n  // mine\n", 1);
    home.write_config_text(&commented);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &[]), 80, ROWS);
    terminal.expect("You: ");
    terminal.send_line("/model");
    let screen = terminal.expect_screen(|screen| screen.contains("Ctrl-K keeps"));
    assert!(screen.lines().nth(2).is_some_and(|row| row.contains("(active)")), "{screen}");
    terminal.send("claude-opus-4-6");
    terminal.expect_screen(|screen| screen.contains("› anthropic/claude-opus-4-6"));
    terminal.send("\x06");
    terminal.expect_screen(|screen| screen.contains("★ anthropic/claude-opus-4-6"));
    terminal.send("claude-opus-4-6");
    terminal.expect_screen(|screen| screen.contains("› ★ anthropic/claude-opus-4-6"));
    terminal.send("\x0b");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    assert!(screen.contains("anthropic/claude-opus-4-6 answers from now on"), "{screen}");
    assert!(screen.contains("agents.defaults.model"), "{screen}");
    let after = fs::read_to_string(home.config_path()).expect("the config");
    assert!(after.contains("// mine"), "{after}");
    for (key, value) in [
        ("agents.defaults.model", json!("anthropic/claude-opus-4-6")),
        ("models.favorites", json!(["anthropic/claude-opus-4-6"])),
    ] {
        let output = run(&home, &["config", "get", key]);
        output.assert_code(0);
        let shown = output.stdout();
        let shown = serde_json::from_str(&shown).unwrap_or_else(|_| json!(shown.trim_end()));
        assert_eq!(shown, value);
    }
}

#[test]
fn a_message_that_was_searched_for_is_opened_in_its_session() {
    let server = server();
    let home = with_sessions(&server);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["-s", "new"]), 120, ROWS);
    terminal.expect("You: ");
    terminal.send_line("/search nothing of that kind");
    terminal
        .expect_screen(|screen| screen.contains("nothing was found") && screen.ends_with("You:"));
    terminal.send_line("/search PARSER");
    let screen = terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    assert!(screen.starts_with("Open a message (1)"), "{screen}");
    assert!(screen.contains("› Please fix the parser. It fails."), "{screen}");
    terminal.send("\r");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    assert!(screen.contains("continuing `thing-"), "{screen}");
    assert!(screen.contains("found, user, 2"), "{screen}");
    assert!(screen.contains(": Please fix the parser. It fails."), "{screen}");
    // In the session itself nothing is opened.
    terminal.send_line("/search parser");
    terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    terminal.send("\r");
    terminal.expect_screen(|screen| {
        screen.ends_with("You:") && screen.matches("found, user").count() == 2
    });
    assert_eq!(terminal.text().matches("continuing `").count(), 1);
    terminal.send_line("/search PARSER");
    terminal.expect_screen(|screen| screen.contains("Enter chooses"));
    terminal.send("\x1b");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
}

#[test]
fn models_without_a_key_are_shown_when_they_are_typed() {
    let server = server();
    let home = home_with(&server);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &[]), 120, ROWS);
    terminal.expect("You: ");
    terminal.send_line("/model");
    let screen = terminal.expect_screen(|screen| screen.contains("Ctrl-K keeps"));
    assert!(
        screen.lines().next().is_some_and(|head| head.contains("type to find the others")),
        "{screen}"
    );
    assert!(!screen.contains("no key"), "{screen}");
    terminal.send("groq");
    terminal.expect_screen(|screen| screen.contains("no key") && screen.contains("› groq/"));
    terminal.send("\x15");
    terminal.expect_screen(|screen| {
        screen.contains("type to find the others") && !screen.contains("no key")
    });
}
