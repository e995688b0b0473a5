//! The process: opens everything, serves until it is stopped, and closes everything.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use myclaw_agent::Home;
use myclaw_agent::config::Config;
use myclaw_store::{SqliteStore, StoreError};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::GatewayError;
use crate::channel::Channel;
use crate::delivery::Delivery;
use crate::hub::Hub;
use crate::ledger::Ledger;
use crate::outbox::Outbox;
use crate::server::{Server, WebChannel};
use crate::token::Token;

/// Directory of the gateway in the state directory. Only the user can read it.
const DIRECTORY: &str = "gateway";
/// The database in it.
const STORE_FILE: &str = "store.sqlite";
/// How long running turns may take to finish after a signal. The next start continues the others.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for the answer of a running gateway.
const STATUS_WAIT: Duration = Duration::from_secs(5);

/// Starts gateways.
#[derive(Debug)]
pub struct Gateway;

/// A gateway that has opened everything and listens.
pub struct Running {
    listener: TcpListener,
    server: Arc<Server>,
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
        let (ledger, hub) = (Ledger::new(Arc::new(store)), Arc::new(Hub::new()));
        let channel: Arc<dyn Channel> = Arc::new(WebChannel::new(Arc::clone(&hub)));
        let tasks = TaskTracker::new();
        let outbox = Outbox::new(ledger.clone(), vec![channel], tasks.clone());
        let delivery = Delivery::new(home, config, ledger, outbox, hub, tasks);
        let recovered = delivery.recover().await?;
        let server = Arc::new(Server::new(delivery, token, token_file.clone(), address));
        Ok(Running { listener, server, address, token_file, recovered })
    }
}

impl Running {
    /// Serves until `stop` fires. Then takes no more messages, and gives running turns some time to finish; the next
    /// start continues the others.
    ///
    /// # Errors
    /// The server cannot go on.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), GatewayError> {
        let serving = Arc::clone(&self.server).serve(self.listener, stop.clone());
        tokio::pin!(serving);
        // The server itself never ends before it is told to.
        tokio::select! {
            () = &mut serving => {}
            () = async {
                stop.cancelled().await;
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
    let (address, directory) = (address(home, config), directory(home));
    // Without the gateway, whoever listens at its address would be given its token.
    if !SqliteStore::is_open(&directory.join(STORE_FILE))? {
        return Ok(None);
    }
    let Ok(stream) = TcpStream::connect(address).await else { return Ok(None) };
    let Some(token) = Token::find(config, &directory)? else {
        let what = format!(
            "something listens on {address}, but this state directory has no gateway token"
        );
        return Err(GatewayError::Token(format!("{what}; set gateway.port to another port")));
    };
    let other = |reason: &str| {
        GatewayError::Token(format!(
            "what listens on {address} is not the gateway of this state directory ({reason}); stop it, or set \
             gateway.port to another port"
        ))
    };
    let asking = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = hyper::Request::get("/api/status")
            .header("Host", address.to_string())
            .header("Authorization", token.header())
            .body(Empty::<Bytes>::new());
        let response = sender.send_request(request.ok()?).await.ok()?;
        let status = response.status();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, body))
    };
    let answer = tokio::time::timeout(STATUS_WAIT, asking).await;
    let (status, body) = answer.ok().flatten().ok_or_else(|| other("it gave no answer"))?;
    if !status.is_success() {
        return Err(other(&format!("it answered {status}")));
    }
    serde_json::from_slice(&body).map(Some).map_err(|_| other("it does not speak JSON"))
}

fn address(home: &Home, config: &Config) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, config.gateway_port(&home.environment)).into()
}

fn directory(home: &Home) -> PathBuf {
    let state: &Path = home.paths.state_dir();
    state.join(DIRECTORY)
}
