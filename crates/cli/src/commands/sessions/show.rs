//! `myclaw sessions show`.

use myclaw_session::{Entry, TranscriptMessage};

use crate::exit::CliError;
use crate::print::Printer;
use crate::terminal::{Paint, Style};
use crate::time::local_minute;

use super::{Sessions, note_damaged_lines, speaker, tool_calls};

/// Stands where a summary took the place of what was said before, as far as the model is concerned.
const SUMMARISED: &str = "(here the conversation was summarised for the model)";

/// How a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShowFormat {
    /// For people.
    Text,
    /// One message per line.
    Json,
}

impl Sessions {
    /// Prints a conversation, or its last `last` messages.
    pub(super) fn show(
        &self,
        name: &str,
        last: Option<usize>,
        format: ShowFormat,
    ) -> Result<(), CliError> {
        let key = self.find(name)?;
        let reader = self.reader(&key)?;
        let mut printer = Printer::stdout();
        let paint = Paint::for_stream(&std::io::stdout());
        if let Some(count) = last {
            for message in reader.last_messages(count)? {
                print(&message, format, paint, &mut printer)?;
            }
            return printer.finish();
        }
        let mut entries = reader.entries();
        for entry in entries.by_ref() {
            match entry? {
                Entry::Message(message) => print(&message, format, paint, &mut printer)?,
                Entry::Compaction(_) if format == ShowFormat::Text => {
                    printer.line(paint.paint(Style::Dim, SUMMARISED))?;
                    printer.line("")?;
                }
                Entry::Compaction(_) | Entry::About(_) | Entry::Unknown(_) => {}
            }
        }
        let skipped = entries.skipped_lines();
        printer.finish()?;
        note_damaged_lines(skipped, reader.path());
        Ok(())
    }
}

fn print(
    message: &TranscriptMessage,
    format: ShowFormat,
    paint: Paint,
    printer: &mut Printer,
) -> Result<(), CliError> {
    match format {
        ShowFormat::Json => printer.json(message),
        ShowFormat::Text => print_message(message, paint, printer),
    }
}

fn print_message(
    message: &TranscriptMessage,
    paint: Paint,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let head = format!("{}, {}", speaker(message), local_minute(message.ts));
    let head = printer.safe(&head).into_owned();
    printer.line(paint.paint(Style::Heading, &head))?;
    if !message.content.is_empty() {
        let content = printer.safe(&message.content).into_owned();
        printer.line(content.trim_end_matches('\n'))?;
    }
    for (name, arguments) in tool_calls(message) {
        let call = format!("[calls {name} {arguments}]");
        let call = printer.safe(&call).into_owned();
        printer.line(paint.paint(Style::Dim, &call))?;
    }
    printer.line("")
}
