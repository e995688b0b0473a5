//! What the operating system enforces in sandboxed sessions. Which sessions these are is in [`super::policy`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};
use super::web::HostEntry;

/// What the operating system enforces in sandboxed sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConfinementConfig {
    /// What enforces it. Where it is not available, the session does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<ConfinementLevel>,
    /// The image of the container, for `podman` and `docker`. It must be on this machine, and its C library must be able
    /// to run MyClaw.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub image: Option<String>,
    /// What may be done in the agent's workspace. Without it, sessions of the owner change it, and a session of others has a
    /// workspace of its own and sees nothing of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_access: Option<WorkspaceAccessName>,
    /// What may be reached over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// The only hosts that may be reached with the network `allowlist`: `crates.io`, `*.crates.io`, `192.168.1.5`, each
    /// also with a port, such as `localhost:8080`. Those that are not on the public internet must be in
    /// `tools.web.fetch.allowHosts` as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<NonBlankText>>")]
    pub allow_hosts: Option<Vec<HostEntry>>,
    /// More files and directories that may be read and executed. May begin with `~`; a relative path starts at the
    /// directory of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<Vec<String>>,
    /// More files and directories that may be changed, written as in `readOnly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_write: Option<Vec<String>>,
    /// What may be used up.
    pub limits: ConfinementLimits,
}

/// What enforces the rules of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ConfinementLevel {
    /// The kernel: Landlock and seccomp. Needs Linux 6.12.
    #[default]
    Landlock,
    /// Namespaces set up by `bwrap`: the rest of the machine is invisible.
    Bubblewrap,
    /// A container of podman.
    Podman,
    /// A container of docker.
    Docker,
}

/// What may be done in the agent's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WorkspaceAccessName {
    /// Nothing.
    None,
    /// Read and execute.
    Ro,
    /// Read, execute and change.
    Rw,
}

/// What may be reached over the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SandboxNetwork {
    /// Nothing.
    #[default]
    None,
    /// The hosts in `allowHosts`, over HTTP and HTTPS.
    Allowlist,
    /// Everything, over TCP and UDP.
    Open,
}

/// What sandboxed processes may use up; 0 takes a limit away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConfinementLimits {
    /// Megabytes of private memory of each process; in a container, of all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Processes and threads at one time, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Megabytes of each file that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_mb: Option<u64>,
    /// Files that each process has open at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Seconds of processor time of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Megabytes of all files in a session's own workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_mb: Option<u64>,
    /// Files and directories in a session's own workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_files: Option<u64>,
}

impl ConfinementLimits {
    /// Megabytes of a session's own workspace, unless the config says otherwise: room for documents and pictures of a chat,
    /// and a hundred chats do not fill a small disk.
    pub const WORKSPACE_MB: u64 = 256;
    /// Files and directories of it, unless the config says otherwise: they are counted in some milliseconds.
    pub const WORKSPACE_FILES: u64 = 10_000;
}

impl ConfinementConfig {
    /// These values; missing ones are taken from `defaults`.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        let (own, other) = (self.limits, defaults.limits);
        Self {
            level: self.level.or(defaults.level),
            image: self.image.or(defaults.image),
            workspace_access: self.workspace_access.or(defaults.workspace_access),
            network: self.network.or(defaults.network),
            allow_hosts: self.allow_hosts.or(defaults.allow_hosts),
            read_only: self.read_only.or(defaults.read_only),
            read_write: self.read_write.or(defaults.read_write),
            limits: ConfinementLimits {
                memory_mb: own.memory_mb.or(other.memory_mb),
                processes: own.processes.or(other.processes),
                file_size_mb: own.file_size_mb.or(other.file_size_mb),
                open_files: own.open_files.or(other.open_files),
                cpu_seconds: own.cpu_seconds.or(other.cpu_seconds),
                workspace_mb: own.workspace_mb.or(other.workspace_mb),
                workspace_files: own.workspace_files.or(other.workspace_files),
            },
        }
    }
}
