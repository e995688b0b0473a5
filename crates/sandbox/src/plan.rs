//! The plan that the helper process gets from its parent: one JSON argument.

use std::path::{Path, PathBuf};

use myclaw_files::canonical;
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
    /// What the supervising helper does on behalf of the command.
    pub broker: Option<BrokerRules>,
}

/// Landlock rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRules {
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Where everything is open, devices too, because nobody else sees it. Those that do not exist are left out.
    pub own: Vec<PathBuf>,
    pub tcp: Tcp,
    pub root: Root,
}

/// What the root directory is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Root {
    /// The machine: only programs and public files may be read.
    #[default]
    Machine,
    /// An image: everything may be read but `/proc`.
    Image,
}

/// Which calls about files the supervising helper carries out. All paths exist, but those in `protected` need not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BrokerRules {
    /// May be changed, those in `brokered` included.
    pub writable: Vec<PathBuf>,
    /// May be read but not changed, apart from the system's own files.
    pub readable: Vec<PathBuf>,
    /// Where Landlock permits no change, because something protected is inside or around.
    pub brokered: Vec<PathBuf>,
    /// Stay as they are.
    pub protected: Vec<PathBuf>,
    /// Stay as they are wherever they are in `brokered`.
    pub names: Vec<String>,
}

impl BrokerRules {
    /// Rules of directories that may be changed, those without anything protected inside among them.
    pub(crate) fn new(
        writable: Vec<PathBuf>,
        readable: Vec<PathBuf>,
        protected: Vec<PathBuf>,
        names: Vec<String>,
    ) -> Self {
        let is_related = |root: &PathBuf| {
            let root = real_place(root);
            protected
                .iter()
                .flat_map(|path| [path.clone(), real_place(path)])
                .any(|path| path.starts_with(&root) || root.starts_with(&path))
        };
        let brokered = writable.iter().filter(|root| is_related(root)).cloned().collect();
        Self { writable, readable, brokered, protected, names }
    }

    /// What Landlock permits to change.
    pub(crate) fn open(&self) -> Vec<PathBuf> {
        self.writable.iter().filter(|path| !self.brokered.contains(path)).cloned().collect()
    }
}

/// The path with all links followed that exist.
pub(crate) fn real_place(path: &Path) -> PathBuf {
    match (canonical(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real_place(parent).join(name),
        _ => path.to_owned(),
    }
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
