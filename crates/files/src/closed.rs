//! Paths that are closed to tools, because this program keeps its config, keys and records there.
//!
//! One decision serves every tool. It is made about a [`real_path`], so links, `..`, `/proc/self/root` and `/dev/fd/3` are
//! no ways around it. The places are compared by name and by identity (device and inode), so neither is a hard link to one
//! of the files, nor another mount of one of the directories.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::portable::{MetadataExt, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, OpenOptionsExt};

/// Most links that one path may lead through: the kernel's own limit (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// How far a place is open to tools. The order counts: the first of two applies if both are said of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opening {
    /// Not at all.
    Closed,
    /// It may be read.
    Reading,
    /// It may be read and changed.
    Everything,
}

/// What a tool wants to do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// Read it, list it or search it.
    Read,
    /// Create, change or delete it.
    Change,
}

/// Directories and files that are closed to tools, and the parts of them that are not. The deepest place that holds a path
/// decides about it; a path in none of them is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosedPaths {
    places: Vec<(PathBuf, Opening)>,
}

/// [`ClosedPaths`] with the identities that the places have at one moment, for many questions.
#[derive(Debug, Clone, Default)]
pub struct ClosedNow {
    places: Vec<(PathBuf, Opening, Option<Identity>)>,
}

/// Device and inode.
type Identity = (u64, u64);

impl ClosedPaths {
    /// Adds a place. Its links are followed now, so it may be named in any way.
    #[must_use]
    pub fn with(mut self, place: &Path, opening: Opening) -> Self {
        self.add(place, opening, &mut KnownLinks::default());
        self
    }

    /// Adds a place like [`ClosedPaths::with`]. `links` knows what was asked for the places before.
    pub fn add(&mut self, place: &Path, opening: Opening, links: &mut KnownLinks) {
        let place = links.real_path(place).unwrap_or_else(|_| place.to_owned());
        // Each place is looked at again for each question.
        if !self.places.contains(&(place.clone(), opening)) {
            self.places.push((place, opening));
        }
    }

    /// Whether nothing is closed.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The places with links followed, in the order in which they were added.
    pub fn places(&self) -> impl Iterator<Item = (&Path, Opening)> {
        self.places.iter().map(|(path, opening)| (path.as_path(), *opening))
    }

    /// The place that closes `real`, a [`real_path`], to `wanted`. Asks the file system about each place and each
    /// directory of the path.
    pub fn refusing(&self, real: &Path, wanted: PathUse) -> Option<PathBuf> {
        if self.places.is_empty() {
            return None;
        }
        self.now().refusing(real, wanted).map(Path::to_owned)
    }

    /// The same, for many questions at about one moment.
    pub fn now(&self) -> ClosedNow {
        let identified = |(path, opening): &(PathBuf, Opening)| {
            let identity = path.symlink_metadata().ok().map(|found| identity(&found));
            (path.clone(), *opening, identity)
        };
        ClosedNow { places: self.places.iter().map(identified).collect() }
    }
}

impl ClosedNow {
    /// See [`ClosedPaths::refusing`].
    pub fn refusing(&self, real: &Path, wanted: PathUse) -> Option<&Path> {
        if self.places.is_empty() {
            return None;
        }
        let look = |path: &Path| path.symlink_metadata().ok();
        let (place, opening) =
            real.ancestors().find_map(|path| self.place_at(path, look(path).as_ref()))?;
        let is_open = match wanted {
            PathUse::Read => opening >= Opening::Reading,
            PathUse::Change => opening == Opening::Everything,
        };
        (!is_open).then_some(place)
    }

    /// Whether `path` is itself a closed place. That is enough for a walk that follows no links and began in a directory
    /// that is open. `found` is what the path is; without it, only names are compared.
    pub fn is_closed_place(&self, path: &Path, found: Option<&Metadata>) -> bool {
        self.place_at(path, found).is_some_and(|(_, opening)| opening == Opening::Closed)
    }

    /// Whether an open file is one of the closed ones under another name.
    pub fn is_closed_file(&self, file: &Metadata) -> bool {
        let wanted = identity(file);
        file.nlink() > 1
            && self.places.iter().any(|(_, opening, known)| {
                *opening == Opening::Closed && known.is_some_and(|known| known == wanted)
            })
    }

