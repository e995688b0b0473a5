//! Making, moving and removing names, where names are protected.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, RenameFlags, linkat, mkdirat, mknodat, renameat_with, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::caller::{Caller, LastLink};
use super::open::REFUSED;
use super::rules::{Standing, by_number};
use super::{Answer, Broker, Outcome};

/// A name in an open directory.
struct Name {
    parent: OwnedFd,
    name: CString,
    place: PathBuf,
    standing: Standing,
}

/// What a call does, with the numbers of its arguments where they differ.
enum Action {
    MakeDirectory { mode: usize },
    MakeNode { mode: usize },
    Link { from: (i32, usize), flags: i32 },
    SymbolicLink { target: usize },
    Remove(AtFlags),
    Rename { to: (i32, usize), flags: u32 },
}

impl Broker {
    pub(super) fn change_names(&self, caller: &Caller<'_>) -> Outcome {
        let Some(((directory, path), action)) = action(caller) else {
            return Err(Errno::NOSYS);
        };
        let Some(name) = self.name(caller, (directory, path)) else { return Ok(Answer::Continue) };
        match action {
            Action::Rename { to, flags } => return self.rename(caller, &name, to, flags),
            _ if name.standing == Standing::Elsewhere => return Ok(Answer::Continue),
            Action::Link { from, flags } => return self.link(caller, &name, from, flags),
            // What is protected below a directory needs the directory, and an empty one may go.
            Action::MakeDirectory { .. } | Action::Remove(AtFlags::REMOVEDIR)
                if name.standing == Standing::Above => {}
            _ => name.must_be_free()?,
        }
        let Name { parent, name, .. } = &name;
        match action {
            Action::MakeDirectory { mode } => {
                mkdirat(parent, name, masked(caller, caller.argument(mode))?)?;
            }
            Action::MakeNode { mode } => make_node(caller, parent, name, mode)?,
            Action::SymbolicLink { target } => symlinkat(caller.path(target)?, parent, name)?,
            Action::Remove(flags) => unlinkat(parent, name, flags)?,
            Action::Link { .. } | Action::Rename { .. } => return Err(Errno::NOSYS),
        }
        Ok(Answer::Number(0))
    }

    /// `None` if the kernel reports what is wrong with the path.
    fn name(&self, caller: &Caller<'_>, (directory, path): (i32, usize)) -> Option<Name> {
        let place = caller.place(directory, caller.path(path).ok()?).ok()?;
        let (parent, name) = place.parent().ok()??;
        let (place, standing) = self.rules.standing_of_name(&parent, &name).ok()?;
        Some(Name { parent, name, place, standing })
    }

    fn link(
        &self,
        caller: &Caller<'_>,
        to: &Name,
        (directory, path): (i32, usize),
        flags: i32,
    ) -> Outcome {
        to.must_be_free()?;
        let text = caller.path(path)?;
        let from = if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            caller.descriptor(directory)?
        } else {
            let is_followed = flags & libc::AT_SYMLINK_FOLLOW != 0;
            let last = if is_followed { LastLink::Followed } else { LastLink::Kept };
            caller.place(directory, text)?.open(last)?
        };
        // Another name for a file that may not be changed would be a way to change it. Programs copy instead.
        if !self.rules.may_change_file(&from)? {
            return Err(Errno::XDEV);
        }
        linkat(CWD, by_number(&from), &to.parent, &to.name, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Answer::Number(0))
    }

    fn rename(&self, caller: &Caller<'_>, from: &Name, to: (i32, usize), flags: u32) -> Outcome {
        let Some(to) = self.name(caller, to) else { return Ok(Answer::Continue) };
        let names = [from, &to];
        if names.iter().all(|name| name.standing == Standing::Elsewhere) {
            return Ok(Answer::Continue);
        }
        for name in names {
            match name.standing {
                // Landlock permits nothing there either, and reports so. What a directory from there holds is judged
                // when programs copy it instead.
                Standing::Elsewhere
                    if self.rules.has_names() || !self.rules.may_change(&name.place) =>
                {
                    return Err(Errno::XDEV);
                }
                Standing::Elsewhere | Standing::Free => {}
                Standing::Above | Standing::Protected => return Err(REFUSED),
            }
        }
        let flags = RenameFlags::from_bits_retain(flags);
        renameat_with(&from.parent, &from.name, &to.parent, &to.name, flags)?;
        Ok(Answer::Number(0))
    }
}

impl Name {
    fn must_be_free(&self) -> Result<(), Errno> {
        if self.standing == Standing::Free { Ok(()) } else { Err(REFUSED) }
    }
}

/// What the call does, and the name that it does it to: a directory and the number of the argument with the path.
fn action(caller: &Caller<'_>) -> Option<((i32, usize), Action)> {
    #[cfg(target_arch = "x86_64")]
    const HERE: i32 = libc::AT_FDCWD;
    let at = |index: usize| (caller.int(index), index + 1);
    Some(match caller.number() {
        libc::SYS_mkdirat => (at(0), Action::MakeDirectory { mode: 2 }),
        libc::SYS_mknodat => (at(0), Action::MakeNode { mode: 2 }),
        libc::SYS_symlinkat => (at(1), Action::SymbolicLink { target: 0 }),
        libc::SYS_linkat => (at(2), Action::Link { from: at(0), flags: caller.int(4) }),
        libc::SYS_unlinkat => {
            (at(0), Action::Remove(AtFlags::from_bits_retain(caller.argument(2) as u32)))
        }
        libc::SYS_renameat2 => {
            (at(0), Action::Rename { to: at(2), flags: caller.argument(4) as u32 })
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => ((HERE, 0), Action::MakeDirectory { mode: 1 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => ((HERE, 0), Action::MakeNode { mode: 1 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => ((HERE, 1), Action::SymbolicLink { target: 0 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => ((HERE, 1), Action::Link { from: (HERE, 0), flags: 0 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => ((HERE, 0), Action::Remove(AtFlags::empty())),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir => ((HERE, 0), Action::Remove(AtFlags::REMOVEDIR)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => ((HERE, 0), Action::Rename { to: (HERE, 1), flags: 0 }),
        libc::SYS_renameat => (at(0), Action::Rename { to: at(2), flags: 0 }),
        _ => return None,
    })
}

/// Files and pipes; devices are refused, and nobody could use a socket.
fn make_node(
    caller: &Caller<'_>,
    parent: &OwnedFd,
    name: &CString,
    mode: usize,
) -> Result<(), Errno> {
    let mode = caller.argument(mode);
    let kind = match (mode as u32) & libc::S_IFMT {
        0 | libc::S_IFREG => FileType::RegularFile,
        libc::S_IFIFO => FileType::Fifo,
        _ => return Err(Errno::PERM),
    };
    mknodat(parent, name, kind, masked(caller, mode)?, 0)
}

fn masked(caller: &Caller<'_>, mode: u64) -> Result<Mode, Errno> {
    Ok(Mode::from_raw_mode((mode as u32 & 0o7777) & !caller.file_mask()?))
}
