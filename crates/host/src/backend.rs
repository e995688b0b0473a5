//! What runs a runner.

mod container;
mod process;
mod sandboxed;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_exec::{ChildSpec, ErrorOutput, ExecError, Finished, Link, OutputLimits};
use myclaw_sandbox::SandboxError;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::model::SOCKET;

pub use container::ContainerBackend;
pub use process::ProcessBackend;
pub use sandboxed::SandboxBackend;

/// Bytes of the standard error of a run that are kept, from its end.
const KEPT_ERRORS: usize = 64 * 1024;

/// What may be done with a mounted directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Read.
    #[default]
    ReadOnly,
    /// Read and change.
    ReadWrite,
}

/// A directory or file of this machine that a runner sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is, with all links resolved.
    pub host: PathBuf,
    /// Where a container has it.
    pub container: PathBuf,
    /// What may be done with it.
    pub access: Access,
}

/// The program that is started, without the arguments that the host adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerProgram {
    /// An absolute path.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

/// One run.
#[derive(Debug)]
pub struct Launch {
    /// Names the container; no other run has it.
    pub name: String,
    /// The job, with its secrets. It goes to standard input and nowhere else.
    pub payload: Vec<u8>,
    /// What the runner sees.
    pub mounts: Vec<Mount>,
    /// A directory with links to the mounts under the names of the protocol, for runs without a container.
    pub workspace: PathBuf,
    /// The home directory of the runner.
    pub home: PathBuf,
    /// A directory for temporary files.
    pub temporary: PathBuf,
    /// The directory with the socket of the model. With it, the runner has no network.
    pub model: Option<PathBuf>,
    /// Options for the runner.
    pub options: Vec<String>,
    /// The name of the time zone.
    pub time_zone: String,
    /// How long a runner that is stopped may take to end by itself.
    pub stop_grace: Duration,
}

/// Why a runner was not started.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// A program cannot be started.
    #[error(transparent)]
    Start(#[from] ExecError),
    /// The confinement cannot be enforced.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A path cannot be passed on, or a directory cannot be made.
    #[error("{0}")]
    Unusable(String),
}

/// Runs runners. The host knows nothing else about containers.
pub trait Backend: Send + Sync + 'static {
    /// Says before anything else why no runner can be started, if that is known.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    fn check(&self) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Runs one to its end. `on_output` gets its standard output as it arrives. When `stop` fires, or the future is
    /// dropped, it is ended with everything that it started.
    ///
    /// # Errors
    /// It cannot be started. A runner that fails is no error.
    fn run<'a>(
        &'a self,
        launch: Launch,
        link: Link,
        stop: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Finished, BackendError>>;

    /// Ends what a killed host has left of the run with this name. The tree of its processes is ended by the caller.
    fn clean_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;
}

/// A child whose standard output is read as it comes, and whose errors are kept for the log.
fn child(program: &std::path::Path, launch: &Launch, payload: Vec<u8>) -> ChildSpec {
    let nothing = OutputLimits {
        keep_tail_bytes: KEPT_ERRORS,
        keep_tail_chars: usize::MAX,
        keep_tail_lines: usize::MAX,
        side_file: None,
    };
    let mut spec = ChildSpec::new(program, &launch.workspace);
    spec.environment = spec.environment.with("TZ", &launch.time_zone);
    spec.input = payload;
    spec.output = nothing;
    spec.errors = ErrorOutput::Apart;
    spec
}

/// The arguments of a runner that finds its directories on this machine.
fn local_arguments(runner: &RunnerProgram, launch: &Launch) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> = runner.arguments.iter().map(Into::into).collect();
    arguments.extend(["--workspace".into(), launch.workspace.clone().into_os_string()]);
    arguments.extend(["--home".into(), launch.home.clone().into_os_string()]);
    arguments.extend(launch.options.iter().map(Into::into));
    if let Some(model) = &launch.model {
        arguments.extend(["--model-socket".into(), model.join(SOCKET).into_os_string()]);
    }
    arguments
}

/// The further directories of the group that it may change. The owner's programs work in them too.
fn shared_directories(launch: &Launch) -> impl Iterator<Item = &Mount> {
    launch.mounts.iter().filter(|mount| {
        mount.access == Access::ReadWrite
            && mount.container.starts_with(crate::mounts::EXTRA)
            && mount.host.is_dir()
    })
}

/// Why a group with such a directory cannot run.
fn unprotected(error: &SandboxError) -> BackendError {
    BackendError::Unusable(format!(
        "the names that your programs obey cannot be protected in the directories that the group may change: {error}. Or give \
         these directories the access `readOnly`"
    ))
}

/// Puts links to the mounts below the workspace, under the names of the protocol.
fn link_mounts(launch: &Launch) -> Result<(), BackendError> {
    let failed = |path: &std::path::Path, error: std::io::Error| {
        BackendError::Unusable(format!("failed to make {}: {error}", path.display()))
    };
    // Links of an earlier run may lead to what is no longer allowed.
    drop(std::fs::remove_dir_all(&launch.workspace));
    for mount in &launch.mounts {
        let Ok(name) = mount.container.strip_prefix("/workspace") else { continue };
        let link = launch.workspace.join(name);
        let parent = link.parent().unwrap_or(&launch.workspace);
        std::fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        myclaw_files::portable::symlink(&mount.host, &link)
            .map_err(|error| failed(&link, error))?;
    }
    Ok(())
}