    fn place_at(&self, path: &Path, found: Option<&Metadata>) -> Option<(&Path, Opening)> {
        let wanted = found.map(identity);
        let is_here = |place: &&(PathBuf, Opening, Option<Identity>)| {
            place.0 == path || (wanted.is_some() && place.2 == wanted)
        };
        let here = self.places.iter().filter(is_here).min_by_key(|(_, opening, _)| *opening)?;
        Some((&here.0, here.1))
    }
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// Opens a regular file at a [`real_path`] for reading, and never through a link: a part of the path that became one since
/// the path was checked is an error. Never blocks on a FIFO.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for anything but a regular file; otherwise an I/O error.
pub fn open_real(path: &Path) -> io::Result<File> {
    let file = open_without_links(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

#[cfg(target_os = "linux")]
fn open_without_links(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(File::from(file)),
        // An old kernel, or a filter for system calls that does not know this one.
        Err(Errno::NOSYS | Errno::PERM) => open_and_compare(path),
        Err(Errno::LOOP) => Err(became_a_link()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(path: &Path) -> io::Result<File> {
    open_and_compare(path)
}

/// Opens the file, and then follows the links of the path again: they must still be none.
fn open_and_compare(path: &Path) -> io::Result<File> {
    let flags = O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let is_same = real_path(path)? == path
        && identity(&path.symlink_metadata()?) == identity(&file.metadata()?);
    if is_same { Ok(file) } else { Err(became_a_link()) }
}

fn became_a_link() -> io::Error {
    io::Error::other("a part of its path has just become a link")
}

/// Follows every link of `path` and removes `.` and `..`. Unlike [`std::fs::canonicalize`] it also works where the
/// end of the path, or the target of a link, does not exist yet: missing parts are kept as written. A relative path starts
/// at the current directory.
///
/// # Errors
/// The links lead in a circle, or there is no current directory.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    follow(path, |at| std::fs::read_link(at).ok())
}

/// The directory of a process in `/proc` through which the links of `path` lead. The links in such a directory lead to open
/// files and directories that may have no other name, and its files show the memory and the variables of the process.
///
/// # Errors
/// As for [`real_path`].
pub fn process_behind(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut process = None;
    follow(path, |at| {
        process = process.take().or_else(|| is_of_process(at).then(|| at.to_owned()));
        std::fs::read_link(at).ok()
    })?;
    Ok(process)
}

/// Whether a path with no links in it is the directory of a process in `/proc`.
pub fn is_of_process(path: &Path) -> bool {
    let is_process = |name: &str| {
        matches!(name, "self" | "thread-self") || name.bytes().all(|digit| digit.is_ascii_digit())
    };
    path.parent() == Some(Path::new("/proc"))
        && path.file_name().and_then(|name| name.to_str()).is_some_and(is_process)
}

/// The links of several paths at one moment, of which each is asked for once. Most paths have their beginning in common.
#[derive(Debug, Default)]
pub struct KnownLinks {
    found: HashMap<PathBuf, Part>,
}

/// What a part of a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    LinkTo(PathBuf),
    Missing,
    Other,
}

impl KnownLinks {
    /// See [`real_path`].
    ///
    /// # Errors
    /// As for [`real_path`].
    pub fn real_path(&mut self, path: &Path) -> io::Result<PathBuf> {
        follow(path, |at| match self.part(at) {
            Part::LinkTo(target) => Some(target),
            Part::Missing | Part::Other => None,
        })
    }

    fn part(&mut self, at: &Path) -> Part {
        if let Some(known) = self.found.get(at) {
            return known.clone();
        }
        // Nothing is below what does not exist.
        let parent = at.parent().and_then(|parent| self.found.get(parent));
        let part = match parent {
            Some(Part::Missing) => Part::Missing,
            _ => match std::fs::read_link(at) {
                Ok(target) => Part::LinkTo(target),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Part::Missing,
                Err(_) => Part::Other,
            },
        };
        self.found.insert(at.to_owned(), part.clone());
        part
    }
}

/// Follows the links of a path; `link_at` says where one leads.
fn follow(path: &Path, mut link_at: impl FnMut(&Path) -> Option<PathBuf>) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut real = root_of(&path);
    let mut left: VecDeque<OsString> = path.components().filter_map(path_part).collect();
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        real.push(&part);
        // An error (missing, not a directory, not permitted) is left to the code that opens the path: a path that
        // cannot be inspected cannot hide a link.
        let Some(target) = link_at(&real) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other("its links lead in a circle"));
        }
        real.pop();
        if target.is_absolute() {
            real = root_of(&target);
        }
        for part in target.components().rev().filter_map(path_part) {
            left.push_front(part);
        }
    }
    Ok(real)
}

/// Where an absolute path begins, which has the name of a disk on Windows.
fn root_of(path: &Path) -> PathBuf {
    let is_root = |part: &Component<'_>| matches!(part, Component::Prefix(_) | Component::RootDir);
    path.components().take_while(is_root).collect()
}

fn path_part(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }
}

#[cfg(test)]
mod tests;
