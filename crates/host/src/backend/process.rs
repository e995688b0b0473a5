//! A plain process, which can do what its user can: for tests, and for people without containers who trust their agent.

use futures_util::future::BoxFuture;
use myclaw_exec::{Finished, Link, run_attached};
use tokio_util::sync::CancellationToken;

use super::{Backend, BackendError, Launch, RunnerProgram, child, link_mounts, local_arguments};

/// Runs runners as plain processes.
#[derive(Debug)]
pub struct ProcessBackend {
    runner: RunnerProgram,
}

impl ProcessBackend {
    /// With this program.
    pub fn new(runner: RunnerProgram) -> Self {
        Self { runner }
    }
}

impl Backend for ProcessBackend {
    fn check(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        let spec = myclaw_exec::ChildSpec::new(&self.runner.program, "/");
        Box::pin(std::future::ready(spec.resolve_program().map(drop).map_err(Into::into)))
    }

    fn run<'a>(
        &'a self,
        mut launch: Launch,
        link: Link,
        stop: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Finished, BackendError>> {
        Box::pin(async move {
            link_mounts(&launch)?;
            let payload = std::mem::take(&mut launch.payload);
            let mut spec = child(&self.runner.program, &launch, payload);
            spec.args = local_arguments(&self.runner, &launch);
            Ok(run_attached(spec, link, stop, on_output).await?)
        })
    }

    fn clean_up<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
