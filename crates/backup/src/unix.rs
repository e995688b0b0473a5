//! Unix: what a restore needs of the system.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Lets two directories change places in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Waits until everything on the file system of `directory` is on the disk: one call for all files.
pub(crate) fn write_through(directory: &Path) -> io::Result<()> {
    let opened = File::open(directory)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&opened)?;
    #[cfg(not(target_os = "linux"))]
    {
        rustix::fs::sync();
        opened.sync_all()?;
    }
    Ok(())
}
