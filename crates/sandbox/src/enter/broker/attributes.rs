//! Modes, owners, times and extended attributes of files that may be changed, and watches on files that may be read.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, chmodat,
    chownat, fstat, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;

use super::caller::{Caller, LastLink, MAX_NAME};
use super::open::REFUSED;
use super::rules::by_number;
use super::{Answer, Broker, Outcome};
use crate::enter::filter::brokered::FCHMODAT2;

/// Longest value of an extended attribute (the kernel's `XATTR_SIZE_MAX`).
const MAX_VALUE: usize = 64 << 10;

/// What is changed.
enum Change {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(Timestamps),
    Set { name: CString, value: Vec<u8>, flags: XattrFlags },
    Remove(CString),
}

impl Broker {
    pub(super) fn change_attributes(&self, caller: &Caller<'_>) -> Outcome {
        let change = change(caller)?;
        let target = target(caller)?;
        // The file is open, so it stays the same one, whatever its path becomes.
        if !self.rules.may_change_file(&target)? {
            return Err(Errno::PERM);
        }
        // What is protected stays readable for its owner, and changeable by nobody else.
        if self.rules.is_above(&target)? && !change.keeps_owner(&fstat(&target)?) {
            return Err(REFUSED);
        }
        change.apply(&target)?;
        Ok(Answer::Number(0))
    }

    pub(super) fn watch(&self, caller: &Caller<'_>) -> Outcome {
        let flags = WatchFlags::from_bits_retain(caller.argument(2) as u32);
        let last = match flags.contains(WatchFlags::DONT_FOLLOW) {
            true => LastLink::Kept,
            false => LastLink::Followed,
        };
        let target = caller.place(libc::AT_FDCWD, caller.path(1)?)?.open(last)?;
        if !self.rules.may_watch(&target)? {
            return Err(Errno::ACCESS);
        }
        let watcher = caller.share_descriptor(caller.int(0))?;
        let flags = flags.difference(WatchFlags::DONT_FOLLOW);
        Ok(Answer::Number(inotify::add_watch(watcher, by_number(&target), flags)?.into()))
    }
}

