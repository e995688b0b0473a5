//! What a server is, as data.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_exec::ChildSpec;
use myclaw_llm::HttpProvider;
use myclaw_sandbox::{Confinement, Network, Sandbox};
use secrecy::SecretString;
use url::Url;

/// Prepares the network of a program that is about to start. The second value is kept while the program runs.
pub type NetworkSetUp =
    dyn Fn() -> Result<(Network, Box<dyn Any + Send + Sync>), String> + Send + Sync;

/// Prepares a program that is about to start: makes its directories, and finds out whether it can be confined. Blocks.
pub type PrepareProgram = dyn Fn() -> Result<Program, String> + Send + Sync;

/// Where a script of code mode runs.
#[derive(Debug, Clone)]
pub struct ScriptPlace {
    /// The directory that it starts in and may change; it exists.
    pub work: PathBuf,
    /// The socket at which its calls are made. It is made later, and the script reaches it over [`Network::Proxy`].
    pub socket: PathBuf,
}

/// Prepares the shell that runs a script. Blocks.
pub type PrepareScript = dyn Fn(&ScriptPlace) -> Result<Program, String> + Send + Sync;

/// A server of the config.
#[derive(Clone)]
pub struct ServerSpec {
    /// Its name, which begins the names of its tools.
    pub name: String,
    /// What it was made of, secrets included: two equal values share one program or connection.
    pub fingerprint: String,
    /// What it is, for people: its command line or its address.
    pub shown: String,
    /// How long a call may take without a sign of progress.
    pub call_limit: Duration,
    /// After this time without calls it ends.
    pub idle_limit: Duration,
    /// Where it is.
    pub place: ServerPlace,
}

/// Where a server is.
#[derive(Clone)]
pub enum ServerPlace {
    /// A program on this machine, which is prepared when it is needed.
    Program(Arc<PrepareProgram>),
    /// An address.
    Address(Address),
}

/// The program of a server.
#[derive(Clone)]
pub struct Program {
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

/// A server behind HTTP.
#[derive(Clone)]
pub struct Address {
    /// Its endpoint.
    pub url: Url,
    /// What each request to its origin carries.
    pub headers: Vec<(String, SecretString)>,
    /// Makes the requests.
    pub http: Arc<HttpProvider>,
    /// The login there; `None` if a header of the config is in its place.
    pub login: Option<Arc<dyn Login>>,
}

/// A login at a server behind HTTP.
pub trait Login: Send + Sync {
    /// The token for the next request; `None` if nobody has logged in.
    ///
    /// # Errors
    /// There is a login, and no token can be had; one sentence that says why and what to do.
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>>;

    /// Takes note that the server has refused this token. Whether another one can be had.
    fn refuse<'a>(&'a self, token: &'a SecretString) -> BoxFuture<'a, bool>;

    /// The command with which one logs in.
    fn command(&self) -> &str;
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerSpec").field("name", &self.name).finish_non_exhaustive()
    }
}
