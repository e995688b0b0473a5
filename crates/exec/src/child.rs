//! One started child: noticing its end, and collecting its exit status.
//!
//! The two steps are separate on purpose. Until the status is collected the kernel keeps the process id, so signals to
//! it and to its group can reach no other process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use crate::Exit;
#[cfg(target_os = "linux")]
use crate::system::watch;

/// A child, and whether its exit status was collected.
pub(crate) struct Child {
    pid: Pid,
    notice: Notice,
    exited: bool,
    collected: bool,
}

enum Notice {
    /// A process descriptor becomes readable when the process ends.
    Descriptor(AsyncFd<OwnedFd>),
    /// Where there are no such descriptors, a thread waits.
    Thread(JoinHandle<()>),
}

impl Child {
    /// Takes charge of a child of this process.
    pub(crate) fn new(pid: Pid) -> Self {
        let notice = match process_descriptor(pid) {
            Ok(descriptor) => Notice::Descriptor(descriptor),
            Err(_) => {
                Notice::Thread(tokio::task::spawn_blocking(move || wait_without_collecting(pid)))
            }
        };
        Self { pid, notice, exited: false, collected: false }
    }

    /// Whether [`Child::exited`] has returned.
    pub(crate) fn has_exited(&self) -> bool {
        self.exited
    }

    /// Whether the exit status was collected, so that the process id may belong to somebody else by now.
    pub(crate) fn is_collected(&self) -> bool {
        self.collected
    }

    /// Returns when the child has ended. May be dropped and called again.
    pub(crate) async fn exited(&mut self) {
        if self.exited {
            return;
        }
        match &mut self.notice {
            // An error of the reactor means that the runtime is shutting down; the status is still collected.
            Notice::Descriptor(descriptor) => drop(descriptor.readable().await),
            Notice::Thread(thread) => drop(thread.await),
        }
        self.exited = true;
    }

    /// Collects the exit status if the child has ended; `None` also if something else has collected it.
    pub(crate) fn collect(&mut self) -> Option<Exit> {
        if self.collected {
            return None;
        }
        match wait(self.pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(None) => None,
            Ok(Some(status)) => {
                self.collected = true;
                status
                    .exit_status()
                    .map(Exit::Code)
                    .or_else(|| status.terminating_signal().map(Exit::Signal))
            }
            // It is not a child of this process any more, so its id may belong to another process.
            Err(_) => {
                self.collected = true;
                None
            }
        }
    }
}

impl Drop for Child {
    /// A child that is not collected would stay in the process table as a zombie for as long as this process lives.
    fn drop(&mut self) {
        self.collect();
        if self.collected {
            return;
        }
        let pid = self.pid;
        let thread = std::thread::Builder::new().name("collect child".to_owned());
        // Without a thread the zombie stays; nothing else can be done about it here.
        drop(thread.spawn(move || drop(wait(pid, WaitIdOptions::EXITED))));
    }
}

#[cfg(target_os = "linux")]
fn process_descriptor(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK)
        .or_else(|_| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()))?;
    watch(descriptor)
}

#[cfg(not(target_os = "linux"))]
fn process_descriptor(_pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    Err(io::ErrorKind::Unsupported.into())
}

fn wait_without_collecting(pid: Pid) {
    // The result does not matter: the child is checked next.
    drop(wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
}

/// `waitid`, again after interruptions. `None` if it has not ended.
fn wait(pid: Pid, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
