//! Which files may be changed, by the place that the kernel gives for an open file.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use myclaw_files::canonical;
use rustix::fs::{AtFlags, CWD, FileType, Stat, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::caller::place_of;
use super::repository::{Part, part, part_of_file};
use crate::enter::Failure;
use crate::plan::{BrokerRules, real_place};
use crate::system_files::{CONFIGURATION, DEVICES, MACHINE, PROGRAMS};

/// The rules, with paths as the kernel names them.
#[derive(Debug)]
pub(super) struct Rules {
    /// May be changed, those in `brokered` included.
    writable: Vec<PathBuf>,
    /// May be read, those in `writable` included.
    readable: Vec<PathBuf>,
    /// Where names change only through the broker.
    brokered: Vec<PathBuf>,
    /// Stay as they are, although something in `brokered` is above them.
    protected: Vec<PathBuf>,
    /// Stay as they are wherever they are in `brokered`.
    names: Vec<String>,
}

/// The name of a git repository's own directory. Where it is protected everywhere, so are repositories without it.
const REPOSITORY: &str = ".git";

/// How a name stands to the rules about names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The broker has nothing to do with it.
    Elsewhere,
    /// It may be made, changed and removed.
    Free,
    /// Something protected is below, or would be.
    Above,
    Protected,
}

impl Rules {
    pub(super) fn new(rules: &BrokerRules) -> Result<Self, Failure> {
        let resolve = |paths: &[PathBuf]| {
            let resolved = paths.iter().map(|path| {
                canonical(path).map_err(|error| format!("cannot use {}: {error}", path.display()))
            });
            resolved.collect::<Result<Vec<_>, _>>()
        };
        let system = [PROGRAMS, CONFIGURATION, MACHINE, DEVICES].into_iter().flatten();
        let mut readable: Vec<PathBuf> =
            system.filter_map(|path| canonical(Path::new(path)).ok()).collect();
        readable.extend(resolve(&rules.readable)?);
        let writable = resolve(&rules.writable)?;
        readable.extend_from_slice(&writable);
        let brokered = resolve(&rules.brokered)?;
        let roots: Vec<_> = rules.brokered.iter().zip(&brokered).collect();
        // The name, and what it leads to if it is a link.
        let named = rules.protected.iter().map(|path| in_root(path, &roots));
        let behind = rules.protected.iter().map(|path| real_place(path));
        let mut protected: Vec<PathBuf> = named.chain(behind).collect();
        protected.sort();
        protected.dedup();
        Ok(Self { writable, readable, brokered, protected, names: rules.names.clone() })
    }

    /// What may happen to a name there.
    pub(super) fn standing(&self, path: &Path) -> Standing {
        let Some(below) = self.brokered.iter().find_map(|root| path.strip_prefix(root).ok()) else {
            return Standing::Elsewhere;
        };
        if self.names.iter().any(|name| below.iter().any(|part| is_named(part, name))) {
            return Standing::Protected;
        }
        if self.protected.iter().any(|protected| is_below(path, protected)) {
            return Standing::Protected;
        }
        match self.protected.iter().any(|protected| is_below(protected, path)) {
            true => Standing::Above,
            false => Standing::Free,
        }
    }

    /// Where a name is that need not exist, and what may happen to it.
    pub(super) fn standing_of_name(
        &self,
        parent: &OwnedFd,
        name: &CString,
    ) -> Result<(PathBuf, Standing), Errno> {
        let place = place_of(parent, name)?;
        let standing = self.standing(&place);
        let name = place.file_name().unwrap_or_default();
        let standing = self.with_repositories(standing, || part(parent, name, &self.brokered))?;
        Ok((place, standing))
    }

    /// What may happen to an open file.
    pub(super) fn standing_of_file(&self, file: impl AsFd) -> Result<Standing, Errno> {
        let standing = self.standing(&location(&file)?);
        let about = fstat(&file)?;
        if about.st_nlink == 0 {
            return Ok(standing);
        }
        let part = || part_of_file(&file, &about, &self.brokered);
        match self.with_repositories(standing, part)? {
            // Nobody opens a directory for writing.
            Standing::Above if !is_directory(&about) => Ok(Standing::Protected),
            standing => Ok(standing),
        }
    }

