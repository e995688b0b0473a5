//! Windows has no calls that are relative to an open directory, so paths are resolved each time. Links on the way are refused, but
//! what somebody replaces between two looks is not noticed. No sandbox and no container uses such directories there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Access, EntryFacts, EntryKind, Followed, MAX_ENTRIES, Names};
use crate::portable::symlink;
use crate::read::read_file;
use crate::{Durability, NewFile, canonical, open_regular_unlinked};

/// A directory. See the module.
#[derive(Debug)]
pub struct SharedDirectory {
    path: PathBuf,
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn leads_out() -> io::Error {
    refused("it is outside of the directory")
}

fn kind_of(found: &Metadata) -> EntryKind {
    match found.file_type() {
        kind if kind.is_symlink() => EntryKind::Link,
        kind if kind.is_dir() => EntryKind::Directory,
        kind if kind.is_file() => EntryKind::File,
        _ => EntryKind::Special,
    }
}

impl SharedDirectory {
    /// Opens the directory at `path`, following links.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if something else is there; otherwise an I/O error.
    pub fn open(path: &Path) -> io::Result<Self> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(Self { path: path.to_owned() }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path below, if no part of it is a link or leads out.
    fn below(&self, path: &Path) -> io::Result<PathBuf> {
        let mut at = self.path.clone();
        for part in path.components() {
            match part {
                Component::CurDir => continue,
                Component::Normal(name) => at.push(name),
                _ => return Err(leads_out()),
            }
            if fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
                return Err(refused("it is a symbolic link, or its path leads over one"));
            }
        }
        Ok(at)
    }

    /// The path of a name, which may itself be a link.
    fn name(&self, path: &Path) -> io::Result<PathBuf> {
        let name = path.file_name().ok_or_else(leads_out)?;
        Ok(self.below(path.parent().unwrap_or(Path::new("")))?.join(name))
    }

    /// Opens a directory below; the empty path opens this one again.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a link, for something that is no directory, and for a path that leads elsewhere;
    /// otherwise an I/O error.
    pub fn directory(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let path = self.below(path.as_ref())?;
        match fs::metadata(&path)?.is_dir() {
            true => Ok(Self { path }),
            false => Err(refused("a part of its path is not a directory")),
        }
    }

    /// Opens a directory below, and makes it and its missing parents.
    ///
    /// # Errors
    /// As for [`SharedDirectory::directory`].
    pub fn make_directory(&self, path: impl AsRef<Path>, _access: Access) -> io::Result<Self> {
        fs::create_dir_all(self.below(path.as_ref())?)?;
        self.directory(path)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for anything but a regular file; otherwise an I/O error.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        open_regular_unlinked(&self.below(path.as_ref())?)
    }

    /// Opens a regular file for reading, and follows links that stay below this directory.
    ///
    /// # Errors
    /// As for [`SharedDirectory::file`].
    pub fn followed(&self, path: impl AsRef<Path>) -> io::Result<Followed> {
        let root = canonical(&self.path)?;
        let real = canonical(self.path.join(path))?;
        let path = real.strip_prefix(&root).map_err(|_| leads_out())?.to_owned();
        Ok(Followed { file: open_regular_unlinked(&real)?, path })
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
        let found = match fs::symlink_metadata(self.name(path.as_ref())?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let changed = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(EntryFacts {
            kind: kind_of(&found),
            bytes: found.len(),
            changed_ns: u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX),
        }))
    }

    /// The first names in their order for which `is_wanted` holds, at most `most`.
    ///
    /// # Errors
    /// An I/O error.
    pub fn names(
        &self,
        most: usize,
        mut is_wanted: impl FnMut(&OsStr) -> bool,
    ) -> io::Result<Names> {
        let mut found = Names::default();
        for (number, entry) in fs::read_dir(&self.path)?.enumerate() {
            let name: OsString = entry?.file_name();
            found.is_cut = number >= MAX_ENTRIES.max(most);
            if found.is_cut {
                break;
            }
            if is_wanted(&name) {
                found.names.push(name);
            }
        }
        found.names.sort_unstable();
        found.is_cut |= found.names.len() > most;
        found.names.truncate(most);
        Ok(found)
    }

    /// Writes a file that appears as a whole, in the place of a file of that name.
    ///
    /// # Errors
    /// A directory has the name; otherwise as for [`SharedDirectory::directory`].
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        content: &[u8],
        (_access, durability): (Access, Durability),
    ) -> io::Result<()> {
        let path = self.name(path.as_ref())?;
        let mut file = NewFile::in_directory(&crate::parent_of(&path), ".new-")?;
        file.write_all(content)?;
        file.put_at(&path, durability).map(drop)
    }

    /// Opens a new file for writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if anything has the name; otherwise as for [`SharedDirectory::directory`].
    pub fn create(&self, path: impl AsRef<Path>, _access: Access) -> io::Result<File> {
        File::create_new(self.name(path.as_ref())?)
    }

    /// Opens a regular file for writing at its end, and makes it if it is missing.
    ///
    /// # Errors
    /// As for [`SharedDirectory::file`].
    pub fn append(&self, path: impl AsRef<Path>, _access: Access) -> io::Result<File> {
        let path = self.below(path.as_ref())?;
        OpenOptions::new().append(true).create(true).open(path)
    }

    /// What a symbolic link says. It is not followed.
    ///
    /// # Errors
    /// It is no link; otherwise as for [`SharedDirectory::directory`].
    pub fn link_target(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        fs::read_link(self.name(path.as_ref())?)
    }

    /// Makes a symbolic link that says `target`.
    ///
    /// # Errors
    /// Windows does not permit it; otherwise as for [`SharedDirectory::directory`].
    pub fn make_link(&self, path: impl AsRef<Path>, target: &Path) -> io::Result<()> {
        symlink(target, self.name(path.as_ref())?)
    }

    /// Removes a file or link. False if nothing has the name.
    ///
    /// # Errors
    /// It is a directory; otherwise as for [`SharedDirectory::directory`].
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        crate::remove_if_there(&self.name(path.as_ref())?)
    }

    /// Does nothing: which processes have ended is not known.
    ///
    /// # Errors
    /// None.
    pub fn remove_unfinished(&self) -> io::Result<()> {
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
        match fs::rename(self.name(path.as_ref())?, target.name(new_name.as_ref())?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            moved => moved.map(|()| true),
        }
    }
}
