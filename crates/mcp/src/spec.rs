//! What to start for a server.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use myclaw_exec::ChildSpec;
use myclaw_sandbox::{Confinement, Network, Sandbox};

/// Prepares the network of a program that is about to start. The second value is kept while the program runs.
pub type NetworkSetUp =
    dyn Fn() -> Result<(Network, Box<dyn Any + Send + Sync>), String> + Send + Sync;

/// A server of the config.
#[derive(Clone)]
pub struct ServerSpec {
    /// Its name, which begins the names of its tools.
    pub name: String,
    /// What identifies it: an approval is for one identity.
    pub identity: String,
    /// What it was made of, secrets included: two equal values share one program.
    pub fingerprint: String,
    /// How long a call may take without a sign of progress.
    pub call_limit: Duration,
    /// Starts confined programs.
    pub sandbox: Sandbox,
    /// The program.
    pub child: ChildSpec,
    /// What it may do.
    pub confinement: Confinement,
    /// Its network, if that has to be prepared.
    pub network: Option<Arc<NetworkSetUp>>,
    /// What to advise when the program fails at the start, because of its confinement.
    pub advice: String,
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerSpec").field("name", &self.name).finish_non_exhaustive()
    }
}
