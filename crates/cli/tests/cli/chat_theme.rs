//! The colours and the status line that the owner chooses.

use std::fs;

use myclaw_testkit::{Reply, TempHome};
use serde_json::{Value, json};

use crate::screen::{ask, chat, chat_with, leave, prompt_after, raw};
use crate::{always, change_config, run, serve};

/// The theme that the config file names.
fn kept(home: &TempHome) -> Value {
    let text = fs::read_to_string(home.config_path()).expect("a config");
    serde_json::from_str::<Value>(&text).expect("JSON")["terminal"]["theme"].clone()
}

#[test]
fn a_theme_counts_at_once_and_for_the_next_chats() {
    let answer =
        |name: &str| Reply::anthropic().text(format!("Look:\n\n```rust\nlet {name} = 1;\n```\n"));
    let (_server, home) = serve([answer("x"), answer("y"), answer("z")]);
    let mut terminal = chat_with(&home, &[("COLORFGBG", "15;0")]);
    ask(&mut terminal, "/theme", "* auto");
    ask(&mut terminal, "/theme neon", "there is no theme `neon`; write one of auto, dark, light");
    assert_eq!(kept(&home), Value::Null);
    ask(&mut terminal, "/theme light", "theme: light, for the next chats too");
    terminal.send_line("show it");
    prompt_after(&mut terminal, "    let x = 1;");
    assert!(raw(&terminal).contains("\x1b[38;5;90mlet"), "{:?}", raw(&terminal));
    ask(&mut terminal, "/theme high-contrast", "theme: high-contrast, for the next chats too");
    ask(&mut terminal, "/theme", "* high-contrast");
    leave(&mut terminal);
    assert_eq!(kept(&home), "high-contrast");
    run(&home, &["config", "check"]).assert_code(0);
    let mut terminal = chat_with(&home, &[("COLORFGBG", "15;0")]);
    terminal.send_line("show it");
    prompt_after(&mut terminal, "    let y = 1;");
    assert!(raw(&terminal).contains("\x1b[1mlet\x1b[0m"), "{:?}", raw(&terminal));
    ask(&mut terminal, "/theme plain", "theme: plain");
    let before = raw(&terminal).len();
    terminal.send_line("show it");
    prompt_after(&mut terminal, "    let z = 1;");
    let after = raw(&terminal)[before..].to_owned();
    // The prompt is the line editor's own; in the code no word has a colour.
    assert!(after.contains("    let\x1b[0m z = 1"), "{after:?}");
    leave(&mut terminal);
}

#[test]
fn a_theme_that_cannot_be_kept_counts_in_this_chat() {
    let (_server, home) = always("Done.");
    let mut terminal = chat(&home);
    terminal.expect_screen(|screen| screen.ends_with("You:"));
    fs::write(home.config_path(), "{ broken").expect("written");
    ask(
        &mut terminal,
        "/theme dark",
        "theme: dark, in this chat only, because the config was not changed:",
    );
    assert_eq!(fs::read_to_string(home.config_path()).expect("the config"), "{ broken");
    leave(&mut terminal);
}

#[test]
fn the_status_line_has_the_parts_of_the_config_or_the_line_of_a_command() {
    let (_server, home) = always("Done.");
    change_config(&home, |config| config["terminal"]["statusLine"] = json!(["session", "model"]));
    let mut terminal = chat(&home);
    terminal.expect_screen(|screen| {
        screen.contains("main · test/") || screen.contains("main · anthropic/")
    });
    leave(&mut terminal);
    let seen = home.path().join("seen.json");
    let command = format!("cat > {}; echo \"mine $PWD\"; echo second", seen.display());
    change_config(&home, |config| config["terminal"]["statusCommand"] = json!(command));
    let mut terminal = chat(&home);
    let screen =
        terminal.expect_screen(|screen| screen.contains("mine ") && screen.ends_with("You:"));
    assert!(!screen.contains("second") && !screen.contains("main · "), "{screen}");
    assert!(screen.contains(&home.state_directory().display().to_string()[..20]), "{screen}");
    let facts: Value =
        serde_json::from_str(&fs::read_to_string(seen).expect("facts")).expect("JSON");
    assert_eq!(facts["session"], "main");
    assert_eq!(facts["cost"], 0.0);
    leave(&mut terminal);
}

#[test]
fn a_command_that_fails_or_hangs_is_named_once_and_does_not_hold_the_prompt() {
    for (command, problem) in [
        ("echo no >&2; exit 3", "exit code 3 no; the usual line is shown instead"),
        ("true", "it printed nothing"),
        ("sleep 600", "it took longer than 1 s"),
    ] {
        let (_server, home) = always("Done.");
        change_config(&home, |config| config["terminal"]["statusCommand"] = json!(command));
        let mut terminal = chat(&home);
        terminal.expect_screen(|screen| screen.ends_with("You:"));
        terminal.send_line("go on");
        let screen = prompt_after(&mut terminal, "Done.");
        let words: String = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.matches(problem).count(), 1, "{command}: {screen}");
        leave(&mut terminal);
    }
}

#[test]
fn mistakes_in_the_keys_are_found_by_the_check() {
    let (_server, home) = always("Done.");
    for (key, value, expected) in [
        ("statusLine", json!(["weather"]), "\"today\" or \"session\""),
        ("statusLine", json!("model"), "expected a list"),
        ("statusCommand", json!(" "), "expected a string that is not empty"),
        ("theme", json!("neon"), "\"plain\" or \"high-contrast\""),
    ] {
        change_config(&home, |config| config["terminal"] = json!({key: value}));
        let check = run(&home, &["config", "check"]);
        assert_ne!(check.code(), Some(0), "{key}");
        assert!(check.stderr().contains(expected), "{}", check.stderr());
    }
}
