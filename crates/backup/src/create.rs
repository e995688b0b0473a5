//! Makes a backup.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use myclaw_files::portable::{FileExt as _, MetadataExt as _};
use myclaw_files::{OwnedDirectory, SharedDirectory, now_ms, open_regular};
use myclaw_store::copy_database;
use serde::Serialize;
use tar::{Builder, EntryType, Header};

use crate::archive::{CONTENTS, Digesting, FILES, FORMAT, HEAD, Head};
use crate::sealed::Sealing;
use crate::source::{FileRole, Item, Kind, list};
use crate::{BackupError, Contents, LeftOut, Passphrase, Why};

/// Begins the names of directories with copies of databases.
const COPIES: &str = "myclaw-backup-";
/// How far the end of a log's last whole line is looked for at a time.
const LINE_BYTES: u64 = 64 * 1024;
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const PROGRAM_MODE: u32 = 0o700;

/// What is copied.
pub struct Source<'a> {
    /// The state directory.
    pub state: &'a Path,
    /// What a path in it is for.
    pub part_of: &'a dyn Fn(&Path) -> FileRole,
    /// Files of it with another content than they have.
    pub replaced: BTreeMap<PathBuf, Vec<u8>>,
    /// What else a person should know is not in the backup.
    pub left_out: Vec<LeftOut>,
    /// The version of the program.
    pub program: &'a str,
    /// Whether files with keys are copied.
    pub with_keys: bool,
    /// Whether workspaces are copied.
    pub with_work: bool,
}

/// Writes a backup. Blocks for as long as it takes to read everything.
///
/// # Errors
/// A file of the program cannot be read, a database is damaged, or the backup cannot be written. A file of a workspace
/// that cannot be read is left out, and named.
pub fn create<W: Write>(
    source: Source<'_>,
    to: W,
    passphrase: Option<&Passphrase>,
) -> Result<(Contents, W), BackupError> {
    match passphrase {
        None => {
            let (contents, encoder) = write(source, GzEncoder::new(to, Compression::default()))?;
            Ok((contents, encoder.finish().map_err(BackupError::Unwritable)?))
        }
        Some(passphrase) => {
            let sealing = Sealing::new(to, passphrase).map_err(BackupError::Unwritable)?;
            let (contents, encoder) =
                write(source, GzEncoder::new(sealing, Compression::default()))?;
            let to = encoder.finish().and_then(Sealing::finish).map_err(BackupError::Unwritable)?;
            Ok((contents, to))
        }
    }
}

fn write<W: Write>(source: Source<'_>, to: W) -> Result<(Contents, W), BackupError> {
    let unreadable = |source_error| BackupError::Unreadable {
        path: source.state.to_owned(),
        source: source_error,
    };
    let state = SharedDirectory::open(source.state).map_err(unreadable)?;
    let mut contents = Contents {
        made_at: now_ms(),
        program: source.program.to_owned(),
        has_keys: source.with_keys,
        has_work: source.with_work,
        left_out: source.left_out,
        files: Vec::new(),
    };
    let is_wanted = |part| match part {
        FileRole::Key => source.with_keys,
        FileRole::Work => source.with_work,
        _ => true,
    };
    let mut left_out = Vec::new();
    let items = list(&state, source.part_of, &is_wanted, &mut |path, part| {
        let why = if part == FileRole::Key { Why::Key } else { Why::Work };
        left_out.push(LeftOut { path: path.to_string_lossy().into_owned(), why });
    })?;
    contents.left_out.append(&mut left_out);

    let mut archive = Writing { to: Builder::new(to), state, contents, copies: None };
    archive.member(HEAD, &Head { format: FORMAT, program: source.program.to_owned() })?;
    for item in &items {
        match source.replaced.get(&item.path) {
            Some(content) if item.kind == Kind::File => {
                let modified = archive.contents.made_at / 1000;
                let size = content.len() as u64;
                archive.content(item, (size, FILE_MODE, modified), content.as_slice())?;
            }
            _ => archive.add(item)?,
        }
    }
    let contents = archive.contents.clone();
    archive.member(CONTENTS, &contents)?;
    let to = archive.to.into_inner().map_err(BackupError::Unwritable)?;
    Ok((contents, to))
}

/// A backup that is being written.
struct Writing<W: Write> {
    to: Builder<W>,
    state: SharedDirectory,
    contents: Contents,
    /// Where copies of databases are until they are in the backup.
    copies: Option<OwnedDirectory>,
}

