//! Contents that are too large for a log or a record, such as the copies of files that wait to be sent.
//!
//! A blob has a name, which says what it is of, and the digest of its content. Where it is, only the store knows.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

mod files;
mod memory;

pub use files::FileBlobs;
pub use memory::MemoryBlobs;

/// Contents by name. All calls block: callers decide on which thread they run.
pub trait Blobs: fmt::Debug + Send + Sync {
    /// Keeps what `content` gives under `name`, in place of what had that name. It is durable when this returns. A caller that
    /// does not know whether its call succeeded repeats it.
    ///
    /// # Errors
    /// It is larger than `limits` permit, it cannot be read, or it cannot be kept. Nothing has changed then.
    fn put(
        &self,
        name: &str,
        content: &mut dyn Read,
        limits: BlobLimits,
    ) -> Result<NamedBlob, BlobError>;

    /// Opens a blob.
    ///
    /// # Errors
    /// [`BlobError::Missing`] if it is gone; or it cannot be read.
    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError>;

    /// Removes a blob. Returns whether it was there.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, blob: &NamedBlob) -> Result<bool, BlobError>;

    /// Removes the blobs that were put longer ago than `max_age`. Returns how many.
    ///
    /// # Errors
    /// They cannot be listed. One that cannot be removed stays.
    fn sweep(&self, max_age: Duration) -> Result<usize, BlobError>;

    /// Where a blob is, for people, and for programs on this machine that can read it there.
    fn describe(&self, blob: &NamedBlob) -> String;
}

/// Names a content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedBlob {
    /// What it is of, unique in its store.
    pub name: String,
    /// SHA-256 of the content in hexadecimal digits. `None` for one that an earlier version of the program has kept, which is
    /// not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// How large blobs may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobLimits {
    /// Most bytes of this one.
    pub each: u64,
    /// Most bytes of all blobs of the store together, with this one; `None` for no limit.
    pub together: Option<u64>,
}

/// Why a blob cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is too large.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// Most bytes of one.
        limit: u64,
    },
    /// With it, all together would be too large.
    #[error("there is no room for it: all together have at most {limit} bytes")]
    Full {
        /// Most bytes of all.
        limit: u64,
    },
    /// It is not there, or not any more.
    #[error("it is gone")]
    Missing,
    /// It cannot be read or written, or its name cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An open blob. At its end, reading fails if the content is not the one that was put.
pub struct OpenBlob {
    /// How many bytes it has.
    pub bytes: u64,
    content: Box<dyn Read + Send>,
    expected: Option<String>,
    digest: Context,
}

impl OpenBlob {
    /// A blob with this content.
    pub fn new(blob: &NamedBlob, bytes: u64, content: impl Read + Send + 'static) -> Self {
        let (content, digest) = (Box::new(content), Context::new(&SHA256));
        Self { bytes, content, expected: blob.digest.clone(), digest }
    }

    /// The whole content.
    ///
    /// # Errors
    /// It cannot be read, or is not the one that was put.
    pub fn read_all(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for OpenBlob {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.digest.update(&buffer[..count]);
        let is_end = count == 0 && !buffer.is_empty();
        match &self.expected {
            Some(expected) if is_end && *expected != digest_of(self.digest.clone()) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "it has changed since it was kept"))
            }
            _ => Ok(count),
        }
    }
}

impl fmt::Debug for OpenBlob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenBlob").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl BlobLimits {
    /// Copies `content` to `kept`, and names it. The other blobs of the store have `others` bytes.
    ///
    /// # Errors
    /// It is too large, or cannot be read or written.
    pub fn copy(
        self,
        name: &str,
        content: &mut dyn Read,
        others: u64,
        kept: &mut dyn io::Write,
    ) -> Result<NamedBlob, BlobError> {
        let room = self.together.map_or(u64::MAX, |together| together.saturating_sub(others));
        let mut content = content.take(self.each.min(room).saturating_add(1));
        let (mut digest, mut bytes) = (Context::new(&SHA256), 0_u64);
        let mut piece = vec![0; 64 * 1024];
        loop {
            let count = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            bytes += count as u64;
            digest.update(&piece[..count]);
            kept.write_all(&piece[..count])?;
        }
        match self.together {
            _ if bytes > self.each => Err(BlobError::TooLarge { limit: self.each }),
            Some(limit) if bytes > room => Err(BlobError::Full { limit }),
            _ => Ok(NamedBlob { name: name.to_owned(), digest: Some(digest_of(digest)) }),
        }
    }
}

fn digest_of(digest: Context) -> String {
    myclaw_files::hex(digest.finish().as_ref())
}

/// A name is one part of a path, so that no name leads elsewhere.
///
/// # Errors
/// It is none.
pub fn checked(name: &str) -> io::Result<&str> {
    let is_usable = !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !name.starts_with('.');
    let why = "the name of a blob has letters, digits, '-', '_' and '.', and begins with no '.'";
    is_usable.then_some(name).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, why))
}
