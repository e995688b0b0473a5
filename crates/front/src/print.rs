//! Printing of the commands that run no turn: standard output with one buffer, and failures as [`CliError`].

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use serde::Serialize;

use crate::exit::CliError;
use crate::terminal::{Destination, JsonMode, Size, escaped, wrapped};
pub use rows::columns;

mod rows;

/// Standard output of a command.
pub struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    destination: Destination,
}

impl Printer {
    /// Standard output.
    pub fn stdout() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), destination: Destination::of_stdout() }
    }

    /// Writes one line that this program composed, for a terminal broken between words.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<(), CliError> {
        self.write_line(&self.broken(line.to_string()))
    }

    fn write_line(&mut self, line: &str) -> Result<(), CliError> {
        writeln!(self.out, "{line}").map_err(|error| CliError::output(&error))
    }

    /// Writes lines that may hold text of a model, a tool or a file: for a terminal escaped, and broken between words.
    pub fn safe_lines<T: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = T>,
    ) -> Result<(), CliError> {
        for line in lines {
            let line = self.safe(line.as_ref()).into_owned();
            self.line(line)?;
        }
        Ok(())
    }

    /// Writes lines that are copied, such as commands and texts of files: for a terminal escaped, and nothing else.
    pub fn copied_lines<T: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = T>,
    ) -> Result<(), CliError> {
        for line in lines {
            let line = self.safe(line.as_ref()).into_owned();
            self.write_line(&line)?;
        }
        Ok(())
    }

    /// Writes text unchanged.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.out.write_all(bytes).map_err(|error| CliError::output(&error))
    }

    /// Writes `value` as one line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let mode = JsonMode::for_destination(self.destination);
        mode.write(value, &mut self.out).map_err(|error| CliError::output(&error.into()))?;
        self.line("")
    }

    /// A text of a model or a tool: for a terminal escaped, and broken between words.
    pub fn fitting(&self, text: &str) -> String {
        self.broken(self.safe(text).into_owned())
    }

    fn broken(&self, text: String) -> String {
        match self.destination {
            Destination::Terminal => unbroken(&text, Size::current().columns),
            Destination::Pipe => text,
        }
    }

    /// `text` of a model or a tool; escaped for a terminal.
    pub fn safe<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.destination {
            Destination::Terminal => escaped(text),
            Destination::Pipe => Cow::Borrowed(text),
        }
    }

    /// Writes the buffer.
    pub fn finish(mut self) -> Result<(), CliError> {
        self.out.flush().map_err(|error| CliError::output(&error))
    }
}

/// Writes a line to standard error, on a terminal without breaking words. A failed write is ignored: there is no other
/// place to report it.
pub fn note(line: impl fmt::Display) {
    let text = fitting_stderr(&line.to_string());
    drop(writeln!(io::stderr(), "{text}"));
}

/// `text` as standard error shows it without breaking words: in more lines if that is a terminal.
pub fn fitting_stderr(text: &str) -> String {
    if io::stderr().is_terminal() {
        return unbroken(text, Size::current().columns);
    }
    text.to_owned()
}

/// `text` in lines of at most `columns` columns. A line with a longer word, such as an address, is left to the terminal:
/// a line break would make another word of it when it is copied. So is a line with colours, whose width is not known.
fn unbroken(text: &str, columns: usize) -> String {
    use unicode_width::UnicodeWidthStr;
    let lines = text.lines().flat_map(|line| {
        let is_left = line.is_empty()
            || line.contains('\x1b')
            || line.split(' ').any(|word| word.width() > columns);
        if is_left { vec![line.to_owned()] } else { wrapped(line, columns) }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How much files are, such as `3 files, 12 KB`.
pub fn files_and_bytes(files: usize, bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1000);
    format!("{files} file{}, {kilobytes} KB", if files == 1 { "" } else { "s" })
}

/// An address without the parts that may be secret: the user name, the password, and the values of its query.
pub fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (login, rest) = match rest[..end].rfind('@') {
        Some(at) => ("…", &rest[at..]),
        None => ("", rest),
    };
    let Some((path, query)) = rest.split_once('?') else {
        return format!("{scheme}://{login}{rest}");
    };
    // A part of the query without a name may be a key.
    let names = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => "…".to_owned(),
    });
    format!("{scheme}://{login}{path}?{}", names.collect::<Vec<_>>().join("&"))
}
