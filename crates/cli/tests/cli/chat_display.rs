//! How the chat looks: colours, widths, long outputs, and what happens to it from outside.

use std::fs;

use myclaw_testkit::{Gate, Reply, Script, Signal, Terminal, send_signal, wait_until_gone};
use serde_json::json;

use crate::screen::{ROWS, WIDTHS, chat_at, chat_of, leave, prompt_after, raw, slow_tool};
use crate::{always, change_config, last_message, myclaw, run, serve};

#[test]
fn code_has_the_colours_that_the_background_needs() {
    let answer = "Look:\n\n```rust\nlet x = 1;\n```\n";
    for (variables, keyword) in [
        (&[("COLORFGBG", "0;15")][..], Some("\x1b[38;5;90mlet\x1b[0m")),
        (&[("COLORFGBG", "15;0")], Some("\x1b[38;5;176mlet\x1b[0m")),
        (&[("TERM", "xterm")], Some("\x1b[35mlet\x1b[0m")),
        (&[("NO_COLOR", "1")], None),
    ] {
        let (_server, home) = serve(Reply::anthropic().text(answer));
        let mut command = myclaw(&home, &[]);
        command.envs(variables.iter().copied());
        let mut terminal = chat_of(&command, 80);
        terminal.send_line("show it");
        prompt_after(&mut terminal, "    let x = 1;");
        let drawn = raw(&terminal);
        match keyword {
            Some(keyword) => assert!(drawn.contains(keyword), "{variables:?}: {drawn:?}"),
            None => assert!(!drawn.contains("38;5") && !drawn.contains("]11;?"), "{drawn:?}"),
        }
    }
}

#[test]
fn an_edit_has_backgrounds_and_the_colours_of_its_language() {
    let (_server, home) = serve([
        Reply::anthropic().tool_call(
            "call_1",
            "edit",
            json!({"path": "a.rs", "oldText": "let x = 1;", "newText": "let y = 2;"}),
        ),
        Reply::anthropic().text("Done."),
    ]);
    home.write_in_workspace("a.rs", "fn a() {\n    let x = 1;\n}\n");
    change_config(&home, |config| config["terminal"] = json!({"theme": "dark"}));
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("change it");
    prompt_after(&mut terminal, "Done.");
    let drawn = raw(&terminal);
    assert!(drawn.contains("\x1b[48;5;52m\x1b[38;5;176mlet\x1b[0m"), "{drawn:?}");
    assert!(drawn.contains("\x1b[48;5;22m\x1b[38;5;176mlet\x1b[0m"), "{drawn:?}");
}

#[test]
fn words_stay_whole_at_every_width_also_when_it_changes_in_between() {
    let words: Vec<String> = (0..400).map(|number| format!("word{number}")).collect();
    let text: String = words.chunks(50).map(|chunk| chunk.join(" ") + "\n\n").collect();
    for columns in WIDTHS {
        let gate = Gate::closed();
        let half = Reply::anthropic().text(text.clone()).in_deltas(200).step();
        let (_server, home) = serve(half.event_by_event().hold_after(12_000, &gate));
        let mut terminal = chat_at(&home, columns);
        terminal.send_line("many words");
        terminal.expect_screen(|screen| screen.contains("word150"));
        terminal.resize(columns - 7, ROWS);
        terminal.send("typed");
        terminal.expect_screen(|screen| screen.contains("> typed"));
        gate.open();
        let screen = terminal
            .expect_screen(|screen| screen.contains("word399") && screen.ends_with("You: typed"));
        let at = screen.rfind("\n\n").map_or(0, |end| screen[..end].rfind("\n\n").unwrap_or(0));
        let last: Vec<&str> =
            screen[at..].split_whitespace().filter(|word| word.starts_with("word")).collect();
        assert!(last.iter().all(|word| words.iter().any(|whole| whole == word)), "{screen}");
        assert!(last.ends_with(&["word398", "word399"]), "{columns}: {screen}");
    }
}

