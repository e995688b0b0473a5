//! The filter that passes system calls to the [broker](super::super::broker).
//!
//! The library that makes the other programs knows no such action, so this one is written by hand. It relies on
//! the others, which end a process that makes calls of another architecture, and whose refusals take precedence.

use seccompiler::sock_filter;

use crate::plan::BrokerRules;

/// Since Linux 6.6; the `libc` crate lacks it on some architectures.
pub(crate) const FCHMODAT2: i64 = 452;
/// Bits of `open` that make it a change of a file or of a name.
pub(crate) const CHANGING: i32 =
    libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | O_TMPFILE;
/// The bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const O_TMPFILE: i32 = 0o20_000_000;

/// When a call is passed on.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// One of these bits is set in this argument.
    AnyBit(u32, i32),
    /// This argument is not 0.
    NotZero(u32),
}

/// Calls that change what Landlock has no rule for, or that watch what it hides.
const ATTRIBUTES: &[(i64, When)] = &[
    (libc::SYS_fchmod, When::Always),
    (libc::SYS_fchmodat, When::Always),
    (FCHMODAT2, When::Always),
    (libc::SYS_fchown, When::Always),
    (libc::SYS_fchownat, When::Always),
    (libc::SYS_utimensat, When::Always),
    (libc::SYS_setxattr, When::Always),
    (libc::SYS_lsetxattr, When::Always),
    (libc::SYS_fsetxattr, When::Always),
    (libc::SYS_removexattr, When::Always),
    (libc::SYS_lremovexattr, When::Always),
    (libc::SYS_fremovexattr, When::Always),
    (libc::SYS_inotify_add_watch, When::Always),
    // How often another process of the user runs. 0 is the calling one.
    (libc::SYS_sched_setaffinity, When::NotZero(0)),
    (libc::SYS_sched_setattr, When::NotZero(0)),
    (libc::SYS_sched_setparam, When::NotZero(0)),
    (libc::SYS_sched_setscheduler, When::NotZero(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utime, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utimes, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_futimesat, When::Always),
];

/// Calls that make, change or remove names, or open a file for writing.
const NAMES: &[(i64, When)] = &[
    (libc::SYS_openat, When::AnyBit(2, CHANGING)),
    // Its flags are in memory.
    (libc::SYS_openat2, When::Always),
    (libc::SYS_truncate, When::Always),
    (libc::SYS_mkdirat, When::Always),
    (libc::SYS_mknodat, When::Always),
    (libc::SYS_symlinkat, When::Always),
    (libc::SYS_linkat, When::Always),
    (libc::SYS_unlinkat, When::Always),
    // `rename` of the C libraries is this call on aarch64.
    (libc::SYS_renameat, When::Always),
    (libc::SYS_renameat2, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, When::AnyBit(1, CHANGING)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, When::Always),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, When::Always),
];

/// The program for these rules.
pub(crate) fn program(rules: &BrokerRules) -> Vec<sock_filter> {
    let names: &[(i64, When)] = if rules.brokered.is_empty() { &[] } else { NAMES };
    let mut program = vec![load(0)];
    for (call, when) in names.iter().chain(ATTRIBUTES) {
        let block = when.block();
        let length = u8::try_from(block.len()).unwrap_or(u8::MAX);
        program.push(jump(libc::BPF_JEQ, number(*call), 0, length));
        program.extend(block);
    }
    program.push(give(libc::SECCOMP_RET_ALLOW));
    program
}

impl When {
    /// Instructions that decide about a call whose number was recognised.
    fn block(self) -> Vec<sock_filter> {
        let (argument, test) = match self {
            Self::Always => return vec![give(libc::SECCOMP_RET_USER_NOTIF)],
            Self::AnyBit(argument, bits) => {
                (argument, jump(libc::BPF_JSET, bits.cast_unsigned(), 0, 1))
            }
            Self::NotZero(argument) => (argument, jump(libc::BPF_JEQ, 0, 1, 0)),
        };
        let notify = give(libc::SECCOMP_RET_USER_NOTIF);
        vec![load_argument(argument), test, notify, give(libc::SECCOMP_RET_ALLOW)]
    }
}

fn number(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// The kernel reads all these arguments as 32 bits: the low half, which comes first on the architectures that the filter
/// supports.
fn load_argument(index: u32) -> sock_filter {
    load(16 + 8 * index)
}

fn jump(test: u32, value: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(libc::BPF_JMP | test | libc::BPF_K, jt, jf, value)
}

fn give(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}
