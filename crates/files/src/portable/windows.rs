//! Windows: the same names. Modes, owners and groups mean nothing there: a file is in the profile of its user.

use std::ffi::{OsStr, OsString};
use std::fs::{
    DirBuilder, DirEntry, File, FileType, Metadata, OpenOptions, Permissions, TryLockError,
};
use std::io::{self, IsTerminal as _};
use std::os::windows::fs as system;
use std::os::windows::fs::{FileExt as _, MetadataExt as _};
use std::os::windows::io::AsHandle as _;
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::{StandardInput, usual};

pub mod process;

/// A link is opened itself (`FILE_FLAG_OPEN_REPARSE_POINT`), so what is read of it is no file.
pub const O_NOFOLLOW: i32 = 0x0020_0000;
/// Opening a file waits for nobody.
pub const O_NONBLOCK: i32 = 0;
/// There are no terminals that become one's own.
pub const O_NOCTTY: i32 = 0;

/// Times of files are counted in these parts of a second.
const PER_SECOND: u64 = 10_000_000;
/// From 1601, where times of files begin, to 1970, in seconds.
const TO_UNIX: i64 = 11_644_473_600;
/// The user and the group of everything.
const OWNER: u32 = 0;

/// What is known of a file.
pub trait MetadataExt {
    /// Always the same.
    fn dev(&self) -> u64;
    /// When the file was made: the standard library does not tell its number.
    fn ino(&self) -> u64;
    /// 1: the standard library does not tell it.
    fn nlink(&self) -> u64;
    /// The same for all files.
    fn uid(&self) -> u32;
    /// The same for all files.
    fn gid(&self) -> u32;
    /// A mode that says whether it is a directory and may be written to.
    fn mode(&self) -> u32;
    /// Bytes.
    fn size(&self) -> u64;
    /// When its content changed, in seconds since the Unix epoch.
    fn mtime(&self) -> i64;
    /// The nanoseconds of that.
    fn mtime_nsec(&self) -> i64;
    /// As [`MetadataExt::mtime`].
    fn ctime(&self) -> i64;
    /// As [`MetadataExt::mtime_nsec`].
    fn ctime_nsec(&self) -> i64;
}

impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        0
    }
    fn ino(&self) -> u64 {
        self.creation_time()
    }
    fn nlink(&self) -> u64 {
        1
    }
    fn uid(&self) -> u32 {
        OWNER
    }
    fn gid(&self) -> u32 {
        OWNER
    }
    fn mode(&self) -> u32 {
        let kind = if self.is_dir() { 0o040_100 } else { 0o100_000 };
        kind | self.permissions().mode()
    }
    fn size(&self) -> u64 {
        self.file_size()
    }
    fn mtime(&self) -> i64 {
        (self.last_write_time() / PER_SECOND).cast_signed() - TO_UNIX
    }
    fn mtime_nsec(&self) -> i64 {
        (self.last_write_time() % PER_SECOND * 100).cast_signed()
    }
    fn ctime(&self) -> i64 {
        self.mtime()
    }
    fn ctime_nsec(&self) -> i64 {
        self.mtime_nsec()
    }
}

/// Modes, of which Windows has one bit.
pub trait PermissionsExt {
    /// 0600, or 0400 for what may not be written to.
    fn mode(&self) -> u32;
    /// Permissions that forbid writing if the mode does.
    fn from_mode(mode: u32) -> Self;
}

impl PermissionsExt for Permissions {
    fn mode(&self) -> u32 {
        if self.readonly() { 0o400 } else { 0o600 }
    }
    fn from_mode(mode: u32) -> Self {
        // They cannot be made, only changed.
        let places = [std::env::temp_dir(), "C:\\".into(), ".".into()];
        let found = places.iter().find_map(|place| std::fs::metadata(place).ok());
        let Some(found) = found else { std::process::abort() };
        let mut permissions = found.permissions();
        permissions.set_readonly(mode & 0o200 == 0);
        permissions
    }
}

/// How a file is opened.
pub trait OpenOptionsExt {
    /// Does nothing.
    fn mode(&mut self, mode: u32) -> &mut Self;
    /// The flags of this module.
    fn custom_flags(&mut self, flags: i32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _mode: u32) -> &mut Self {
        self
    }
    fn custom_flags(&mut self, flags: i32) -> &mut Self {
        system::OpenOptionsExt::custom_flags(self, flags.cast_unsigned())
    }
}

/// How a directory is made.
pub trait DirBuilderExt {
    /// Does nothing.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _mode: u32) -> &mut Self {
        self
    }
}

/// A name in a directory.
pub trait DirEntryExt {
    /// As [`MetadataExt::ino`].
    fn ino(&self) -> u64;
}

impl DirEntryExt for DirEntry {
    fn ino(&self) -> u64 {
        self.metadata().map_or(0, |found| found.ino())
    }
}

/// Kinds of files that Windows does not have.
pub trait FileTypeExt {
    /// Whether it is a FIFO: it is not.
    fn is_fifo(&self) -> bool;
    /// Whether it is a socket: it is not.
    fn is_socket(&self) -> bool;
}

impl FileTypeExt for FileType {
    fn is_fifo(&self) -> bool {
        false
    }
    fn is_socket(&self) -> bool {
        false
    }
}

/// Reading and writing at a place of a file. The position of the file changes too.
pub trait FileExt {
    /// Reads at most as much as there is room.
    ///
    /// # Errors
    /// An I/O error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills the buffer.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends before; otherwise an I/O error.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of it.
    ///
    /// # Errors
    /// An I/O error.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.seek_read(buffer, offset) {
            // The end of the file (`ERROR_HANDLE_EOF`).
            Err(error) if error.raw_os_error() == Some(38) => Ok(0),
            read => read,
        }
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut read = 0;
        while read < buffer.len() {
            match self.read_at(&mut buffer[read..], offset + read as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        Ok(())
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            match self.seek_write(&bytes[written..], offset + written as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                more => written += more,
            }
        }
        Ok(())
    }
}

