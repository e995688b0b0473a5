//! `myclaw chat` in a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use myclaw_testkit::{
    Reply, Signal, Step, TempHome, Terminal, is_running, send_signal, wait_until_gone,
};
use serde_json::json;

use crate::screen::{ask, chat, chat_of, leave, prompt_after, raw};
use crate::{always, myclaw, run, serve};

#[test]
fn a_turn_is_drawn_and_the_prompt_comes_back() {
    let (server, home) = serve([
        Reply::anthropic().text("I will **look**.").tool_call(
            "call_1",
            "bash",
            json!({"command": "sleep 0.3; echo x"}),
        ),
        Reply::anthropic().text("# Done\n\n- one\n- two\n\n```sh\nls \u{1b}[2J\n```\n"),
    ]);
    let mut terminal = chat(&home);
    terminal.send_line("hello");
    terminal.expect("I will look.");
    terminal.expect("✓ bash sleep 0.3; echo x");
    terminal.expect("# Done");
    terminal.expect("• one");
    terminal.expect("ls \\x1b[2J");
    terminal.expect("You: ");
    let drawn = raw(&terminal);
    assert!(drawn.contains("\x1b[1mlook\x1b[0m"), "{drawn:?}");
    // The live line was there while the tool ran, with its time, and was taken away.
    assert!(drawn.contains("bash sleep 0.3; echo x  0."), "{drawn:?}");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    assert!(!screen.contains("bash sleep 0.3; echo x  0."), "{screen}");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
    server.assert_finished();
}

#[test]
fn no_color_is_honoured() {
    let (_server, home) = serve(Reply::anthropic().text("Be **bold** and `quick`."));
    let mut command = myclaw(&home, &[]);
    command.env("NO_COLOR", "1");
    let mut terminal = chat_of(&command, 100);
    terminal.send_line("hello");
    terminal.expect("Be **bold** and `quick`.");
}

#[test]
fn long_answers_are_drawn_once() {
    let text: String = (0..120).map(|number| format!("{number}. line {number}\n")).collect();
    let (_server, home) =
        serve([Reply::anthropic().text(text).in_deltas(400).step().event_by_event()]);
    // All of it stays on the screen.
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &[]), 100, 140);
    terminal.expect("You: ");
    terminal.send_line("count");
    let screen = prompt_after(&mut terminal, "119. line 119");
    for number in 0..120 {
        let line = format!("{number}. line {number}\n");
        assert_eq!(screen.matches(&format!("\n{line}")).count(), 1, "{line}:\n{screen}");
    }
}

#[test]
fn ctrl_c_aborts_the_turn_and_returns_to_the_prompt() {
    let (_server, home) = serve([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "sleep 600"})).step(),
        Reply::anthropic().text("Still here.").step(),
    ]);
    let mut terminal = chat(&home);
    terminal.send_line("wait");
    terminal.expect("bash sleep 600  0.");
    terminal.press_ctrl_c();
    terminal.expect("aborted; the session is kept");
    terminal.expect("You: ");
    ask(&mut terminal, "are you there?", "Still here.");
    leave(&mut terminal);
}

