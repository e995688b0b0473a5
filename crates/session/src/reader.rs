//! Reads a log without locking it, as displays and exports do.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use myclaw_files::portable::{FileExt, sync_content};
use myclaw_files::{parent_of, sync_directory};

use crate::about::read_about;
use crate::backward::BLOCK;
use crate::error::{IoContext, SessionError};
use crate::history::History;
use crate::line::{self, Line};
use crate::repair::torn_bytes;
use crate::tail::{
    beginning_ms, fill_missing_times, read_last_compaction, read_messages_before, read_tail,
    visit_messages_before,
};
use crate::{
    About, CompactionEntry, Entry, EntryId, FORMAT_VERSION, SessionHeader, SessionKey, Tail,
    TailLimit, TranscriptMessage,
};

/// A header longer than this is invalid. Keys have at most a few hundred characters.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// A log opened for reading, even while it is written. Lines appended meanwhile may or may not be seen, and a
/// half-written line is left out.
#[derive(Debug)]
pub struct SessionReader {
    path: PathBuf,
    file: File,
    /// The beginning of a fork, in other files; empty for all others.
    history: History,
}

/// A place between two lines of a log: how many files of its history precede it, and how many bytes of the next file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) part: usize,
    pub(crate) offset: u64,
}

impl SessionReader {
    /// Opens the log of `key` at `path`. Returns `None` if there is none.
    pub(crate) fn open(path: &Path, key: &SessionKey) -> Result<Option<Self>, SessionError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::from_io("open the session log", path, error)),
        };
        let header = check_header(&file, path, key)?;
        let history = History::open(path, header.as_ref())?;
        Ok(Some(Self { path: path.to_path_buf(), file, history }))
    }

    /// Opens a log at any path, such as an export, of any session.
    ///
    /// # Errors
    /// The file cannot be read, a later version of the program wrote it, or it belongs to a fork and the history is not
    /// next to it.
    pub fn of_file(path: &Path) -> Result<Self, SessionError> {
        let file = File::open(path).context("open the session log", path)?;
        let header = read_header(&file).context("read the session log", path)?;
        check_version(header.as_ref(), path)?;
        let history = History::open(path, header.as_ref())?;
        Ok(Self { path: path.to_path_buf(), file, history })
    }

    /// The path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until what it can read is on disk, with the file's name.
    ///
    /// # Errors
    /// The system could not guarantee it.
    pub fn sync(&self) -> Result<(), SessionError> {
        sync_content(&self.file, &self.path).context("write to disk", &self.path)?;
        let directory = parent_of(&self.path);
        sync_directory(&directory).context("write to disk the directory", &directory)
    }

    /// The header; `None` if the first line is not a header.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn header(&self) -> Result<Option<SessionHeader>, SessionError> {
        read_header(&self.file).context("read the session log", &self.path)
    }

    /// All entries from the first on, one in memory at a time. Those of a fork begin with its parent's.
    pub fn entries(&self) -> Entries<'_> {
        self.entries_from(Position { part: 0, offset: 0 })
    }

    /// The entries after `start`.
    pub(crate) fn entries_from(&self, start: Position) -> Entries<'_> {
        let mut first = self.part(start.part);
        first.position = start.offset;
        Entries {
            reader: self,
            lines: BufReader::with_capacity(BLOCK, first),
            line: Vec::new(),
            position: start,
            is_finished: false,
            skipped_lines: 0,
            has_torn_tail: false,
            last_ts: None,
        }
    }

    /// The files of the history.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The session's own file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A part of the log: the files of its history in order, then its own.
    pub(crate) fn part(&self, number: usize) -> Positioned<'_> {
        self.history.part(number).unwrap_or_else(|| Positioned::new(&self.file))
    }

    /// All parts, the newest first.
    fn parts_backward(&self) -> impl Iterator<Item = Positioned<'_>> {
        self.history.with_own_backward(&self.file)
    }

    /// The session's title and labels. A fork does not inherit those of its parent.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn about(&self) -> Result<About, SessionError> {
        read_about(&self.file).context("read the session log", &self.path)
    }

    /// The number of messages in the whole log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn message_count(&self) -> Result<usize, SessionError> {
        let mut count = 0;
        for entry in self.entries() {
            count += usize::from(matches!(entry?, Entry::Message(_)));
        }
        Ok(count)
    }

    /// The entries from which the next turn would start. Unlike [`crate::SessionLog::tail`] it repairs nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        let mut tail =
            read_tail(self.parts_backward(), limit).context("read the session log", &self.path)?;
        fill_missing_times(&mut tail.messages, || beginning_ms(&self.file));
        Ok(tail)
    }

    /// The last compaction: the summary from which the next turn starts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError> {
        read_last_compaction(self.parts_backward()).context("read the session log", &self.path)
    }

    /// The last `count` messages, the oldest first. Messages that a summary replaced are included. Reads only the end
    /// of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_messages(&self, count: usize) -> Result<Vec<TranscriptMessage>, SessionError> {
        Ok(self.messages_before(None, count)?.unwrap_or_default())
    }

    /// The `count` messages before the one with the id `before`, the oldest first; without an id, the last ones.
    /// Messages that a summary replaced are included. `None` if no message has that id. Reads the file from its end, as
    /// far as needed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn messages_before(
        &self,
        before: Option<EntryId>,
        count: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError> {
        let mut messages = read_messages_before(self.parts_backward(), before, count)
            .context("read the session log", &self.path)?;
        if let Some(messages) = &mut messages {
            fill_missing_times(messages, || beginning_ms(&self.file));
        }
        Ok(messages)
    }

    /// Passes the messages to `visit`, the newest first, until it breaks off. Reads no more of the file than that needs.
    /// A row without a time has the time 0.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn visit_newest(
        &self,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.visit_before(None, visit).map(drop)
    }

    /// The same for the messages before the one with the id `before`. Whether there is such a message.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn visit_before(
        &self,
        before: Option<EntryId>,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<bool, SessionError> {
        visit_messages_before(self.parts_backward(), before, visit)
            .context("read the session log", &self.path)
    }

    /// How many bytes at the end are no whole line. The next writer moves them to a file next to the log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn torn_bytes(&self) -> Result<u64, SessionError> {
        torn_bytes(&self.file).context("read the session log", &self.path)
    }
}