impl<W: Write> Writing<W> {
    fn add(&mut self, item: &Item) -> Result<(), BackupError> {
        match self.try_add(item) {
            // It was removed meanwhile.
            Err(BackupError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            // What a less trusted party can change must not prevent a backup.
            Err(BackupError::Unreadable { source, .. })
                if matches!(item.part, FileRole::Work | FileRole::SideFile) =>
            {
                self.leave_out(item, Why::Unreadable(source.to_string()));
                Ok(())
            }
            added => added,
        }
    }

    fn try_add(&mut self, item: &Item) -> Result<(), BackupError> {
        let unreadable =
            |source| BackupError::Unreadable { path: self.state.path().join(&item.path), source };
        match item.kind {
            Kind::Directory => {
                let mut header = header(EntryType::Directory, (0, DIRECTORY_MODE, 0));
                self.to
                    .append_data(&mut header, Path::new(FILES).join(&item.path), io::empty())
                    .map_err(BackupError::Unwritable)
            }
            Kind::Link => {
                let target = self.state.link_target(&item.path).map_err(unreadable)?;
                let mut header = header(EntryType::Symlink, (0, FILE_MODE, 0));
                self.to
                    .append_link(&mut header, Path::new(FILES).join(&item.path), &target)
                    .map_err(BackupError::Unwritable)?;
                if item.part != FileRole::Work {
                    self.leave_out(item, Why::LeadsTo(target.to_string_lossy().into_owned()));
                }
                Ok(())
            }
            Kind::File if is_database(item) => self.add_database(item),
            Kind::File => {
                let file = self.state.file(&item.path).map_err(unreadable)?;
                let whole = file.metadata().map_err(unreadable)?.len();
                let bytes = match item.part {
                    FileRole::Log => whole_lines(&file, whole).map_err(unreadable)?,
                    _ => whole,
                };
                self.add_file(item, file, bytes)
            }
        }
    }

    fn add_database(&mut self, item: &Item) -> Result<(), BackupError> {
        if self.copies.is_none() {
            let made = OwnedDirectory::create(&std::env::temp_dir(), COPIES);
            self.copies = Some(made.map_err(BackupError::Unwritable)?);
        }
        let Some(copies) = &self.copies else { return Ok(()) };
        let copy = copies.path().join("copy.sqlite");
        copy_database(&self.state.path().join(&item.path), &copy)?;
        let opened = open_regular(&copy).map_err(BackupError::Unwritable)?;
        // The open file stays readable.
        std::fs::remove_file(&copy).map_err(BackupError::Unwritable)?;
        let bytes = opened.metadata().map_err(BackupError::Unwritable)?.len();
        self.add_file(item, opened, bytes)
    }

    fn add_file(&mut self, item: &Item, mut file: File, bytes: u64) -> Result<(), BackupError> {
        let unreadable =
            |source| BackupError::Unreadable { path: self.state.path().join(&item.path), source };
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let facts = file.metadata().map_err(unreadable)?;
        let mode = if facts.mode() & 0o111 == 0 { FILE_MODE } else { PROGRAM_MODE };
        let modified = u64::try_from(facts.mtime()).unwrap_or_default();
        let mut padded = Padded { from: file, left: bytes, is_short: false, failure: None };
        self.content(item, (bytes, mode, modified), &mut padded)?;
        if let Some(failure) = padded.failure {
            // The header with the size is written already, so the archive cannot be continued without it.
            return Err(BackupError::Unreadable {
                path: self.state.path().join(&item.path),
                source: failure,
            });
        }
        if padded.is_short {
            self.leave_out(item, Why::Shortened);
        }
        Ok(())
    }

    fn content(
        &mut self,
        item: &Item,
        facts: (u64, u32, u64),
        content: impl Read,
    ) -> Result<(), BackupError> {
        let mut header = header(EntryType::Regular, facts);
        let mut content = Digesting::new(content);
        self.to
            .append_data(&mut header, Path::new(FILES).join(&item.path), &mut content)
            .map_err(BackupError::Unwritable)?;
        self.contents.files.push(content.finish(&item.path));
        Ok(())
    }

    /// Writes one of the members that are no files.
    fn member(&mut self, name: &str, value: &impl Serialize) -> Result<(), BackupError> {
        let text =
            serde_json::to_vec(value).map_err(|error| BackupError::Unwritable(error.into()))?;
        let mut header = header(EntryType::Regular, (text.len() as u64, FILE_MODE, 0));
        self.to.append_data(&mut header, name, text.as_slice()).map_err(BackupError::Unwritable)
    }

    fn leave_out(&mut self, item: &Item, why: Why) {
        let path = item.path.to_string_lossy().into_owned();
        self.contents.left_out.push(LeftOut { path, why });
    }
}

/// The database of a workspace is copied as the file that it is: SQLite would open what somebody else has written.
fn is_database(item: &Item) -> bool {
    let is_named = item.path.extension().is_some_and(|end| end == "sqlite");
    item.part == FileRole::Database || (item.part == FileRole::Key && is_named)
}

fn header(kind: EntryType, (bytes, mode, modified): (u64, u32, u64)) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_mtime(modified);
    header
}

/// Bytes of the whole lines in the first `bytes` of a log: a line that is being written is not part of it yet.
fn whole_lines(file: &File, bytes: u64) -> io::Result<u64> {
    let mut end = bytes;
    while end > 0 {
        let begin = end.saturating_sub(LINE_BYTES);
        let mut chunk = vec![0; usize::try_from(end - begin).unwrap_or_default()];
        file.read_exact_at(&mut chunk, begin)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// A file that has exactly so many bytes, whatever happens to it while it is read.
struct Padded {
    from: File,
    left: u64,
    is_short: bool,
    failure: Option<io::Error>,
}

impl Read for Padded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let buffer = &mut buffer[..most];
        if most == 0 {
            return Ok(0);
        }
        let count = if self.is_short || self.failure.is_some() {
            0
        } else {
            match self.from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    self.failure = Some(error);
                    0
                }
                Ok(count) => count,
            }
        };
        if count == 0 {
            self.is_short = true;
            buffer.fill(0);
            self.left -= most as u64;
            return Ok(most);
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
