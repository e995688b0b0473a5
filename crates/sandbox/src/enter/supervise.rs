//! The helper as the parent of the command: it ends everything that the command started.
//!
//! Orphans of the command become children of this process (it is a "subreaper"), even those that started a session of
//! their own, so none escapes by losing its parent. The command ends when MyClaw ends, even if MyClaw is killed.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, pidfd_open,
    pidfd_send_signal, wait, waitpid,
};

use super::Failure;
use crate::system;

/// Signals that ask for the end.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// Time between asking the command to end and forcing it. Shorter than the half second after which MyClaw forces all.
const GRACE: Duration = Duration::from_millis(250);
/// Rounds of stopping: each finds what was started during the last one.
const STOP_ROUNDS: u32 = 100;

/// Watches over a command.
pub(crate) struct Supervisor {
    signals: OwnedFd,
    /// The process that started this one; a container has none.
    parent: Option<OwnedFd>,
}

/// How the command ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

impl Supervisor {
    /// Takes over the orphans of this process's descendants. `parent` is the process that started this one; 0 for none.
    pub(crate) fn new(parent: i32) -> Result<Self, Failure> {
        rustix::process::set_child_subreaper(Some(getpid()))
            .map_err(|error| format!("cannot take over orphans: {error}"))?;
        let signals = system::receive_signals(&ENDING)
            .map_err(|error| format!("cannot receive signals: {error}"))?;
        let gone = || "the program that wanted the command has ended".to_owned();
        let parent = Pid::from_raw(parent);
        // Opened first and then checked, so the process that it refers to cannot change in between.
        let descriptor = parent.map(|parent| pidfd_open(parent, PidfdFlags::empty())).transpose();
        let descriptor = descriptor.map_err(|_| gone())?;
        if getppid() != parent {
            return Err(gone());
        }
        Ok(Self { signals, parent: descriptor })
    }

    /// Waits until the command ends, somebody asks for its end, or MyClaw is gone; then ends all remaining processes.
    pub(crate) fn attend(&self, child: Pid) -> End {
        let end = self.wait_for(child);
        end_descendants();
        end
    }

    fn wait_for(&self, child: Pid) -> End {
        let Ok(exited) = pidfd_open(child, PidfdFlags::empty()) else {
            return End::Signal(libc::SIGKILL);
        };
        let mut asked = None;
        loop {
            let watched = [Some(&exited), Some(&self.signals), self.parent.as_ref()];
            let mut events: Vec<PollFd<'_>> = watched
                .into_iter()
                .flatten()
                .map(|file| PollFd::new(file, PollFlags::IN))
                .collect();
            // After an interruption, only check again.
            let _ =
                poll(&mut events, timeout(asked.map(|(_, since): (i32, Instant)| since)).as_ref());
            let is_ready = |index: usize| {
                events.get(index).is_some_and(|event| event.revents().contains(PollFlags::IN))
            };
            let [has_exited, has_signal, has_no_parent] = [0, 1, 2].map(is_ready);
            if has_exited {
                return collect(child);
            }
            if has_no_parent {
                return End::Signal(libc::SIGKILL);
            }
            if has_signal && let Some(signal) = system::read_signal(&self.signals) {
                let _ = pidfd_send_signal(&exited, Signal::TERM);
                asked.get_or_insert((signal, Instant::now()));
            }
            if let Some((signal, since)) = asked
                && since.elapsed() >= GRACE
            {
                return End::Signal(signal);
            }
        }
    }
}

/// Ends this process in the same way as the command ended.
pub(crate) fn pass_on(end: End) -> ExitCode {
    match end {
        End::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        End::Signal(signal) => {
            let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
            let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
            system::die_by(signal);
            // The code that shells report for a program that ended by this signal.
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}

fn timeout(asked: Option<Instant>) -> Option<Timespec> {
    let left = GRACE.saturating_sub(asked?.elapsed());
    Some(Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) })
}

fn collect(child: Pid) -> End {
    match waitpid(Some(child), WaitOptions::empty()) {
        Ok(Some((_, status))) => end_of(status),
        _ => End::Signal(libc::SIGKILL),
    }
}

fn end_of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Signal(libc::SIGKILL),
    }
}

/// Ends all descendants of this process. They are stopped first: a stopped process starts no others, and still occupies
/// its place in the process table, so a fork bomb comes to an end.
fn end_descendants() {
    while !reap() {
        let mut stopped = HashSet::new();
        for _ in 0..STOP_ROUNDS {
            let before = stopped.len();
            signal_children(getpid(), Signal::STOP, &mut stopped);
            if stopped.len() == before {
                break;
            }
        }
        signal_children(getpid(), Signal::KILL, &mut HashSet::new());
        // Blocks for as long as the first of them takes to die.
        let _ = wait(WaitOptions::empty());
    }
}

/// Collects the dead; true if no child is left.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Signals all descendants of a process that are not in `done`.
fn signal_children(parent: Pid, signal: Signal, done: &mut HashSet<i32>) {
    for child in children(parent) {
        if done.insert(child.as_raw_pid())
            && let Ok(descriptor) = pidfd_open(child, PidfdFlags::empty())
        {
            // The descriptor is bound to one process. If that process is a child of ours, it is the right one.
            if children(parent).contains(&child) {
                let _ = pidfd_send_signal(&descriptor, signal);
            }
        }
        signal_children(child, signal, done);
    }
}

/// The children of all threads of a process.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .filter_map(Pid::from_raw)
        .collect()
}
