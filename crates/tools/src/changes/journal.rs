//! The list of changes: JSON lines that are only appended to, except that the oldest are removed when it gets long.
//!
//! There is one writer at a time: the session's run, whose tools write one after the other, or an undo, which holds the
//! session's lock.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use myclaw_engine::TurnId;
use myclaw_files::portable::sync_content;
use myclaw_files::{
    Durability, NewFile, create_private_directory, private_options, remove_if_there, sync_directory,
};
use serde::{Deserialize, Serialize};

use super::Fingerprint;

/// Most bytes of old contents that are kept for a session. A link takes no space of its own, but it keeps the old
/// content from being freed.
const MAX_IMAGES_BYTES: u64 = 256 * 1024 * 1024;
/// Most changes of a session that are kept: some hundred turns.
const MAX_RECORDS: u64 = 2_000;
/// Most bytes of the list; a patch of a thousand files takes half a megabyte.
const MAX_JOURNAL_BYTES: u64 = 8 * 1024 * 1024;
/// The part of each limit that is kept when one is exceeded, so that not every change rewrites the list.
const KEPT_SHARE: u64 = 2;
/// Longest line with totals.
const MAX_TOTALS_BYTES: u64 = 200;

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Line {
    Change(Record),
    Withdrawn { id: String },
    Marked { turn: TurnId, state: TurnState },
    Totals(Totals),
}

/// The sums over all lines before it. They are the last line of each append, so that they can be read without reading
/// the list.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Totals {
    records: u64,
    /// Bytes of old contents.
    bytes: u64,
}

/// A change of one or more files, written before it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub id: String,
    pub turn: TurnId,
    pub origin: Origin,
    /// Milliseconds since the Unix epoch.
    pub ts: u64,
    pub files: Vec<FileChange>,
    /// Directories that the change makes, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Origin {
    Tool,
    Undo,
    Redo,
}

/// Whether a turn's changes were undone or made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum TurnState {
    Undone,
    Made,
}

/// One file before and after; no fingerprint means no file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileChange {
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Fingerprint>,
    /// The name of the file that keeps the content before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why there is no image. The text follows "it".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

/// The list of one session.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    directory: PathBuf,
}

/// The lines that still apply.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The oldest first, without withdrawn ones.
    pub records: Vec<Record>,
    /// Each mark with the number of records before it.
    pub marks: Vec<(usize, TurnId, TurnState)>,
}

impl Journal {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The directory of the old contents.
    pub(super) fn images(&self) -> PathBuf {
        self.directory.join("images")
    }

    fn path(&self) -> PathBuf {
        self.directory.join("journal.jsonl")
    }