/// Texts of the system as bytes.
pub trait OsStrExt {
    /// UTF-8, or a form of the standard library for what is none.
    fn as_bytes(&self) -> &[u8];
    /// The text of UTF-8; a sign for anything else.
    fn from_bytes(bytes: &[u8]) -> &OsStr;
}

impl OsStrExt for OsStr {
    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
    fn from_bytes(bytes: &[u8]) -> &OsStr {
        OsStr::new(std::str::from_utf8(bytes).unwrap_or("\u{fffd}"))
    }
}

/// Texts of the system of bytes.
pub trait OsStringExt {
    /// The text of UTF-8, with a sign for what is none.
    fn from_vec(bytes: Vec<u8>) -> Self;
    /// As [`OsStrExt::as_bytes`].
    fn into_vec(self) -> Vec<u8>;
}

impl OsStringExt for OsString {
    fn from_vec(bytes: Vec<u8>) -> Self {
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
    fn into_vec(self) -> Vec<u8> {
        self.into_encoded_bytes()
    }
}

/// Makes a symbolic link, which Windows permits to developers and administrators only.
///
/// # Errors
/// It is not permitted; otherwise an I/O error.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    match target.as_ref().is_dir() {
        true => system::symlink_dir(target, link),
        false => system::symlink_file(target, link),
    }
}

/// Does nothing.
///
/// # Errors
/// None.
pub fn chown(_path: impl AsRef<Path>, _user: Option<u32>, _group: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// Does nothing.
///
/// # Errors
/// None.
pub fn fchown<F>(_file: F, _user: Option<u32>, _group: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a directory cannot be opened, and the journal of the file system keeps its names.
///
/// # Errors
/// None.
pub fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Waits until the content of a file is on the disk. One that is open for reading cannot be told so: it is opened again.
///
/// # Errors
/// An I/O error.
pub fn sync_content(_file: &File, path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_all()
}

/// Cuts a file, or makes it longer. One that is open for appending cannot be told so: it is opened again.
///
/// # Errors
/// An I/O error.
pub fn set_length(_file: &File, path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

/// Locks a file for reading it, or for appending to it. Locks hold for reads and writes too: nobody writes to a file that is locked
/// for several, so there is one at a time.
///
/// # Errors
/// Somebody has it; otherwise an I/O error.
pub fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Locks a file that others may read meanwhile. Nobody writes to it.
///
/// # Errors
/// Somebody has it for himself; otherwise an I/O error.
pub fn try_lock_readable(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

/// Looks whether anybody has locked a file in either way, by locking it.
///
/// # Errors
/// Somebody has; otherwise an I/O error.
pub fn try_lock_to_look(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Variables without which programs do not start, or do not find the files of their user.
pub const SYSTEM_VARIABLES: &[&str] = &[
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "USERNAME",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "NUMBER_OF_PROCESSORS",
];

/// The name of a variable in the form in which it is looked up: `Path` is `PATH`, since case does not count.
pub fn variable_name(name: OsString) -> OsString {
    name.to_ascii_uppercase()
}

/// A path that was resolved (`\\?\C:\…`), as people write it. Many programs do not start in the other form.
pub fn usual_path(path: PathBuf) -> PathBuf {
    path.to_str().and_then(usual::without_prefix).map(PathBuf::from).unwrap_or(path)
}

/// Where the program is that is named so: with `.exe` at its end if its name has none.
pub fn program_file(path: PathBuf) -> PathBuf {
    if path.extension().is_none() { path.with_extension("exe") } else { path }
}

/// Whether the file at `path` is a program by the end of its name, or a directory.
///
/// # Errors
/// It is neither.
pub fn may_run(path: &Path) -> io::Result<()> {
    let end = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match path.is_dir() || ["exe", "com", "bat", "cmd"].contains(&end.as_str()) {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether this process may add and remove entries of the directory at `path`. The system says so only when it is tried.
///
/// # Errors
/// Never.
pub fn may_change(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether this process may read the file at `path`.
pub fn may_read(path: &Path) -> bool {
    File::open(path).is_ok()
}

/// How a program ended.
pub trait ExitStatusExt {
    /// By which signal: there are none.
    fn signal(&self) -> Option<i32>;
}

impl ExitStatusExt for ExitStatus {
    fn signal(&self) -> Option<i32> {
        None
    }
}

/// Runs a program in the place of this process, which waits for it and ends with its exit code.
pub fn become_program(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Starts a program apart from the signals of this process's console (`CREATE_NEW_PROCESS_GROUP`).
pub fn apart(command: &mut Command) -> &mut Command {
    command.creation_flags(0x200)
}

/// Whether a process has certainly ended: that is not known.
pub fn has_ended(_process: process::Pid) -> bool {
    false
}

/// The name of this machine.
pub fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Standard output without a buffer.
///
/// # Errors
/// It is closed.
pub fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// What standard input is.
pub fn standard_input() -> StandardInput {
    if io::stdin().is_terminal() {
        return StandardInput::Other;
    }
    let opened = io::stdin().as_handle().try_clone_to_owned().map(File::from);
    match opened.map(|file| file.metadata()) {
        Ok(Ok(found)) if found.is_file() => StandardInput::File,
        Ok(_) => StandardInput::Pipe,
        Err(_) => StandardInput::Other,
    }
}

/// It is not known.
pub fn path_of(_file: &File) -> Option<PathBuf> {
    None
}
