//! A Markdown document.

use std::io::{self, Write};

use myclaw_llm::Redactor;
use myclaw_session::{CompactionEntry, Role, TranscriptMessage};

use super::redaction::redact_text;
use super::{Document, ExportedSession, local_minute, redacted_note, speaker, tool_calls};

/// One section per message.
pub(super) struct Text<W> {
    out: W,
}

impl<W: Write> Text<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a code block whose fence is longer than any in the text.
    fn code(&mut self, text: &str, language: &str) -> io::Result<()> {
        let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        writeln!(self.out, "\n{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
    }
}

impl<W: Write> Document for Text<W> {
    fn begin(&mut self, session: &mut ExportedSession<'_>) -> io::Result<()> {
        writeln!(self.out, "# Session {}", session.title)
    }

    fn redact(&self, message: &mut TranscriptMessage, redactor: &mut Redactor) {
        redact_text(message, redactor);
    }

    fn message(&mut self, message: &TranscriptMessage) -> io::Result<()> {
        writeln!(self.out, "\n## {}, {}", speaker(message), local_minute(message.ts))?;
        if !message.content.is_empty() {
            if message.role == Role::Tool {
                self.code(&message.content, "")?;
            } else {
                writeln!(self.out, "\n{}", message.content.trim_end())?;
            }
        }
        for (name, arguments) in tool_calls(message) {
            writeln!(self.out, "\nCalls `{name}`:")?;
            self.code(&arguments, "json")?;
        }
        Ok(())
    }

    fn summary(&mut self, compaction: &CompactionEntry) -> io::Result<()> {
        let summary = compaction.summary.trim_end();
        writeln!(self.out, "\n## Summary of the session so far\n\n{summary}")
    }

    fn end(&mut self, redacted: usize) -> io::Result<()> {
        match redacted {
            0 => Ok(()),
            places => writeln!(self.out, "\n---\n\n{}", redacted_note(places)),
        }
    }
}
