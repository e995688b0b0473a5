//! Carries out system calls of the confined processes that neither Landlock nor a filter can judge.
//!
//! Landlock has no rule for modes, owners, times and attributes, nor for watching a path, and it cannot take a name out
//! of a directory that may be changed. A filter cannot see paths. So the kernel passes these calls to the process that
//! supervises the command. It reads the arguments from the caller's memory, looks the path up by itself, decides about
//! the file that it has found, and makes the call on the descriptor of that file.
//!
//! Nothing that the caller does meanwhile can change the outcome: what was read once is not read again, and no decision
//! is about a path that is looked up a second time. A call is passed back to the kernel ([`Answer::Continue`]) only
//! where Landlock decides about it anyway. When this process ends, the calls fail with `ENOSYS`.

mod attributes;
mod caller;
mod names;
mod open;
mod repository;
mod rules;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use self::caller::Caller;
use self::open::Pipe;
use self::rules::Rules;
use super::Failure;
use super::filter::brokered::FCHMODAT2;
use super::limits;
use crate::plan::BrokerRules;
use crate::system::{self, Call};

/// Calls that are carried out at the same time. The work is short; more would wait for the same files.
const THREADS: usize = 2;
/// Calls that wait for the reader of a named pipe.
const MAX_PIPES: usize = 64;

/// Decides about calls and carries them out.
#[derive(Debug)]
pub(crate) struct Broker {
    rules: Rules,
    /// How many pipes are waited for.
    pipes: Arc<AtomicUsize>,
}

/// What the caller gets.
#[derive(Debug)]
enum Answer {
    /// The kernel continues with the call, and Landlock decides.
    Continue,
    /// The call returns this number.
    Number(i64),
    /// The call returns this file, under a number of the caller.
    File { file: OwnedFd, flags: i32 },
    /// The call returns when somebody reads this pipe.
    Pipe(Pipe),
}

/// How a call of a caller ends.
type Outcome = Result<Answer, Errno>;

impl Broker {
    /// # Errors
    /// A path of the rules does not exist.
    pub(crate) fn new(rules: &BrokerRules) -> Result<Self, Failure> {
        Ok(Self { rules: Rules::new(rules)?, pipes: Arc::default() })
    }

    /// Serves in the background for as long as somebody can make calls.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(self, listener: OwnedFd) -> Result<(), Failure> {
        let (broker, listener) = (Arc::new(self), Arc::new(listener));
        for _ in 0..THREADS {
            let (broker, listener) = (Arc::clone(&broker), Arc::clone(&listener));
            thread::Builder::new()
                .name("broker".to_owned())
                .spawn(move || broker.serve(&listener))
                .map_err(|error| format!("cannot start the thread that judges calls: {error}"))?;
        }
        Ok(())
    }

    /// Serves on this thread, which gives up the rights that callers do not have. If it cannot, it serves nobody, and
    /// all calls fail.
    pub(crate) fn serve(&self, listener: &OwnedFd) {
        if system::own_file_mask().is_err() || limits::drop_capabilities_of_thread().is_err() {
            return;
        }
        loop {
            match system::receive_call(listener) {
                Ok(call) => self.attend(listener, &call),
                Err(_) if is_deserted(listener) => return,
                // The caller has ended, or a signal arrived.
                Err(_) => {}
            }
        }
    }

    fn attend(&self, listener: &OwnedFd, call: &Call) {
        match self.carry_out(&Caller::new(listener, call)) {
            Ok(Answer::Pipe(pipe)) => self.attend_pipe(listener, call.id, pipe),
            outcome => answer(listener, call.id, outcome),
        }
    }

    /// Waits for the reader of a pipe on a thread of its own.
    fn attend_pipe(&self, listener: &OwnedFd, id: u64, pipe: Pipe) {
        let waiting = Arc::clone(&self.pipes);
        if waiting.fetch_add(1, Ordering::Relaxed) >= MAX_PIPES {
            waiting.fetch_sub(1, Ordering::Relaxed);
            return answer(listener, id, Err(Errno::NFILE));
        }
        let started = listener.try_clone().and_then(|listener| {
            let work = move || {
                let outcome = pipe.wait(|| system::call_waits(&listener, id));
                answer(&listener, id, outcome);
                waiting.fetch_sub(1, Ordering::Relaxed);
            };
            thread::Builder::new().spawn(work)
        });
        if started.is_err() {
            answer(listener, id, Err(Errno::NFILE));
        }
    }

    fn carry_out(&self, caller: &Caller<'_>) -> Outcome {
        match caller.number() {
            libc::SYS_fchmod
            | libc::SYS_fchmodat
            | FCHMODAT2
            | libc::SYS_fchown
            | libc::SYS_fchownat
            | libc::SYS_utimensat
            | libc::SYS_setxattr
            | libc::SYS_lsetxattr
            | libc::SYS_fsetxattr
            | libc::SYS_removexattr
            | libc::SYS_lremovexattr
            | libc::SYS_fremovexattr => self.change_attributes(caller),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod
            | libc::SYS_chown
            | libc::SYS_lchown
            | libc::SYS_utime
            | libc::SYS_utimes
            | libc::SYS_futimesat => self.change_attributes(caller),
            libc::SYS_inotify_add_watch => self.watch(caller),
            libc::SYS_sched_setaffinity
            | libc::SYS_sched_setattr
            | libc::SYS_sched_setparam
            | libc::SYS_sched_setscheduler => caller.change_own_thread(),
            libc::SYS_openat | libc::SYS_openat2 => self.open(caller),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open | libc::SYS_creat => self.open(caller),
            libc::SYS_truncate => self.truncate(caller),
            _ => self.change_names(caller),
        }
    }
}

/// A caller that has ended cannot be answered, which does no harm.
fn answer(listener: &OwnedFd, id: u64, outcome: Outcome) {
    let result = match outcome {
        Ok(Answer::Continue) => return drop(system::continue_call(listener, id)),
        Ok(Answer::Number(number)) => Ok(number),
        Ok(Answer::File { file, flags }) => {
            // The caller goes on when this process has closed the file: a program that is open for writing cannot start.
            system::give_file(listener, id, file, flags)
        }
        Ok(Answer::Pipe(_)) => Err(Errno::INVAL),
        Err(error) => Err(error),
    };
    drop(system::answer_call(listener, id, result));
}

/// Whether nobody is left that could make a call.
fn is_deserted(listener: &OwnedFd) -> bool {
    let mut events = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut events, Some(&now)).is_err() || events[0].revents().contains(PollFlags::HUP)
}
