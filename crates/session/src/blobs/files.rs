//! Blobs as files of one directory.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use myclaw_files::{Durability, NewFile, create_private_directory, open_regular, remove_if_there};

use super::{BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, checked};

/// Begins the name of a file that is not complete.
const UNFINISHED: &str = "copy";

/// Blobs in a directory, which holds nothing else: each is a file of its name.
#[derive(Debug, Clone)]
pub struct FileBlobs {
    directory: PathBuf,
}

impl FileBlobs {
    /// The blobs in `directory`, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn path(&self, blob: &NamedBlob) -> io::Result<PathBuf> {
        Ok(self.directory.join(checked(&blob.name)?))
    }

    /// How many bytes all blobs have but the one of this name.
    fn bytes_without(&self, name: &str) -> u64 {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let others = files.filter(|file| file.file_name() != name);
        others.filter_map(|file| Some(file.metadata().ok()?.len())).fold(0, u64::saturating_add)
    }
}

impl Blobs for FileBlobs {
    fn put(
        &self,
        name: &str,
        content: &mut dyn Read,
        limits: BlobLimits,
    ) -> Result<NamedBlob, BlobError> {
        let path = self.directory.join(checked(name)?);
        create_private_directory(&self.directory)?;
        let others = limits.together.map_or(0, |_| self.bytes_without(name));
        let mut kept = NewFile::in_directory(&self.directory, UNFINISHED)?;
        let blob = limits.copy(name, content, others, &mut kept)?;
        kept.put_at(&path, Durability::Synced)?;
        Ok(blob)
    }

    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError> {
        let file = open_regular(&self.path(blob)?).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing,
            _ => BlobError::Io(error),
        })?;
        Ok(OpenBlob::new(blob, file.metadata()?.len(), file))
    }

    fn remove(&self, blob: &NamedBlob) -> Result<bool, BlobError> {
        Ok(remove_if_there(&self.path(blob)?)?)
    }

    fn sweep(&self, max_age: Duration) -> Result<usize, BlobError> {
        let before = SystemTime::now().checked_sub(max_age);
        let files = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            files => files?,
        };
        let mut removed = 0;
        for file in files.flatten() {
            let changed = file.metadata().and_then(|found| found.modified());
            if changed.is_ok_and(|changed| Some(changed) < before) {
                removed += usize::from(remove_if_there(&file.path()).unwrap_or(false));
            }
        }
        Ok(removed)
    }

    fn describe(&self, blob: &NamedBlob) -> String {
        self.directory.join(&blob.name).display().to_string()
    }
}
