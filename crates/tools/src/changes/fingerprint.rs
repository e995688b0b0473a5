//! The state of a file at one moment, small enough to be kept and compared.

use myclaw_files::portable::{PermissionsExt, usual_path};
use myclaw_files::{canonical, hex};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::MAX_IMAGE_BYTES;

/// The bits of a mode that a file keeps: permissions, set-user-id and the like.
const MODE_BITS: u32 = 0o7777;
/// Bytes read at once.
const CHUNK_BYTES: usize = 128 * 1024;

/// Content and mode of a regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fingerprint {
    pub size: u64,
    /// SHA-256, in hexadecimal digits.
    pub hash: String,
    /// Permissions; `None` for a new file, whose mode the umask decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// The kind of entry at a path.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    File {
        fingerprint: Fingerprint,
        metadata: Metadata,
    },
    /// Not a regular file. The text follows "it".
    Other(String),
}

impl Fingerprint {
    /// The fingerprint of a file with this content.
    pub(crate) fn of(bytes: &[u8], mode: Option<u32>) -> Self {
        Self {
            size: bytes.len() as u64,
            hash: hex(ring::digest::digest(&SHA256, bytes).as_ref()),
            mode: mode.map(|mode| mode & MODE_BITS),
        }
    }

    /// The fingerprint of an open file, read to its end; `None` if it is larger than `limit`.
    pub(super) fn of_file(
        mut file: &File,
        metadata: &Metadata,
        limit: u64,
    ) -> io::Result<Option<Self>> {
        let mut digest = Context::new(&SHA256);
        let mut size = 0;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            size += count as u64;
            if size > limit {
                return Ok(None);
            }
            digest.update(&chunk[..count]);
        }
        let mode = Some(mode_of(metadata));
        Ok(Some(Self { size, hash: hex(digest.finish().as_ref()), mode }))
    }

    /// The fingerprint of a file that is too large to be read: it matches no other.
    pub(super) fn unknown(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), hash: String::new(), mode: Some(mode_of(metadata)) }
    }

    /// Whether both have the same content and, if both have a mode, the same mode.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let modes = self.mode.zip(other.mode);
        self.size == other.size
            && self.hash == other.hash
            && !self.hash.is_empty()
            && modes.is_none_or(|(one, two)| one == two)
    }
}

/// The permissions of a file.
pub(super) fn mode_of(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & MODE_BITS
}

/// Examines a path that contained no links when it was recorded. If it leads through a link now, it is another file.
pub(super) fn look(path: &Path) -> io::Result<Found> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if is_absence(&error) => {
            let existing =
                path.ancestors().skip(1).find(|parent| parent.symlink_metadata().is_ok());
            return Ok(match existing {
                Some(parent) if !leads_straight(parent) => Found::Other(BEHIND_A_LINK.to_owned()),
                _ => Found::Nothing,
            });
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return Ok(Found::Other("is a symbolic link now".to_owned()));
    }
    if !metadata.is_file() {
        return Ok(Found::Other("is a directory or a special file now".to_owned()));
    }
    if path.parent().is_some_and(|parent| !leads_straight(parent)) {
        return Ok(Found::Other(BEHIND_A_LINK.to_owned()));
    }
    let file = myclaw_files::open_regular(path)?;
    let metadata = file.metadata()?;
    Ok(match Fingerprint::of_file(&file, &metadata, MAX_IMAGE_BYTES)? {
        Some(fingerprint) => Found::File { fingerprint, metadata },
        None => Found::Other("is too large now".to_owned()),
    })
}

const BEHIND_A_LINK: &str = "is reached through a symbolic link now";

fn leads_straight(directory: &Path) -> bool {
    canonical(directory).is_ok_and(|real| real == usual_path(directory.to_owned()))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Found {
    /// Whether this is the state `wanted`; `None` means that there is no file.
    pub(super) fn is(&self, wanted: Option<&Fingerprint>) -> bool {
        match (self, wanted) {
            (Self::Nothing, None) => true,
            (Self::File { fingerprint, .. }, Some(wanted)) => fingerprint.matches(wanted),
            _ => false,
        }
    }
}
