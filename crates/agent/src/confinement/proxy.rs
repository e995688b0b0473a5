//! The proxy of a session's sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_engine::{Tool, ToolError, ToolInvocation, ToolOutput};
use myclaw_executor::CallHandler;
use myclaw_files::OwnedDirectory;
use myclaw_llm::ContentBlock;
use myclaw_web::{BoxFuture, Proxy, ProxyRules};
use tokio_util::task::AbortOnDropHandle;

use crate::{AgentError, FailureClass};

/// The key that names the hosts.
pub(super) const KEY: &str = "sandbox.confinement.allowHosts";

/// What names of directories with a proxy's socket begin with.
const DIRECTORY_PREFIX: &str = "myclaw-proxy-";

/// A running proxy. It ends with its last owner: the session, or a tool that still runs.
#[derive(Debug)]
pub(super) struct SessionProxy {
    proxy: Proxy,
    socket: PathBuf,
    /// Owns the directory of the socket, which only this user can enter. A task, because a program that exits drops its
    /// tasks, and not everything that its sessions hold.
    _directory: AbortOnDropHandle<()>,
}

impl SessionProxy {
    /// Starts a proxy. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// There is no place for its socket.
    pub(super) fn start(rules: ProxyRules) -> Result<Arc<Self>, AgentError> {
        let failed = |error: std::io::Error| {
            let place = std::env::temp_dir();
            AgentError::new(
                FailureClass::Sandbox,
                format!(
                    "cannot make the socket of the sandbox's proxy in {}: {error}; set TMPDIR to a directory with a short \
                     name that can be written",
                    place.display()
                ),
            )
        };
        // Not in the state directory, whose path can be too long for a socket.
        let directory =
            OwnedDirectory::create(&std::env::temp_dir(), DIRECTORY_PREFIX).map_err(failed)?;
        let socket = directory.path().join("proxy");
        let proxy = Proxy::start_at(&socket, rules).map_err(failed)?;
        let owner = tokio::spawn(async move {
            let _owned: OwnedDirectory = directory;
            std::future::pending().await
        });
        Ok(Arc::new(Self { proxy, socket, _directory: AbortOnDropHandle::new(owner) }))
    }

    /// Where it listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}

impl CallHandler for SessionProxy {
    /// Adds to the result of a command the hosts that the proxy refused, because most programs show only a number.
    fn handle<'a>(
        &'a self,
        tool: &'a dyn Tool,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            let mut output = tool.execute(invocation).await?;
            let refused = self.proxy.take_refusals();
            if !refused.is_empty() {
                output.content.push(ContentBlock::text(format!(
                    "[refused by the network of the sandbox: {}. The owner of MyClaw can permit a host in `{KEY}`]",
                    refused.join("; ")
                )));
            }
            Ok(output)
        })
    }
}
