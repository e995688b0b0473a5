//! The rights of a confined process, as plain data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::real_place;

/// What a confined process may read, write, reach and use up. Everything that is not listed here is closed.
///
/// At the levels [`Level::Landlock`] and [`Level::Bubblewrap`] the programs and libraries of the system (`/usr`, `/lib`,
/// `/opt`, …) and the public part of `/etc` can be read as well, because no program runs without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confinement {
    /// What enforces the rules. A machine that cannot provide it refuses to start the process.
    pub level: Level,
    /// The directory that the agent works in; an absolute path.
    pub workspace: PathBuf,
    /// What may be done in the workspace.
    pub access: WorkspaceAccess,
    /// Files and directories that stay as they are, with everything below them, although the workspace may be changed;
    /// paths relative to the workspace, or absolute ones in another directory that may be changed, without `.` and `..`. One that does not exist cannot be made. Letters count
    /// without their case, because some file systems compare names so. [`Level::Limits`] protects nothing.
    #[serde(default)]
    pub protected: Vec<PathBuf>,
    /// Names that are protected in the same way in the workspace and in every directory below it, and in and below each other
    /// directory with a path in `protected`. A `*` stands for any characters.
    #[serde(default)]
    pub protected_names: Vec<String>,
    /// More files and directories that may be read and executed; absolute paths that exist.
    #[serde(default)]
    pub read_only: Vec<PathBuf>,
    /// More files and directories that may be changed; absolute paths that exist.
    #[serde(default)]
    pub read_write: Vec<PathBuf>,
    /// A directory for temporary files that this process alone uses; it becomes `TMPDIR`. Without one, programs that
    /// need temporary files fail at [`Level::Landlock`]; the other levels have an empty `/tmp` of their own.
    #[serde(default)]
    pub temporary: Option<PathBuf>,
    /// What may be reached over the network.
    pub network: Network,
    /// What may be used up.
    #[serde(default)]
    pub limits: Limits,
}

/// Names that stay as they are in a directory that a less trusted party changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedNames {
    /// In the directory itself.
    pub at_top: Vec<PathBuf>,
    /// In the directory and in every one below. A `*` stands for any characters.
    pub everywhere: Vec<String>,
}

/// What enforces a [`Confinement`], from weak to strong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Level {
    /// Resource limits only: files and network stay open, and the other fields have no effect.
    Limits,
    /// Landlock for files, TCP and signals, seccomp for system calls. Needs Linux 6.12 and no other program.
    Landlock,
    /// Namespaces set up by `bwrap`: everything else on the machine is invisible. Seccomp on top.
    Bubblewrap,
    /// A container of podman or docker.
    Container {
        /// The program that starts it.
        engine: ContainerEngine,
        /// Name of the image.
        image: String,
    },
}

/// A program that starts containers. Both have the same command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContainerEngine {
    /// `podman`
    Podman,
    /// `docker`
    Docker,
}

impl ContainerEngine {
    /// Name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }
}

/// What may be done in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceAccess {
    /// Nothing: it cannot even be listed.
    None,
    /// Read and execute.
    Ro,
    /// Read, execute and change.
    Rw,
}

/// Where a confined process reaches the socket of [`Network::Proxy`].
pub const PROXY_ADDRESS: &str = "127.0.0.1:3128";

/// What may be reached over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Network {
    /// Nothing.
    None,
    /// An HTTP proxy that listens on a Unix socket, and nothing else. The process finds it in `HTTP_PROXY` and its
    /// relatives, at [`PROXY_ADDRESS`], a port of a loopback interface of its own.
    Proxy {
        /// Path of the socket.
        socket: PathBuf,
    },
    /// Everything, over TCP and UDP.
    Open,
}

/// Resource limits. `None` means no limit of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Private memory of each process, in bytes. More is refused, which ends most programs.
    pub memory: Option<u64>,
    /// Processes and threads at one time, all together.
    pub processes: Option<u64>,
    /// Size of each file that is written, in bytes.
    pub file_size: Option<u64>,
    /// Files that each process has open at one time.
    pub open_files: Option<u64>,
    /// Processor time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
}

impl Default for Limits {
    /// Enough for a large build, and an end to a runaway program.
    fn default() -> Self {
        Self {
            memory: Some(8 << 30),
            processes: Some(1024),
            file_size: Some(8 << 30),
            open_files: Some(4096),
            cpu_seconds: None,
        }
    }
}

impl Confinement {
    /// The usual confinement of a command: the workspace may be changed, there is no network.
    pub fn new(level: Level, workspace: impl Into<PathBuf>) -> Self {
        Self {
            level,
            workspace: workspace.into(),
            access: WorkspaceAccess::Rw,
            protected: Vec::new(),
            protected_names: Vec::new(),
            read_only: Vec::new(),
            read_write: Vec::new(),
            temporary: None,
            network: Network::None,
            limits: Limits::default(),
        }
    }

    /// Protects names in a directory of `read_write`.
    pub fn protect(&mut self, directory: &Path, names: &ProtectedNames) {
        self.protected.extend(names.at_top.iter().map(|name| directory.join(name)));
        self.protected_names.clone_from(&names.everywhere);
    }

    /// The protected paths, if there is anything to protect them from.
    pub(crate) fn protected_places(&self) -> Vec<PathBuf> {
        let workspace = real_place(&self.workspace);
        let names = self.protected_names.iter().map(Path::new);
        let protected = self.protected.iter().map(PathBuf::as_path).chain(names);
        let may_change = |path: &&Path| path.is_absolute() || self.access == WorkspaceAccess::Rw;
        let protected = protected.filter(may_change);
        protected.map(|path| workspace.join(path)).collect()
    }

    /// Everything that may be read but not changed, apart from the system's own files.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Path> {
        let workspace = (self.access == WorkspaceAccess::Ro).then_some(&self.workspace);
        self.read_only.iter().chain(workspace).map(PathBuf::as_path)
    }

    /// Everything that may be changed.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        let workspace = (self.access == WorkspaceAccess::Rw).then_some(&self.workspace);
        self.read_write.iter().chain(&self.temporary).chain(workspace).map(PathBuf::as_path)
    }
}
