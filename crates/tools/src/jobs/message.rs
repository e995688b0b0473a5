//! The message by which an agent learns that a job has ended.

use myclaw_exec::LeftRunning;
use myclaw_llm::outside::{harmless, plain_name};

use super::record::JobRecord;
use crate::support::{cut_line, plain_text};

/// How messages of the program begin that tell a model from whom they are. People see that.
pub const FROM_PROGRAM: &str = "[Message from MyClaw, not from the user: ";
/// Most lines of output in a message.
const MAX_LINES: usize = 20;
/// Most characters of such a line.
const MAX_LINE_CHARS: usize = 300;
/// Most characters of the command.
const MAX_COMMAND_CHARS: usize = 200;
/// Most characters of the name of a process.
const MAX_NAME_CHARS: usize = 64;
/// Precedes each line of output, so that output cannot pose as a line of the message.
const QUOTE: &str = "| ";

/// Says how a job ended, with the end of its output.
pub(crate) fn of_end(record: &JobRecord, output: &[u8], left_running: &[LeftRunning]) -> String {
    let mut text = format!(
        "{FROM_PROGRAM}background job {} is over: {}.]\nCommand: {}",
        record.id,
        record.state(),
        harmless(&one_line(&record.command))
    );
    if !left_running.is_empty() {
        let names: Vec<String> = left_running
            .iter()
            .take(MAX_LINES)
            .map(|process| {
                format!("{} (pid {})", plain_name(&process.name, MAX_NAME_CHARS), process.pid)
            })
            .collect();
        text.push_str(&format!("\nIt left running: {}", names.join(", ")));
    }
    let output = String::from_utf8_lossy(output);
    let output = plain_text(&output);
    let lines: Vec<&str> = output.lines().collect();
    if lines.is_empty() {
        text.push_str("\nIt printed nothing.");
        return text;
    }
    text.push_str(&format!(
        "\nThe end of its output (all of it: tool process, action log, id {}):",
        record.id
    ));
    for line in &lines[lines.len().saturating_sub(MAX_LINES)..] {
        text.push_str(&format!("\n{QUOTE}{}", cut_line(line, MAX_LINE_CHARS)));
    }
    text
}

/// A command on one line.
pub(crate) fn one_line(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<&str>>().join(" ");
    let line = plain_text(&line).into_owned();
    cut_line(&line, MAX_COMMAND_CHARS).into_owned()
}
