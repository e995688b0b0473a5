//! Unix: everything happens relative to the open directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::Pid;

use super::{Access, EntryFacts, EntryKind, Followed, MAX_ENTRIES, Names};
use crate::Durability;
use crate::portable::has_ended;
use crate::read::read_file;

mod walk;

use walk::{
    Resolver, directory_flags, file_flags, in_words, leads_out, open_regular, refused, regular,
};

/// Most attempts to find a free name for a new file. A taken one is rare: it holds the time.
const MAX_ATTEMPTS: usize = 16;
/// Makes the temporary names of one process differ.
static NEXT_NAME: AtomicU64 = AtomicU64::new(0);

impl Access {
    fn file_mode(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o600 } else { 0o644 })
    }

    fn directory_mode(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o700 } else { 0o755 })
    }
}

impl EntryKind {
    fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

/// An open directory whose content others can change. All paths are relative to it. A path that is absolute or holds `..`
/// is refused, and so is one that leads over a symbolic link, unless a function says otherwise. All calls block.
///
/// Errors that say what somebody else has put there have the kind [`io::ErrorKind::InvalidInput`], or
/// [`io::ErrorKind::FileTooLarge`], and a text that fits behind "cannot be read: ".
#[derive(Debug)]
pub struct SharedDirectory {
    opened: OwnedFd,
    path: PathBuf,
    resolver: Resolver,
}

impl SharedDirectory {
    /// Opens the directory at `path`, following links: only what is below it may be in other hands. For a directory whose
    /// own name others can replace, open the one above it, and then call [`SharedDirectory::directory`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if something else is there; otherwise an I/O error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let opened = rustix::fs::open(path, directory_flags(), Mode::empty())?;
        Ok(Self { opened, path: path.to_owned(), resolver: Resolver::Kernel })
    }

    /// Where it was when it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below; the empty path opens this one again.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a link, for something that is no directory, and for a path that leads
    /// elsewhere; otherwise an I/O error.
    pub fn directory(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let opened = self.resolver.directory(self.opened.as_fd(), path)?;
        Ok(Self { opened, path: self.path.join(path), resolver: self.resolver })
    }

