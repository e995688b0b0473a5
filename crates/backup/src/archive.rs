//! The form of a backup: members of the tar format, compressed, and encrypted if asked.
//!
//! The first member says who has made it ([`Head`]), the last one what is in it, with a digest of each file ([`Contents`]).
//! So a backup without its last member is cut off, and one that somebody has changed does not fit its digests.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use myclaw_files::hex;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tar::{Archive, EntryType};

use crate::sealed::{MAGIC, Opening};
use crate::{BackupError, Passphrase};

/// Raised when an older program would misread a backup.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const HEAD: &str = "backup.json";
pub(crate) const CONTENTS: &str = "contents.json";
/// Above the files, so that no file has the name of another member.
pub(crate) const FILES: &str = "state";
/// Begins every compressed stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Longest text of the first and last member: a million files have a list of 150 MB.
const MOST_LIST_BYTES: u64 = 512 * 1024 * 1024;

/// The first member.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Head {
    pub(crate) format: u32,
    /// The version of the program.
    pub(crate) program: String,
}

/// What is in a backup.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// When it was begun, in milliseconds since the Unix epoch.
    pub made_at: u64,
    /// The version of the program that made it.
    pub program: String,
    /// Whether keys are in it.
    pub has_keys: bool,
    /// Whether workspaces are in it.
    pub has_work: bool,
    /// What a person should know is not in it.
    pub left_out: Vec<LeftOut>,
    pub(crate) files: Vec<FileDigest>,
}

impl Contents {
    /// Number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file or directory that is not in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Where it is in the state directory, or its whole path if it is elsewhere.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// Why something is not in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// It holds keys.
    Key,
    /// It belongs to a workspace, and workspaces were not wanted.
    Work,
    /// It is a link to this place. The link is in the backup.
    LeadsTo(String),
    /// It is outside of the state directory.
    Elsewhere,
    /// It cannot be read.
    Unreadable(String),
    /// It became shorter while it was read. Its copy ends in zeros.
    Shortened,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileDigest {
    /// Below [`FILES`], as well as it can be written as text.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Computes the digest of what is read.
pub(crate) struct Digesting<R> {
    from: R,
    digest: Context,
    bytes: u64,
}

impl<R: Read> Digesting<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, digest: Context::new(&SHA256), bytes: 0 }
    }

    pub(crate) fn finish(self, path: &Path) -> FileDigest {
        let sha256 = hex(self.digest.finish().as_ref());
        // With `/` on every system, as the names of the archive.
        let parts: Vec<_> = path.iter().map(OsStr::to_string_lossy).collect();
        FileDigest { path: parts.join("/"), bytes: self.bytes, sha256 }
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.digest.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

/// What a reader of a backup does with its files. Paths are relative and lead down only.
pub(crate) trait Sink {
    fn directory(&mut self, path: &Path) -> Result<(), BackupError>;
    /// Reads `content` to its end.
    fn file(
        &mut self,
        path: &Path,
        facts: Facts,
        content: &mut dyn Read,
    ) -> Result<(), BackupError>;
    fn link(&mut self, path: &Path, target: &Path) -> Result<(), BackupError>;
}

/// What is kept of a file besides its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) is_executable: bool,
    /// In seconds since the Unix epoch.
    pub(crate) modified: u64,
}

/// Reads a backup to its end. The sink has got files of a bad backup too, so it keeps them only if this succeeds.
pub(crate) fn read(
    from: impl Read,
    passphrase: Option<&Passphrase>,
    sink: &mut dyn Sink,
) -> Result<Contents, BackupError> {
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(decrypted(from, passphrase)?)));
    let mut entries = archive.entries().map_err(BackupError::reading)?;
    let mut next = || entries.next().transpose().map_err(BackupError::reading);
    let mut head = next()?.ok_or_else(not_a_backup)?;
    if head.path_bytes().as_ref() != HEAD.as_bytes() {
        return Err(not_a_backup());
    }
    let head: Head = parse(&mut head)?;
    if head.format > FORMAT {
        return Err(BackupError::Newer {
            program: head.program,
            format: head.format,
            known: FORMAT,
        });
    }
    let mut found = Vec::new();
    let contents: Contents = loop {
        let Some(mut entry) = next()? else {
            return Err(BackupError::Unusable("it is cut off".to_owned()));
        };
        if entry.path_bytes().as_ref() == CONTENTS.as_bytes() {
            break parse(&mut entry)?;
        }
        let path = below(&entry.path().map_err(BackupError::reading)?)?;
        match entry.header().entry_type() {
            EntryType::Directory => sink.directory(&path)?,
            EntryType::Symlink => {
                let target = entry.link_name().map_err(BackupError::reading)?;
                sink.link(&path, &target.ok_or_else(damaged)?)?;
            }
            EntryType::Regular => {
                let mode = entry.header().mode().map_err(BackupError::reading)?;
                let modified = entry.header().mtime().map_err(BackupError::reading)?;
                let facts = Facts { is_executable: mode & 0o111 != 0, modified };
                let mut content = Digesting::new(&mut entry);
                sink.file(&path, facts, &mut content)?;
                found.push(content.finish(&path));
            }
            _ => return Err(damaged()),
        }
    };
    if let Some((file, _)) =
        found.iter().zip(&contents.files).find(|(found, listed)| found != listed)
    {
        return Err(BackupError::Unusable(format!("{} was changed or damaged", file.path)));
    }
    if found.len() != contents.files.len() || next()?.is_some() {
        return Err(damaged());
    }
    Ok(contents)
}

fn decrypted<'a>(
    mut from: impl Read + 'a,
    passphrase: Option<&Passphrase>,
) -> Result<Box<dyn Read + 'a>, BackupError> {
    let mut start = vec![0; GZIP.len()];
    from.read_exact(&mut start).map_err(|_| not_a_backup())?;
    if start == GZIP {
        return Ok(Box::new(io::Cursor::new(start).chain(from)));
    }
    start.resize(MAGIC.len(), 0);
    from.read_exact(&mut start[GZIP.len()..]).map_err(|_| not_a_backup())?;
    if start != MAGIC {
        return Err(not_a_backup());
    }
    let passphrase = passphrase.ok_or(BackupError::Encrypted)?;
    Ok(Box::new(Opening::new(from, passphrase).map_err(BackupError::reading)?))
}

fn parse<T: serde::de::DeserializeOwned>(from: &mut impl Read) -> Result<T, BackupError> {
    serde_json::from_reader(BufReader::new(from.take(MOST_LIST_BYTES)))
        .map_err(|error| if error.is_io() { BackupError::reading(error.into()) } else { damaged() })
}

/// The path of a file below [`FILES`].
fn below(path: &Path) -> Result<PathBuf, BackupError> {
    let rest = path.strip_prefix(FILES).map_err(|_| damaged())?;
    let leads_down = rest.components().all(|part| matches!(part, Component::Normal(_)));
    if leads_down && rest != Path::new("") { Ok(rest.to_owned()) } else { Err(damaged()) }
}

fn damaged() -> BackupError {
    BackupError::Unusable("it was changed or damaged".to_owned())
}

fn not_a_backup() -> BackupError {
    BackupError::Unusable("it is no backup that `myclaw backup` has written".to_owned())
}
