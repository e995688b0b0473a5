//! System calls of the attempts. Each is harmless where it succeeds, and is undone.

use std::ffi::{CString, c_void};
use std::fs::File;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::missed;

/// The number that a call returned, or the system's error.
fn check(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// For calls that return a descriptor: it is closed.
fn check_descriptor(result: i64) -> io::Result<()> {
    let number = check(result)?;
    let number = i32::try_from(number).map_err(|_| missed("no descriptor"))?;
    // SAFETY: the call has just returned it.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(())
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Ends this process after some time, even if a call hangs.
pub(super) fn give_up_after_seconds(seconds: u32) {
    // SAFETY: no memory is involved.
    unsafe { libc::alarm(seconds) };
}

/// Makes a file that grows too large an error instead of a signal.
pub(super) fn survive_size_limit() {
    // SAFETY: ignoring a signal involves no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// A file on a descriptor that somebody else owns, if there is one.
pub(super) fn borrow_descriptor(number: RawFd) -> Option<ManuallyDrop<File>> {
    // SAFETY: `fcntl` takes a number; the file is never dropped, so the descriptor is not closed.
    unsafe {
        (libc::fcntl(number, libc::F_GETFD) != -1)
            .then(|| ManuallyDrop::new(File::from_raw_fd(number)))
    }
}

pub(super) fn truncate(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path ends in NUL.
    check(unsafe { libc::truncate(path.as_ptr(), 0) }).map(drop)
}

pub(super) fn make_device(path: &Path) -> io::Result<()> {
    let c = c_path(path)?;
    // SAFETY: the path ends in NUL. The device is the one of `/dev/null`.
    check(unsafe { libc::mknod(c.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3)) })?;
    std::fs::remove_file(path)
}

pub(super) fn open_by_handle(path: &Path) -> io::Result<()> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        data: [u8; 128],
    }
    let mut handle = Handle { bytes: 128, kind: 0, data: [0; 128] };
    let (mut mount, c, root) = (0i32, c_path(path)?, File::open(path.parent().unwrap_or(path)));
    // SAFETY: `handle` has the layout of `file_handle` with room for 128 bytes, as it says; the path ends in NUL.
    check(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            c.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    })?;
    let root = root?;
    // SAFETY: `handle` was filled in by the call above.
    check_descriptor(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            root.as_raw_fd(),
            &raw const handle,
            libc::O_RDONLY,
        )
    })
}

pub(super) fn read_memory(pid: i32, address: usize, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; length];
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let there = libc::iovec {
        iov_base: ptr::with_exposed_provenance_mut::<c_void>(address),
        iov_len: length,
    };
    // SAFETY: the kernel writes at most `length` bytes to `bytes`; `there` is an address of another process.
    check(
        unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) } as i64
    )?;
    Ok(bytes)
}

pub(super) fn trace(pid: i32) -> io::Result<()> {
    const NOTHING: *mut c_void = ptr::null_mut();
    // SAFETY: attaching this way neither stops the process nor touches memory; this process ends the tracing.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, NOTHING, NOTHING) }).map(drop)
}

/// A tracer can change the system calls of what it traces after a filter has seen them.
pub(super) fn trace_own_child() -> io::Result<()> {
    // SAFETY: this process has one thread, so its copy can do anything; the child only waits.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        // SAFETY: no memory is involved. The kernel ends the child with its parent, if nobody does so before.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::pause();
            libc::_exit(0)
        }
    }
    let child = i32::try_from(child).map_err(|_| missed("no process id"))?;
    let traced = trace(child);
    // SAFETY: no memory is involved; the child is not collected yet, so the id is its own.
    unsafe { libc::kill(child, libc::SIGKILL) };
    end_child_of_fork(child.into())?;
    traced
}

pub(super) fn take_descriptor(pid: i32) -> io::Result<()> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or_else(|| missed("no process"))?;
    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    // SAFETY: no memory is involved.
    check_descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 0, 0) })
}

pub(super) fn enter_namespace(path: &Path) -> io::Result<()> {
    let namespace = File::open(path)?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::setns(namespace.as_raw_fd(), 0) }).map(drop)
}

pub(super) fn mount(directory: &Path) -> io::Result<()> {
    let path = c_path(directory)?;
    // SAFETY: all strings end in NUL.
    unsafe {
        check(libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, ptr::null()))?;
        check(libc::umount2(path.as_ptr(), libc::MNT_DETACH)).map(drop)
    }
}

