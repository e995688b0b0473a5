//! Directories that a container can write: nothing in them is followed or believed.
//!
//! A container may put links, pipes and directories there, and may replace the directories themselves. So a directory is
//! opened once, without following links, and everything else happens relative to the open directory.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};

use crate::ledger::now_ms;

/// Most bytes of a file with JSON.
const MAX_BYTES: u64 = 1024 * 1024;
/// Most files that are looked at in one round; the others wait for the next.
const MAX_FILES: usize = 200;
/// Files that both sides read.
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// An open directory.
#[derive(Debug)]
pub(crate) struct SharedDirectory(OwnedFd);

impl SharedDirectory {
    /// Opens `path` below `base`, which only the host can change. Missing parts of `path` are made.
    pub(crate) fn open(base: &Path, path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = rustix::fs::open(base, flags, Mode::empty())?;
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain path"));
            };
            at = match openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => {
                    mkdirat(&at, name, DIRECTORY_MODE)?;
                    openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(Self(at))
    }

    /// Like [`SharedDirectory::open`], for the directory `name` of a container's own directory. What the container has put
    /// in its place is moved to the host's directory `aside` under a name that begins with `owner`.
    pub(crate) fn open_or_replace(
        base: &Path,
        name: &str,
        (aside, owner): (&Path, &str),
    ) -> io::Result<Self> {
        Self::open(base, Path::new(name)).or_else(|_| {
            let parent = Self::open(base, Path::new(""))?;
            parent.move_to(name, aside, &format!("{owner}-{name}-{}", now_ms()))?;
            Self::open(base, Path::new(name))
        })
    }

    /// The names that end in `.json`, sorted, and at most some hundred of them.
    pub(crate) fn json_files(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && name.ends_with(".json")
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        names.truncate(MAX_FILES);
        Ok(names)
    }

    /// The content of a regular file with JSON.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.read_up_to(name, MAX_BYTES)
    }

    /// The content of a regular file with at most that many bytes.
    pub(crate) fn read_up_to(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::LOOP => io::Error::other("it is a symbolic link"),
            other => other.into(),
        })?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!("it is longer than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Writes a file that appears as a whole.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.tmp");
        self.remove(&temporary)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&self.0, &*temporary, flags | OFlags::CLOEXEC, FILE_MODE)?;
        let mut file = File::from(file);
        file.write_all(content)?;
        renameat(&self.0, &*temporary, &self.0, name)?;
        Ok(())
    }

    /// Whether there is something of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves whatever has that name to a directory of the host.
    pub(crate) fn move_to(&self, name: &str, directory: &Path, new_name: &str) -> io::Result<()> {
        let target = rustix::fs::open(
            directory,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        match renameat(&self.0, name, &target, new_name) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
