//! The seccomp filter: system calls that lead out of a sandbox fail with `EPERM`, so that programs report an error.
//!
//! It lists the closed calls, because a list of open calls breaks programs with every new system call. Calls that are
//! newer than this list fail as on an older kernel (`ENOSYS`); programs have another way for those.

pub(crate) mod brokered;
mod calls;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::Failure;
use crate::plan::{BrokerRules, FilterRules, Ipc};

/// The first number that this list does not know; Linux 6.18 ends one below. All architectures share the new numbers.
const FIRST_UNKNOWN_CALL: u32 = 470;

/// Ways to start a process in new namespaces, where it would be root.
const NAMESPACE_FLAGS: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME; in the bits of the exit signal, so that only `clone3` and `unshare` know it
];

/// Types of sockets other than stream and datagram.
const UNUSUAL_SOCKETS: [i32; 5] = [
    libc::SOCK_RAW,
    libc::SOCK_RDM,
    libc::SOCK_SEQPACKET,
    6,  /* SOCK_DCCP */
    10, /* SOCK_PACKET */
];
/// The part of a socket's type that is not a flag.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// Puts characters into the input of the terminal, as if they were typed.
const TIOCSTI: u64 = 0x5412;
/// Does the same through the selection of the console.
const TIOCLINUX: u64 = 0x541c;

/// Attributes of a file (`FS_IOC_SETFLAGS` in both sizes, `FS_IOC_SETVERSION`, `FS_IOC_FSSETXATTR`) and its seal
/// (`FS_IOC_ENABLE_VERITY`): they need no right to write to it.
const FILE_REQUESTS: &[u64] = &[0x4008_6602, 0x4004_6602, 0x4008_7602, 0x401c_5820, 0x4080_6685];
/// Requests of btrfs and bcachefs, which make directories in any directory that can be opened.
const FILE_SYSTEM_REQUESTS: &[u64] = &[0x9400, 0xbc00];
/// The part of a request that names its kind.
const KIND_OF_REQUEST: u64 = 0xff00;
/// Requests of all file systems that have the kind of btrfs: `FICLONE`, `FICLONERANGE` and `FIDEDUPERANGE`. They need the
/// right to write.
const COPIES: &[u64] = &[0x4004_9409, 0x4020_940d, 0xc018_9436];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A filter ready to apply.
pub(crate) struct Filter(Vec<BpfProgram>);

impl Filter {
    /// Applies it to this process and all that it starts.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|program| {
            apply_filter(program).map_err(|error| format!("seccomp refused its filter: {error}"))
        })
    }
}

/// Passes some calls of this thread, and of all that it starts, to the process that holds the descriptor.
pub(crate) fn listen(rules: &BrokerRules) -> Result<OwnedFd, Failure> {
    crate::system::listen_to_calls(&brokered::program(rules)).map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::EBUSY) => {
                "; another program does so already; run MyClaw outside of it, or use the level bubblewrap or a container"
            }
            _ => "",
        };
        format!("cannot pass on system calls: {error}{hint}")
    })
}

/// Makes the filter.
pub(crate) fn compile(rules: &FilterRules) -> Result<Filter, Failure> {
    let build = || -> Result<Filter, seccompiler::BackendError> {
        let mut closed: Rules =
            calls::closed(rules.ipc).into_iter().map(|call| (call, Vec::new())).collect();
        close_namespaces(&mut closed)?;
        close_sockets(&mut closed, rules)?;
        close_requests(&mut closed)?;
        // The limits and the priority of other processes of the same user.
        closed.insert(libc::SYS_prlimit64, vec![rule(&[not_equal(0, 0)?])?]);
        for (call, of_process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
            let refused = vec![rule(&[not_equal(0, of_process)?])?, rule(&[not_equal(1, 0)?])?];
            closed.insert(call, refused);
        }
        let missing = calls::MISSING.iter().map(|call| (*call, Vec::new())).collect();
        Ok(Filter(vec![
            program(closed, libc::EPERM)?,
            program(missing, libc::ENOSYS)?,
            unknown_calls(),
        ]))
    };
    build().map_err(|error| format!("the filter for system calls is invalid: {error}"))
}