#[test]
fn wide_and_right_to_left_text_and_emoji_are_shown_as_they_are() {
    let text = "漢字かな交じり文です。 שלום עולם\nمرحبا 👩\u{200d}👩\u{200d}👧 ok\n\n| a | 漢字 |\n|---|---|\n| שלום | 1 |\n";
    for columns in WIDTHS {
        let (_server, home) = serve(Reply::anthropic().text(text).in_deltas(40));
        let mut terminal = chat_at(&home, columns);
        terminal.send_line("many scripts");
        let screen = prompt_after(&mut terminal, "│ 1");
        for part in ["漢字かな交じり文です。 שלום עולם", "مرحبا", " ok", "a    │ 漢字", "שלום │ 1"]
        {
            assert!(screen.contains(part), "{columns}: {part}: {screen}");
        }
    }
}

#[test]
fn a_hundred_thousand_lines_are_shown_by_their_end() {
    let (_server, home) = serve([
        Reply::anthropic().tool_call(
            "call_1",
            "bash",
            json!({"command": "seq 1 100000; printf 'at 1%%\\rat 50%%\\rat 100%%\\n'"}),
        ),
        Reply::anthropic().text("Counted."),
    ]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("count");
    let screen = prompt_after(&mut terminal, "Counted.");
    assert!(screen.contains("more lines (Ctrl-O)\n  at 50%\n  at 100%\n"), "{screen}");
}

#[test]
fn a_paste_of_ten_megabytes_is_one_line_and_arrives_whole() {
    let (_server, home) = always("Read.");
    let copy = home.write("copy", "");
    let script = format!("cp \"$1\" {}\necho short instead >\"$1\"\n", copy.display());
    let script = home.write("editor", &script);
    let mut command = myclaw(&home, &[]);
    command.env("EDITOR", format!("sh {}", script.display()));
    let mut terminal = chat_of(&command, 80);
    // Less than the limit of a message, whose mark needs some bytes too.
    let paste: String = (0..100_000).map(|number| format!("{number:099}\n")).collect();
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.expect_screen(|screen| screen.ends_with(": 100000 lines, 10000000 bytes]"));
    // The editor gets all of it.
    terminal.send("\x07");
    terminal.expect_screen(|screen| screen.ends_with("You: short instead"));
    assert!(std::fs::read_to_string(&copy).expect("a copy") == paste, "every byte in its place");
    terminal.send("\r");
    terminal.expect("Read.");
}

#[test]
fn a_recalled_message_sends_what_was_pasted_into_it() {
    let (server, home) = always("Read.");
    let paste: String = (0..200).map(|number| format!("row {number}\n")).collect();
    let mut terminal = chat_at(&home, 80);
    terminal.send("see ");
    terminal.expect_screen(|screen| screen.ends_with("You: see"));
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.expect_screen(|screen| screen.ends_with(": 200 lines, 1490 bytes]"));
    terminal.send("\r");
    terminal.expect("Read.");
    terminal.expect("You: ");
    leave(&mut terminal);
    let mut later = chat_at(&home, 80);
    later.send("\x1b[A");
    later.expect_screen(|screen| screen.ends_with(": 200 lines, 1490 bytes]"));
    later.send("\r");
    later.expect_screen(|screen| screen.matches("Read.").count() >= 2 && screen.ends_with("You:"));
    let said = last_message(&server);
    assert!(said.contains("see row 0\\n") && said.contains("row 199"), "{said}");
}

#[test]
fn commands_that_change_nothing_work_while_the_agent_works() {
    let (_server, home) = serve([slow_tool("call_1"), Reply::anthropic().text("Over.")]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("begin");
    terminal.expect_screen(|screen| screen.contains("bash until"));
    terminal.send_line("/cost");
    terminal.expect("this chat: 0 turns");
    terminal.send_line("/model");
    terminal.expect("anthropic/claude");
    terminal.send_line("/new");
    terminal.expect("`/new` has to wait");
    home.write_in_workspace("go", "");
    terminal.expect("Over.");
}

#[test]
fn that_the_window_is_small_is_said_once() {
    let (_server, home) = always("Yes.");
    let models = r#"[{"id": "claude-sonnet-4-20250514", "contextWindow": 20000}]"#;
    run(&home, &["config", "set", "models.providers.anthropic.models", models]).assert_code(0);
    let mut terminal = chat_at(&home, 100);
    for message in ["one", "two"] {
        terminal.send_line(message);
        terminal.expect("Yes.");
    }
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    assert_eq!(screen.matches("context window of 20000").count(), 1, "{screen}");
}

#[test]
fn at_a_limit_the_user_decides_whether_to_go_on() {
    let call = |id: &str| Reply::anthropic().tool_call(id, "bash", json!({"command": "true"}));
    let (server, home) = serve([
        call("call_1"),
        Reply::anthropic().text("So far."),
        Reply::anthropic().text("All done."),
    ]);
    change_config(&home, |config| config["agent"]["maxIterations"] = json!(1));
    let mut terminal = chat_at(&home, 40);
    terminal.send_line("work");
    terminal.expect("So far.");
    terminal.expect_screen(|screen| {
        let words: Vec<&str> = screen.split_whitespace().collect();
        words.join(" ").ends_with("is used up. Go on? (y)es or (n)o")
    });
    // Up is no answer. Enter may follow one.
    terminal.send("\x1b[A");
    terminal.send("y\r");
    terminal.expect("All done.");
    terminal.expect("You: ");
    server.assert_finished();
}

#[test]
fn a_signal_during_a_command_of_the_user_ends_the_chat_and_keeps_the_output() {
    for signal in [Signal::Terminate, Signal::HangUp] {
        let (_server, home) = always("Yes.");
        run(&home, &["run", "hello"]).assert_code(0);
        let mut terminal = chat_at(&home, 80);
        // The shell waits for another process, which ends too.
        let command = "sh -c 'echo $$ > pid; echo begun; exec sleep 600'; echo after";
        terminal.send_line(&format!("!{command}"));
        terminal.expect("begun\n");
        let pid = fs::read_to_string(home.workspace().join("pid")).expect("an id");
        send_signal(terminal.id(), signal);
        terminal.wait();
        let log = fs::read_to_string(home.transcript_path("main")).expect("a transcript");
        assert!(log.contains("echo after\\nbegun"), "{signal:?}: {log}");
        wait_until_gone(pid.trim().parse().expect("an id"));
    }
}

#[test]
fn escape_ends_a_compaction_and_typed_text_is_kept() {
    let gate = Gate::closed();
    let held = Reply::anthropic().text("A summary.").step().hold_after(0, &gate);
    let script = Script::from([
        Reply::anthropic().text("One.").step(),
        Reply::anthropic().text("Two.").step(),
        held,
    ]);
    let (_server, home) = serve(script);
    for message in ["first", "second"] {
        run(&home, &["run", message]).assert_code(0);
    }
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("/compact");
    terminal.expect_screen(|screen| screen.contains("summarising"));
    terminal.send("next idea");
    terminal.expect_screen(|screen| screen.contains("> next idea"));
    terminal.send("\x1b");
    terminal.expect_screen(|screen| screen.ends_with("You: next idea"));
    gate.open();
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_until_fg() {
    // Bash sets the mode of the terminal itself; a plain shell needs the one that it had.
    for (shell, options) in [("bash", &["--norc", "--noprofile", "-i"][..]), ("sh", &["-i"])] {
        let (_server, home) = serve([slow_tool("call_1"), Reply::anthropic().text("Over.")]);
        let program = myclaw(&home, &[]);
        let mut shell = home.command(shell);
        shell.args(options).env("PS1", "shell> ");
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut terminal = Terminal::spawn_sized(&shell, 80, ROWS);
        terminal.expect("shell> ");
        terminal.send_line(env!("CARGO_BIN_EXE_myclaw"));
        terminal.expect("You: ");
        terminal.send("half");
        terminal.expect_screen(|screen| screen.ends_with("You: half"));
        terminal.send("\x1a");
        terminal.expect("Stopped");
        terminal.send_line("echo in-between; fg");
        terminal.expect("in-between");
        terminal.expect_screen(|screen| screen.ends_with("You: half"));
        terminal.send("\r");
        terminal.expect_screen(|screen| screen.contains("bash until"));
        terminal.send("\x1a");
        terminal.expect("Stopped");
        // Signals and whole lines are as before.
        terminal.send_line("stty -a; fg");
        let modes = terminal.expect("icanon");
        assert!(!modes.contains("-icanon") && !modes.contains("-isig"), "{modes}");
        terminal.send("typed");
        terminal.expect_screen(|screen| screen.contains("> typed"));
        home.write_in_workspace("go", "");
        terminal.expect_screen(|screen| screen.contains("Over.") && screen.ends_with("You: typed"));
    }
}
