//! System calls without a safe wrapper: the only unsafe code of this crate, apart from the attempts to escape.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

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

/// No signal is held back any more: a program that starts with blocked signals does not end when it is asked to.
pub(crate) fn unblock_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it.
    let code = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut())
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// Gives this thread something of its own. Most namespaces need a process with one thread.
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
        // Signed on x86-64, unsigned on aarch64.
        *place = libc::c_char::from_ne_bytes([*letter]);
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the structure, which lives until the call returns.
    match unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A system call that waits for this process's answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: u64,
    /// The thread that makes it.
    pub thread: u32,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// Applies a filter to this thread and all that it starts. The calls for which it returns `SECCOMP_RET_USER_NOTIF` wait
/// at the descriptor. Once one has arrived there, only a signal that ends the caller interrupts it.
pub(crate) fn listen_to_calls(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    const SET_MODE_FILTER: u32 = 1;
    const SYNC_WAKE_UP: u64 = 1;
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: both types have the kernel's layout, and the kernel reads `length` instructions and changes none. The
    // descriptor is new and owned by nothing.
    unsafe {
        let listener =
            check(libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program))?;
        let listener = i32::try_from(listener).map_err(io::Error::other)?;
        // The two sides take turns, so the kernel need not look for another processor. Only speed depends on it.
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
        Ok(OwnedFd::from_raw_fd(listener))
    }
}

/// Largest size that a file of that thread may get, in bytes.
pub(crate) fn file_size_limit(thread: u32) -> Result<u64, Errno> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    let none = std::ptr::null();
    // SAFETY: the kernel writes one structure, which is read only if it did.
    unsafe {
        match libc::prlimit(thread.cast_signed(), libc::RLIMIT_FSIZE, none, limit.as_mut_ptr()) {
            0 => Ok(limit.assume_init().rlim_cur),
            _ => Err(last_errno()),
        }
    }
}

/// Waits for the next call.
pub(crate) fn receive_call(listener: &OwnedFd) -> io::Result<Call> {
    // SAFETY: every field may be zero, and the kernel demands that all are.
    let mut call: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one such structure.
    check(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call)
    })?;
    let libc::seccomp_data { nr, args, .. } = call.data;
    Ok(Call { id: call.id, thread: call.pid, number: nr.into(), arguments: args })
}

/// Whether the caller still waits for the answer.
pub(crate) fn call_waits(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads the eight bytes of `id`.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0
    }
}

/// Makes a call return a number or an error.
pub(crate) fn answer_call(
    listener: &OwnedFd,
    id: u64,
    result: Result<i64, Errno>,
) -> io::Result<()> {
    let (val, error) = match result {
        Ok(number) => (number, 0),
        Err(error) => (0, -error.raw_os_error()),
    };
    respond(listener, &libc::seccomp_notif_resp { id, val, error, flags: 0 })
}

/// Lets the kernel carry out a call that was passed here.
pub(crate) fn continue_call(listener: &OwnedFd, id: u64) -> io::Result<()> {
    const CONTINUE: u32 = 1;
    respond(listener, &libc::seccomp_notif_resp { id, val: 0, error: 0, flags: CONTINUE })
}

fn respond(listener: &OwnedFd, response: &libc::seccomp_notif_resp) -> io::Result<()> {
    // SAFETY: the kernel reads the structure, which lives until the call returns.
    let code = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            std::ptr::from_ref(response),
        )
    };
    check(code).map(drop)
}

/// Puts a file among those of the caller, and closes it here. Returns the caller's number of it.
pub(crate) fn give_file(
    listener: &OwnedFd,
    id: u64,
    file: OwnedFd,
    flags: i32,
) -> Result<i64, Errno> {
    let request = libc::seccomp_notif_addfd {
        id,
        flags: 0,
        srcfd: file.as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags: flags.cast_unsigned(),
    };
    // SAFETY: the kernel reads the structure, which lives until the call returns; the file is open until then.
    let number = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request)
    };
    drop(file);
    if number < 0 { Err(last_errno()) } else { Ok(number.into()) }
}

/// Reads memory of another process. Returns how many bytes were read.
pub(crate) fn read_memory(thread: u32, address: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let there = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(address),
        iov_len: bytes.len(),
    };
    // SAFETY: the kernel writes at most `bytes.len()` bytes to `bytes`; `there` is an address of another process.
    let read = unsafe {
        libc::process_vm_readv(thread.cast_signed(), &raw const here, 1, &raw const there, 1, 0)
    };
    usize::try_from(read).map_err(|_| last_errno())
}

/// A descriptor of a thread.
pub(crate) fn open_thread(thread: u32) -> Result<OwnedFd, Errno> {
    // `PIDFD_THREAD`, since Linux 6.9.
    const ANY_THREAD: u32 = libc::O_EXCL.cast_unsigned();
    let thread = Pid::from_raw(thread.cast_signed()).ok_or(Errno::SRCH)?;
    pidfd_open(thread, PidfdFlags::from_bits_retain(ANY_THREAD))
}

/// Another descriptor of an open file of that thread.
pub(crate) fn share_descriptor(thread: &OwnedFd, number: i32) -> Result<OwnedFd, Errno> {
    pidfd_getfd(thread, number, PidfdGetfdFlags::empty())
}

/// From now on this thread has a working directory and a file mode creation mask of its own, and the mask is empty.
pub(crate) fn own_file_mask() -> io::Result<()> {
    unshare(libc::CLONE_FS)?;
    rustix::process::umask(rustix::fs::Mode::empty());
    Ok(())
}

fn check(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
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

/// Whether this kernel filters system calls, and passes them to other processes.
pub(crate) fn has_seccomp() -> bool {
    const GET_ACTION_AVAILABLE: u32 = 2;
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the call reads the four bytes of `action`.
    unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAILABLE, 0, &raw const action) == 0 }
}
