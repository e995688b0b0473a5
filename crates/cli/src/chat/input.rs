//! What the user types at the prompt, and where it is read from.

use super::editor::Editor;
use super::lines::Lines;
use crate::exit::CliError;
use crate::print::note;

/// What the user did at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Sent this; it is not blank.
    Text(String),
    /// Wants to leave.
    Leave,
}

/// Where lines come from.
pub(super) enum Source {
    /// A line editor.
    Editor(Box<Editor>),
    /// Standard input, line by line.
    Lines(Lines),
}

/// Waits for the user on a thread that may block, so that connections are looked after meanwhile.
pub(super) async fn next_input(
    mut source: Source,
    unsent: String,
) -> Result<(Input, Source), CliError> {
    let waiting = tokio::task::spawn_blocking(move || {
        let input = source.read(unsent);
        (input, source)
    });
    let (input, source) = waiting
        .await
        .map_err(|error| CliError::failure(format!("the line editor failed: {error}")))?;
    Ok((input?, source))
}

impl Source {
    fn read(&mut self, unsent: String) -> Result<Input, CliError> {
        let error = match self {
            Self::Lines(lines) => return lines.read(),
            Self::Editor(editor) => match editor.read(unsent) {
                Ok(input) => return Ok(input),
                Err(error) => error,
            },
        };
        // Some terminals do not answer what an editor asks; a chat is possible all the same.
        note(format_args!("myclaw: lines cannot be edited here ({error}); going on without"));
        let mut lines = Lines::new();
        let input = lines.read();
        *self = Self::Lines(lines);
        input
    }
}