    /// Opens a directory below, and makes it and its missing parents.
    ///
    /// # Errors
    /// As for [`SharedDirectory::directory`].
    pub fn make_directory(&self, path: impl AsRef<Path>, access: Access) -> io::Result<Self> {
        let mut at = self.directory("")?;
        for part in path.as_ref().components().filter(|part| *part != Component::CurDir) {
            let Component::Normal(name) = part else { return Err(leads_out()) };
            at = match at.directory(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&at.opened, name, access.directory_mode()) {
                        // Somebody else was faster; what it is shows when it is opened.
                        Ok(()) | Err(Errno::EXIST) => at.directory(name)?,
                        Err(error) => return Err(in_words(error)),
                    }
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    /// Opens a regular file for reading. Anything else is refused before it is opened, since opening a device may do
    /// something, and again on the open file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for anything but a regular file; otherwise an I/O error.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        regular(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW))?;
        open_regular(parent.as_fd(), name)
    }

    /// Opens a regular file for reading, and follows links on the way that lead to something below this directory. A link
    /// with an absolute target is followed if the target begins with the path by which this directory was opened. `..` in
    /// the path and in links leads back, but never out.
    ///
    /// Each part is opened relative to the one before without following links, so it does not matter what is replaced
    /// meanwhile. For directories of a person, where links are common, such as `CLAUDE.md` to `AGENTS.md`.
    ///
    /// # Errors
    /// As for [`SharedDirectory::file`].
    pub fn followed(&self, path: impl AsRef<Path>) -> io::Result<Followed> {
        walk::followed(self.opened.as_fd(), &self.path, path.as_ref())
    }

    /// The content of a regular file with at most `limit` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] for a longer one; otherwise as for [`SharedDirectory::file`].
    pub fn read(&self, path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let bytes = read_file(self.file(path)?, limit.saturating_add(1))?;
        if bytes.len() as u64 > limit {
            let why = format!("it is longer than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(bytes)
    }

    /// What has this name; `None` if nothing has.
    ///
    /// # Errors
    /// As for [`SharedDirectory::directory`].
    pub fn facts(&self, path: impl AsRef<Path>) -> io::Result<Option<EntryFacts>> {
        let found = self.parent_and_name(path.as_ref()).and_then(|(parent, name)| {
            statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(in_words)
        });
        match found {
            Ok(stat) => Ok(Some(EntryFacts {
                kind: EntryKind::of(&stat),
                bytes: u64::try_from(stat.st_size).unwrap_or_default(),
                changed_ns: u64::try_from(stat.st_mtime)
                    .unwrap_or_default()
                    .saturating_mul(1_000_000_000)
                    .saturating_add(u64::try_from(i128::from(stat.st_mtime_nsec)).unwrap_or(0)),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first names in their order for which `is_wanted` holds, at most `most`. A directory with very many entries is
    /// not read to its end, and the result says so.
    ///
    /// # Errors
    /// An I/O error.
    pub fn names(
        &self,
        most: usize,
        mut is_wanted: impl FnMut(&OsStr) -> bool,
    ) -> io::Result<Names> {
        let mut found = Names::default();
        for (number, entry) in Dir::read_from(&self.opened)?.enumerate() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            found.is_cut = number >= MAX_ENTRIES.max(most);
            if found.is_cut {
                break;
            }
            if name != "." && name != ".." && is_wanted(name) {
                found.names.push(name.to_owned());
            }
        }
        found.names.sort_unstable();
        found.is_cut |= found.names.len() > most;
        found.names.truncate(most);
        Ok(found)
    }

    /// Writes a file that appears as a whole, in the place of a file or link of that name.
    ///
    /// # Errors
    /// A directory has the name; otherwise as for [`SharedDirectory::directory`]. What was there is unchanged, unless only
    /// the last sync failed.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        content: &[u8],
        (access, durability): (Access, Durability),
    ) -> io::Result<()> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        let (mut file, temporary) = new_file(&parent, access)?;
        let mut written = || -> io::Result<()> {
            file.write_all(content)?;
            if durability == Durability::Synced {
                file.sync_all()?;
            }
            renameat(&parent, &temporary, &parent, name).map_err(in_words)
        };
        written().inspect_err(|_| {
            // A second failure says nothing new.
            let _ = unlinkat(&parent, &temporary, AtFlags::empty());
        })?;
        if durability == Durability::Synced {
            fsync(&parent)?;
        }
        Ok(())
    }

    /// Opens a new file for writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if anything has the name; otherwise as for [`SharedDirectory::directory`].
    pub fn create(&self, path: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        create(&parent, name, access).map_err(in_words)
    }

    /// Opens a regular file for writing at its end, and makes it if it is missing. A file with a second name is refused:
    /// what is written would show elsewhere too.
    ///
    /// # Errors
    /// As for [`SharedDirectory::file`].
    pub fn append(&self, path: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::APPEND | file_flags();
        let file = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => create(&parent, name, access).map_err(in_words)?,
            found => {
                regular(found)?;
                File::from(openat(&parent, name, flags, Mode::empty()).map_err(in_words)?)
            }
        };
        let stat = fstat(&file);
        let names = stat.as_ref().map_or(1, |stat| stat.st_nlink);
        regular(stat)?;
        if names > 1 {
            return Err(refused("it has another name elsewhere (a hard link)"));
        }
        Ok(file)
    }

    /// What a symbolic link says. It is not followed.
    ///
    /// # Errors
    /// It is no link; otherwise as for [`SharedDirectory::directory`].
    pub fn link_target(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        let target = readlinkat(&parent, name, Vec::new()).map_err(in_words)?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Makes a symbolic link that says `target`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if anything has the name; otherwise as for [`SharedDirectory::directory`].
    pub fn make_link(&self, path: impl AsRef<Path>, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        symlinkat(target, &parent, name).map_err(in_words)
    }

    /// Removes a file or link. False if nothing has the name.
    ///
    /// # Errors
    /// It is a directory; otherwise as for [`SharedDirectory::directory`].
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        match unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(in_words(error)),
        }
    }

    /// Removes the files that [`SharedDirectory::write`] left here in processes that were killed.
    ///
    /// # Errors
    /// An I/O error.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        let is_unfinished = |name: &OsStr| {
            let writer = name.to_str().and_then(writer_of);
            writer.is_some_and(has_ended)
        };
        for name in self.names(MAX_ENTRIES, is_unfinished)?.names {
            self.remove(name)?;
        }
        Ok(())
    }

    /// Moves whatever has this name to another directory, in the place of a file of the new name. False if nothing has the
    /// name.
    ///
    /// # Errors
    /// The two are on different file systems; otherwise as for [`SharedDirectory::directory`].
    pub fn move_to(
        &self,
        path: impl AsRef<Path>,
        target: &Self,
        new_name: impl AsRef<Path>,
    ) -> io::Result<bool> {
        let (parent, name) = self.parent_and_name(path.as_ref())?;
        let (target, new_name) = target.parent_and_name(new_name.as_ref())?;
        match renameat(&parent, name, &target, new_name) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(in_words(error)),
        }
    }

    /// What the last part of `path` is in, and that part: a plain name, so a call that follows no link at it stays there.
    fn parent_and_name<'a>(&'a self, path: &'a Path) -> io::Result<(Parent<'a>, &'a OsStr)> {
        let name = path.file_name().ok_or_else(leads_out)?;
        let above = path.parent().unwrap_or(Path::new(""));
        if above.as_os_str().is_empty() {
            return Ok((Parent::This(self.opened.as_fd()), name));
        }
        let opened = self.resolver.directory(self.opened.as_fd(), above)?;
        Ok((Parent::Below(opened), name))
    }
}

/// The open directory that holds a name.
enum Parent<'a> {
    This(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Parent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::This(opened) => *opened,
            Self::Below(opened) => opened.as_fd(),
        }
    }
}

/// A new file under a name of its own.
fn new_file(parent: &Parent<'_>, access: Access) -> io::Result<(File, String)> {
    for _ in 0..MAX_ATTEMPTS {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let name = format!(".new-{time:x}-{}-{number}.tmp", std::process::id());
        match create(parent, OsStr::new(&name), access) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(in_words(error)),
            Ok(file) => return Ok((file, name)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is no free name for a new file"))
}

/// The process that gave a file its name in [`new_file`].
fn writer_of(name: &str) -> Option<Pid> {
    let mut parts = name.strip_prefix(".new-")?.strip_suffix(".tmp")?.split('-').skip(1);
    parts.next()?.parse().ok().and_then(Pid::from_raw)
}

fn create(parent: &Parent<'_>, name: &OsStr, access: Access) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | file_flags();
    openat(parent, name, flags, access.file_mode()).map(File::from)
}

#[cfg(test)]
mod tests;
