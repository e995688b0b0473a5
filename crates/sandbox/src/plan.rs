//! The plan that the helper process gets from its parent: one JSON argument.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// What the helper process does before it starts the command that follows on its command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Precedes a message about a failure, so that it cannot be mistaken for output of the command.
    pub token: String,
    /// The process that started the helper. The command ends with it. 0 if the helper is the first process of a
    /// container, which ends with the container. Without one the helper becomes the command.
    pub supervised_by: Option<i32>,
    /// Whether the supervising helper confines its own signals, so that a process that reused an id is never hit.
    pub scoped: bool,
    /// Most processes in a cgroup made for the command; for root, which `RLIMIT_NPROC` does not bind.
    pub cgroup_processes: Option<u64>,
    /// Whether the command gets a network of its own, which holds nothing but a loopback interface.
    pub own_network: bool,
    /// Unix socket of the proxy that the command reaches through a port of its own loopback interface.
    pub relay: Option<PathBuf>,
    /// Run after the end of the command: a container lives on when its client ends.
    pub cleanup: Vec<String>,
    /// Becomes `TMPDIR`.
    pub temporary: Option<PathBuf>,
    /// Applied last, in this order: limits, files, system calls.
    pub limits: Option<Limits>,
    /// Landlock rules for files and TCP.
    pub files: Option<FileRules>,
    /// The seccomp filter.
    pub filter: Option<FilterRules>,
}

/// Landlock rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRules {
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    pub tcp: Tcp,
}

/// Whether TCP is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Tcp {
    #[default]
    Closed,
    Open,
}

/// What the seccomp filter lets through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilterRules {
    /// Address families of sockets.
    pub families: Vec<i32>,
    /// True if the process shares System V memory and message queues with the rest of the machine.
    pub ipc: Ipc,
}

/// The owner of the shared memory and message queues that the process sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ipc {
    /// They are those of the machine. So they are closed, and so are calls that name a Unix socket of another process.
    #[default]
    Shared,
    /// They are its own.
    Private,
}
