//! A chat on a terminal.

use std::process::Command;

use myclaw_testkit::{Reply, TempHome, Terminal};
use serde_json::json;

use crate::myclaw;

/// Widths in columns: a phone, a classic terminal, a wide screen.
pub(crate) const WIDTHS: [u16; 3] = [40, 80, 200];
pub(crate) const ROWS: u16 = 30;

/// A chat at its prompt, in a terminal of 100 columns.
pub(crate) fn chat(home: &TempHome) -> Terminal {
    chat_at(home, 100)
}

/// The same at a width.
pub(crate) fn chat_at(home: &TempHome, columns: u16) -> Terminal {
    chat_of(&myclaw(home, &[]), columns)
}

/// The same with further variables, in 100 columns.
pub(crate) fn chat_with(home: &TempHome, variables: &[(&str, &str)]) -> Terminal {
    chat_of(myclaw(home, &[]).envs(variables.iter().copied()), 100)
}

/// A chat at its prompt, started by `command`.
pub(crate) fn chat_of(command: &Command, columns: u16) -> Terminal {
    let mut terminal = Terminal::spawn_sized(command, columns, ROWS);
    terminal.expect("You: ");
    terminal
}

/// Sends a line, and waits for what it says and for the prompt.
pub(crate) fn ask(terminal: &mut Terminal, line: &str, expected: &str) {
    terminal.send_line(line);
    terminal.expect(expected);
    terminal.expect("You: ");
    terminal.expect_screen(|screen| screen.ends_with("You:"));
}

/// Waits for a screen with `text` and an empty prompt at its end, and returns it.
pub(crate) fn prompt_after(terminal: &mut Terminal, text: &str) -> String {
    terminal.expect_screen(|screen| screen.contains(text) && screen.ends_with("You:"))
}

/// Leaves the chat by its keys.
pub(crate) fn leave(terminal: &mut Terminal) {
    terminal.press_ctrl_d();
    assert!(terminal.wait().success());
}

/// A call of a command that runs until the workspace has a file `go`, or is gone.
pub(crate) fn slow_tool(id: &str) -> Reply {
    let command = "until test -e go || ! test -e \"$PWD\"; do sleep 0.02; done";
    Reply::anthropic().tool_call(id, "bash", json!({"command": command}))
}

/// All that was written to the terminal.
pub(crate) fn raw(terminal: &Terminal) -> String {
    String::from_utf8_lossy(&terminal.raw()).into_owned()
}