    /// The standing that follows from a path, and from repositories where they are guarded.
    fn with_repositories(
        &self,
        standing: Standing,
        part: impl FnOnce() -> Result<Part, Errno>,
    ) -> Result<Standing, Errno> {
        let is_guarded = self.names.iter().any(|name| is_same(name.as_ref(), REPOSITORY.as_ref()));
        if !is_guarded || !matches!(standing, Standing::Free | Standing::Above) {
            return Ok(standing);
        }
        Ok(match part()? {
            Part::Inside => Standing::Protected,
            Part::Head => Standing::Above,
            Part::Nothing => standing,
        })
    }

    /// Whether a directory that comes from elsewhere may hold what is protected by its name.
    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether the file at this place, or one that is made there, may be changed.
    pub(super) fn may_change(&self, path: &Path) -> bool {
        is_below_any(path, &self.writable) && self.standing(path) != Standing::Protected
    }

    /// Whether an open file may be changed. One without a name belongs to nobody else.
    pub(super) fn may_change_file(&self, file: impl AsFd) -> Result<bool, Errno> {
        let about = fstat(&file)?;
        let has_no_name = about.st_nlink == 0 && is_regular(&about);
        let may_change = || {
            let is_free = self.standing_of_file(&file)? != Standing::Protected;
            Ok::<_, Errno>(is_free && self.may_change(&location(&file)?))
        };
        Ok((has_no_name || may_change()?) && !self.is_protected_file(&about))
    }

    /// Whether something protected is below an open directory.
    pub(super) fn is_above(&self, file: impl AsFd) -> Result<bool, Errno> {
        Ok(self.standing(&location(file)?) == Standing::Above)
    }

    /// Whether this is another name of a protected file.
    pub(super) fn is_protected_file(&self, about: &Stat) -> bool {
        about.st_nlink > 1
            && is_regular(about)
            && self.protected.iter().any(|path| {
                statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|protected| {
                    (protected.st_dev, protected.st_ino) == (about.st_dev, about.st_ino)
                })
            })
    }

    /// Whether changes of an open file may be observed.
    pub(super) fn may_watch(&self, file: impl AsFd) -> Result<bool, Errno> {
        Ok(is_below_any(&location(file)?, &self.readable))
    }
}

/// Where the kernel says that an open file is. One that was removed has an addition to its name.
pub(super) fn location(file: impl AsFd) -> Result<PathBuf, Errno> {
    let text = readlinkat(CWD, by_number(file), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(text.into_bytes())))
}

/// A path of this process to an open file, for calls that take no descriptor.
pub(super) fn by_number(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

fn is_directory(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::Directory
}

pub(super) fn is_regular(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::RegularFile
}

/// The path as the kernel names it, if no link below the root is followed: the name itself is protected.
fn in_root(path: &Path, roots: &[(&PathBuf, &PathBuf)]) -> PathBuf {
    let renamed =
        roots.iter().find_map(|(root, real)| Some(real.join(path.strip_prefix(root).ok()?)));
    renamed.unwrap_or_else(|| path.to_owned())
}

fn is_below_any(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Whether a path is `root` or below, for a file system that may compare names in its own way.
fn is_below(path: &Path, root: &Path) -> bool {
    let mut components = path.components();
    root.components().all(|wanted| match (components.next(), wanted) {
        (Some(Component::Normal(name)), Component::Normal(wanted)) => is_same(name, wanted),
        (component, wanted) => component == Some(wanted),
    })
}

/// Whether a name is the one that is protected, in which a `*` stands for any characters.
fn is_named(one: &OsStr, protected: &str) -> bool {
    if !protected.contains('*') {
        return is_same(one, protected.as_ref());
    }
    let (name, protected): (String, String) =
        (folded(&one.to_string_lossy()).collect(), folded(protected).collect());
    let (start, end) = protected.split_once('*').unwrap_or((protected.as_str(), ""));
    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
}

/// Whether some file system takes two names for the same: without case, and without characters that show nothing.
pub(super) fn is_same(one: &OsStr, other: &OsStr) -> bool {
    if one == other {
        return true;
    }
    match (one.to_str(), other.to_str()) {
        (Some(one), Some(other)) => folded(one).eq(folded(other)),
        _ => one.as_bytes().eq_ignore_ascii_case(other.as_bytes()),
    }
}

/// Upper case first: some letters have no lower case of their own, but the upper case of another letter.
fn folded(name: &str) -> impl Iterator<Item = char> {
    let shown = name.trim_end_matches([' ', '.']).chars().filter(|char| !is_ignorable(*char));
    shown.flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Characters that file systems without case ignore in names (the Unicode property `Default_Ignorable_Code_Point`).
fn is_ignorable(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
