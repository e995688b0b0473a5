//! Makes a state directory of a backup.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use myclaw_files::formats::{self, StateFormats};
use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{
    Access, OwnedDirectory, SharedDirectory, canonical_or_same, now_ms, parent_of, sync_directory,
};

use crate::archive::{Facts, Sink, read};
use crate::basis::{exchange, write_through};
use crate::{BackupError, Contents, Passphrase};

/// Begins the names of directories in which a backup is unpacked, next to the state directory.
pub const UNPACKING: &str = ".myclaw-restore-";
const PROGRAM_MODE: u32 = 0o700;

/// What a restore has done.
#[derive(Debug)]
pub struct Restored {
    /// What was in the backup.
    pub contents: Contents,
    /// Where the files are now that were in the place.
    pub before: Option<PathBuf>,
}

/// Reads a backup to its end and compares all digests. Changes nothing.
///
/// # Errors
/// It is damaged, cut off, or encrypted with another passphrase.
pub fn check(from: impl Read, passphrase: Option<&Passphrase>) -> Result<Contents, BackupError> {
    struct Nothing;
    impl Sink for Nothing {
        fn directory(&mut self, _: &Path) -> Result<(), BackupError> {
            Ok(())
        }
        fn file(&mut self, _: &Path, _: Facts, content: &mut dyn Read) -> Result<(), BackupError> {
            io::copy(content, &mut io::sink()).map(drop).map_err(BackupError::reading)
        }
        fn link(&mut self, _: &Path, _: &Path) -> Result<(), BackupError> {
            Ok(())
        }
    }
    read(from, passphrase, &mut Nothing)
}

/// Puts the files of a backup at `state`. They are unpacked next to it, checked, and written to the disk before one rename
/// puts all of them in place, so a process that is killed meanwhile leaves what was there. With `replace`, a directory that
/// is there changes places with them.
///
/// # Errors
/// The backup is bad, or a newer version wrote its files; there is something and `replace` is false; or the files cannot be
/// written. Nothing has changed then.
pub fn restore(
    from: impl Read,
    passphrase: Option<&Passphrase>,
    state: &Path,
    replace: bool,
) -> Result<Restored, BackupError> {
    let place = |source: io::Error| match source.kind() {
        io::ErrorKind::ResourceBusy => BackupError::Mounted(state.to_owned()),
        _ => BackupError::Place { path: state.to_owned(), source },
    };
    // A link to a directory stays.
    let state = canonical_or_same(state);
    if !state.is_dir() && fs::symlink_metadata(&state).is_ok() {
        return Err(BackupError::NoDirectory(state));
    }
    let is_taken = is_taken(&state).map_err(place)?;
    if is_taken && !replace {
        return Err(BackupError::Occupied(state));
    }
    let parent = parent_of(&state);
    fs::create_dir_all(&parent).map_err(place)?;
    let unpacking = OwnedDirectory::create(&parent, UNPACKING).map_err(place)?;
    let unpacked = unpacking.path().join("state");
    let contents = {
        let above = SharedDirectory::open(unpacking.path()).map_err(place)?;
        let root = above.make_directory("state", Access::Owner).map_err(place)?;
        let mut sink = Unpack { root, links: Vec::new() };
        let contents = read(from, passphrase, &mut sink)?;
        sink.make_links()?;
        contents
    };
    // This version would refuse every file in it.
    StateFormats::check_named(&unpacked, Path::new(formats::FILE))
        .map_err(BackupError::NewerFiles)?;
    write_through(&unpacked).map_err(place)?;
    let before = if is_taken {
        // Of its own, so that nothing ever removes what is in it.
        let other = parent.join(format!("{}.before-{}", name_of(&state), now_ms()));
        fs::rename(&unpacked, &other).map_err(place)?;
        exchange(&other, &state).map_err(|error| {
            let _ = fs::rename(&other, &unpacked);
            place(error)
        })?;
        Some(other)
    } else {
        fs::rename(&unpacked, &state).map_err(place)?;
        None
    };
    sync_directory(&parent).map_err(place)?;
    Ok(Restored { contents, before })
}

fn is_taken(state: &Path) -> io::Result<bool> {
    match fs::read_dir(state) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes the files of a backup into a new directory.
struct Unpack {
    root: SharedDirectory,
    /// Made last, so that no file is written over one.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Unpack {
    fn failed(&self, path: &Path) -> impl Fn(io::Error) -> BackupError + use<> {
        let path = self.root.path().join(path);
        move |source| BackupError::Place { path: path.clone(), source }
    }

    fn parent(&self, path: &Path) -> Result<(SharedDirectory, PathBuf), BackupError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let opened = self.root.make_directory(parent, Access::Owner).map_err(self.failed(path))?;
        Ok((opened, PathBuf::from(path.file_name().unwrap_or_default())))
    }

    fn make_links(&self) -> Result<(), BackupError> {
        for (path, target) in &self.links {
            let (parent, name) = self.parent(path)?;
            parent.make_link(&name, target).map_err(self.failed(path))?;
        }
        Ok(())
    }
}

impl Sink for Unpack {
    fn directory(&mut self, path: &Path) -> Result<(), BackupError> {
        self.root.make_directory(path, Access::Owner).map(drop).map_err(self.failed(path))
    }

    fn file(
        &mut self,
        path: &Path,
        facts: Facts,
        content: &mut dyn Read,
    ) -> Result<(), BackupError> {
        let failed = self.failed(path);
        let (parent, name) = self.parent(path)?;
        let mut file = parent.create(&name, Access::Owner).map_err(&failed)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = content.read(&mut buffer).map_err(BackupError::reading)?;
            if count == 0 {
                break;
            }
            io::Write::write_all(&mut file, &buffer[..count]).map_err(&failed)?;
        }
        if facts.is_executable {
            file.set_permissions(Permissions::from_mode(PROGRAM_MODE)).map_err(&failed)?;
        }
        file.set_modified(UNIX_EPOCH + Duration::from_secs(facts.modified)).map_err(&failed)
    }

    fn link(&mut self, path: &Path, target: &Path) -> Result<(), BackupError> {
        self.links.push((path.to_owned(), target.to_owned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
