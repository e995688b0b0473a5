//! Why a child could not be run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a child could not be run. What it does after its start is not an error but part of
/// [`Finished`](crate::Finished).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// No file of that name, neither as a path nor in `PATH`.
    #[error("program {} was not found; check its name and that it is installed and in PATH", .program.display())]
    ProgramNotFound {
        /// As it was asked for.
        program: OsString,
    },
    /// There is such a file, but it may not be executed.
    #[error("{} is not executable; give it the permission (chmod +x) or run it with its interpreter", .program.display())]
    NotExecutable {
        /// The file that was found.
        program: PathBuf,
    },
    /// The directory to start in cannot be entered.
    #[error("cannot start in directory {}: {source}", .directory.display())]
    Directory {
        /// As it was asked for.
        directory: PathBuf,
        /// An I/O error.
        source: io::Error,
    },
    /// An argument, a variable or a path holds a NUL byte, which no program can be given.
    #[error("{what} holds a NUL byte, which cannot be passed to a program; remove it")]
    NulByte {
        /// Which one.
        what: String,
    },
    /// The system refused to start it.
    #[error("cannot start {}: {source}", .program.display())]
    Spawn {
        /// The file that was found.
        program: PathBuf,
        /// An I/O error.
        source: io::Error,
    },
    /// It ran, but something else in this process has taken its exit status.
    #[error(
        "how {} ended is not known: its exit status was lost, as happens when the signal SIGCHLD is ignored; start \
         MyClaw without that",
        .program.display()
    )]
    StatusLost {
        /// As it was asked for.
        program: OsString,
    },
    /// A pipe for its input or output could not be set up.
    #[error("cannot set up a pipe to or from a program: {0}")]
    Pipe(#[source] io::Error),
    /// A [`Runner`](crate::Runner) that runs it elsewhere could not start it, or lost it.
    #[error("{reason}")]
    Elsewhere {
        /// What happened, and what to do.
        reason: String,
    },
    /// There is no terminal for it.
    #[error("cannot open a terminal for a program: {0}; start it without one")]
    Terminal(#[source] io::Error),
}
