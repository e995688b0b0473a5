//! `myclaw sessions export`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use myclaw_agent::export::{
    self, ExportError, Exported, ExportedSession, export_session, redacted_note,
};
use myclaw_session::SessionKey;

use super::{Keys, Sessions, note_damage};
use crate::args::ExportFormat;
use crate::exit::CliError;
use crate::print::note;
use crate::terminal::{Destination, Escaper};

impl Sessions {
    /// Writes a session to `output`, or to standard output.
    pub fn export(
        &self,
        name: &str,
        format: Option<ExportFormat>,
        output: Option<&Path>,
        keys: Keys,
    ) -> Result<(), CliError> {
        let named = || output.and_then(format_of_name).unwrap_or(ExportFormat::Jsonl);
        let format = format.unwrap_or_else(named);
        let key = self.find(name)?;
        let reader = self.reader(&key)?;
        let title = reader.about()?.title.unwrap_or_else(|| self.name_of(&key));
        let redactor = keys.redactor(&self.home);
        let mut session = ExportedSession { reader: &*reader, title, redactor };
        let exported = match output.filter(|path| *path != Path::new("-")) {
            None => {
                let destination = Destination::of_stdout();
                let out = BufWriter::new(Guarded::new(io::stdout().lock(), destination));
                write_all(&mut session, format, out, CliError::output)?
            }
            Some(path) => export_to_file(&mut session, format, path)?,
        };
        if exported.redacted > 0 {
            note(format_args!(
                "{} `sessions export --no-redact` keeps them.",
                redacted_note(exported.redacted)
            ));
        }
        note_damage(exported.skipped_lines, &*reader)
    }
}

impl Sessions {
    /// Writes a session to a new file; the end of its name says the format.
    ///
    /// # Errors
    /// The name says no format, the file exists or cannot be written, or the session cannot be read.
    pub fn export_as(&self, key: &SessionKey, path: &Path) -> Result<(), CliError> {
        let Some(format) = format_of_name(path) else {
            return Err(CliError::usage(
                "the name of the file says the format: it ends with .md, .html or .jsonl",
            ));
        };
        self.export(key.as_str(), Some(format), Some(path), Keys::Redacted)
    }
}

/// The format that the end of a file's name says.
fn format_of_name(path: &Path) -> Option<ExportFormat> {
    match path.extension()?.to_str()? {
        "md" => Some(ExportFormat::Markdown),
        "html" => Some(ExportFormat::Html),
        "jsonl" => Some(ExportFormat::Jsonl),
        _ => None,
    }
}

/// Writes to a new file. An existing file is left unchanged; an incomplete new one is removed.
fn export_to_file(
    session: &mut ExportedSession<'_>,
    format: ExportFormat,
    path: &Path,
) -> Result<Exported, CliError> {
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
    let written = write_all(session, format, BufWriter::new(file), cannot_write);
    if written.is_err() {
        // Half a session would look like a whole one.
        drop(fs::remove_file(path));
    }
    written
}

fn write_all(
    session: &mut ExportedSession<'_>,
    format: ExportFormat,
    out: impl Write,
    cannot_write: impl Fn(&io::Error) -> CliError,
) -> Result<Exported, CliError> {
    let format = match format {
        ExportFormat::Jsonl => export::ExportFormat::Jsonl,
        ExportFormat::Markdown => export::ExportFormat::Markdown,
        ExportFormat::Html => export::ExportFormat::Html,
    };
    export_session(session, format, out).map_err(|error| match error {
        ExportError::Session(error) => error.into(),
        ExportError::Output(error) => cannot_write(&error),
    })
}

/// Escapes controls on their way to a terminal. Other outputs get the text unchanged.
struct Guarded<W> {
    out: W,
    destination: Destination,
    escaper: Escaper,
    /// The beginning of an incomplete character.
    partial: Vec<u8>,
}

impl<W: Write> Guarded<W> {
    fn new(out: W, destination: Destination) -> Self {
        Self { out, destination, escaper: Escaper::default(), partial: Vec::new() }
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.destination == Destination::Pipe {
            return self.out.write(bytes);
        }
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.partial.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut self.partial, rest));
        let mut safe = Vec::with_capacity(whole);
        self.escaper.push(&text.unwrap_or_default(), &mut safe);
        self.out.write_all(&safe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
