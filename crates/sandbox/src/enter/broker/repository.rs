//! Repositories of git that are known by what a directory holds, not by a name: `HEAD`, `config`, `objects` and `refs` are
//! one wherever they are, and git obeys its config. So no `HEAD` comes to be, nothing that makes a repository of one that is
//! there, and a repository that is there stays as it is.
//!
//! Others may move the directories above meanwhile, so no path is looked up: each look is at an open directory, and at the
//! one above that.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::rules::{is_same, location};

/// git takes no directory without it for a repository.
pub(super) const HEAD: &str = "HEAD";
/// One of these is in each repository: the second names a directory that has the first.
const STORES: [&str; 2] = ["objects", "commondir"];
/// Deepest directory that is looked at. What is deeper counts as a part of a repository.
const MOST_DEPTH: usize = 512;

/// What a name has to do with repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Nothing,
    /// Only a directory may have this name, which is none for git then.
    Head,
    /// It is in a repository, is one, or would make one.
    Inside,
}

/// What `name` in `parent` is, which need not exist. `roots` are where the looking up ends.
pub(super) fn part(
    parent: impl AsFd,
    name: &OsStr,
    roots: &[impl AsRef<Path>],
) -> Result<Part, Errno> {
    let is_store = STORES.iter().any(|store| is_same(name, store.as_ref()));
    if (is_store && has_head(&parent)) || is_in_repository(&parent, roots)? {
        return Ok(Part::Inside);
    }
    if is_same(name, HEAD.as_ref()) {
        return Ok(Part::Head);
    }
    let flags = directory().union(OFlags::NOFOLLOW);
    match openat(&parent, name, flags, Mode::empty()) {
        Ok(below) if is_repository(&below) => Ok(Part::Inside),
        _ => Ok(Part::Nothing),
    }
}

/// The same for a file that is open and has a name.
pub(super) fn part_of_file(
    file: impl AsFd,
    about: &Stat,
    roots: &[impl AsRef<Path>],
) -> Result<Part, Errno> {
    if FileType::from_raw_mode(about.st_mode) == FileType::Directory {
        let is_inside = is_in_repository(file, roots)?;
        return Ok(if is_inside { Part::Inside } else { Part::Nothing });
    }
    let place = location(&file)?;
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Ok(Part::Inside);
    };
    let parent = openat(CWD, parent, directory(), Mode::empty())?;
    // It has moved, or its directory has: what is open may be anywhere.
    if !is_it(&statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?, about) {
        return Err(Errno::STALE);
    }
    part(parent, name, roots)
}

/// Whether an open directory is a repository or below one.
fn is_in_repository(start: impl AsFd, roots: &[impl AsRef<Path>]) -> Result<bool, Errno> {
    let roots: Vec<Stat> =
        roots.iter().filter_map(|root| rustix::fs::stat(root.as_ref()).ok()).collect();
    let mut at: OwnedFd = start.as_fd().try_clone_to_owned().map_err(|_| Errno::NFILE)?;
    for _ in 0..MOST_DEPTH {
        if is_repository(&at) {
            return Ok(true);
        }
        let about = fstat(&at)?;
        if roots.iter().any(|root| is_it(root, &about)) {
            return Ok(false);
        }
        let above = openat(&at, "..", directory(), Mode::empty())?;
        if is_it(&fstat(&above)?, &about) {
            return Ok(false);
        }
        at = above;
    }
    Ok(true)
}

fn is_repository(directory: &OwnedFd) -> bool {
    has_head(directory) && STORES.iter().any(|store| kind(directory, store).is_some())
}

fn has_head(directory: impl AsFd) -> bool {
    kind(directory, HEAD).is_some_and(|kind| kind != FileType::Directory)
}

fn kind(directory: impl AsFd, name: &str) -> Option<FileType> {
    let about = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(about.st_mode))
}

fn directory() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn is_it(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
