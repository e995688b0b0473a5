//! The process whose call is carried out: its arguments, its files, its directory.
//!
//! Its id is valid for as long as the call waits. Everything that is taken from `/proc` by that id is checked afterwards:
//! if the call still waits, it was the caller's.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

use super::rules::location;
use super::{Answer, Outcome};
use crate::system::{self, Call};

/// Longest path and name of an attribute, with the zero at their end.
const MAX_PATH: usize = libc::PATH_MAX as usize;
pub(super) const MAX_NAME: usize = 256;
/// Memory is readable or not by pages. All supported architectures have pages of this size or a multiple.
const PAGE: u64 = 4096;
/// Paths that mean an open file of the caller.
const DESCRIPTORS: [&str; 3] = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"];
const STANDARD: [&str; 3] = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];

pub(super) struct Caller<'a> {
    listener: &'a OwnedFd,
    call: &'a Call,
}

/// What a path is relative to, and the path.
#[derive(Debug)]
pub(super) struct Place {
    /// `None` for an absolute path.
    base: Option<OwnedFd>,
    path: CString,
    resolve: ResolveFlags,
}

/// Whether a link in the last place of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    Followed,
    Kept,
}

impl<'a> Caller<'a> {
    pub(super) fn new(listener: &'a OwnedFd, call: &'a Call) -> Self {
        Self { listener, call }
    }

    pub(super) fn number(&self) -> i64 {
        self.call.number
    }

    pub(super) fn argument(&self, index: usize) -> u64 {
        self.call.arguments.get(index).copied().unwrap_or_default()
    }

    /// An argument of 32 bits.
    pub(super) fn int(&self, index: usize) -> i32 {
        (self.argument(index) as u32).cast_signed()
    }

    /// # Errors
    /// The call does not wait any more.
    pub(super) fn still_waits(&self) -> Result<(), Errno> {
        if system::call_waits(self.listener, self.call.id) { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Memory of the caller.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let read = system::read_memory(self.call.thread, address, &mut bytes)?;
        self.still_waits()?;
        if read == length { Ok(bytes) } else { Err(Errno::FAULT) }
    }

    /// Numbers in the caller's memory.
    pub(super) fn numbers<const N: usize>(&self, address: u64) -> Result<[i64; N], Errno> {
        let bytes = self.bytes(address, N * size_of::<i64>())?;
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<i64>())) {
            *number = i64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::FAULT)?);
        }
        Ok(numbers)
    }

    /// Text in the caller's memory, up to its zero.
    pub(super) fn text(&self, address: u64, longest: usize) -> Result<CString, Errno> {
        let mut text = Vec::new();
        let mut buffer = [0; PAGE as usize];
        while text.len() < longest {
            let at = address.wrapping_add(text.len() as u64);
            let here = usize::try_from(PAGE - at % PAGE).unwrap_or(1).min(longest - text.len());
            let piece = &mut buffer[..here];
            let read = system::read_memory(self.call.thread, at, piece)?;
            let piece = &piece[..read];
            match piece.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&piece[..end]);
                    self.still_waits()?;
                    return CString::new(text).map_err(|_| Errno::FAULT);
                }
                None if read == 0 => return Err(Errno::FAULT),
                None => text.extend_from_slice(piece),
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    pub(super) fn path(&self, index: usize) -> Result<CString, Errno> {
        self.text(self.argument(index), MAX_PATH)
    }

    /// An open file of the caller, without the right to read or write it.
    pub(super) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let name = match number {
            libc::AT_FDCWD => "cwd".to_owned(),
            0.. => format!("fd/{number}"),
            _ => return Err(Errno::BADF),
        };
        let path = format!("/proc/{}/{name}", self.call.thread);
        let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        self.still_waits()?;
        opened.map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    /// A path of the caller that is relative to one of its directories.
    pub(super) fn place(&self, directory: i32, path: CString) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let text = path.to_str().unwrap_or_default();
        if let Some(number) = STANDARD.iter().position(|name| *name == text) {
            let number = i32::try_from(number).map_err(|_| Errno::BADF)?;
            return Ok(Place::new(self.descriptor(number)?, CString::default()));
        }
        if let Some(rest) = DESCRIPTORS.iter().find_map(|prefix| text.strip_prefix(prefix)) {
            let (number, rest) = rest.split_once('/').unwrap_or((rest, ""));
            if let Ok(number) = number.parse() {
                let rest = CString::new(rest.trim_start_matches('/')).map_err(|_| Errno::INVAL)?;
                return Ok(Place::new(self.descriptor(number)?, rest));
            }
        }
        if path.as_bytes().starts_with(b"/") {
            return Ok(Place { base: None, path, resolve: ResolveFlags::empty() });
        }
        Ok(Place::new(self.descriptor(directory)?, path))
    }

    /// The same for a call with promises of its own about how the path is looked up.
    pub(super) fn place_with(
        &self,
        directory: i32,
        path: CString,
        resolve: ResolveFlags,
    ) -> Result<Place, Errno> {
        if resolve.difference(ResolveFlags::NO_MAGICLINKS).is_empty() {
            return self.place(directory, path);
        }
        Ok(Place { base: Some(self.descriptor(directory)?), path, resolve })
    }

    /// The file mode creation mask of the caller.
    pub(super) fn file_mask(&self) -> Result<u32, Errno> {
        let path = format!("/proc/{}/status", self.call.thread);
        let status = std::fs::read_to_string(path).map_err(|_| Errno::SRCH)?;
        self.still_waits()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).ok_or(Errno::INVAL)
    }

    pub(super) fn file_size_limit(&self) -> Result<u64, Errno> {
        let limit = system::file_size_limit(self.call.thread);
        self.still_waits()?;
        limit
    }

    /// How often a thread runs may be changed by its own process.
    pub(super) fn change_own_thread(&self) -> Outcome {
        let path = format!("/proc/{}/task/{}", self.call.thread, self.int(0));
        let is_own = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        self.still_waits()?;
        // The number is in a register, so the caller cannot change it.
        if is_own { Ok(Answer::Continue) } else { Err(Errno::PERM) }
    }

    /// Another descriptor of the same open file of the caller.
    pub(super) fn share_descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let process = system::open_thread(self.call.thread)?;
        let shared = system::share_descriptor(&process, number);
        self.still_waits()?;
        shared
    }
}

