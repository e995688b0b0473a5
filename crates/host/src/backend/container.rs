//! A container of podman or docker, through the command line.

use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_exec::{ChildSpec, Exit, Finished, Link, run, run_attached};
use myclaw_files::portable::process::{getegid, geteuid};
use myclaw_sandbox::{
    Confinement, ContainerEngine, Level, ProtectedNames, Sandbox, WorkspaceAccess,
};
use tokio_util::sync::CancellationToken;

use crate::model::SOCKET;

use super::{
    Access, Backend, BackendError, Launch, RunnerProgram, child, shared_directories, unprotected,
};

/// Longest run of a command of podman or docker that is not the container itself, without the time that the container is
/// given to end.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Where the runner's program is in a container. It comes from this machine, so it is as new as the host.
const PROGRAM: &str = "/usr/local/bin/myclaw";
/// Where the program is that keeps protected names in directories of the owner.
const HELPER: &str = "/usr/local/bin/myclaw-sandbox";
/// Where podman looks for runc.
const RUNC: [&str; 6] = [
    "/usr/bin/runc",
    "/usr/sbin/runc",
    "/usr/local/bin/runc",
    "/usr/local/sbin/runc",
    "/sbin/runc",
    "/bin/runc",
];
/// Where the directory with the model's socket is in a container.
const MODEL: &str = "/run/myclaw";
/// The home directory of the protocol.
const HOME: &str = "/home/node";
/// Most open files and processes of a container. Without limits of its own, podman asks for more rights than a process
/// may give away on some machines.
const MOST: u32 = 1024;

/// Runs runners in containers.
#[derive(Debug)]
pub struct ContainerBackend {
    runner: RunnerProgram,
    sandbox: Sandbox,
    engine: ContainerEngine,
    image: String,
    network: Option<String>,
    names: ProtectedNames,
}

impl ContainerBackend {
    /// With containers of `image`. `network` is the name of a network of the engine; without it, it is the engine's
    /// default one, or none if runners reach the model through a socket. The names stay as they are in further directories
    /// of groups.
    pub fn new(
        runner: RunnerProgram,
        sandbox: Sandbox,
        (engine, image): (ContainerEngine, String),
        network: Option<String>,
        names: ProtectedNames,
    ) -> Self {
        Self { runner, sandbox, engine, image, network, names }
    }

    /// What stands before the runner's program, if the group may change directories that the owner uses too.
    fn guard(&self, launch: &Launch) -> Result<Vec<OsString>, BackendError> {
        let level = Level::Container { engine: self.engine, image: self.image.clone() };
        let mut inside = Confinement::new(level, "/workspace");
        inside.access = WorkspaceAccess::None;
        let changed = launch.mounts.iter().filter(|mount| mount.access == Access::ReadWrite);
        inside.read_write = changed.map(|mount| mount.container.clone()).collect();
        inside.read_write.push(HOME.into());
        for mount in shared_directories(launch) {
            inside.protect(&mount.container, &self.names);
        }
        let guard = self.sandbox.guard(&inside, Path::new(HELPER), Path::new(PROGRAM));
        guard.map_err(|error| unprotected(&error))
    }

