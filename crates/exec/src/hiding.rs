//! Commands that do not find some paths of this machine.
//!
//! They run in a mount namespace of their own, in which an empty directory lies over each hidden one, and parts of it may be
//! there all the same. Where this process is root, the namespace is made once, and starting a command in it costs one short
//! thread. Other users need a user namespace for that, which only a process with one thread can enter: this program is
//! started again, enters it, and becomes the command.
//!
//! As root, a command also loses the right to look into processes that have more rights than it. Otherwise `/proc/1/root`
//! would lead around the namespace. Root can still undo what root has done (`umount`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod namespace;
mod runner;
#[cfg_attr(target_os = "linux", path = "hiding/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "hiding/elsewhere.rs")]
mod way;

#[cfg(target_os = "linux")]
pub use enter::enter_hiding;
#[cfg(target_os = "linux")]
pub(crate) use namespace::Namespace;
pub use runner::HidingRunner;

/// What a command finds at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// An empty directory, or an empty file, that cannot be changed.
    Hidden,
    /// What is there, but it cannot be changed.
    ReadOnly,
    /// What is there.
    Shown,
}

/// This program, which can be started again to become a command. Its `main` calls `enter_hiding` with the arguments that
/// follow `arguments`.
#[derive(Debug, Clone)]
pub struct HidingProgram {
    /// Its path.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// What happens to commands where the system does not permit to hide paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfImpossible {
    /// They run, and find everything.
    RunOpenly,
    /// They do not run.
    Refuse,
}

/// Paths, and what commands find there. The deepest path that holds another one decides about it. Paths that do not exist are
/// left out; all others are absolute and have no links in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenPaths {
    places: Vec<(PathBuf, Visibility)>,
}

impl HiddenPaths {
    /// Of several visibilities of one path, the first one holds.
    pub fn new(places: impl IntoIterator<Item = (PathBuf, Visibility)>) -> Self {
        let mut places: Vec<(PathBuf, Visibility)> = places.into_iter().collect();
        // Outer places first; the sort keeps the order of equal ones.
        places.sort_by(|left, right| {
            (left.0.components().count(), &left.0).cmp(&(right.0.components().count(), &right.0))
        });
        places.dedup_by(|later, earlier| later.0 == earlier.0);
        Self { places }
    }

    /// The places, the outer ones before those in them.
    pub fn places(&self) -> impl Iterator<Item = (&Path, Visibility)> {
        self.places.iter().map(|(path, visibility)| (path.as_path(), *visibility))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
