//! A mount namespace in which paths are hidden.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::Pid;
use rustix::thread::{
    CapabilitySet, ThreadNameSpaceType, move_into_thread_name_spaces,
    remove_capability_from_bounding_set,
};

use super::{HiddenPaths, Visibility};
use crate::image::Image;
use crate::system::{spawn, unshare};

/// Room for the empty directories: a few names, and one empty file.
const TMPFS_OPTIONS: &std::ffi::CStr = c"mode=0555,size=64k,nr_inodes=256";
/// Nothing in an empty directory is a device or a program.
const EMPTY_FLAGS: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);
/// The empty file, in the first hidden directory.
const EMPTY_FILE: &str = ".hidden";

/// A namespace that exists as long as this value, or a process in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    mounts: OwnedFd,
    /// What the places were when it was made.
    made_of: Vec<Option<(u64, u64)>>,
}

impl Namespace {
    /// Makes the namespace. This process must be root.
    ///
    /// # Errors
    /// The system does not permit it.
    pub(crate) fn new(hidden: &HiddenPaths) -> io::Result<Self> {
        let made_of = identities(hidden);
        let mounts = on_thread(|| {
            unshare(libc::CLONE_FS | libc::CLONE_NEWNS)?;
            hide(hidden)?;
            Ok(File::open("/proc/thread-self/ns/mnt")?.into())
        })?;
        Ok(Self { mounts, made_of })
    }

    /// Whether the places are still those that it was made of. A file that was replaced is not hidden any more, and a
    /// directory that was made since is not shown.
    pub(crate) fn is_of(&self, hidden: &HiddenPaths) -> bool {
        self.made_of == identities(hidden)
    }

    /// [`spawn`] in the namespace.
    ///
    /// # Errors
    /// As [`spawn`], or the namespace cannot be entered.
    pub(crate) fn spawn(&self, image: &Image<'_>) -> io::Result<Pid> {
        use std::os::fd::AsFd;
        on_thread(|| {
            unshare(libc::CLONE_FS)?;
            move_into_thread_name_spaces(self.mounts.as_fd(), ThreadNameSpaceType::MOUNT)?;
            // A child inherits this from the thread. Without it root may look only into processes that have no more
            // rights than itself.
            remove_capability_from_bounding_set(CapabilitySet::SYS_PTRACE)?;
            spawn(image)
        })
    }
}

/// Does `work` on a thread of its own, because it changes what the thread sees for good.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    const STACK_BYTES: usize = 256 * 1024;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, work)?;
        running.join().unwrap_or_else(|_| Err(io::Error::other("a thread has ended early")))
    })
}

fn identities(hidden: &HiddenPaths) -> Vec<Option<(u64, u64)>> {
    let identity = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    hidden.places().map(|(path, _)| identity(path)).collect()
}

/// A place and what it was before anything was hidden.
struct Original<'p> {
    path: &'p Path,
    visibility: Visibility,
    opened: OwnedFd,
    is_directory: bool,
}

/// Hides the paths in the mount namespace of this thread, which no other process shares.
///
/// # Errors
/// The system does not permit it.
pub(super) fn hide(hidden: &HiddenPaths) -> io::Result<()> {
    // What is mounted on this machine later appears, and what is mounted here stays here.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    let originals = originals(hidden)?;
    let mut applied: Vec<(&Path, Contents)> = Vec::new();
    for original in &originals {
        let holder = applied.iter().rfind(|(path, _)| original.path.starts_with(path));
        let is_covered = holder.is_some_and(|(_, contents)| *contents == Contents::Empty);
        let is_hidden = original.visibility == Visibility::Hidden;
        let is_visible_already = !is_covered && original.visibility == Visibility::Shown;
        if (is_covered && is_hidden) || is_visible_already {
            continue;
        }
        if is_covered {
            make_room(original)?;
        }
        match (is_hidden, original.is_directory) {
            (true, true) => mount("tmpfs", original.path, "tmpfs", EMPTY_FLAGS, TMPFS_OPTIONS)?,
            (true, false) => hide_file(original, &applied)?,
            (false, _) => {
                bind(&descriptor_path(&original.opened), original.path, original.visibility)?
            }
        }
        let is_empty = is_hidden && original.is_directory;
        let contents = if is_empty { Contents::Empty } else { Contents::Own };
        applied.push((original.path, contents));
    }
    // The empty directories stay so.
    for (path, contents) in applied {
        if contents == Contents::Empty {
            mount_remount(path, EMPTY_FLAGS | MountFlags::RDONLY, c"")?;
        }
    }
    Ok(())
}

/// What is at a place after it was dealt with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// An empty directory lies over it.
    Empty,
    /// What belongs there.
    Own,
}

/// The places that exist, opened before anything lies over them.
fn originals(hidden: &HiddenPaths) -> io::Result<Vec<Original<'_>>> {
    let mut originals = Vec::new();
    for (path, visibility) in hidden.places() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(opened) => {
                let is_directory = fs::symlink_metadata(path)?.is_dir();
                originals.push(Original { path, visibility, opened, is_directory });
            }
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(originals)
}

/// Makes the path where something is to be mounted, in a directory that was made empty here.
fn make_room(original: &Original<'_>) -> io::Result<()> {
    if original.is_directory {
        return fs::create_dir_all(original.path);
    }
    fs::create_dir_all(original.path.parent().unwrap_or(original.path))?;
    File::create(original.path).map(drop)
}

/// Lays an empty file over a file.
fn hide_file(original: &Original<'_>, applied: &[(&Path, Contents)]) -> io::Result<()> {
    let empty = applied.iter().find(|(_, contents)| *contents == Contents::Empty);
    let (directory, _) =
        empty.ok_or_else(|| io::Error::other("no directory is hidden near the file"))?;
    let empty = directory.join(EMPTY_FILE);
    File::create(&empty)?;
    bind(&empty, original.path, Visibility::ReadOnly)
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn descriptor_path(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// Mounts `source` over `target`.
fn bind(source: &Path, target: &Path, visibility: Visibility) -> io::Result<()> {
    mount_bind_recursive(source, target)?;
    if visibility != Visibility::ReadOnly {
        return Ok(());
    }
    // A user namespace may not drop what the mount forbids.
    let found = fstatvfs(&open_path(target)?)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (is, kept) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if found.contains(is) {
            flags |= kept;
        }
    }
    Ok(mount_remount(target, flags, c"")?)
}