impl Place {
    fn new(base: OwnedFd, path: CString) -> Self {
        Self { base: Some(base), path, resolve: ResolveFlags::empty() }
    }

    /// Opens what is there, without the right to read or write it. Links that lead into the files of some process are
    /// not followed, because they would be this process's own.
    pub(super) fn open(&self, last: LastLink) -> Result<OwnedFd, Errno> {
        let kept = if last == LastLink::Kept { OFlags::NOFOLLOW } else { OFlags::empty() };
        self.open_with(&self.path, kept)
    }

    /// The directory that holds the last name, and the name; with the slashes after it, which mean a directory. `None`
    /// if the last part is no name.
    pub(super) fn parent(&self) -> Result<Option<(OwnedFd, CString)>, Errno> {
        let path = self.path.as_bytes();
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let begin = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        if matches!(&path[begin..end], b"" | b"." | b"..") {
            return Ok(None);
        }
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
        let parent = self.open_with(&text(&path[..begin])?, OFlags::DIRECTORY)?;
        Ok(Some((parent, text(&path[begin..])?)))
    }

    fn open_with(&self, path: &CString, flags: OFlags) -> Result<OwnedFd, Errno> {
        let base = self.base.as_ref().map_or(CWD, AsFd::as_fd);
        if path.is_empty() {
            return base.try_clone_to_owned().map_err(|_| Errno::NFILE);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
        let resolve = self.resolve | ResolveFlags::NO_MAGICLINKS;
        openat2(base, path, flags, Mode::empty(), resolve)
    }
}

/// Where the name is, as the kernel names the directory.
pub(super) fn place_of(parent: &OwnedFd, name: &CString) -> Result<PathBuf, Errno> {
    let name = name.as_bytes();
    let end = name.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let name = Path::new(OsStr::from_bytes(&name[..end]));
    Ok(location(parent)?.join(name))
}
