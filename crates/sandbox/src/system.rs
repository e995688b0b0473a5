//! System calls without a safe wrapper: the only unsafe code of this crate, apart from the attempts to escape.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Identifies one of the two processes.
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Closes every descriptor with this number or a higher one. Nothing in this process may use one afterwards.
pub(crate) fn close_descriptors_from(first: u32) -> io::Result<()> {
    // SAFETY: no memory is involved. The caller is the start of `main`, when nothing owns a descriptor above 2 yet.
    let code = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Duplicates this process, which must have one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: with one thread, no lock is held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .map(Fork::Parent)
            .ok_or_else(|| io::Error::other("fork returned no process")),
    }
}

/// Signals that arrive at a descriptor from now on, instead of interrupting this process.
pub(crate) fn receive_signals(signals: &[i32]) -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it. The descriptor is new and owned by nothing.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// The next signal that arrived there.
pub(crate) fn read_signal(descriptor: &OwnedFd) -> Option<i32> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes at most `size` bytes, and the value is read only if it wrote all of them.
    unsafe {
        let read = libc::read(descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size);
        (read == size.cast_signed()).then(|| info.assume_init().ssi_signo.cast_signed())
    }
}

/// Ends this process by a signal, as the command ended, so that the parent sees the same. Returns if the signal is
/// harmless.
pub(crate) fn die_by(signal: i32) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it; the default action involves no code of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Gives this process, which must have one thread, namespaces of its own.
pub(crate) fn unshare(namespaces: i32) -> io::Result<()> {
    // SAFETY: no memory is involved, and descriptors stay valid.
    if unsafe { libc::unshare(namespaces) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts the loopback interface of this process's network.
pub(crate) fn start_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: every field of the structure may be zero.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (place, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = letter.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the structure, which lives until the call returns.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The version of Landlock in this kernel; 0 if it has none or it is switched off.
pub(crate) fn landlock_version() -> i32 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag, the call takes no memory and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    i32::try_from(version).unwrap_or(0).max(0)
}

/// Whether this kernel filters system calls.
pub(crate) fn has_seccomp() -> bool {
    const GET_ACTION_AVAILABLE: u32 = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads the four bytes of `action`.
    unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAILABLE, 0, &raw const action) == 0 }
}
