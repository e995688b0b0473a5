//! Attempts on what Landlock has no rule for: modes, owners, times, attributes, watches; and on protected names.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod,
    futimens, inotify, openat, setxattr, utimensat,
};

use super::{Attempt, Scene, calls};

pub(super) const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "change the mode of a file outside", run: change_mode },
    Attempt { name: "change the mode through a descriptor", run: change_mode_by_descriptor },
    Attempt { name: "change the mode through a link", run: change_mode_by_link },
    Attempt {
        name: "change the mode of a file that may be read",
        run: |scene| Ok(fchmod(File::open(scene.readable_file())?, Mode::from_raw_mode(0o640))?),
    },
    Attempt { name: "change the owner of a file outside", run: change_owner },
    Attempt {
        name: "change the times of a file outside",
        run: |scene| Ok(utimensat(CWD, scene.outside.join("mode"), &NOW, AtFlags::empty())?),
    },
    Attempt {
        name: "change the times of a file that may be read",
        run: |scene| Ok(futimens(File::open(scene.readable_file())?, &NOW)?),
    },
    Attempt { name: "set an attribute of a file outside", run: set_attribute },
    Attempt {
        name: "change the flags of a file that may be read",
        run: |scene| calls::change_flags(&File::open(scene.readable_file())?),
    },
    Attempt {
        name: "make a subvolume where files may be read",
        run: |scene| calls::make_subvolume(&File::open(&scene.readable)?),
    },
    Attempt { name: "watch a directory outside", run: watch },
    Attempt {
        name: "watch a directory by its descriptor",
        run: |scene| calls::watch_by_descriptor(&File::open(&scene.readable)?),
    },
    Attempt {
        name: "hold a lease on a file that may be read",
        run: |scene| calls::hold_lease(&File::open(scene.readable_file())?),
    },
];

/// On names in the workspace.
pub(super) const PROTECTED: &[Attempt] = &[
    Attempt {
        name: "change a protected file",
        run: |scene| fs::write(scene.workspace.join("protected"), "protected"),
    },
    Attempt { name: "make a protected file", run: make_protected },
    Attempt { name: "move a protected file away", run: move_protected },
    Attempt { name: "give a protected file another name", run: link_protected },
];

const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW },
    last_modification: Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW },
};

fn change_mode(scene: &Scene) -> io::Result<()> {
    fs::set_permissions(scene.outside.join("mode"), Permissions::from_mode(0o640))
}

/// Landlock does not confine descriptors without the right to read and write.
fn change_mode_by_descriptor(scene: &Scene) -> io::Result<()> {
    let file = openat(CWD, scene.outside.join("mode"), OFlags::PATH, Mode::empty())?;
    calls::change_mode_of(&file)
}

fn change_mode_by_link(scene: &Scene) -> io::Result<()> {
    let link = scene.workspace.join("mode link");
    drop(fs::remove_file(&link));
    symlink(scene.outside.join("mode"), &link)?;
    fs::set_permissions(link, Permissions::from_mode(0o640))
}

/// To the same user and group, which changes the time of the last change.
fn change_owner(scene: &Scene) -> io::Result<()> {
    let path = scene.outside.join("mode");
    let about = path.metadata()?;
    let (user, group) = (Uid::from_raw(about.uid()), Gid::from_raw(about.gid()));
    Ok(chownat(CWD, path, Some(user), Some(group), AtFlags::empty())?)
}

fn set_attribute(scene: &Scene) -> io::Result<()> {
    Ok(setxattr(scene.outside.join("mode"), c"user.attempt", b"x", XattrFlags::empty())?)
}

fn watch(scene: &Scene) -> io::Result<()> {
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    Ok(inotify::add_watch(watcher.as_fd(), &scene.outside, inotify::WatchFlags::OPEN).map(drop)?)
}

fn make_protected(scene: &Scene) -> io::Result<()> {
    let path = scene.workspace.join("absent");
    fs::write(&path, "")?;
    fs::remove_file(path)
}

fn move_protected(scene: &Scene) -> io::Result<()> {
    let (path, aside) = (scene.workspace.join("protected"), scene.workspace.join("aside"));
    fs::rename(&path, &aside)?;
    fs::rename(aside, path)
}

fn link_protected(scene: &Scene) -> io::Result<()> {
    let link = scene.workspace.join("another");
    drop(fs::remove_file(&link));
    fs::hard_link(scene.workspace.join("protected"), &link)?;
    fs::remove_file(link)
}