    fn arguments(&self, launch: &Launch) -> Result<Vec<OsString>, BackendError> {
        let mut arguments: Vec<OsString> = Vec::new();
        let user = (geteuid(), getegid());
        let has_runc = || RUNC.iter().any(|path| Path::new(path).exists());
        if self.engine == ContainerEngine::Podman && user.0.is_root() && has_runc() {
            // For root, the other runtime demands a cgroup that it may write to. Many machines have one and no runc.
            arguments.extend(["--runtime", "runc"].map(OsString::from));
        }
        let fixed = [
            "run",
            "--rm",
            "--interactive",
            "--pull=never",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--tmpfs=/tmp",
        ];
        arguments.extend(fixed.map(OsString::from));
        let mut flag = |text: String| arguments.push(text.into());
        flag(format!("--ulimit=nofile={MOST}:{MOST}"));
        flag(format!("--ulimit=nproc={MOST}:{MOST}"));
        flag(format!("--name={}", launch.name));
        flag(format!("--env=TZ={}", launch.time_zone));
        flag(format!("--env=HOME={HOME}"));
        flag("--workdir=/workspace/group".to_owned());
        match &self.network {
            Some(network) => flag(format!("--network={network}")),
            None if launch.model.is_some() => flag("--network=none".to_owned()),
            None => {}
        }
        if self.engine == ContainerEngine::Docker && !user.0.is_root() {
            // Files of the group stay those of this user. Podman without root does so by itself.
            flag(format!("--user={}:{}", user.0.as_raw(), user.1.as_raw()));
        }
        arguments.push(volume(&self.runner.program, Path::new(PROGRAM), Access::ReadOnly)?);
        arguments.push(volume(&launch.home, Path::new(HOME), Access::ReadWrite)?);
        if let Some(model) = &launch.model {
            arguments.push(volume(model, Path::new(MODEL), Access::ReadOnly)?);
        }
        for mount in &launch.mounts {
            arguments.push(volume(&mount.host, &mount.container, mount.access)?);
        }
        let guard = self.guard(launch)?;
        if !guard.is_empty() {
            arguments.push(volume(self.sandbox.helper(), Path::new(HELPER), Access::ReadOnly)?);
        }
        arguments.push("--entrypoint=".into());
        arguments.push(self.image.clone().into());
        arguments.extend(guard);
        arguments.push(PROGRAM.into());
        arguments.extend(self.runner.arguments.iter().map(OsString::from));
        arguments.extend(launch.options.iter().map(OsString::from));
        if launch.model.is_some() {
            arguments.extend(["--model-socket".into(), format!("{MODEL}/{SOCKET}").into()]);
        }
        Ok(arguments)
    }

    /// A command about a container. What it says does not matter: the container may be gone already.
    async fn command(&self, arguments: &[&str], limit: Duration) {
        let mut spec = ChildSpec::new(self.engine.program(), "/");
        spec.args = arguments.iter().map(OsString::from).collect();
        spec.timeout = Some(limit);
        drop(run(spec, &CancellationToken::new(), &mut |_| {}).await);
    }

    async fn remove(&self, name: &str) {
        match self.engine {
            ContainerEngine::Podman => {
                self.command(&["rm", "--force", "--time=0", name], COMMAND_LIMIT).await;
            }
            ContainerEngine::Docker => self.command(&["rm", "--force", name], COMMAND_LIMIT).await,
        }
    }
}

impl Backend for ContainerBackend {
    fn check(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(self.sandbox.check_image(self.engine, &self.image).await?) })
    }

    fn run<'a>(
        &'a self,
        mut launch: Launch,
        link: Link,
        stop: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Finished, BackendError>> {
        Box::pin(async move {
            let payload = std::mem::take(&mut launch.payload);
            let mut spec = child(Path::new(self.engine.program()), &launch, payload);
            spec.directory = "/".into();
            spec.args = self.arguments(&launch)?;
            // The engine's own program is ended only when the container does not end.
            let force = CancellationToken::new();
            let mut running = pin!(run_attached(spec, link, &force, on_output));
            let finished = tokio::select! {
                biased;
                finished = &mut running => finished,
                () = stop.cancelled() => {
                    let grace = launch.stop_grace.as_secs().max(1).to_string();
                    let stopping = async {
                        let limit = launch.stop_grace + COMMAND_LIMIT;
                        self.command(&["stop", "--time", &grace, &launch.name], limit).await;
                        force.cancel();
                    };
                    let (finished, ()) = tokio::join!(running, stopping);
                    finished.map(|finished| Finished { exit: Exit::Aborted, ..finished })
                }
            };
            let has_exited = matches!(&finished, Ok(Finished { exit: Exit::Code(_), .. }));
            if !has_exited {
                // The engine's own program was ended, and the container may go on without it.
                self.remove(&launch.name).await;
            }
            Ok(finished?)
        })
    }

    fn clean_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.remove(name))
    }
}

fn volume(host: &Path, container: &Path, access: Access) -> Result<OsString, BackendError> {
    let mode = match access {
        Access::ReadOnly => "ro",
        Access::ReadWrite => "rw",
    };
    match (host.to_str(), container.to_str()) {
        (Some(host), Some(container)) if !host.contains([':', ',']) => {
            Ok(format!("--volume={host}:{container}:{mode}").into())
        }
        _ => Err(BackendError::Unusable(format!(
            "{} cannot be passed to a container: its name has a colon, a comma or bytes that are not text",
            host.display()
        ))),
    }
}
