//! `myclaw sessions show`.

use myclaw_session::{Entry, TranscriptMessage};

use crate::exit::CliError;
use crate::print::{Printer, note};
use crate::terminal::{Paint, Style};
use crate::time::local_minute;

use super::{Sessions, speaker, summary_of, tool_calls};

impl Sessions {
    /// Prints a conversation, or its last `last` messages.
    pub(super) fn show(&self, name: &str, last: Option<usize>, json: bool) -> Result<(), CliError> {
        let key = self.find(name)?;
        let reader = self.reader(&key)?;
        let mut printer = Printer::stdout();
        let paint = Paint::for_stream(&std::io::stdout());
        let mut print = |message: &TranscriptMessage| {
            if json { printer.json(message) } else { print_message(message, paint, &mut printer) }
        };
        if let Some(count) = last {
            reader.last_messages(count)?.iter().try_for_each(print)?;
            return printer.finish();
        }
        let mut entries = reader.entries();
        for entry in entries.by_ref() {
            let entry = entry?;
            match (&entry, summary_of(&entry)) {
                (Entry::Message(message), _) => print(message)?,
                (_, Some(_)) if !json => {
                    note("(here the conversation was summarised for the model)")
                }
                _ => {}
            }
        }
        let skipped = entries.skipped_lines();
        printer.finish()?;
        if skipped > 0 {
            note(format_args!(
                "{skipped} lines of {} are damaged and were left out",
                reader.path().display()
            ));
        }
        Ok(())
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
