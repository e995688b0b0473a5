//! Reports a damaged index.

use std::fmt;
use std::path::PathBuf;

/// A part of the index that could not be read and was rebuilt from the logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRepair {
    /// The file that was damaged.
    pub path: PathBuf,
    /// The path of the copy of that file.
    pub backup: PathBuf,
}

impl fmt::Display for IndexRepair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} was damaged and was rebuilt from the transcripts; a copy is at {}",
            self.path.display(),
            self.backup.display()
        )
    }
}
