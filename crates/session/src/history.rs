//! The files that hold the beginning of a fork.
//!
//! A fork copies nothing. Next to its log are hard links to the logs in which it began, and its header records how many
//! bytes of each belong to it. Logs only grow, so those bytes never change, even if the parent continues; and a link
//! keeps them when the parent is deleted. Where the file system has no hard links, the files are copies.

use std::fs::File;
use std::path::{Path, PathBuf};

use myclaw_files::portable::FileExt;

use crate::SessionHeader;
use crate::error::{IoContext, SessionError};
use crate::reader::Positioned;

/// Separates the name of a session's files from the number of a history file.
pub(crate) const HISTORY_MARK: &str = ".history-";

/// The history files of one log, the oldest first; empty unless it is a fork.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<HistoryPart>);

/// A file whose beginning belongs to the fork.
#[derive(Debug)]
pub(crate) struct HistoryPart {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// How many bytes belong to the fork; they end with a line feed.
    pub(crate) end: u64,
}

impl History {
    /// Opens the files that the header of the log at `log` names.
    pub(crate) fn open(log: &Path, header: Option<&SessionHeader>) -> Result<Self, SessionError> {
        let ends = header.map_or(&[][..], |header| &header.history);
        let open =
            |(number, end): (usize, &u64)| HistoryPart::open(history_path(log, number), *end);
        Ok(Self(ends.iter().enumerate().map(open).collect::<Result<_, _>>()?))
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The files, the oldest first.
    pub(crate) fn parts(&self) -> &[HistoryPart] {
        &self.0
    }

    /// The bytes of a file that belong to the fork.
    pub(crate) fn part(&self, number: usize) -> Option<Positioned<'_>> {
        self.0.get(number).map(HistoryPart::reader)
    }

    /// The log's own file and then its history, the newest first.
    pub(crate) fn with_own_backward<'a>(
        &'a self,
        own: &'a File,
    ) -> impl Iterator<Item = Positioned<'a>> {
        std::iter::once(Positioned::new(own)).chain(self.0.iter().rev().map(HistoryPart::reader))
    }
}

impl HistoryPart {
    fn open(path: PathBuf, end: u64) -> Result<Self, SessionError> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(SessionError::BrokenHistory { path, end });
            }
            Err(error) => {
                return Err(SessionError::from_io("open the history of the fork", &path, error));
            }
        };
        if !ends_line(&file, end).context("read the history of the fork", &path)? {
            return Err(SessionError::BrokenHistory { path, end });
        }
        Ok(Self { path, file, end })
    }

    fn reader(&self) -> Positioned<'_> {
        Positioned::until(&self.file, self.end)
    }
}

/// True if a line of `file` ends at `end`.
pub(crate) fn ends_line(file: &File, end: u64) -> std::io::Result<bool> {
    let mut last = [0];
    let before = end.saturating_sub(1);
    Ok(end > 0 && file.read_at(&mut last, before)? == 1 && last == *b"\n")
}

/// Where a history file of the log at `log` is.
pub(crate) fn history_path(log: &Path, number: usize) -> PathBuf {
    let stem = log.file_stem().unwrap_or_default();
    let mut name = stem.to_owned();
    name.push(format!("{HISTORY_MARK}{number}"));
    log.with_file_name(name)
}