/// What the call changes.
fn change(caller: &Caller<'_>) -> Result<Change, Errno> {
    let mode = |index| Change::Mode(Mode::from_raw_mode(caller.argument(index) as u32 & 0o7777));
    let owner = |index| {
        // -1 leaves it as it is.
        let id = |index| Some(caller.argument(index) as u32).filter(|id| *id != u32::MAX);
        Change::Owner(id(index).map(Uid::from_raw), id(index + 1).map(Gid::from_raw))
    };
    let name = |index| caller.text(caller.argument(index), MAX_NAME);
    Ok(match caller.number() {
        libc::SYS_fchmod => mode(1),
        libc::SYS_fchmodat | FCHMODAT2 => mode(2),
        libc::SYS_fchown => owner(1),
        libc::SYS_fchownat => owner(2),
        libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr => {
            let length = usize::try_from(caller.argument(3)).unwrap_or(usize::MAX);
            if length > MAX_VALUE {
                return Err(Errno::TOOBIG);
            }
            let value = caller.bytes(caller.argument(2), length)?;
            let flags = XattrFlags::from_bits_retain(caller.argument(4) as u32);
            Change::Set { name: name(1)?, value, flags }
        }
        libc::SYS_removexattr | libc::SYS_lremovexattr | libc::SYS_fremovexattr => {
            Change::Remove(name(1)?)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => mode(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => owner(1),
        _ => Change::Times(times(caller)?),
    })
}

/// The times of the four calls that set some: in nanoseconds, microseconds or seconds.
fn times(caller: &Caller<'_>) -> Result<Timestamps, Errno> {
    const NANOSECONDS_OF_MICROSECOND: i64 = 1_000;
    let (index, unit) = match caller.number() {
        libc::SYS_utimensat => (2, 1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (2, NANOSECONDS_OF_MICROSECOND),
        _ => (1, NANOSECONDS_OF_MICROSECOND),
    };
    let address = caller.argument(index);
    let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    if address == 0 {
        return Ok(Timestamps { last_access: now, last_modification: now });
    }
    let numbers = match caller.number() {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => {
            let [access, modification] = caller.numbers(address)?;
            [access, 0, modification, 0]
        }
        _ => caller.numbers(address)?,
    };
    let [access, access_part, modification, modification_part] = numbers;
    let time = |tv_sec, part: i64| {
        let tv_nsec = part.checked_mul(unit).ok_or(Errno::INVAL)?;
        // The special values belong to the call that counts nanoseconds.
        let is_special = matches!(tv_nsec, libc::UTIME_NOW | libc::UTIME_OMIT);
        if unit != 1 && is_special { Err(Errno::INVAL) } else { Ok(Timespec { tv_sec, tv_nsec }) }
    };
    Ok(Timestamps {
        last_access: time(access, access_part)?,
        last_modification: time(modification, modification_part)?,
    })
}

/// The file that the call names.
fn target(caller: &Caller<'_>) -> Result<OwnedFd, Errno> {
    let (directory, path, flags) = match caller.number() {
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            return caller.descriptor(open_number(caller.int(0))?);
        }
        libc::SYS_fchmodat => (caller.int(0), 1, 0),
        FCHMODAT2 | libc::SYS_utimensat => (caller.int(0), 1, caller.int(3)),
        libc::SYS_fchownat => (caller.int(0), 1, caller.int(4)),
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => {
            (libc::AT_FDCWD, 0, libc::AT_SYMLINK_NOFOLLOW)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (libc::AT_FDCWD, 0, libc::AT_SYMLINK_NOFOLLOW),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (caller.int(0), 1, 0),
        _ => (libc::AT_FDCWD, 0, 0),
    };
    if caller.argument(path) == 0 {
        // The calls for times take none for the descriptor itself.
        return caller.descriptor(open_number(directory)?);
    }
    let text = caller.path(path)?;
    if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return caller.descriptor(directory);
    }
    let kept = flags & libc::AT_SYMLINK_NOFOLLOW != 0;
    let last = if kept { LastLink::Kept } else { LastLink::Followed };
    caller.place(directory, text)?.open(last)
}

/// The number of a file, not the sign for the working directory.
fn open_number(number: i32) -> Result<i32, Errno> {
    if number < 0 { Err(Errno::BADF) } else { Ok(number) }
}

impl Change {
    /// Whether a directory stays as open for its owner, and as closed for others.
    fn keeps_owner(&self, about: &Stat) -> bool {
        let owner = Mode::RWXU.bits();
        match self {
            Self::Times(_) => true,
            Self::Mode(new) => {
                let others_may_write = (Mode::WGRP | Mode::WOTH).bits();
                new.bits() & owner == owner && new.bits() & !about.st_mode & others_may_write == 0
            }
            Self::Owner(user, group) => {
                user.is_none_or(|user| user.as_raw() == about.st_uid)
                    && group.is_none_or(|group| group.as_raw() == about.st_gid)
            }
            Self::Set { .. } | Self::Remove(_) => false,
        }
    }

    fn apply(&self, target: &OwnedFd) -> Result<(), Errno> {
        let path = by_number(target);
        match self {
            Self::Mode(mode) => {
                let kind = FileType::from_raw_mode(fstat(target)?.st_mode);
                if kind == FileType::Symlink {
                    return Err(Errno::OPNOTSUPP);
                }
                chmodat(CWD, path, *mode, AtFlags::empty())
            }
            Self::Owner(user, group) => chownat(target, c"", *user, *group, AtFlags::EMPTY_PATH),
            Self::Times(times) => utimensat(target, c"", times, AtFlags::EMPTY_PATH),
            Self::Set { name, value, flags } => setxattr(path, name, value, *flags),
            Self::Remove(name) => removexattr(path, name),
        }
    }
}