#[test]
fn ctrl_c_at_the_prompt_drops_the_line_and_leaves_when_pressed_twice() {
    let home = TempHome::new();
    let mut terminal = chat(&home);
    terminal.send("half a line");
    terminal.expect("half a line");
    terminal.press_ctrl_c();
    terminal.expect("You: ");
    terminal.press_ctrl_c();
    terminal.expect("Ctrl-C again leaves");
    terminal.expect("You: ");
    terminal.press_ctrl_c();
    assert!(terminal.wait().success());
    assert_eq!(home.transcripts(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn ctrl_c_ends_a_search_in_the_history_and_leaves_the_prompt() {
    let home = TempHome::new();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/usage", "this chat: 0 turns");
    terminal.send("\x12usa");
    terminal.expect("(search: usa)");
    terminal.press_ctrl_c();
    terminal.expect("You: ");
    terminal.send_line("/sessions");
    terminal.expect("no sessions yet");
    assert!(!terminal.text().contains("Ctrl-C again leaves"));
}

#[test]
fn several_lines_are_one_message() {
    let (server, home) = always("Read.");
    let mut terminal = chat(&home);
    // A backslash, Alt-Enter, and a paste.
    terminal.send("one\\\r");
    terminal.send("two\x1b\r");
    terminal.send("three\r");
    terminal.expect("Read.");
    terminal.expect("You: ");
    terminal.send("\x1b[200~four\nfive\x1b[201~\r");
    terminal.expect("Read.");
    let said = |number: usize| {
        let request = &server.requests()[number];
        request.messages().last().expect("a message")["content"].to_string()
    };
    assert!(said(0).contains("one\\ntwo\\nthree"), "{}", said(0));
    assert!(said(1).contains("four\\nfive"), "{}", said(1));
}

#[test]
fn tab_completes_commands_and_sessions() {
    let (_server, home) = always("Yes.");
    run(&home, &["run", "--session", "holiday", "hello"]).assert_code(0);
    let mut terminal = chat(&home);
    terminal.send("/ses\t");
    terminal.expect("/sessions");
    terminal.send(" hol\t\r");
    terminal.expect("continuing `holiday`");
    terminal.expect("You: ");
    terminal.send_line("/hepl");
    terminal.expect("did you mean `/help`?");
}

#[test]
fn what_was_typed_is_kept_for_the_owner_alone() {
    let home = TempHome::new();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/usage", "this chat: 0 turns");
    leave(&mut terminal);
    let history = home.state_directory().join("chat_history");
    assert_eq!(fs::read_to_string(&history).expect("a history"), "/usage\n");
    assert_eq!(fs::metadata(&history).expect("a history").permissions().mode() & 0o777, 0o600);
    let mut terminal = chat(&home);
    terminal.send("\x1b[A");
    terminal.expect("/usage");
}

#[test]
fn a_failure_is_reported_and_the_prompt_comes_back() {
    let refusal = Step::status(
        400,
        &[],
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
    );
    let (_server, home) = serve([
        refusal,
        Reply::anthropic().text("half").step().cut_after(400),
        Reply::anthropic().text("Whole.").step(),
    ]);
    let mut terminal = chat(&home);
    ask(&mut terminal, "one", "myclaw: anthropic/");
    ask(&mut terminal, "two", "Whole.");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
}

#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    let home = TempHome::new();
    let mut terminal = chat(&home);
    let kill = std::process::Command::new("kill").arg(terminal.id().to_string()).status();
    assert!(kill.expect("kill").success());
    assert_eq!(terminal.wait().code(), Some(130));
    let written = raw(&terminal);
    let (paste_on, paste_off) = (written.rfind("\x1b[?2004h"), written.rfind("\x1b[?2004l"));
    assert!(paste_on.is_some() && paste_off > paste_on, "{written:?}");
}

/// A chat whose tool has printed something and goes on forever; with the ids of the tool's processes.
fn chat_with_endless_tool(command: &str) -> (TempHome, Terminal, Vec<u32>) {
    let command =
        format!("{command}; echo what it has printed; sleep 600 & echo $$ $! > pids; wait");
    let (_server, home) = serve([Reply::anthropic().text("I look at \u{202e}it.").tool_call(
        "call_1",
        "bash",
        json!({"command": command}),
    )]);
    let mut terminal = chat(&home);
    terminal.send_line("go on");
    terminal.expect("I look at \\u{202e}it.");
    let file = home.workspace().join("pids");
    let processes = loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.split_whitespace().map(|id| id.parse().expect("an id")).collect();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    (home, terminal, processes)
}

fn assert_result_is_kept(home: &TempHome) {
    let rows = home.only_transcript();
    let result = rows.iter().find(|row| row["role"] == "tool").expect("a result in the log");
    assert!(result["content"].to_string().contains("what it has printed"), "{result}");
}

#[test]
fn a_chat_whose_terminal_is_closed_keeps_what_its_tool_has_printed() {
    // The tool ignores a polite request, so it is still there when the signal comes again.
    let (home, mut terminal, processes) = chat_with_endless_tool("trap '' TERM");
    terminal.hang_up();
    // A shell passes the signal on to its jobs, which the kernel has sent it to already.
    while is_running(terminal.id()) {
        send_signal(terminal.id(), Signal::HangUp);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(terminal.wait().code(), Some(130));
    processes.into_iter().for_each(wait_until_gone);
    assert_result_is_kept(&home);
}

#[test]
fn a_chat_ends_with_the_turn_that_sigterm_aborts() {
    let (home, mut terminal, processes) = chat_with_endless_tool("true");
    send_signal(terminal.id(), Signal::Terminate);
    assert_eq!(terminal.wait().code(), Some(130));
    processes.into_iter().for_each(wait_until_gone);
    assert_result_is_kept(&home);
}
