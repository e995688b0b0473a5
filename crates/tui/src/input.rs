//! Input at the prompt, from a line editor or from standard input.

use super::editor::Editor;
use super::lines::Lines;
use myclaw_front::exit::CliError;
use myclaw_front::print::note;

/// The user's input at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A message; it is not blank.
    Text(String),
    /// The user leaves the chat.
    Leave,
    /// Something else comes first; what was typed so far stays in the editor.
    Wake(Wake),
}

/// What comes before the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// A background job has ended, or a gateway has news.
    News,
    /// The last outputs are to be shown in full.
    Unfold,
    /// What the model thinks is to be shown or hidden.
    Thinking,
    /// The permission mode is to become the next one.
    Mode,
    /// The user wants to go back to an earlier message.
    Back,
}

/// The source of lines.
pub(super) enum Source {
    /// A line editor.
    Editor(Box<Editor>),
    /// Standard input, line by line.
    Lines(Lines),
}

/// Waits for the user on a blocking thread, so that the runtime can serve connections meanwhile.
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
        // Some terminals do not answer the queries of a line editor; the chat works without one.
        note(format_args!(
            "myclaw: line editing is not available here ({error}); continuing without it"
        ));
        let mut lines = Lines::new();
        let input = lines.read();
        *self = Self::Lines(lines);
        input
    }
}