fn program(rules: Rules, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let error = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, error, architecture)?.try_into()
}

fn close_namespaces(closed: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let with_flag = |flag: i32| {
        let bit = u64::from(flag.cast_unsigned());
        rule(&[masked(0, bit, bit)?])
    };
    let rules = NAMESPACE_FLAGS
        .into_iter()
        .filter(|flag| *flag != 0x80)
        .map(with_flag)
        .collect::<Result<_, _>>()?;
    closed.insert(libc::SYS_clone, rules);
    let rules = NAMESPACE_FLAGS.into_iter().map(with_flag).collect::<Result<_, _>>()?;
    closed.insert(libc::SYS_unshare, rules);
    Ok(())
}

/// Requests for an open file that Landlock does not judge, because it judges those of devices only.
fn close_requests(closed: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let mut refused = Vec::new();
    for request in [TIOCSTI, TIOCLINUX].iter().chain(FILE_REQUESTS) {
        refused.push(rule(&[equal(1, *request)?])?);
    }
    for kind in FILE_SYSTEM_REQUESTS {
        let mut conditions = vec![masked(1, KIND_OF_REQUEST, *kind)?];
        for request in COPIES {
            conditions.push(not_equal(1, *request)?);
        }
        refused.push(rule(&conditions)?);
    }
    closed.insert(libc::SYS_ioctl, refused);
    // Ways to hold up a process that opens a file, and to watch a directory.
    let commands =
        [libc::F_SETLEASE, libc::F_NOTIFY].map(|command| u64::from(command.cast_unsigned()));
    let refused = commands.into_iter().map(|command| rule(&[equal(1, command)?]));
    closed.insert(libc::SYS_fcntl, refused.collect::<Result<_, _>>()?);
    Ok(())
}

fn close_sockets(closed: &mut Rules, rules: &FilterRules) -> Result<(), seccompiler::BackendError> {
    let other_family = rules
        .families
        .iter()
        .map(|family| not_equal(0, u64::from(family.cast_unsigned())))
        .collect::<Result<Vec<_>, _>>()?;
    if other_family.is_empty() {
        closed.insert(libc::SYS_socket, Vec::new());
        closed.insert(libc::SYS_connect, Vec::new());
        closed.insert(libc::SYS_bind, Vec::new());
    } else {
        let mut refused = vec![rule(&other_family)?];
        for kind in UNUSUAL_SOCKETS {
            refused.push(rule(&[socket_type(kind)?])?);
        }
        closed.insert(libc::SYS_socket, refused);
    }
    if rules.ipc == Ipc::Shared {
        // A pair of connected sockets is harmless, unless its halves can be sent to other addresses.
        let refused = vec![
            rule(&[not_equal(0, u64::from(libc::AF_UNIX.cast_unsigned()))?])?,
            rule(&[socket_type(libc::SOCK_DGRAM)?])?,
            rule(&[socket_type(libc::SOCK_RAW)?])?,
        ];
        closed.insert(libc::SYS_socketpair, refused);
    }
    Ok(())
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.to_vec())
}

/// The kernel reads all these arguments as 32 bits.
fn equal(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn not_equal(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    let mask = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, mask, value)
}

fn socket_type(kind: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    masked(1, SOCKET_TYPE_MASK, u64::from(kind.cast_unsigned()))
}

/// Refuses calls newer than this list, and those of the x32 convention, whose numbers begin at 2^30.
fn unknown_calls() -> BpfProgram {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump_if_at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    vec![
        instruction(load_number, 0, 0, 0),
        instruction(jump_if_at_least, 0, 1, FIRST_UNKNOWN_CALL),
        instruction(give, 0, 0, SeccompAction::Errno(libc::ENOSYS.cast_unsigned()).into()),
        instruction(give, 0, 0, SeccompAction::Allow.into()),
    ]
}