pub(super) fn change_root(directory: &Path) -> io::Result<()> {
    let path = c_path(directory)?;
    // SAFETY: the path ends in NUL; this process ends right after.
    check(unsafe { libc::chroot(path.as_ptr()) }).map(drop)
}

pub(super) fn unshare_user() -> io::Result<()> {
    // SAFETY: this process has one thread and ends right after.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
}

pub(super) fn clone_user() -> io::Result<()> {
    const NOTHING: usize = 0;
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without `CLONE_VM` this is a fork; the child ends at once.
    let child = check(unsafe {
        libc::syscall(libc::SYS_clone, flags, NOTHING, NOTHING, NOTHING, NOTHING)
    })?;
    end_child_of_fork(child)
}

pub(super) fn clone3_user() -> io::Result<()> {
    // The first version of the structure has eight fields: flags, and the exit signal as the fifth.
    let mut arguments = [0u64; 8];
    arguments[0] = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    arguments[4] = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: the structure has the size that is given; without `CLONE_VM` this is a fork; the child ends at once.
    let child = check(unsafe {
        libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments))
    })?;
    end_child_of_fork(child)
}

fn end_child_of_fork(child: i64) -> io::Result<()> {
    if child == 0 {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) }
    }
    let child = i32::try_from(child).map_err(|_| missed("no process id"))?;
    // SAFETY: the status is not asked for.
    check(unsafe { libc::waitpid(child, ptr::null_mut(), 0) }).map(drop)
}

pub(super) fn io_uring() -> io::Result<()> {
    let mut parameters = [0u8; 120];
    // SAFETY: the structure `io_uring_params` has 120 bytes.
    check_descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

pub(super) fn bpf() -> io::Result<()> {
    const MAP_CREATE: i32 = 0;
    // An array of one value with a key of 4 and a value of 4 bytes.
    let attributes = [2u32, 4, 4, 1, 0];
    // SAFETY: the kernel reads only the given number of bytes.
    check_descriptor(unsafe {
        libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size_of_val(&attributes))
    })
}

pub(super) fn perf_event() -> io::Result<()> {
    // A software event (type 1) that counts nothing (9), of this process; the second field is the size.
    let mut attributes = [0u32; 16];
    attributes[0] = 1;
    attributes[1] = 64;
    attributes[2] = 9;
    // SAFETY: the structure has 64 bytes, as it says.
    check_descriptor(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0)
    })
}

pub(super) fn userfaultfd() -> io::Result<()> {
    const USER_MODE_ONLY: i32 = 1;
    // SAFETY: no memory is involved.
    check_descriptor(unsafe {
        libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC)
    })
}

pub(super) fn keyring() -> io::Result<()> {
    const GET_KEYRING_ID: i32 = 0;
    const OF_PROCESS: i32 = -2;
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, OF_PROCESS, 1) }).map(drop)
}

/// A System V segment that any process of this user can find by its id.
pub(super) fn make_shared_memory() -> io::Result<i32> {
    // SAFETY: no memory is involved.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) };
    check(segment)?;
    Ok(segment)
}

pub(super) fn find_shared_memory(segment: i32) -> io::Result<()> {
    let mut about = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: the kernel writes one structure.
    check(unsafe { libc::shmctl(segment, libc::IPC_STAT, about.as_mut_ptr()) }).map(drop)
}

pub(super) fn remove_shared_memory(segment: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()) };
}

/// The standard input of an attempt is no terminal, so the kernel refuses the request with `ENOTTY`: it was reached.
pub(super) fn terminal_input(request: libc::Ioctl) -> io::Result<()> {
    let character = [b' '; 8];
    // SAFETY: the kernel reads at most a few bytes.
    let result = unsafe { libc::ioctl(libc::STDIN_FILENO, request, character.as_ptr()) };
    reached(check(result), libc::ENOTTY)
}

/// By the call that needs no path; programs know it since Linux 6.6.
pub(super) fn change_mode_of(file: &OwnedFd) -> io::Result<()> {
    const FCHMODAT2: libc::c_long = 452;
    const MODE: libc::mode_t = 0o640;
    // SAFETY: the path ends in NUL.
    check(unsafe {
        libc::syscall(FCHMODAT2, file.as_raw_fd(), c"".as_ptr(), MODE, libc::AT_EMPTY_PATH)
    })
    .map(drop)
}

