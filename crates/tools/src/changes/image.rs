//! Old contents of files.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read};
use std::path::Path;

use myclaw_files::portable::{MetadataExt, PermissionsExt};

use super::fingerprint::mode_of;
use super::{Fingerprint, MAX_IMAGE_BYTES};

/// What read, write and execute are of a mode. Nothing else is given by a text that was written down.
const PERMISSIONS: u32 = 0o777;

/// The result of keeping a file's content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    /// It was not kept. The text says why and follows "it".
    No(String),
    /// The file is not the one that the caller has read.
    Changed,
}

/// Gives a file that was made of kept content the permissions that were written down, if those of the content are others.
pub(super) fn give_mode(path: &Path, kept: &Metadata, wanted: &Fingerprint) -> io::Result<()> {
    match wanted.mode {
        Some(mode) if mode != mode_of(kept) => {
            std::fs::set_permissions(path, Permissions::from_mode(mode & PERMISSIONS))
        }
        _ => Ok(()),
    }
}

/// Keeps the content of the file at `source`, whose metadata were `before` when the caller read it, as `image`.
pub(super) fn keep(source: &Path, before: &Metadata, image: &Path) -> io::Result<Kept> {
    if before.len() > MAX_IMAGE_BYTES {
        return Ok(Kept::No(format!(
            "was larger than {} MiB, so its old content was not kept",
            MAX_IMAGE_BYTES / (1024 * 1024)
        )));
    }
    // Others can still write to a file that has several names, so its content is copied.
    let is_linked = before.nlink() == 1 && std::fs::hard_link(source, image).is_ok();
    let now = match is_linked {
        true => image.symlink_metadata()?,
        false => {
            std::fs::copy(source, image)?;
            // Only a privileged process can change the owner; without that right the file belongs to this user already.
            let _ = myclaw_files::portable::chown(image, Some(before.uid()), Some(before.gid()));
            source.symlink_metadata()?
        }
    };
    if is_same(before, &now) {
        return Ok(Kept::Yes);
    }
    std::fs::remove_file(image)?;
    Ok(Kept::Changed)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let facts =
        |of: &Metadata| (of.dev(), of.ino(), of.len(), of.mtime(), of.mtime_nsec(), mode_of(of));
    facts(one) == facts(other)
}

/// The kept content with its metadata, if it is unchanged. Its permissions may be others: a copy that another machine has fetched
/// is private, and a link has those that the file got since.
pub(super) fn load(image: &Path, wanted: &Fingerprint) -> io::Result<Option<(Vec<u8>, Metadata)>> {
    let file = match File::open(image) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes)?;
    let found = Fingerprint::of(&bytes, None);
    Ok(found.matches(wanted).then_some((bytes, metadata)))
}
