//! Ways through a directory that others change meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::{EntryKind, Followed};

/// Most links on the way to a file, as the kernel allows.
const MAX_LINKS: usize = 40;
/// Most directories that are open on the way to a file: a process may have a thousand open files.
const MAX_DEPTH: usize = 128;

/// Who finds the directory at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolver {
    /// The kernel, in one call. Where it cannot, or a filter of system calls forbids it, this process does.
    Kernel,
    /// This process, part by part.
    #[cfg(test)]
    Steps,
}

impl Resolver {
    /// Opens the directory `path` below `at`. No part of `path` may be a link or `..`.
    pub(super) fn directory(self, at: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(is_plain) {
            return Err(leads_out());
        }
        if path.as_os_str().is_empty() {
            return Ok(openat(at, ".", directory_flags(), Mode::empty())?);
        }
        #[cfg(target_os = "linux")]
        if self == Self::Kernel {
            use rustix::fs::{ResolveFlags, openat2};
            let rules =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(at, path, directory_flags(), Mode::empty(), rules) {
                // EPERM is what a filter of system calls usually says, and EAGAIN that something was renamed meanwhile.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
                opened => return opened.map_err(in_words),
            }
        }
        by_steps(at, path)
    }
}

fn by_steps(at: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut opened = None;
    for part in path.components() {
        let at = opened.as_ref().map_or(at, |opened: &OwnedFd| opened.as_fd());
        let flags = directory_flags() | OFlags::NOFOLLOW;
        let next = openat(at, part.as_os_str(), flags, Mode::empty());
        opened = Some(next.map_err(|error| match statat(at, part.as_os_str(), NO_LINK) {
            // The kernel calls a link that it may not follow something that is no directory.
            Ok(stat) if EntryKind::of(&stat) == EntryKind::Link => in_words(Errno::LOOP),
            _ => in_words(error),
        })?);
    }
    opened.ok_or_else(leads_out)
}

/// Opens the regular file at `path`, following links that stay below `root`, which is also called `root_path`.
pub(super) fn followed(
    root: BorrowedFd<'_>,
    root_path: &Path,
    path: &Path,
) -> io::Result<Followed> {
    // The directories on the way with their names, and the parts that are still to come, the next one last.
    let mut opened: Vec<(OsString, OwnedFd)> = Vec::new();
    let mut waiting = parts(path, root_path)?;
    let mut links = 0;
    while let Some(part) = waiting.pop() {
        if part == ".." {
            opened.pop().ok_or_else(leads_out)?;
            continue;
        }
        let at = opened.last().map_or(root, |(_, opened)| opened.as_fd());
        let stat = statat(at, &part, NO_LINK).map_err(in_words)?;
        match EntryKind::of(&stat) {
            EntryKind::Link if links == MAX_LINKS => {
                return Err(refused("its path leads over too many symbolic links"));
            }
            EntryKind::Link => {
                links += 1;
                let target = readlinkat(at, &part, Vec::new()).map_err(in_words)?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    opened.clear();
                }
                waiting.extend(parts(&target, root_path)?);
            }
            _ if waiting.is_empty() => {
                regular(Ok(stat))?;
                let file = open_regular(at, &part)?;
                let mut path: PathBuf = opened.into_iter().map(|(name, _)| name).collect();
                path.push(part);
                return Ok(Followed { path, file });
            }
            _ if opened.len() == MAX_DEPTH => {
                return Err(refused("its path has too many parts"));
            }
            _ => {
                let next = by_steps(at, Path::new(&part))?;
                opened.push((part, next));
            }
        }
    }
    Err(refused("it is a directory"))
}

/// The parts of a path from the last to the first. An absolute path must lead below `root`.
fn parts(path: &Path, root: &Path) -> io::Result<Vec<OsString>> {
    let path =
        if path.is_absolute() { path.strip_prefix(root).map_err(|_| leads_out())? } else { path };
    let parts = path.components().filter(|part| *part != Component::CurDir);
    Ok(parts.rev().map(|part| part.as_os_str().to_owned()).collect())
}

/// Opens a regular file that has this name. A device that was put there since it was looked at is opened, but not read.
pub(super) fn open_regular(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let file = openat(at, name, OFlags::RDONLY | file_flags(), Mode::empty()).map_err(in_words)?;
    regular(fstat(&file))?;
    Ok(File::from(file))
}

/// An error unless that was found, and is a regular file.
pub(super) fn regular(found: Result<Stat, Errno>) -> io::Result<()> {
    match EntryKind::of(&found.map_err(in_words)?) {
        EntryKind::File => Ok(()),
        EntryKind::Directory => Err(refused("it is a directory")),
        EntryKind::Link => Err(in_words(Errno::LOOP)),
        EntryKind::Special => Err(refused("it is not a regular file")),
    }
}

const NO_LINK: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

pub(super) fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Without `NONBLOCK`, opening a FIFO waits for a writer; with it, reading a regular file is the same.
pub(super) fn file_flags() -> OFlags {
    OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

pub(super) fn leads_out() -> io::Error {
    refused("it is outside of the directory")
}

pub(super) fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// An error of the system, in words where somebody else has put the reason there.
pub(super) fn in_words(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => refused("it is a symbolic link, or its path leads over one"),
        Errno::XDEV => leads_out(),
        Errno::ISDIR => refused("it is a directory"),
        Errno::NOTDIR => refused("a part of its path is not a directory"),
        Errno::NXIO => refused("it is not a regular file"),
        other => other.into(),
    }
}
