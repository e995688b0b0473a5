//! Opening files for writing, where names are protected.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fcntl_setfl, fstat, ftruncate, openat,
};
use rustix::io::Errno;

use super::caller::{Caller, LastLink, Place};
use super::rules::{Standing, by_number};
use super::{Answer, Broker, Outcome};
use crate::enter::filter::brokered::CHANGING;

/// Between two looks whether somebody reads a named pipe.
const PIPE_PAUSE: Duration = Duration::from_millis(10);
/// What a call gets for a protected name.
pub(super) const REFUSED: Errno = Errno::ROFS;

/// How often a path is looked up again because it changed meanwhile.
const ATTEMPTS: usize = 8;

/// The arguments of one of the calls that open a file.
struct Wanted {
    place: Place,
    flags: OFlags,
    mode: u32,
}

impl Broker {
    pub(super) fn open(&self, caller: &Caller<'_>) -> Outcome {
        let Some(wanted) = Wanted::read(caller)? else { return Ok(Answer::Continue) };
        let flags = wanted.flags;
        let is_new = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let last = match is_new || flags.contains(OFlags::NOFOLLOW) {
            true => LastLink::Kept,
            false => LastLink::Followed,
        };
        for _ in 0..ATTEMPTS {
            let outcome = match wanted.place.open(last) {
                // The kernel reports that it exists.
                Ok(_) if is_new => Ok(Answer::Continue),
                Ok(target) => self.open_present(caller, &wanted, target),
                Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => self.create(caller, &wanted),
                // The kernel reports the same, or Landlock refuses.
                Err(_) => Ok(Answer::Continue),
            };
            // Somebody else has made it meanwhile.
            if !matches!(outcome, Err(Errno::EXIST)) || is_new {
                return outcome;
            }
        }
        // A link with nothing behind it is there and is not.
        Err(Errno::LOOP)
    }

    fn open_present(&self, caller: &Caller<'_>, wanted: &Wanted, target: OwnedFd) -> Outcome {
        let about = fstat(&target)?;
        let kind = FileType::from_raw_mode(about.st_mode);
        let makes_file = wanted.flags.contains(OFlags::TMPFILE);
        match self.rules.standing_of_file(&target)? {
            Standing::Elsewhere => return Ok(Answer::Continue),
            Standing::Protected => return Err(REFUSED),
            Standing::Above | Standing::Free => {}
        }
        if self.rules.is_protected_file(&about) {
            return Err(REFUSED);
        }
        let is_opened = match kind {
            FileType::RegularFile => !makes_file,
            FileType::Directory => makes_file,
            FileType::Fifo => return open_pipe(target, wanted),
            // Links that are not followed, sockets, devices: the kernel reports the reason.
            _ => false,
        };
        if !is_opened {
            return Ok(Answer::Continue);
        }
        let done = OFlags::CREATE | OFlags::NOFOLLOW;
        let flags = if makes_file { wanted.flags } else { wanted.flags.difference(done) };
        let mode = if makes_file { wanted.mode(caller)? } else { Mode::empty() };
        let file = openat(CWD, by_number(&target), flags | OFlags::CLOEXEC, mode)?;
        Ok(Answer::File { file, flags: wanted.descriptor_flags() })
    }

    fn create(&self, caller: &Caller<'_>, wanted: &Wanted) -> Outcome {
        let Ok(Some((parent, name))) = wanted.place.parent() else { return Ok(Answer::Continue) };
        match self.rules.standing_of_name(&parent, &name)?.1 {
            Standing::Elsewhere => return Ok(Answer::Continue),
            Standing::Protected | Standing::Above => return Err(REFUSED),
            Standing::Free => {}
        }
        // Nothing that is there by now is opened, for it was not judged. A link is not followed.
        let flags = wanted.flags | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&parent, &name, flags, wanted.mode(caller)?)?;
        Ok(Answer::File { file, flags: wanted.descriptor_flags() })
    }

    pub(super) fn truncate(&self, caller: &Caller<'_>) -> Outcome {
        let opened = caller
            .path(0)
            .and_then(|path| caller.place(libc::AT_FDCWD, path)?.open(LastLink::Followed));
        let Ok(target) = opened else { return Ok(Answer::Continue) };
        match self.rules.standing_of_file(&target)? {
            Standing::Elsewhere => return Ok(Answer::Continue),
            Standing::Above | Standing::Protected => return Err(REFUSED),
            Standing::Free => {}
        }
        let about = fstat(&target)?;
        if self.rules.is_protected_file(&about) {
            return Err(REFUSED);
        }
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Ok(Answer::Continue);
        }
        // This process has no such limit.
        if caller.argument(1) > caller.file_size_limit()? {
            return Err(Errno::FBIG);
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(CWD, by_number(&target), flags, Mode::empty())?;
        ftruncate(file, caller.argument(1))?;
        Ok(Answer::Number(0))
    }
}

