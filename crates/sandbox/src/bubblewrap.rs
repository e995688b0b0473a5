//! The command line of `bwrap`.

use std::ffi::OsString;
use std::path::Path;

use crate::system_files::{CONFIGURATION, PROGRAMS};
use crate::{Confinement, Network, WorkspaceAccess};

/// Size of `/tmp`, which is in memory.
const TEMPORARY_BYTES: u64 = 1 << 30;
/// Size of other directories that programs expect to be there.
const OTHER_BYTES: u64 = 16 << 20;

/// The arguments of `bwrap` up to the command: namespaces of its own, and a file system that holds only what the
/// confinement names. `helper` is the program that applies the limits and the filter inside.
///
/// Sockets of the machine (of docker, D-Bus, agents) are not visible, because the directories that hold them are not.
pub(crate) fn arguments(
    confinement: &Confinement,
    helper: &Path,
    directory: &Path,
) -> Vec<OsString> {
    let mut arguments = Arguments(Vec::new());
    for flag in [
        "--unshare-user-try",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
    ] {
        arguments.flag(flag);
    }
    if confinement.network != Network::Open {
        arguments.flag("--unshare-net");
    }
    for path in PROGRAMS.iter().chain(CONFIGURATION) {
        arguments.bind("--ro-bind-try", Path::new(path));
    }
    arguments.place("--dev", Path::new("/dev"));
    arguments.place("--proc", Path::new("/proc"));
    // Settings of the kernel in it belong to root and have no namespace: for root they could be changed, without any capability,
    // and some name programs that the kernel starts outside.
    arguments.place("--remount-ro", Path::new("/proc"));
    arguments.memory(TEMPORARY_BYTES, Path::new("/tmp"));
    arguments.memory(OTHER_BYTES, Path::new("/run"));
    arguments.memory(OTHER_BYTES, Path::new("/var/tmp"));
    if confinement.access == WorkspaceAccess::None {
        // Programs start in an empty directory instead.
        arguments.memory(OTHER_BYTES, &confinement.workspace);
        arguments.place("--remount-ro", &confinement.workspace);
    }
    // A later line wins, so writable paths follow readable ones.
    for path in confinement.readable() {
        arguments.bind("--ro-bind", path);
    }
    for path in confinement.writable() {
        arguments.bind("--bind", path);
    }
    if let Network::Proxy { socket } = &confinement.network {
        arguments.bind("--bind", socket);
    }
    arguments.bind("--ro-bind", helper);
    arguments.place("--remount-ro", Path::new("/"));
    arguments.place("--chdir", directory);
    arguments.flag("--");
    arguments.0
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn place(&mut self, flag: &str, path: &Path) {
        self.flag(flag);
        self.0.push(path.into());
    }

    /// An empty directory in memory.
    fn memory(&mut self, bytes: u64, path: &Path) {
        self.0.extend(["--size".into(), bytes.to_string().into()]);
        self.place("--tmpfs", path);
    }

    /// The same path inside as outside.
    fn bind(&mut self, flag: &str, path: &Path) {
        self.place(flag, path);
        self.0.push(path.into());
    }
}

#[cfg(test)]
mod tests;
