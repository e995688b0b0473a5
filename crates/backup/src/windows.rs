//! Windows: no two directories change places in one step, so a restore that is killed may leave both next to the place.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Lets two directories change places.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let aside = one.with_extension("aside");
    fs::rename(other, &aside)?;
    fs::rename(one, other).inspect_err(|_| drop(fs::rename(&aside, other)))?;
    fs::rename(aside, one)
}

/// Waits until each file in `directory` is on the disk.
pub(crate) fn write_through(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            write_through(&entry.path())?;
        } else if kind.is_file() {
            OpenOptions::new().write(true).open(entry.path())?.sync_all()?;
        }
    }
    Ok(())
}
