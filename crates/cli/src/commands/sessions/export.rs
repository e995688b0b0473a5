//! `myclaw sessions export`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use myclaw_session::{Entry, SessionReader, TranscriptMessage};

use crate::args::ExportFormat;
use crate::exit::CliError;
use crate::time::local_minute;

use super::{Sessions, note_damaged_lines, speaker, tool_calls};

impl Sessions {
    /// Writes a conversation to `output`, or to standard output.
    pub(super) fn export(
        &self,
        name: &str,
        format: ExportFormat,
        output: Option<&Path>,
    ) -> Result<(), CliError> {
        let key = self.find(name)?;
        let reader = self.reader(&key)?;
        let name = self.name_of(&key);
        let skipped = match output.filter(|path| *path != Path::new("-")) {
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                let skipped = write_all(&reader, &name, format, &mut out, CliError::output)?;
                out.flush().map_err(|error| CliError::output(&error))?;
                skipped
            }
            Some(path) => export_to_file(&reader, &name, format, path)?,
        };
        note_damaged_lines(skipped, reader.path());
        Ok(())
    }
}

/// Writes to a new file. One that is there is left alone; one that could not be finished is removed.
fn export_to_file(
    reader: &SessionReader,
    name: &str,
    format: ExportFormat,
    path: &Path,
) -> Result<usize, CliError> {
    let cannot_write = |error: &io::Error| {
        CliError::failure(format!("cannot write {}: {error}; nothing was exported", path.display()))
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!(
                "{} exists already; choose another name or remove it first",
                path.display()
            );
            return CliError::failure(message);
        }
        cannot_write(&error)
    })?;
    let mut out = BufWriter::new(file);
    let written = write_all(reader, name, format, &mut out, cannot_write)
        .and_then(|skipped| out.flush().map(|()| skipped).map_err(|error| cannot_write(&error)));
    if written.is_err() {
        // Half a conversation would look like a whole one.
        drop(fs::remove_file(path));
    }
    written
}

/// Writes every entry; gives how many lines of the log were damaged.
fn write_all(
    reader: &SessionReader,
    name: &str,
    format: ExportFormat,
    out: &mut impl Write,
    cannot_write: impl Fn(&io::Error) -> CliError,
) -> Result<usize, CliError> {
    let header = reader.header()?;
    let begun = match format {
        ExportFormat::Jsonl => header.map_or(Ok(()), |header| write_json(&header, out)),
        ExportFormat::Markdown => writeln!(out, "# Conversation {name}"),
    };
    begun.map_err(|error| cannot_write(&error))?;
    let mut entries = reader.entries();
    for entry in entries.by_ref() {
        let entry = entry?;
        let written = match format {
            ExportFormat::Jsonl => write_row(&entry, out),
            ExportFormat::Markdown => write_section(&entry, out),
        };
        written.map_err(|error| cannot_write(&error))?;
    }
    Ok(entries.skipped_lines())
}

fn write_row(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    match entry {
        Entry::Message(message) => write_json(message, out),
        Entry::Compaction(compaction) => write_json(compaction, out),
        Entry::About(about) => write_json(about, out),
        Entry::Unknown(value) => write_json(value, out),
    }
}

fn write_json(value: &impl serde::Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn write_section(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    match entry {
        Entry::Message(message) => write_message(message, out),
        Entry::Compaction(compaction) => {
            writeln!(
                out,
                "\n## Summary of the conversation so far\n\n{}",
                compaction.summary.trim_end()
            )
        }
        Entry::About(_) | Entry::Unknown(_) => Ok(()),
    }
}

fn write_message(message: &TranscriptMessage, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n## {}, {}", speaker(message), local_minute(message.ts))?;
    if !message.content.is_empty() {
        if message.role == myclaw_session::Role::Tool {
            write_code(&message.content, "", out)?;
        } else {
            writeln!(out, "\n{}", message.content.trim_end())?;
        }
    }
    for (name, arguments) in tool_calls(message) {
        writeln!(out, "\nCalls `{name}`:")?;
        write_code(&arguments, "json", out)?;
    }
    Ok(())
}

/// Writes a code block whose fence is longer than any in the text.
fn write_code(text: &str, language: &str, out: &mut impl Write) -> io::Result<()> {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "\n{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}
