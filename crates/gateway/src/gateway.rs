//! The process: opens everything, serves until it is stopped, and closes everything.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::config::Config;
use myclaw_agent::{Home, SystemClock};
use myclaw_channels::{Channel, Intake};
use myclaw_store::{SqliteStore, Store, StoreError};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::GatewayError;
use crate::client::ask;
use crate::connect::channels_of;
use crate::delivery::Delivery;
use crate::hub::Hub;
use crate::ledger::Ledger;
use crate::outbox::Outbox;
use crate::routing::{Pairings, Router};
use crate::schedule::Runner;
use crate::server::{Server, WebChannel};
use crate::token::Token;

/// Directory of the gateway in the state directory. Only the user can read it.
const DIRECTORY: &str = "gateway";
/// The database in it.
pub(crate) const STORE_FILE: &str = "store.sqlite";
/// How long running turns may take to finish after a signal. The next start continues the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts gateways.
#[derive(Debug)]
pub struct Gateway;

/// A gateway that has opened everything and listens.
pub struct Running {
    listener: TcpListener,
    server: Arc<Server>,
    routing: Arc<Router>,
    runner: Arc<Runner>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where the token is, unless the config has it.
    pub token_file: Option<PathBuf>,
    /// Messages of an earlier process that are still to be answered.
    pub recovered: usize,
}

impl Gateway {
    /// Opens the store, listens on the loopback address, and goes on with what an earlier process left.
    ///
    /// # Errors
    /// Another gateway runs, the port is in use, or a file cannot be used.
    pub async fn start(home: Home, config: Arc<Config>) -> Result<Running, GatewayError> {
        let directory = directory(&home);
        let (opened, of_config) = (directory.clone(), Arc::clone(&config));
        let opening = tokio::task::spawn_blocking(move || {
            let store = SqliteStore::open(&opened.join(STORE_FILE))?;
            Ok::<_, GatewayError>((store, Token::find_or_create(&of_config, &opened)?))
        });
        let opened = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let (store, token) = opened.map_err(|error| match error {
            GatewayError::Store(StoreError::InUse { process_id, .. }) => {
                let directory = home.paths.state_dir().to_owned();
                GatewayError::AlreadyRuns { directory, process_id }
            }
            error => error,
        })?;
        let token_file = config.gateway.token.is_none().then(|| Token::path(&directory));
        let address = address(&home, &config);
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| GatewayError::Listen { address, reason: error.to_string() })?;
        let (store, hub): (Arc<dyn Store>, _) = (Arc::new(store), Arc::new(Hub::new()));
        let ledger = Ledger::new(Arc::clone(&store));
        let mut channels: Vec<Arc<dyn Channel>> = Vec::new();
        for setup in channels_of(&home, &config) {
            match setup.made {
                Ok(channel) => channels.push(channel),
                Err(reason) => {
                    let (channel, account) = (setup.channel, setup.account);
                    tracing::error!(channel, account, %reason, "the channel cannot be used");
                }
            }
        }
        let tasks = TaskTracker::new();
        let mut of_outbox = channels.clone();
        of_outbox.push(Arc::new(WebChannel::new(Arc::clone(&hub))));
        let outbox = Outbox::new(ledger.clone(), of_outbox, tasks.clone());
        let pairings = Pairings::load(ledger).await?;
        let delivery = Delivery::new(home, Arc::clone(&config), &store, outbox, hub, tasks);
        let recovered = delivery.recover().await?;
        let runner = Runner::new(Arc::clone(&delivery), Arc::new(SystemClock));
        runner.recover().await?;
        let routing = Arc::new(Router::new(Arc::clone(&delivery), config, channels, pairings));
        let server = Arc::new(Server::new(
            delivery,
            Arc::clone(&routing),
            token,
            token_file.clone(),
            address,
        ));
        Ok(Running { listener, server, routing, runner, address, token_file, recovered })
    }
}

impl Running {
    /// Serves until `stop` fires. Then takes no more messages, and gives running turns some time to finish; the next
    /// start continues the others.
    ///
    /// # Errors
    /// The server cannot go on.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), GatewayError> {
        for channel in self.routing.channels() {
            let intake: Arc<dyn Intake> = Arc::clone(&self.routing) as Arc<dyn Intake>;
            let running = Arc::clone(channel).run(intake);
            tokio::spawn(stop.clone().run_until_cancelled_owned(running));
        }
        let scheduling = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.runner).run()));
        let serving = Arc::clone(&self.server).serve(self.listener, stop.clone());
        tokio::pin!(serving);
        // The server itself never ends before it is told to.
        tokio::select! {
            () = &mut serving => {}
            () = async {
                stop.cancelled().await;
                scheduling.abort();
                self.server.close(PATIENCE).await;
            } => {}
        }
        Ok(())
    }
}

/// What a running gateway says about itself; `None` if there is none.
///
/// # Errors
/// Something else answers at the address, or the token is missing or wrong.
pub async fn state_of(home: &Home, config: &Config) -> Result<Option<Value>, GatewayError> {
    ask(home, config, "GET", "/api/status", None).await.map(|reply| reply.map(|reply| reply.value))
}

/// Where the gateway of a state directory listens.
pub(crate) fn address(home: &Home, config: &Config) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, config.gateway_port(&home.environment)).into()
}

/// The directory of the gateway.
pub(crate) fn directory(home: &Home) -> PathBuf {
    let state: &Path = home.paths.state_dir();
    state.join(DIRECTORY)
}

/// The file of its store.
pub(crate) fn store_path(home: &Home) -> PathBuf {
    directory(home).join(STORE_FILE)
}
