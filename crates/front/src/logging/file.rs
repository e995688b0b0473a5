//! The log file: appended to by several processes at once, and bounded in size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::create_private_directory;
use parking_lot::Mutex;

const NAME: &str = "myclaw.log";
/// Held while files are renamed, so that two processes do not both do it.
const LOCK_NAME: &str = "myclaw.log.lock";
/// Size at which a file is renamed: any editor can open it.
const MAX_BYTES: u64 = 10 * 1024 * 1024;
/// Files that are kept, the current one included: 50 MiB in all.
const MAX_FILES: usize = 5;

/// `myclaw.log`, with the older ones as `myclaw.log.1` (the newest of them) to `myclaw.log.4`.
pub(super) struct RotatingFile {
    directory: PathBuf,
    max_bytes: u64,
    open: Mutex<Option<File>>,
}

impl RotatingFile {
    /// The files of `directory`. Nothing is opened yet.
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self { directory, max_bytes: MAX_BYTES, open: Mutex::new(None) }
    }

    /// Appends a line with one write, so that lines of several processes do not mix.
    ///
    /// # Errors
    /// The line was not written.
    pub(super) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        let is_full = |file: &File| Ok::<_, io::Error>(file.metadata()?.len() >= self.max_bytes);
        let file = match open.take() {
            Some(file) if !is_full(&file)? => file,
            _ => self.open_with_room()?,
        };
        open.insert(file).write_all(line)
    }

    /// The current file. If it was full it is renamed first; another process may have done so already.
    fn open_with_room(&self) -> io::Result<File> {
        create_private_directory(&self.directory)?;
        let path = self.directory.join(NAME);
        if is_full(&path, self.max_bytes) {
            let lock = private_file(&self.directory.join(LOCK_NAME))?;
            lock.lock()?;
            if is_full(&path, self.max_bytes) {
                self.put_aside()?;
            }
        }
        private_file(&path)
    }

    fn put_aside(&self) -> io::Result<()> {
        let path = |number: usize| match number {
            0 => self.directory.join(NAME),
            number => self.directory.join(format!("{NAME}.{number}")),
        };
        for number in (0..MAX_FILES - 1).rev() {
            match fs::rename(path(number), path(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_full(path: &Path, max_bytes: u64) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() >= max_bytes)
}

/// Opens a file to append to, which its owner alone can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Windows locks nothing that is open for appending alone.
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    myclaw_files::portable::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests;
