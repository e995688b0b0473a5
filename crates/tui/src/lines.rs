//! The chat without a terminal: one message a line.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::Input;
use myclaw_front::exit::CliError;

/// Longest message, as for `myclaw run -`.
const MAX_MESSAGE_BYTES: usize = 10 * 1024 * 1024;

/// Standard input, line by line.
pub(super) struct Lines {
    /// Whether input is typed and the prompt on standard error is visible.
    prompts: bool,
}

impl Lines {
    /// Reads standard input.
    pub(super) fn new() -> Self {
        Self { prompts: io::stdin().is_terminal() && io::stderr().is_terminal() }
    }

    /// Waits for a message that is not blank. A backslash at the end of a line joins the next one to it.
    pub(super) fn read(&mut self) -> Result<Input, CliError> {
        let mut message = String::new();
        loop {
            self.prompt(if message.is_empty() { "You: " } else { "  .. " });
            let mut bytes = Vec::new();
            let limit = MAX_MESSAGE_BYTES - message.len();
            io::stdin().lock().take(limit as u64 + 1).read_until(b'\n', &mut bytes).map_err(
                |error| CliError::failure(format!("cannot read standard input: {error}")),
            )?;
            if bytes.is_empty() {
                self.prompt("\n");
                // The end of input; a last line that ends with a backslash is still a message.
                return Ok(if message.trim().is_empty() {
                    Input::Leave
                } else {
                    Input::Text(message)
                });
            }
            if bytes.len() > limit {
                return Err(CliError::usage(
                    "a message is longer than 10 MiB; save it to a file and ask about that",
                ));
            }
            let line = String::from_utf8(bytes).map_err(|_| {
                CliError::usage("a line on standard input is not UTF-8; convert it first")
            })?;
            let line = line.trim_end_matches(['\n', '\r']);
            match line.strip_suffix('\\') {
                Some(line) => {
                    message.push_str(line);
                    message.push('\n');
                }
                None => {
                    message.push_str(line);
                    if !message.trim().is_empty() {
                        return Ok(Input::Text(message));
                    }
                    message.clear();
                }
            }
        }
    }

    fn prompt(&self, text: &str) {
        if self.prompts {
            let mut stderr = io::stderr();
            // A failed write is ignored: if the prompt cannot be shown, neither can an error.
            drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
        }
    }
}
