//! What this program does when it was started again to become a command of a user who is not root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use super::namespace::hide;
use super::{HiddenPaths, Visibility};
use crate::system::unshare;

/// Comes before the command.
pub(super) const END_OF_PLACES: &str = "--";
/// What shells say of a command that cannot be run.
const CANNOT_RUN: u8 = 126;

/// Hides paths from this process, which must have one thread, and becomes the command: its path, its name and its arguments.
/// Returns only if that fails.
pub fn enter_hiding(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let failed = |error: io::Error| {
        eprintln!(
            "myclaw: the state directory cannot be hidden from this command, so it was not run: {error}. Set \
             tools.bash.stateDirectory to \"open\" to run commands without that"
        );
        ExitCode::from(CANNOT_RUN)
    };
    let places = arguments.by_ref().take_while(|argument| argument != END_OF_PLACES);
    let hidden = HiddenPaths::new(places.filter_map(|argument| place(&argument)));
    let (Some(program), Some(name)) = (arguments.next(), arguments.next()) else {
        return failed(io::ErrorKind::InvalidInput.into());
    };
    // The way back to where it starts, which may lie in a part that is shown.
    let directory = std::env::current_dir();
    if let Err(error) = enter(&hidden) {
        return failed(error);
    }
    let mut command = Command::new(program);
    command.arg0(name).args(arguments);
    if let Ok(directory) = directory {
        command.current_dir(directory);
    }
    let error = command.exec();
    failed(error)
}

fn enter(hidden: &HiddenPaths) -> io::Result<()> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    // The same user and group inside as outside. The kernel demands that groups cannot be dropped before that.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    hide(hidden)
}

fn place(argument: &OsStr) -> Option<(PathBuf, Visibility)> {
    let (letter, path) = argument.as_bytes().split_first()?;
    let visibility = match letter {
        b'h' => Visibility::Hidden,
        b'r' => Visibility::ReadOnly,
        b's' => Visibility::Shown,
        _ => return None,
    };
    Some((PathBuf::from(OsStr::from_bytes(path)), visibility))
}
