//! Reads standard input line by line, without blocking the runtime.

use std::io::{self, BufRead, Read};
use std::thread;

use tokio::sync::mpsc;

/// Longest line: room for several images, and far more than any model's window.
const MOST_LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Lines that are read ahead.
const READ_AHEAD: usize = 16;

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Text, without its line end.
    Text(String),
    /// A line that cannot be used; the message is for the program's author.
    Unusable(String),
}

/// The lines of standard input. The channel closes at its end.
///
/// # Errors
/// The system cannot start a thread.
pub(super) fn standard_input() -> io::Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    // A thread of its own, not one of the runtime's: it may block in its read forever, and the exit must not wait for
    // it.
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(line) = next_line(&mut input, MOST_LINE_BYTES) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// The next line that is not blank; `None` at the end, and when nothing more can be read.
fn next_line(input: &mut impl BufRead, limit: u64) -> Option<Line> {
    loop {
        let mut bytes = Vec::new();
        input.by_ref().take(limit + 1).read_until(b'\n', &mut bytes).ok()?;
        if bytes.is_empty() {
            return None;
        }
        if bytes.len() as u64 > limit && !bytes.ends_with(b"\n") {
            skip_line(input)?;
            return Some(Line::Unusable(format!("the line is longer than {limit} bytes")));
        }
        match String::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(mut text) => {
                text.truncate(text.trim_end().len());
                return Some(Line::Text(text));
            }
            Err(error) => {
                let at = error.utf8_error().valid_up_to() + 1;
                return Some(Line::Unusable(format!("the line is not UTF-8 (byte {at})")));
            }
        }
    }
}

/// Skips the rest of a line without storing it.
fn skip_line(input: &mut impl BufRead) -> Option<()> {
    loop {
        let buffer = input.fill_buf().ok()?;
        if buffer.is_empty() {
            return Some(());
        }
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(used);
        if ended {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests;
