//! Reading a package from an archive.

mod zip;

use std::io::Read;
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use myclaw_policy::escape;
use tar::{Archive, EntryType};

use crate::tree::MAX_BYTES;
use crate::{Tree, TreeEntry, TreeError};

/// Most members of an archive: files, directories and links.
const MAX_MEMBERS: usize = 10_000;
/// Most bytes that an archive unpacks to: the largest package, and the headers of its members.
const MAX_UNPACKED: u64 = MAX_BYTES + (16 << 20);
/// Begins every compressed stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

impl Tree {
    /// Reads a tar archive, which may be compressed with gzip, or a zip archive. Nothing is written. Links are left out.
    ///
    /// # Errors
    /// It is no such archive, a path leads out of it, it holds a device or the like, or it exceeds a limit.
    pub fn of_archive(bytes: &[u8]) -> Result<Self, TreeError> {
        let tree = if zip::is_zip(bytes) { zip::read(bytes)? } else { Self::of_tar(bytes)? };
        match tree.is_empty() {
            true => Err(TreeError("the archive holds no file".to_owned())),
            false => Ok(tree.without_top()),
        }
    }

    fn of_tar(bytes: &[u8]) -> Result<Self, TreeError> {
        let stream: Box<dyn Read + '_> = match bytes.starts_with(&GZIP) {
            true => Box::new(GzDecoder::new(bytes)),
            false => Box::new(bytes),
        };
        let mut archive = Archive::new(stream.take(MAX_UNPACKED));
        let unreadable = |error: std::io::Error| {
            TreeError(format!(
                "it is no archive (.tar.gz, .tar or .zip) that can be read: {error}; unpack it and name the directory"
            ))
        };
        let mut tree = Self::default();
        for (number, member) in archive.entries().map_err(unreadable)?.enumerate() {
            if number >= MAX_MEMBERS {
                return Err(TreeError(format!("it has more than {MAX_MEMBERS} members")));
            }
            let mut member = member.map_err(unreadable)?;
            let path = plain(&member.path().map_err(unreadable)?)?;
            match member.header().entry_type() {
                EntryType::Directory | EntryType::XGlobalHeader => {}
                EntryType::Symlink | EntryType::Link => tree.leave_out(&path),
                EntryType::Regular | EntryType::Continuous => {
                    let mode = member.header().mode().unwrap_or_default();
                    let mut bytes = Vec::new();
                    member
                        .by_ref()
                        .take(MAX_BYTES + 1)
                        .read_to_end(&mut bytes)
                        .map_err(unreadable)?;
                    tree.add(&path, TreeEntry { bytes, is_executable: mode & 0o111 != 0 })?;
                }
                _ => {
                    let shown = escape(&path);
                    return Err(TreeError(format!(
                        "{shown} in it is neither a file nor a directory"
                    )));
                }
            }
        }
        Ok(tree)
    }
}

/// The path of a member without `./`.
fn plain(path: &Path) -> Result<String, TreeError> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => {
                parts.push(part.to_str().ok_or_else(|| {
                    TreeError("it holds a file with a name that is not UTF-8".to_owned())
                })?);
            }
            _ => {
                let shown = escape(&path.to_string_lossy());
                return Err(TreeError(format!("the path {shown} in it leads out of the package")));
            }
        }
    }
    Ok(parts.join("/"))
}
