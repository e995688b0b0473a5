//! The lines of a log as they are, for those who keep them elsewhere.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, SessionError};
use crate::history::history_path;
use crate::line::{self, Line};
use crate::store::LOG_EXTENSION;
use crate::{Entry, SessionHeader, SessionKey};

/// What the lines of a log are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLog {
    /// The session.
    pub key: SessionKey,
    /// The header, of a log that holds the whole session.
    pub header: String,
    /// How many of the lines are those of the session that it was forked from.
    pub inherited: u64,
}

/// The logs in a directory of sessions.
///
/// # Errors
/// The directory cannot be read.
pub fn logs_in(directory: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let mut logs = Vec::new();
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        found => {
            for file in found.context("list", directory)? {
                let path = file.context("list", directory)?.path();
                if path.extension().is_some_and(|extension| extension == LOG_EXTENSION) {
                    logs.push(path);
                }
            }
        }
    }
    logs.sort();
    Ok(logs)
}

/// Passes the lines of a log behind its header to `visit`, without their line feeds; those of a fork begin with its
/// parent's. A last line without its end is left out, as the next opening would. `None` if the log has no header, or one
/// that names no session.
///
/// # Errors
/// The files cannot be read; and those of `visit`.
pub fn visit_log(
    log: &Path,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), SessionError>,
) -> Result<Option<RawLog>, SessionError> {
    let mut lines = RawLines::of(open(log, u64::MAX)?);
    let Some(first) = lines.next(log)? else { return Ok(None) };
    let Line::Header(header) = line::decode(&first, 0) else { return Ok(None) };
    let Ok(key) = SessionKey::parse(&header.session_key) else { return Ok(None) };
    let mut inherited = 0;
    for (number, end) in header.history.iter().enumerate() {
        let path = history_path(log, number);
        let mut part = RawLines::of(open(&path, *end)?);
        while let Some(row) = part.next(&path)? {
            // A title belongs to its session alone.
            if !matches!(line::decode(&row, 1), Line::Header(_) | Line::Entry(Entry::About(_))) {
                visit(&row)?;
                inherited += 1;
            }
        }
    }
    while let Some(row) = lines.next(log)? {
        visit(&row)?;
    }
    let header = match header.history.is_empty() {
        true => String::from_utf8_lossy(&first).into_owned(),
        false => {
            let whole = SessionHeader::new(key.as_str(), header.created_at);
            let header = SessionHeader { version: whole.version, history: Vec::new(), ..header };
            serde_json::to_string(&header)
                .map_err(|source| SessionError::Encode { path: log.to_owned(), source })?
        }
    };
    Ok(Some(RawLog { key, header, inherited }))
}

fn open(path: &Path, end: u64) -> Result<Take<File>, SessionError> {
    Ok(File::open(path).context("open", path)?.take(end))
}

/// Lines that end.
struct RawLines(BufReader<Take<File>>);

impl RawLines {
    fn of(file: Take<File>) -> Self {
        Self(BufReader::new(file))
    }

    fn next(&mut self, path: &Path) -> Result<Option<Vec<u8>>, SessionError> {
        let mut row = Vec::new();
        self.0.read_until(b'\n', &mut row).context("read", path)?;
        Ok(row.pop_if(|last| *last == b'\n').map(|_| row))
    }
}
