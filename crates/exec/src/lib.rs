//! Child processes: whole process trees, bounded output, a clean environment.
//!
//! [`run()`] starts one program, reads what it prints, and ends it with everything it started when its time is up, when
//! the caller cancels, or when the future is dropped. This crate knows nothing of agents, tools and sessions.
//!
//! | module | is |
//! |---|---|
//! | `spec` | what to run and within which limits |
//! | `environment` | which variables a child sees |
//! | `system` | starting it, moving variables, a setting of the allocator: the only unsafe code of the workspace |
//! | `attach` | a handle to a running program: writing to it, and finding it again |
//! | `terminal` | a terminal for a program that needs one |
//! | `child` | noticing its end and collecting its exit status |
//! | `tree` | finding and ending its descendants |
//! | `pipes` | this process's ends of pipes |
//! | `streams` | its standard input, output and error while it runs |
//! | `sockets` | Unix sockets, which Windows refuses |
//! | `capture` | its output: the tail in memory, all of it in a side file |
//! | `run` | one run from start to end |
//! | `runner` | where commands run: as children of this process, or elsewhere |
//! | `hiding` | commands that do not find some paths of this machine |
//!
//! `windows` has what differs there: no terminals and no hidden paths, and `taskkill` ends trees.
//!
//! Invariants: no signal ever goes to a process outside the tree, nor to one that took over a process id; memory does
//! not grow with what a child prints; a child never inherits a variable whose name looks like a secret.
//!
//! Not covered: if this process is itself killed with `SIGKILL`, its children live on until a caller that has stored
//! their [`TreeTrace`] calls [`end_traced`]. The kernel's remedy (`PR_SET_PDEATHSIG`) has to run between fork and exec,
//! which rules out `posix_spawn`; a plain fork copies page tables, and measured 0.7 ms slower a child in a process of
//! 15 MB, more than half of what `bash -c true` takes.

mod attach;
mod capture;
#[cfg_attr(windows, path = "windows/child.rs")]
mod child;
mod environment;
mod error;
mod hiding;
mod image;
mod mark;
#[cfg_attr(windows, path = "windows/pipes.rs")]
mod pipes;
mod run;
mod runner;
#[cfg_attr(windows, path = "windows/sockets.rs")]
mod sockets;
mod spec;
mod streams;
#[cfg_attr(windows, path = "windows/system.rs")]
#[cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the standard library has no stable way to start a session without a slow fork, nor to overwrite variables, nor to set up \
              the allocator"
    )
)]
mod system;
#[cfg_attr(windows, path = "windows/terminal.rs")]
mod terminal;
#[cfg_attr(windows, path = "windows/tree.rs")]
mod tree;

pub use attach::{
    Attachment, Handle, Link, Piece, TerminalSize, TreeTrace, WriteError, attach, attach_marked,
    end_child, end_traced, kill_traced, memory_of_traced,
};
pub use capture::{CapturedOutput, SideFile, SideFileProblem};
pub use environment::{EnvironmentPolicy, hide_environment};
pub use error::ExecError;
#[cfg(target_os = "linux")]
pub use hiding::enter_hiding;
pub use hiding::{HiddenPaths, HidingProgram, HidingRunner, IfImpossible, Visibility};
pub use pipes::output_pipe;
pub use run::{Exit, Finished, LeftRunning, run, run_attached};
pub use runner::{Here, OutputPiece, Runner, Running};
pub use sockets::{OwnedReadHalf, OwnedWriteHalf, UnixListener, UnixStream};
pub use spec::{ChildSpec, ErrorOutput, OutputLimits};

/// Makes all threads of this process take memory from one heap, where the allocator has several (glibc). For processes
/// that live long: blocks that stay keep the pages of every heap, so with several, memory grows for hours under a load that
/// does not change. To be called before there are other threads; a failure changes nothing.
pub fn use_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    system::use_one_heap();
}

/// Gives memory that is free now back to the system, where the allocator keeps it (glibc). For a process that waits after
/// some work; it takes up to some milliseconds.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    system::give_back_memory();
}
