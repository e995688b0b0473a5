//! A process in this program's own sandbox.

use futures_util::future::BoxFuture;
use myclaw_exec::{Finished, Link};
use myclaw_sandbox::{Confinement, Level, Network, ProtectedNames, Sandbox, WorkspaceAccess};
use tokio_util::sync::CancellationToken;

use super::{
    Access, Backend, BackendError, Launch, RunnerProgram, child, link_mounts, local_arguments,
    shared_directories, unprotected,
};

/// Runs runners in the sandbox. They see the group's directories and the programs of the system, and have the network,
/// unless they reach the model through a socket.
#[derive(Debug)]
pub struct SandboxBackend {
    runner: RunnerProgram,
    sandbox: Sandbox,
    level: Level,
    names: ProtectedNames,
}

impl SandboxBackend {
    /// With this program, at this level. The names stay as they are in further directories of groups.
    pub fn new(
        runner: RunnerProgram,
        sandbox: Sandbox,
        level: Level,
        names: ProtectedNames,
    ) -> Self {
        Self { runner, sandbox, level, names }
    }

    fn confinement(&self, launch: &Launch) -> Confinement {
        let mut confinement = Confinement::new(self.level.clone(), &launch.workspace);
        confinement.access = WorkspaceAccess::Ro;
        confinement.network = if launch.model.is_some() { Network::None } else { Network::Open };
        confinement.read_only.extend(launch.model.clone());
        confinement.temporary = Some(launch.temporary.clone());
        confinement.read_only.push(self.runner.program.clone());
        confinement.read_write.push(launch.home.clone());
        for mount in &launch.mounts {
            match mount.access {
                Access::ReadOnly => confinement.read_only.push(mount.host.clone()),
                Access::ReadWrite => confinement.read_write.push(mount.host.clone()),
            }
        }
        for mount in shared_directories(launch) {
            confinement.protect(&mount.host, &self.names);
        }
        confinement
    }
}

impl Backend for SandboxBackend {
    fn check(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        let wanted = Confinement::new(self.level.clone(), "/");
        Box::pin(std::future::ready(self.sandbox.probe().check(&wanted).map_err(Into::into)))
    }

    fn run<'a>(
        &'a self,
        mut launch: Launch,
        link: Link,
        stop: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Finished, BackendError>> {
        Box::pin(async move {
            if launch.model.is_some() && self.level != Level::Bubblewrap {
                // The other level keeps runners from all sockets, or from none.
                let problem = "a sandbox with the model's socket needs bubblewrap; install it";
                return Err(BackendError::Unusable(problem.to_owned()));
            }
            link_mounts(&launch)?;
            std::fs::create_dir_all(&launch.temporary).map_err(|error| {
                BackendError::Unusable(format!(
                    "failed to make {}: {error}",
                    launch.temporary.display()
                ))
            })?;
            let payload = std::mem::take(&mut launch.payload);
            let mut spec = child(&self.runner.program, &launch, payload);
            spec.args = local_arguments(&self.runner, &launch);
            let confinement = self.confinement(&launch);
            if shared_directories(&launch).next().is_some() {
                let checked = self.sandbox.probe().check(&confinement);
                checked.map_err(|error| unprotected(&error))?;
            }
            let running = self.sandbox.run_attached(spec, link, &confinement, stop, on_output);
            Ok(running.await?)
        })
    }

    fn clean_up<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