/// The entries of a log, from the first on. Lines that are not entries are skipped and counted.
#[derive(Debug)]
pub struct Entries<'a> {
    reader: &'a SessionReader,
    lines: BufReader<Positioned<'a>>,
    line: Vec<u8>,
    /// The place where the next line begins.
    position: Position,
    is_finished: bool,
    skipped_lines: usize,
    has_torn_tail: bool,
    /// Time of the message yielded last.
    last_ts: Option<u64>,
}

impl Entries<'_> {
    /// How many lines were skipped so far because they are not entries. Blank lines are not counted.
    pub fn skipped_lines(&self) -> usize {
        self.skipped_lines
    }

    /// True if the last line was half written; known once the iterator is at its end.
    pub fn has_torn_tail(&self) -> bool {
        self.has_torn_tail
    }

    /// Gives a message without a time that of the message before, or else that of the file.
    fn date(&mut self, entry: &mut Entry) {
        let Entry::Message(message) = entry else { return };
        if message.ts == 0 {
            message.ts = self.last_ts.unwrap_or_else(|| beginning_ms(&self.reader.file));
        }
        self.last_ts = Some(message.ts);
    }

    /// The place after the entry that was yielded last; `None` if that line has no line feed yet.
    pub(crate) fn position(&self) -> Option<Position> {
        (!self.is_finished).then_some(self.position)
    }

    /// Reads the next line. Returns whether it has a line feed. The last line of a part always has one, except in the
    /// newest part.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        // One huge line must not keep its memory for the rest of the file.
        self.line.shrink_to(BLOCK);
        while self.lines.read_until(b'\n', &mut self.line)? == 0
            && self.position.part < self.reader.history.len()
        {
            self.position = Position { part: self.position.part + 1, offset: 0 };
            let next = self.reader.part(self.position.part);
            self.lines = BufReader::with_capacity(BLOCK, next);
        }
        Ok(self.line.ends_with(b"\n"))
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_finished {
            match self.read_line() {
                // A writer may complete the last line meanwhile. The added bytes are not the beginning of another line.
                Ok(is_terminated) => self.is_finished = !is_terminated,
                Err(error) => {
                    self.is_finished = true;
                    return Some(Err(SessionError::from_io(
                        "read the session log",
                        &self.reader.path,
                        error,
                    )));
                }
            }
            let offset = self.position.offset;
            self.position.offset += self.line.len() as u64;
            match line::decode(&self.line, offset) {
                Line::Entry(mut entry) => {
                    self.date(&mut entry);
                    return Some(Ok(entry));
                }
                Line::Header(_) | Line::Blank => {}
                Line::Corrupt if !self.is_finished => self.skipped_lines += 1,
                Line::Corrupt => self.has_torn_tail = true,
            }
        }
        None
    }
}

