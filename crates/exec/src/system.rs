//! Starting a program: `posix_spawn` with a new session. Moving variables out of sight. And two calls of the allocator.
//!
//! The standard library's `Command` can put a child into its own process group, but not into its own session, other
//! than by a closure between fork and exec, which makes it fork slowly. A session of its own matters: without one, a
//! program that asks for a password on the terminal (sudo, ssh) is stopped by the kernel and hangs.
//!
//! This is the only module of the workspace with unsafe code. It only makes these calls.

use std::ffi::{CString, c_char, c_int, c_short};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::ptr;

use rustix::process::Pid;
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};

use crate::image::{ChildStreams, Image};

#[cfg(not(target_vendor = "apple"))]
const NEW_SESSION: c_short = libc::POSIX_SPAWN_SETSID;
/// From Apple's `spawn.h`; the `libc` crate lacks it.
#[cfg(target_vendor = "apple")]
const NEW_SESSION: c_short = 0x0400;

/// A program that was started.
pub(crate) type Started = Pid;

/// The id of a program.
pub(crate) fn id_of(started: &Started) -> Pid {
    *started
}

/// Starts a program as the leader of a new session and process group. All other file descriptors of this process are
/// expected to be close-on-exec, as those of the standard library are. The caller has to collect the exit status.
///
/// # Errors
/// An I/O error, also if the program cannot be executed or the directory cannot be entered.
pub(crate) fn spawn(image: &Image<'_>) -> io::Result<Started> {
    let actions = FileActions::new(image)?;
    let attributes = Attributes::new()?;
    let arguments = pointers(image.arguments);
    let environment = pointers(image.environment);
    let mut pid: libc::pid_t = 0;
    // SAFETY: all pointers lead to values that outlive the call: C strings that end in NUL, arrays of such pointers
    // that end in a null pointer, and two objects that their constructors initialised. The callee writes only `pid`.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            image.program.as_ptr(),
            &actions.0,
            &attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system gave a child the process id 0"))
}

/// Moves the variables that `is_moved` names (by name and value) to memory of their own, and overwrites what was in the
/// memory that the kernel shows as this process's environment. Does nothing if this process has more than one thread.
#[cfg(target_os = "linux")]
pub(crate) fn move_variables(is_moved: impl Fn(&[u8], &[u8]) -> bool) {
    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    if !has_one_thread() {
        return;
    }
    // SAFETY: `environ` is null or leads to an array of pointers to C strings, with a null pointer at its end. There is
    // one thread, so nobody reads or changes it meanwhile; the standard library only ever gives out copies. A string is
    // overwritten only after its pointer was replaced, and only up to its NUL; strings of the environment are writable
    // (the C library says so of `getenv`). The copies are never freed, as `environ` goes on leading to them.
    unsafe {
        let mut slot = environ;
        while !slot.is_null() && !(*slot).is_null() {
            let string = *slot;
            let entry = std::ffi::CStr::from_ptr(string).to_owned();
            let bytes = entry.as_bytes();
            let length = bytes.len();
            let split = bytes.iter().position(|byte| *byte == b'=').unwrap_or(length);
            if is_moved(&bytes[..split], bytes.get(split + 1..).unwrap_or_default()) {
                *slot = entry.into_raw();
                for offset in 0..length {
                    // The compiler must not leave out writes that nothing here reads.
                    ptr::write_volatile(string.add(offset), 0);
                }
            }
            slot = slot.add(1);
        }
    }
}

/// Whether this process has one thread. The kernel counts a link of the directory of threads for each of them, besides the two
/// that every directory has. Where that is not so, the directory is read.
#[cfg(target_os = "linux")]
fn has_one_thread() -> bool {
    use std::os::unix::fs::MetadataExt;
    const DIRECTORY: &str = "/proc/self/task";
    std::fs::metadata(DIRECTORY).is_ok_and(|found| found.nlink() == 3)
        || std::fs::read_dir(DIRECTORY).is_ok_and(|threads| threads.count() == 1)
}

/// Gives this thread namespaces of its own. A user namespace needs a process with one thread.
#[cfg(target_os = "linux")]
pub(crate) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved, and descriptors stay valid.
    if unsafe { libc::unshare(namespaces) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes all threads take memory from one heap. See [`crate::use_one_heap`].
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn use_one_heap() {
    // SAFETY: the call takes two numbers and changes a setting of the allocator, under the allocator's own lock.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Gives free memory back to the system. See [`crate::give_back_memory`].
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_memory() {
    // SAFETY: the call takes a number and touches only free blocks, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// A descriptor whose readability can be awaited.
///
/// # Errors
/// An I/O error if this kind of descriptor cannot be watched.
#[cfg(target_os = "linux")]
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, always returns the same number, and is closed only when the `AsyncFd` drops it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// Pointers to the strings, and a null pointer at the end.
fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// The `posix_spawn` family returns an error number instead of setting `errno`.
fn check(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new(image: &Image<'_>) -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `raw` has the size and alignment of the object; it counts as initialised only after success.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: the call above succeeded. From here on `drop` frees it.
        let mut actions = Self(unsafe { raw.assume_init() });
        // SAFETY: `actions.0` is initialised; the strings end in NUL and are copied by the callee, which only notes
        // the numbers of the descriptors.
        unsafe {
            let raw = &mut actions.0;
            match image.streams {
                ChildStreams::Open { input, output, errors } => {
                    check(match input {
                        Some(input) => libc::posix_spawn_file_actions_adddup2(
                            raw,
                            input.as_raw_fd(),
                            libc::STDIN_FILENO,
                        ),
                        None => libc::posix_spawn_file_actions_addopen(
                            raw,
                            libc::STDIN_FILENO,
                            c"/dev/null".as_ptr(),
                            libc::O_RDONLY,
                            0,
                        ),
                    })?;
                    for (stream, number) in
                        [(output, libc::STDOUT_FILENO), (errors, libc::STDERR_FILENO)]
                    {
                        let stream = stream.as_raw_fd();
                        check(libc::posix_spawn_file_actions_adddup2(raw, stream, number))?;
                    }
                }
                ChildStreams::Terminal(path) => {
                    let (input, path) = (libc::STDIN_FILENO, path.as_ptr());
                    check(libc::posix_spawn_file_actions_addopen(
                        raw,
                        input,
                        path,
                        libc::O_RDWR,
                        0,
                    ))?;
                    for number in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
                        check(libc::posix_spawn_file_actions_adddup2(raw, input, number))?;
                    }
                }
            }
            check(libc::posix_spawn_file_actions_addchdir_np(
                &mut actions.0,
                image.directory.as_ptr(),
            ))?;
        }
        Ok(actions)
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, used by nothing else any more.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    /// A new session, no blocked signal, and the default action for those that Rust programs or terminals change.
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `raw` has the size and alignment of the object; it counts as initialised only after success.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: the call above succeeded. From here on `drop` frees it.
        let mut attributes = Self(unsafe { raw.assume_init() });
        let flags = c_int::from(NEW_SESSION)
            | libc::POSIX_SPAWN_SETSIGMASK as c_int
            | libc::POSIX_SPAWN_SETSIGDEF as c_int;
        let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set before anything reads it; the set is copied by the callees.
        unsafe {
            libc::sigemptyset(signals.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(&mut attributes.0, signals.as_ptr()))?;
            for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP]
            {
                libc::sigaddset(signals.as_mut_ptr(), signal);
            }
            check(libc::posix_spawnattr_setsigdefault(&mut attributes.0, signals.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags as c_short))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, used by nothing else any more.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}