    /// Makes the directories.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for parent in create_private_directory(&self.images())? {
            sync_directory(&parent)?;
        }
        Ok(())
    }

    /// Adds a change. When this returns, the change and its images are on disk.
    pub(super) fn add(&self, record: Record) -> io::Result<()> {
        let images: Vec<PathBuf> = record
            .files
            .iter()
            .filter_map(|file| file.image.as_ref())
            .map(|name| self.images().join(name))
            .collect();
        let bytes = record.kept_bytes();
        let totals = self.append(Line::Change(record), Totals { records: 1, bytes })?;
        // The line first: the next calls then often find that the file system has written all of it.
        for image in &images {
            sync_content(&File::open(image)?, image)?;
        }
        if !images.is_empty() {
            sync_directory(&self.images())?;
        }
        if totals.records > MAX_RECORDS
            || totals.bytes > MAX_IMAGES_BYTES
            || self.path().metadata()?.len() > MAX_JOURNAL_BYTES
        {
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// Gives a session without changes the same ones.
    pub(super) fn share_with(&self, other: &Self) -> io::Result<()> {
        let content = self.read()?;
        if content.records.is_empty() {
            return Ok(());
        }
        other.prepare()?;
        let files = content.records.iter().flat_map(|record| &record.files);
        for name in files.filter_map(|file| file.image.as_ref()) {
            let (image, shared) = (self.images().join(name), other.images().join(name));
            // What is gone cannot be undone, and undo says so.
            if image.exists() && std::fs::hard_link(&image, &shared).is_err() {
                std::fs::copy(&image, &shared)?;
            }
        }
        let mut new = NewFile::in_directory(&other.directory, "journal-")?;
        new.write_all(&std::fs::read(self.path())?)?;
        new.put_at(&other.path(), Durability::Synced).map(drop)
    }

    /// Withdraws a change that was not made.
    pub(super) fn withdraw(&self, id: &str) -> io::Result<()> {
        self.append(Line::Withdrawn { id: id.to_owned() }, Totals::default()).map(drop)
    }

    /// Records that a turn's changes were undone, or made again.
    pub(super) fn mark(&self, turn: &TurnId, state: TurnState) -> io::Result<()> {
        self.append(Line::Marked { turn: turn.clone(), state }, Totals::default()).map(drop)
    }

    fn append(&self, line: Line, added: Totals) -> io::Result<Totals> {
        let path = self.path();
        let is_new = !path.exists();
        let mut file = private_options().read(true).append(true).create(true).open(&path)?;
        let end = End::of(&mut file)?;
        let totals = match end.totals {
            Some(totals) => totals,
            None => Content::read(&path)?.totals(),
        };
        let totals =
            Totals { records: totals.records + added.records, bytes: totals.bytes + added.bytes };
        let mut lines = Vec::new();
        if end.is_torn {
            lines.push(b'\n');
        }
        for line in [line, Line::Totals(totals)] {
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        if is_new {
            sync_directory(&self.directory)?;
        }
        Ok(totals)
    }

    /// Reads everything; empty if nothing was ever changed.
    pub(super) fn read(&self) -> io::Result<Content> {
        Content::read(&self.path())
    }

    /// Removes the oldest changes, and old contents that no line names.
    fn remove_oldest(&self) -> io::Result<()> {
        let content = self.read()?;
        let kept = newest(&content.records);
        let removed = content.records.len() - kept;
        let mut new = NewFile::in_directory(&self.directory, "journal-")?;
        let mut marks = content.marks.into_iter().peekable();
        let (mut totals, mut names) = (Totals::default(), HashSet::new());
        for (at, record) in content.records.into_iter().enumerate() {
            while let Some((_, turn, state)) = marks.next_if(|(before, ..)| *before <= at) {
                if at > removed {
                    new.write_line(&Line::Marked { turn, state })?;
                }
            }
            if at >= removed {
                totals.records += 1;
                totals.bytes += record.kept_bytes();
                names.extend(record.files.iter().filter_map(|file| file.image.clone()));
                new.write_line(&Line::Change(record))?;
            }
        }
        for (_, turn, state) in marks {
            new.write_line(&Line::Marked { turn, state })?;
        }
        new.write_line(&Line::Totals(totals))?;
        new.put_at(&self.path(), Durability::Synced)?;
        for found in std::fs::read_dir(self.images())?.flatten() {
            if found.file_name().to_str().is_none_or(|name| !names.contains(name)) {
                remove_if_there(&found.path())?;
            }
        }
        Ok(())
    }
}

/// How many of the newest records are kept; at least one.
fn newest(records: &[Record]) -> usize {
    let (mut count, mut bytes, mut length) = (0, 0, 0);
    for record in records.iter().rev() {
        bytes += record.kept_bytes();
        length += serde_json::to_vec(record).map_or(0, |line| line.len() as u64);
        let is_too_much = count >= MAX_RECORDS / KEPT_SHARE
            || bytes > MAX_IMAGES_BYTES / KEPT_SHARE
            || length > MAX_JOURNAL_BYTES / KEPT_SHARE;
        if count > 0 && is_too_much {
            break;
        }
        count += 1;
    }
    count as usize
}

trait WriteLine {
    fn write_line(&mut self, line: &Line) -> io::Result<()>;
}

impl WriteLine for NewFile {
    fn write_line(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.write_all(&bytes)
    }
}

/// The end of the file.
struct End {
    /// `None` if the last line holds none, as after a crash.
    totals: Option<Totals>,
    /// Whether the last line has no end.
    is_torn: bool,
}

impl End {
    fn of(file: &mut File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let start = length.saturating_sub(MAX_TOTALS_BYTES);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(MAX_TOTALS_BYTES).read_to_end(&mut bytes)?;
        let Some((b'\n', whole)) = bytes.split_last() else {
            return Ok(Self {
                totals: bytes.is_empty().then(Totals::default),
                is_torn: !bytes.is_empty(),
            });
        };
        let last = whole.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let totals = match serde_json::from_slice(last) {
            Ok(Line::Totals(totals)) => Some(totals),
            _ => None,
        };
        Ok(Self { totals, is_torn: false })
    }
}

impl Content {
    fn read(path: &Path) -> io::Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut content = Self::default();
        // A line that a crash cut off is skipped: its change was not made.
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| serde_json::from_slice(line).ok()) {
            match line {
                Line::Change(record) => content.records.push(record),
                Line::Withdrawn { id } => content.records.retain(|record| record.id != id),
                Line::Marked { turn, state } => {
                    content.marks.push((content.records.len(), turn, state));
                }
                Line::Totals(_) => {}
            }
        }
        Ok(content)
    }

    fn totals(&self) -> Totals {
        Totals {
            records: self.records.len() as u64,
            bytes: self.records.iter().map(Record::kept_bytes).sum(),
        }
    }
}

impl Record {
    fn kept_bytes(&self) -> u64 {
        let kept = self.files.iter().filter(|file| file.image.is_some());
        kept.filter_map(|file| file.before.as_ref()).map(|before| before.size).sum()
    }
}