impl Wanted {
    /// `None` if the call changes nothing, or is one that the kernel refuses.
    fn read(caller: &Caller<'_>) -> Result<Option<Self>, Errno> {
        let mut resolve = ResolveFlags::empty();
        let (directory, path, flags, mode) = match caller.number() {
            libc::SYS_openat => (caller.int(0), 1, caller.int(2), caller.argument(3)),
            libc::SYS_openat2 => {
                let [flags, mode, promises] = caller.numbers(caller.argument(2))?;
                resolve = ResolveFlags::from_bits_retain(promises.cast_unsigned());
                (caller.int(0), 1, flags as i32, mode.cast_unsigned())
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                (libc::AT_FDCWD, 0, flags, caller.argument(1))
            }
            _ => (libc::AT_FDCWD, 0, caller.int(1), caller.argument(2)),
        };
        if flags & CHANGING == 0 || flags & libc::O_PATH != 0 {
            return Ok(None);
        }
        let place = caller.path(path).and_then(|path| caller.place_with(directory, path, resolve));
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        // The kernel reports what is wrong with the path.
        Ok(place.ok().map(|place| Self { place, flags, mode: (mode & 0o7777) as u32 }))
    }

    fn mode(&self, caller: &Caller<'_>) -> Result<Mode, Errno> {
        Ok(Mode::from_raw_mode(self.mode & !caller.file_mask()?))
    }

    fn descriptor_flags(&self) -> i32 {
        if self.flags.contains(OFlags::CLOEXEC) { libc::O_CLOEXEC } else { 0 }
    }
}

/// Opening a named pipe for writing waits until somebody reads it. That must not hold up the calls of others.
fn open_pipe(target: OwnedFd, wanted: &Wanted) -> Outcome {
    let flags = wanted.flags.difference(OFlags::CREATE | OFlags::NOFOLLOW | OFlags::TRUNC);
    let pipe = Pipe { target, flags, descriptor_flags: wanted.descriptor_flags() };
    match pipe.open() {
        Ok(file) => Ok(Answer::File { file, flags: pipe.descriptor_flags }),
        Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => Ok(Answer::Pipe(pipe)),
        Err(error) => Err(error),
    }
}

/// A named pipe that nobody reads yet.
#[derive(Debug)]
pub(super) struct Pipe {
    target: OwnedFd,
    flags: OFlags,
    descriptor_flags: i32,
}

impl Pipe {
    /// # Errors
    /// [`Errno::NXIO`] if nobody reads it.
    fn open(&self) -> Result<OwnedFd, Errno> {
        let at_once = self.flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(CWD, by_number(&self.target), at_once, Mode::empty())?;
        if !self.flags.contains(OFlags::NONBLOCK) {
            fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::NONBLOCK))?;
        }
        Ok(file)
    }

    /// Waits until somebody reads it. `waits` is whether the caller is still there.
    pub(super) fn wait(self, waits: impl Fn() -> bool) -> Outcome {
        while waits() {
            match self.open() {
                Err(Errno::NXIO) => thread::sleep(PIPE_PAUSE),
                opened => {
                    return opened.map(|file| Answer::File { file, flags: self.descriptor_flags });
                }
            }
        }
        Err(Errno::INTR)
    }
}
