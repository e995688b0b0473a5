//! `myclaw sessions show`.

use myclaw_agent::export::{redact_row, speaker, tool_calls};
use myclaw_llm::Redactor;
use myclaw_session::{CompactionEntry, Entry, ReadSession, Role, TailLimit, TranscriptMessage};

use super::{Sessions, note_damage};
use crate::exit::CliError;
use crate::print::{Printer, note};
use crate::terminal::{Paint, Size, Style, rendered};
use crate::time::local_minute;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowFormat {
    /// For people.
    Text,
    /// One message (or summary) per line.
    Json,
}

/// How much of a session is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowPart {
    /// The context of the next turn: the last summary and the messages after it.
    SinceSummary,
    /// All messages.
    All,
    /// This many of the last messages.
    Last(usize),
}

impl Sessions {
    /// Prints a session.
    pub fn show(&self, name: &str, part: ShowPart, format: ShowFormat) -> Result<(), CliError> {
        let key = self.find(name)?;
        let reader = self.reader(&key)?;
        let paint = Paint::for_stream(&std::io::stdout());
        let redactor = self.home.redactor();
        let mut page = Page { printer: Printer::stdout(), format, paint, redactor };
        let skipped_lines = match part {
            ShowPart::Last(count) => {
                for message in reader.last_messages(count)? {
                    page.message(&message)?;
                }
                0
            }
            ShowPart::SinceSummary if reader.last_compaction()?.is_some() => {
                page.origin(&*reader)?;
                page.remark(&format!(
                    "(what came before is summarised; `myclaw sessions show {} --all` shows it)",
                    self.name_of(&key)
                ))?;
                let tail = reader.tail(TailLimit::UNLIMITED)?;
                if let Some(compaction) = &tail.compaction {
                    page.summary(compaction)?;
                }
                for message in &tail.messages {
                    page.message(message)?;
                }
                tail.skipped_lines
            }
            ShowPart::SinceSummary | ShowPart::All => {
                page.origin(&*reader)?;
                page.everything(&*reader)?
            }
        };
        page.printer.finish()?;
        note_damage(skipped_lines, &*reader)?;
        for moved in self.catalog.moved_aside(Some(&key))? {
            let (bytes, path) = (moved.bytes, moved.path.display());
            note(format_args!(
                "{bytes} bytes at a damaged end of this transcript were moved to {path}"
            ));
        }
        Ok(())
    }
}

/// The state of the output.
struct Page {
    printer: Printer,
    format: ShowFormat,
    paint: Paint,
    redactor: Redactor,
}

impl Page {
    /// Prints all entries; returns how many lines could not be read.
    fn everything(&mut self, reader: &dyn ReadSession) -> Result<usize, CliError> {
        let mut entries = reader.entries();
        for entry in entries.by_ref() {
            match entry? {
                Entry::Message(message) => self.message(&message)?,
                Entry::Compaction(compaction) => self.summary(&compaction)?,
                Entry::Reduction(_)
                | Entry::Refusal(_)
                | Entry::Unsigned(_)
                | Entry::About(_)
                | Entry::Unknown(_) => {}
            }
        }
        Ok(entries.skipped_lines())
    }

    /// Prints where a fork branched off.
    fn origin(&mut self, reader: &dyn ReadSession) -> Result<(), CliError> {
        let Some(origin) = reader.header()?.and_then(|header| header.forked_from) else {
            return Ok(());
        };
        let place = origin.entry_id.map(|id| format!(" at {id}")).unwrap_or_default();
        self.remark(&format!("(a fork of {}{place})", origin.session_key))
    }

    /// Prints a line that is not a message, for people only.
    fn remark(&mut self, text: &str) -> Result<(), CliError> {
        if self.format == ShowFormat::Json {
            return Ok(());
        }
        self.printer.line(self.paint.paint(Style::Dim, &self.printer.fitting(text)))?;
        self.printer.line("")
    }

    fn message(&mut self, message: &TranscriptMessage) -> Result<(), CliError> {
        let mut message = message.clone();
        redact_row(&mut message, &mut self.redactor);
        let message = &message;
        if self.format == ShowFormat::Json {
            return self.printer.json(message);
        }
        self.head(&speaker(message), message.ts, message.id.as_str())?;
        if !message.content.is_empty() {
            match message.role {
                Role::Assistant => self.markdown(&message.content)?,
                _ => self.text(&message.content)?,
            }
        }
        for (name, arguments) in tool_calls(message) {
            let call = format!("[calls {name} {arguments}]");
            self.printer.line(self.paint.paint(Style::Dim, &self.printer.fitting(&call)))?;
        }
        self.printer.line("")
    }

    fn summary(&mut self, compaction: &CompactionEntry) -> Result<(), CliError> {
        let mut compaction = compaction.clone();
        self.redactor.clean_in_place(&mut compaction.summary);
        let compaction = &compaction;
        if self.format == ShowFormat::Json {
            return self.printer.json(compaction);
        }
        if compaction.summary.is_empty() {
            return self.remark("(what came before is left out for the model, without a summary)");
        }
        self.head("summary of what came before", compaction.ts, compaction.id.as_str())?;
        self.markdown(&compaction.summary)?;
        self.printer.line("")
    }

    /// Prints the heading of a message: role, time and id.
    fn head(&mut self, who: &str, ts: u64, id: &str) -> Result<(), CliError> {
        let head = format!("{who}, {}", local_minute(ts));
        let head = self.paint.paint(Style::Heading, &self.printer.safe(&head));
        let id = self.paint.paint(Style::Dim, &self.printer.safe(id));
        self.printer.line(format_args!("{head} {id}"))
    }

    /// Prints a text of a model: rendered on a terminal with styles.
    fn markdown(&mut self, text: &str) -> Result<(), CliError> {
        if self.paint == Paint::Plain {
            return self.text(text);
        }
        self.printer.raw(rendered(text, self.paint, Size::current()).as_bytes())
    }

    fn text(&mut self, text: &str) -> Result<(), CliError> {
        self.printer.safe_lines(text.trim_end_matches('\n').lines())
    }
}
