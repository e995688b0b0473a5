//! Unix: names of other crates.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use libc::{O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
pub use std::os::unix::ffi::{OsStrExt, OsStringExt};
pub use std::os::unix::fs::{
    DirBuilderExt, DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt,
    chown, fchown, symlink,
};
pub use std::os::unix::process::ExitStatusExt;

use super::StandardInput;

/// Processes by their ids.
pub mod process {
    pub use rustix::process::{
        Pid, Signal, getegid, geteuid, getppid, getuid, kill_process, kill_process_group,
        test_kill_process,
    };
}

/// Makes the names in a directory durable (`fsync`).
///
/// # Errors
/// An I/O error. Some file systems cannot do this.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Waits until the content of an open file is on the disk. `path` is where it is.
///
/// # Errors
/// An I/O error.
pub fn sync_content(file: &File, _path: &Path) -> io::Result<()> {
    file.sync_all()
}

/// Cuts an open file, or makes it longer. `path` is where it is.
///
/// # Errors
/// An I/O error.
pub fn set_length(file: &File, _path: &Path, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Locks a file for reading it, or for appending to it next to others.
///
/// # Errors
/// Somebody has it for himself; otherwise an I/O error.
pub fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

/// Locks a file that others may read meanwhile.
///
/// # Errors
/// Somebody has locked it; otherwise an I/O error.
pub fn try_lock_readable(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Looks whether anybody has locked a file, by locking it.
///
/// # Errors
/// Somebody has; otherwise an I/O error.
pub fn try_lock_to_look(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

/// Variables that only programs of this system need.
pub const SYSTEM_VARIABLES: &[&str] = &[];

/// The name of a variable in the form in which it is looked up.
pub fn variable_name(name: OsString) -> OsString {
    name
}

/// A path that was resolved, as people write it.
pub fn usual_path(path: PathBuf) -> PathBuf {
    path
}

/// Where the program is that is named so.
pub fn program_file(path: PathBuf) -> PathBuf {
    path
}

/// Whether this process may run the file, or enter the directory, at `path`.
///
/// # Errors
/// It may not.
pub fn may_run(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

/// Whether this process may add and remove entries of the directory at `path`.
///
/// # Errors
/// It may not, or the file system is read-only.
pub fn may_change(path: &Path) -> io::Result<()> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(path, access)?)
}

/// Whether this process may read the file at `path`.
pub fn may_read(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

/// Whether a process has certainly ended: the system has none with its id.
pub fn has_ended(process: process::Pid) -> bool {
    process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

/// Gives this process over to a program.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Starts a program apart from the signals of this process's terminal.
pub fn apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Standard output without a buffer.
///
/// # Errors
/// It is closed.
pub fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// What standard input is.
pub fn standard_input() -> StandardInput {
    let opened = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    match opened.and_then(|file| file.metadata()).map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => StandardInput::File,
        Ok(kind) if kind.is_fifo() => StandardInput::Pipe,
        _ => StandardInput::Other,
    }
}

/// Where an open file is; `None` where the system does not say.
pub fn path_of(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}
