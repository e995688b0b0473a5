//! The keys that are removed from documents, as long as the files that they come from have not changed.

use std::path::{Path, PathBuf};

use myclaw_files::portable::MetadataExt as _;
use parking_lot::Mutex;

/// The keys that a redactor was made of last, and the files that they come from.
#[derive(Default)]
pub(crate) struct Redactors(pub(super) Mutex<Option<Known>>);

/// The keys are not shown.
impl std::fmt::Debug for Redactors {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Redactors").finish_non_exhaustive()
    }
}

pub(super) struct Known {
    pub(super) files: Vec<Version>,
    pub(super) secrets: Vec<String>,
}

impl Known {
    pub(super) fn is_current(&self) -> bool {
        self.files.iter().all(|file| file.found == stamp(&file.path))
    }
}

/// The version of a file that was read.
pub(super) struct Version {
    path: PathBuf,
    found: Option<Stamp>,
}

/// Number on the disk, size, and the times of the last change of content and of anything.
type Stamp = (u64, u64, (i64, i64), (i64, i64));

impl Version {
    pub(super) fn of(path: PathBuf) -> Self {
        Self { found: stamp(&path), path }
    }
}

/// `None` if there is no such file.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    let (modified, changed) =
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.ino(), found.len(), modified, changed))
}
