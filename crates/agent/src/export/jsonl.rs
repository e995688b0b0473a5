//! The transcript as rows that `sessions import` reads.

use std::io::{self, Write};

use myclaw_session::{About, AboutEntry, CompactionEntry, Entry, TranscriptMessage};
use serde::Serialize;
use serde_json::json;

use super::redaction::redact_header;
use super::{Document, ExportedSession, redact_about};

/// One row per entry.
pub(super) struct Rows<W> {
    out: W,
    /// The title of a fork; that of its parent is among the entries.
    own_about: Option<About>,
}

impl<W: Write> Rows<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, own_about: None }
    }

    fn row(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Document for Rows<W> {
    fn begin(&mut self, session: &mut ExportedSession<'_>) -> io::Result<()> {
        let header = session.reader.header().map_err(io::Error::other)?;
        let Some(header) = header else { return Ok(()) };
        if !header.history.is_empty() {
            let mut about = session.reader.about().map_err(io::Error::other)?;
            if let Some(redactor) = &mut session.redactor {
                redact_about(&mut about, redactor);
            }
            self.own_about = Some(about);
        }
        let mut header = header.without_history();
        if let Some(redactor) = &mut session.redactor {
            redact_header(&mut header, redactor);
        }
        self.row(&header)
    }

    fn message(&mut self, message: &TranscriptMessage) -> io::Result<()> {
        self.row(message)
    }

    fn summary(&mut self, compaction: &CompactionEntry) -> io::Result<()> {
        self.row(compaction)
    }

    fn other(&mut self, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::About(_) if self.own_about.is_some() => Ok(()),
            entry => self.row(entry),
        }
    }

    fn end(&mut self, redacted: usize) -> io::Result<()> {
        if let Some(about) = self.own_about.take().filter(|about| *about != About::default()) {
            self.row(&AboutEntry::new(about))?;
        }
        match redacted {
            0 => Ok(()),
            // Readers skip an entry of a type that they do not know.
            places => self.row(&json!({"type": "redaction", "places": places})),
        }
    }
}