/// Sets the flags that the file has. A file system without flags refuses with `ENOTTY`: it was reached.
pub(super) fn change_flags(file: &File) -> io::Result<()> {
    // Signed with the C library musl, where it is a negative number.
    const GET_FLAGS: libc::Ioctl = 0x8008_6601_u32 as libc::Ioctl;
    const SET_FLAGS: libc::Ioctl = 0x4008_6602;
    let mut flags: libc::c_long = 0;
    // SAFETY: the kernel writes, and then reads, at most one long number.
    unsafe {
        libc::ioctl(file.as_raw_fd(), GET_FLAGS, &raw mut flags);
        reached(check(libc::ioctl(file.as_raw_fd(), SET_FLAGS, &raw const flags)), libc::ENOTTY)
    }
}

/// btrfs makes directories on a request that needs no right to write. Other file systems refuse with `ENOTTY`: they were
/// reached. The empty name is refused by btrfs.
pub(super) fn make_subvolume(directory: &File) -> io::Result<()> {
    const CREATE: libc::Ioctl = 0x5000_940e;
    let arguments = [0u8; 4096];
    // SAFETY: the structure has 4096 bytes.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), CREATE, arguments.as_ptr()) };
    reached(check(result), libc::ENOTTY)
}

/// A refusal by the target shows that it was reached.
fn reached(result: io::Result<i64>, refusal: i32) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() != Some(refusal) => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn watch_by_descriptor(directory: &File) -> io::Result<()> {
    const CREATED: i32 = 4;
    // SAFETY: no memory is involved. This process ends before it could get a signal for it.
    unsafe {
        check(libc::fcntl(directory.as_raw_fd(), libc::F_NOTIFY, CREATED))?;
        check(libc::fcntl(directory.as_raw_fd(), libc::F_NOTIFY, 0)).map(drop)
    }
}

pub(super) fn hold_lease(file: &File) -> io::Result<()> {
    // SAFETY: no memory is involved.
    unsafe {
        check(libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK))?;
        check(libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK)).map(drop)
    }
}

/// To the one that it has.
pub(super) fn change_priority(pid: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid.cast_unsigned(), 0) }).map(drop)
}

/// To the one that it has: none of its own.
pub(super) fn change_disk_priority(pid: i32) -> io::Result<()> {
    const OF_PROCESS: i32 = 1;
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_ioprio_set, OF_PROCESS, pid, 0) }).map(drop)
}

/// Those that it has.
pub(super) fn choose_processors(pid: i32) -> io::Result<()> {
    let mut processors = MaybeUninit::<libc::cpu_set_t>::zeroed();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the kernel writes, and then reads, one such set.
    unsafe {
        check(libc::sched_getaffinity(pid, size, processors.as_mut_ptr()))?;
        check(libc::sched_setaffinity(pid, size, processors.as_ptr())).map(drop)
    }
}

pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check_descriptor(i64::from(unsafe { libc::socket(family, kind, protocol) }))
}

/// Sends from one half of a connected pair to a socket with a path.
pub(super) fn send_from_pair(path: &Path) -> io::Result<()> {
    let (half, _other) = std::os::unix::net::UnixDatagram::pair()?;
    half.send_to(b"out", path).map(drop)
}

/// Maps and touches private memory.
pub(super) fn take_memory(bytes: usize) -> io::Result<()> {
    // SAFETY: a new mapping; every write stays within it.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(
            ptr::null_mut(),
            bytes,
            access,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        for offset in (0..bytes).step_by(1 << 20) {
            memory.cast::<u8>().add(offset).write_volatile(1);
        }
        check(libc::munmap(memory, bytes)).map(drop)
    }
}

/// Starts processes that wait, and ends them.
pub(super) fn start_processes(number: usize) -> io::Result<()> {
    let mut children = Vec::with_capacity(number);
    let mut outcome = Ok(());
    for _ in 0..number {
        // SAFETY: this process has one thread; the child only waits for a signal.
        match check(unsafe { libc::fork() }) {
            Ok(0) => loop {
                // SAFETY: no memory is involved.
                unsafe { libc::pause() };
            },
            Ok(child) => children.push(child),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    for child in children.into_iter().filter_map(|child| i32::try_from(child).ok()) {
        // SAFETY: a child that was not collected yet keeps its id; the status is not asked for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, ptr::null_mut(), 0);
        }
    }
    outcome
}
