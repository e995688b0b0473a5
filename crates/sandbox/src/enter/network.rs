//! A network of its own: a loopback interface that reaches only what listens in the sandbox, and no other interface.

use std::fs;

use super::Failure;
use crate::system;

/// What to do where the system does not permit it.
const REMEDY: &str = "set `network` to \"none\", or use the level bubblewrap or a container";

/// Moves this process, and all that it starts, into a network of its own. Root does so directly. Others get a user
/// namespace first, in which they keep their own id; some systems forbid that.
pub(crate) fn enter_own() -> Result<(), Failure> {
    if system::unshare(libc::CLONE_NEWNET).is_err() {
        let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        system::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)
            .and_then(|()| keep_ids(ids))
            .map_err(|error| {
                format!("this system permits no network of its own: {error}; {REMEDY}")
            })?;
    }
    system::start_loopback().map_err(|error| {
        format!("cannot start the loopback interface of the sandbox: {error}; {REMEDY}")
    })
}

/// The same user and group inside as outside. The kernel demands that groups cannot be dropped before that.
fn keep_ids((user, group): (u32, u32)) -> std::io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