/// The header of the log in `file`; `None` if the first line is not a header.
pub(crate) fn read_header(file: &File) -> io::Result<Option<SessionHeader>> {
    let mut first_line = Vec::new();
    // Most headers fit many times into the first of these reads, and a turn should not read more than it needs.
    BufReader::with_capacity(1024, Positioned::new(file).take(MAX_HEADER_BYTES))
        .read_until(b'\n', &mut first_line)?;
    Ok(match line::decode(&first_line, 0) {
        Line::Header(header) => Some(header),
        Line::Entry(_) | Line::Blank | Line::Corrupt => None,
    })
}

/// Refuses a log that a later version of the program wrote in an incompatible way, and one that belongs to another
/// session: it was copied to this name, or two long keys have the same shortened one. Returns the header, if there is
/// one.
pub(crate) fn check_header(
    file: &File,
    path: &Path,
    key: &SessionKey,
) -> Result<Option<SessionHeader>, SessionError> {
    let Some(header) = read_header(file).context("read the session log", path)? else {
        return Ok(None);
    };
    check_version(Some(&header), path)?;
    // A key that cannot be read comes from another program, which chose the right file name itself.
    let owner = SessionKey::parse_canonical(&header.session_key);
    let is_foreign = owner.map_or(key.has_shortened_slug(), |owner| owner != *key);
    if is_foreign {
        return Err(SessionError::ForeignTranscript {
            path: path.to_path_buf(),
            found: header.session_key,
            wanted: key.to_string(),
        });
    }
    Ok(Some(header))
}

fn check_version(header: Option<&SessionHeader>, path: &Path) -> Result<(), SessionError> {
    match header {
        Some(header) if header.version > FORMAT_VERSION => Err(SessionError::NewerVersion {
            path: path.to_path_buf(),
            found: header.version,
            supported: FORMAT_VERSION,
        }),
        _ => Ok(()),
    }
}

/// Reads a file with a position of its own, so that several readers can share the file.
#[derive(Debug)]
pub(crate) struct Positioned<'a> {
    file: &'a File,
    position: u64,
    /// Reading stops here, even if the file is longer.
    end: u64,
}

impl<'a> Positioned<'a> {
    /// Starts at the beginning.
    pub(crate) fn new(file: &'a File) -> Self {
        Self::until(file, u64::MAX)
    }

    /// Starts at the beginning and ends at `end` or at the end of the file.
    pub(crate) fn until(file: &'a File, end: u64) -> Self {
        Self { file, position: 0, end }
    }
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let length = self.file.read_at(&mut buffer[..wanted], self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Positioned<'_> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        let (base, distance) = match target {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(distance) => (self.position, distance),
            SeekFrom::End(distance) => (self.file.metadata()?.len().min(self.end), distance),
        };
        self.position = base.checked_add_signed(distance).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
