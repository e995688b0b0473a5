//! This program's side: one helper at a time, started when it is needed.

mod command;
mod helper;
mod remote;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolError, ToolInvocation, ToolOutput};
use myclaw_exec::EnvironmentPolicy;
use myclaw_sandbox::{Confinement, Sandbox};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;

use self::helper::Helper;
pub use self::remote::{RemoteCallError, RemoteCalls};
use crate::ExecutorError;
use crate::tool::{CallHandler, with_handler};

/// How helpers are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Starts confined processes.
    pub sandbox: Sandbox,
    /// What the helper and everything it starts may do. The helper's own directory for temporary files is added.
    pub confinement: Confinement,
    /// A program that calls [`serve`](crate::serve()) when it is started with `arguments`: usually this program itself.
    pub program: PathBuf,
    /// The arguments that make it serve.
    pub arguments: Vec<OsString>,
    /// The helper's variables.
    pub environment: EnvironmentPolicy,
    /// How the helper makes its tools; passed to the function that [`serve`](crate::serve()) is given.
    pub setup: Value,
    /// Where large outputs go, as [`ToolContext::artifact_directory`](myclaw_engine::ToolContext). The helper's directory
    /// for temporary files is made in it, and removed with the helper. It is made if it is missing.
    pub scratch: PathBuf,
    /// A helper without calls and without background processes ends after this time.
    pub idle: Duration,
    /// A call of a tool that takes longer is given up, and the helper ends with everything in it. What runs in the helper
    /// can stop it, so this process keeps the time. Commands have limits of their own.
    pub call_limit: Duration,
}

/// Runs tools in a confined helper process, which starts at the first call and serves until it has been idle for some
/// time. When the executor is dropped, the helper ends with everything it started; so it does when this process dies.
#[derive(Debug)]
pub struct Executor {
    launch: Launch,
    /// Filled once by the first call that needs it; replaced when the helper has ended.
    helper: Mutex<Arc<OnceCell<Helper>>>,
}

impl Executor {
    /// An executor that has started nothing yet.
    pub fn new(launch: Launch) -> Arc<Self> {
        Arc::new(Self { launch, helper: Mutex::default() })
    }

    /// How helpers are started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The same tool, run by the helper.
    pub fn wrap(self: &Arc<Self>, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        with_handler(tool, Arc::clone(self) as Arc<dyn CallHandler>)
    }

    /// Starts the helper now, to find out whether that is possible. Nothing happens if it runs.
    ///
    /// # Errors
    /// The sandbox cannot be set up, or the helper does not start.
    pub async fn start(&self) -> Result<(), ExecutorError> {
        let cell = self.current();
        cell.get_or_try_init(|| Helper::start(&self.launch)).await.map(drop)
    }

    /// Whether a helper runs.
    pub fn is_running(&self) -> bool {
        self.current().get().is_some()
    }

    /// Ends the helper that runs, with everything that it started. The calls that wait fail for this reason.
    pub fn end(&self, reason: &str) {
        if let Some(helper) = self.current().get() {
            helper.end(reason);
        }
    }

    /// Runs one call in the helper. A helper that ends during the call fails it; the next call starts another.
    async fn call(
        &self,
        tool: &str,
        invocation: ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let cell = self.current();
        let started = tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => {
                return Err(ToolError::Aborted("aborted before the call began".to_owned()));
            }
            started = cell.get_or_try_init(|| Helper::start(&self.launch)) => started,
        };
        let helper = started.map_err(|error| {
            ToolError::Failed(format!("{error}. Nothing was run. Tell the user"))
        })?;
        helper.call(tool, invocation).await
    }

    /// The running helper, or the place for the next one.
    fn current(&self) -> Arc<OnceCell<Helper>> {
        let mut place = self.helper.lock();
        if place.get().is_some_and(Helper::has_ended) {
            *place = Arc::default();
        }
        Arc::clone(&place)
    }
}

impl CallHandler for Executor {
    fn handle<'a>(
        &'a self,
        tool: &'a dyn Tool,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.call(&tool.schema().name, invocation))
    }
}
