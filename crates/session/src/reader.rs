//! Reading a log without locking it, as displays and exports do.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::about::read_about;
use crate::backward::BLOCK;
use crate::error::{IoContext, SessionError};
use crate::history::History;
use crate::line::{self, Line};
use crate::tail::{
    beginning_ms, fill_missing_times, read_last_compaction, read_messages_before, read_tail,
};
use crate::{
    About, CompactionEntry, Entry, EntryId, FORMAT_VERSION, SessionHeader, SessionKey, Tail,
    TailLimit, TranscriptMessage,
};

/// A header longer than this is none. Keys have at most a few hundred characters.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// A log opened for reading. It does not mind a writer: what is appended meanwhile may or may not be seen, and a
/// line that is only half there yet is left out.
#[derive(Debug)]
pub struct SessionReader {
    path: PathBuf,
    file: File,
    /// Where a fork's conversation begins; empty for all others.
    history: History,
}

/// A place between two lines of a log: how many files of its history lie before, and how many bytes of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) part: usize,
    pub(crate) offset: u64,
}

impl SessionReader {
    /// Opens the log of `key` at `path`, or gives `None` if there is none.
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

    /// Opens a log that lies anywhere, such as an export, whatever session it belongs to.
    ///
    /// # Errors
    /// The file cannot be read, a later version of the program wrote it, or it is a fork's and the history is not
    /// beside it.
    pub fn of_file(path: &Path) -> Result<Self, SessionError> {
        let file = File::open(path).context("open the session log", path)?;
        let header = read_header(&file).context("read the session log", path)?;
        check_version(header.as_ref(), path)?;
        let history = History::open(path, header.as_ref())?;
        Ok(Self { path: path.to_path_buf(), file, history })
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header, unless the first line is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn header(&self) -> Result<Option<SessionHeader>, SessionError> {
        read_header(&self.file).context("read the session log", &self.path)
    }

    /// All entries from the first on, one in memory at a time; those of a fork begin with its parent's.
    pub fn entries(&self) -> Entries<'_> {
        self.entries_from(Position { part: 0, offset: 0 })
    }

    /// The entries behind `start`.
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

    /// What the session's owner calls it. What the parent of a fork is called does not count.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn about(&self) -> Result<About, SessionError> {
        read_about(&self.file).context("read the session log", &self.path)
    }

    /// How many messages there are in the whole log.
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

    /// What a next turn would start from. Unlike [`crate::SessionLog::tail`] it repairs nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        let mut tail =
            read_tail(self.parts_backward(), limit).context("read the session log", &self.path)?;
        fill_missing_times(&mut tail.messages, || beginning_ms(&self.file));
        Ok(tail)
    }

    /// The last compaction: the summary from which a next turn starts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError> {
        read_last_compaction(self.parts_backward()).context("read the session log", &self.path)
    }

    /// The last `count` messages, oldest first, whatever summaries there are. Reads only the end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_messages(&self, count: usize) -> Result<Vec<TranscriptMessage>, SessionError> {
        Ok(self.messages_before(None, count)?.unwrap_or_default())
    }

    /// The `count` messages before the one with the id `before`, oldest first, whatever summaries there are; without an
    /// id the last ones. `None` if no message has it. Reads the file from its end as far as it has to.
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
}

/// The entries of a log, from the first on. Lines that are no entries are passed over and counted.
#[derive(Debug)]
pub struct Entries<'a> {
    reader: &'a SessionReader,
    lines: BufReader<Positioned<'a>>,
    line: Vec<u8>,
    /// Where the next line begins.
    position: Position,
    is_finished: bool,
    skipped_lines: usize,
    has_torn_tail: bool,
    /// Time of the message yielded last.
    last_ts: Option<u64>,
}

impl Entries<'_> {
    /// How many lines were passed over so far because they are no entries. Blank lines do not count.
    pub fn skipped_lines(&self) -> usize {
        self.skipped_lines
    }

    /// Whether the last line was only half there; known once the iterator is at its end.
    pub fn has_torn_tail(&self) -> bool {
        self.has_torn_tail
    }

    /// Gives a message that was written without a time that of the message before, or else that of the file.
    fn date(&mut self, entry: &mut Entry) {
        let Entry::Message(message) = entry else { return };
        if message.ts == 0 {
            message.ts = self.last_ts.unwrap_or_else(|| beginning_ms(&self.reader.file));
        }
        self.last_ts = Some(message.ts);
    }

    /// The place behind the entry yielded last; `None` if that has no line feed yet.
    pub(crate) fn position(&self) -> Option<Position> {
        (!self.is_finished).then_some(self.position)
    }

    /// Reads the next line; whether it has a line feed. The last line of a part that is not the newest has one.
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
                // What a writer adds to a last line meanwhile is not the beginning of another one.
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

/// The header of the log in `file`, unless the first line is none.
pub(crate) fn read_header(file: &File) -> io::Result<Option<SessionHeader>> {
    let mut first_line = Vec::new();
    // Most headers fit the first of these reads many times over, and a turn should not read more than it needs.
    BufReader::with_capacity(1024, Positioned::new(file).take(MAX_HEADER_BYTES))
        .read_until(b'\n', &mut first_line)?;
    Ok(match line::decode(&first_line, 0) {
        Line::Header(header) => Some(header),
        Line::Entry(_) | Line::Blank | Line::Corrupt => None,
    })
}

/// Refuses a log that a later version of the program wrote in an incompatible way, and one that belongs to another
/// session: it was copied to this name, or two long keys have the same shortened one. Gives the header, if the first
/// line is one.
pub(crate) fn check_header(
    file: &File,
    path: &Path,
    key: &SessionKey,
) -> Result<Option<SessionHeader>, SessionError> {
    let Some(header) = read_header(file).context("read the session log", path)? else {
        return Ok(None);
    };
    check_version(Some(&header), path)?;
    // A key that cannot be read comes from another program, which named the file as it should be.
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

/// Reads a file from a place of its own, so that several readers can share the file.
#[derive(Debug)]
pub(crate) struct Positioned<'a> {
    file: &'a File,
    position: u64,
    /// The file is taken to end here, if it is longer.
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
