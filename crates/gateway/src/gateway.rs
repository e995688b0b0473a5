//! The process: opens everything, serves until it is stopped, and closes everything.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{AgentError, Home, config_check::load_checked};
use myclaw_channels::Channel;
use myclaw_config::Loaded;
use myclaw_delivery::channels::Channels;
use myclaw_delivery::current::{Current, InForce};
use myclaw_delivery::delivery::{Delivery, DeliveryParts};
use myclaw_delivery::ledger::{Ledger, now_ms};
use myclaw_delivery::outbox::Outbox;
use myclaw_delivery::routing::{Pairings, Router};
use myclaw_delivery::schedule::Runner;
use myclaw_delivery::sharing::Sharing;
use myclaw_engine::SystemClock;
use myclaw_files::LockFile;
use myclaw_gateway_client::{
    GatewayToken, RunningFile, Say, gateway_address, gateway_directory, store_path,
};
use myclaw_store::{SqliteStore, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::GatewayError;
use crate::connect::channels_of;
use crate::containers::{Containers, MakeHost};
use crate::counting::Counting;
use crate::devices::Devices;
use crate::hub::Hub;
use crate::nodes::Nodes;
use crate::peers::{Peer, Peers, Relay};
use crate::planned::planned;
use crate::push::{Notifying, Push};
use crate::reload::{OnConfig, Reloader};
use crate::reloads::{Reloads, Stamp};
use crate::server::front::Front;
use crate::server::guard::Tokens;
use crate::server::{Server, WebChannel};
use crate::tools::{GatewayTools, LateServer};

/// How long running turns may take to finish after a signal. The next start continues the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts gateways.
#[derive(Debug)]
pub struct Gateway;

/// A gateway that has opened everything and listens.
pub struct Running {
    listener: TcpListener,
    reloader: Reloader,
    routing: Arc<Router>,
    directory: PathBuf,
    /// Where programs of this machine reach it.
    pub url: String,
    /// Whether it listens on every address of this machine.
    pub is_everywhere: bool,
    /// Where the token is, unless the config has it.
    pub token_file: Option<PathBuf>,
    /// Messages of an earlier process that are still to be answered.
    pub recovered: usize,
    /// What the owner has to correct, one line each.
    pub problems: Vec<String>,
    /// What the clock is going to begin, and what it may cost, one line each.
    pub planned: Vec<String>,
    containers: Option<Arc<Containers>>,
    /// The other gateways on the store.
    others: Option<watch::Receiver<Vec<Peer>>>,
    /// Of the state directory, if the store is elsewhere.
    _lock: Option<LockFile>,
}

impl Running {
    /// A link that signs the owner in once, in a browser of this machine, within ten minutes.
    pub fn sign_in_link(&self) -> Option<String> {
        self.reloader.server.new_links().0.into_iter().next()
    }
}

impl Gateway {
    /// Reads the config, opens the store, listens on the loopback address, and continues what an earlier process left.
    ///
    /// # Errors
    /// Another gateway runs, the config or another file cannot be used, or the port is in use. A host that cannot be
    /// opened is no error: everything else works.
    pub async fn start(home: Home, host: MakeHost) -> Result<Running, GatewayError> {
        Self::start_as(home, host, Sharing::Alone).await
    }

    /// Like [`Gateway::start`], with a store that other gateways share, which are `peers`. The lock of the state directory's own store is
    /// held, so that one gateway runs here and programs of this machine find it.
    ///
    /// # Errors
    /// As for [`Gateway::start`].
    pub async fn start_on(
        home: Home,
        host: MakeHost,
        (store, sharing): (Arc<dyn Store>, Sharing),
        peers: Peers,
    ) -> Result<Running, GatewayError> {
        let opened = open(&home, move |path| Ok((store, Some(SqliteStore::keep_closed(path)?))));
        Self::begin(opened.await?, (home, host), sharing, Some(peers)).await
    }

    /// Like [`Gateway::start`], with other gateways on the same store. For tests: an SQLite file is for one process.
    ///
    /// # Errors
    /// As for [`Gateway::start`].
    pub async fn start_as(
        home: Home,
        host: MakeHost,
        sharing: Sharing,
    ) -> Result<Running, GatewayError> {
        let is_alone = sharing == Sharing::Alone;
        let opened = open(&home, move |path| {
            let store = match is_alone {
                true => SqliteStore::open(path)?,
                false => SqliteStore::open_shared(path, Arc::new(now_ms))?,
            };
            Ok((Arc::new(store) as Arc<dyn Store>, None))
        });
        Self::begin(opened.await?, (home, host), sharing, None).await
    }

    async fn begin(
        opened: Opened,
        (home, host): (Home, MakeHost),
        sharing: Sharing,
        peers: Option<Peers>,
    ) -> Result<Running, GatewayError> {
        let Opened { store, lock, stamp, loaded, token, front } = opened;
        let (config, found) = (loaded.config, loaded.found);
        let directory = gateway_directory(&home);
        let token_file = config.gateway.token.is_none().then(|| GatewayToken::path(&directory));
        let (listener, address) = listen(gateway_address(&home, &config)).await?;
        let running = RunningFile::new(address, front.fingerprint());
        let (of_file, written) = (directory.clone(), running.clone());
        let writing = tokio::task::spawn_blocking(move || written.write(&of_file));
        writing.await.map_err(|error| GatewayError::Internal(error.to_string()))??;
        let url = running.url();
        let reloads = Reloads::new(&home);
        let current = Current::new(InForce { home, config, found });
        let core = core(Ledger::of(sharing.claims(store)), &current).await?;
        let Core { hub, push, relay, counting, channels, nodes, pairings, delivery, late_server } =
            core;
        let (own_key, shared) = peers.map(|peers| (peers.key, (peers.others, peers.view))).unzip();
        let (others, view) = shared.unzip();
        let recovered = delivery.recover().await?;
        let runner = Runner::new(Arc::clone(&delivery), Arc::new(SystemClock));
        runner.recover().await?;
        let (of_routing, of_channels) = (Arc::clone(&current), Arc::clone(&channels));
        let routing =
            Arc::new(Router::new(Arc::clone(&delivery), of_routing, of_channels, pairings));
        let server = Arc::new(Server::new(
            (Arc::clone(&delivery), Arc::clone(&routing)),
            (hub, push),
            (Arc::clone(&counting), nodes),
            (relay, view),
            (Tokens::new(token, running.token.clone(), own_key), front),
            Arc::clone(&reloads),
            address,
        ));
        // There is one only.
        let _ = late_server.set(Arc::downgrade(&server));
        let first = current.get();
        let containers = Containers::open(&first.config, host).await.map(Arc::new);
        let problems = containers.iter().flat_map(|it| it.problems(&first.config)).collect();
        let planned = planned(delivery.book(), &counting.usage, &first.config).await?;
        if let Some(containers) = &containers {
            routing.link_groups(Arc::clone(containers) as _);
        }
        let reloader = Reloader {
            current,
            channels,
            delivery,
            counting,
            runner,
            server,
            reloads,
            first,
            stamp,
            certificates: watch::Sender::new(running.certificates.clone()),
            running,
        };
        let is_everywhere = address.ip().is_unspecified();
        Ok(Running {
            listener,
            reloader,
            routing,
            directory,
            url,
            is_everywhere,
            token_file,
            recovered,
            containers,
            problems,
            planned,
            others,
            _lock: lock,
        })
    }
}

/// What is between the channels and the sessions, and what its events and calls need.
struct Core {
    hub: Arc<Hub>,
    push: Arc<Push>,
    relay: Arc<Relay>,
    counting: Arc<Counting>,
    channels: Arc<Channels>,
    nodes: Arc<Nodes>,
    pairings: Arc<Pairings>,
    delivery: Arc<Delivery>,
    late_server: LateServer,
}

async fn core(ledger: Ledger, current: &Arc<Current>) -> Result<Core, GatewayError> {
    let InForce { home, config, .. } = &*current.get();
    let (hub, tasks) = (Arc::new(Hub::new()), TaskTracker::new());
    let of_server = Arc::new(WebChannel::new(Arc::clone(&hub)));
    let channels = Channels::new(of_server, channels_of(home, config));
    let counting = Arc::new(Counting::new(ledger.clone(), config));
    counting.begin(&tasks);
    let (of_outbox, counters) = (Arc::clone(&channels), Arc::clone(&counting));
    let files = Arc::clone(&home.stores().outgoing);
    let outbox = Outbox::new(ledger.clone(), of_outbox, files, counters, tasks.clone());
    let nodes = Nodes::new(Arc::new(Devices::load(ledger.clone()).await?));
    let relay = Relay::new(Arc::clone(&hub), Arc::clone(ledger.claims()));
    let push = Push::new(ledger.clone(), Arc::clone(&nodes.devices), Arc::clone(current));
    let pairings = Arc::new(Pairings::load(ledger).await?);
    let parts = DeliveryParts {
        current: Arc::clone(current),
        outbox,
        front: Arc::new(Notifying { hub: Arc::clone(&hub), push: Arc::clone(&push) }),
        pairings: Arc::clone(&pairings),
        others: Arc::clone(&relay) as _,
        tasks,
    };
    let late_server = LateServer::default();
    let (of_tools, of_server) = (Arc::clone(&nodes), Arc::clone(&late_server));
    let make_tools = |delivery| Arc::new(GatewayTools::new(delivery, of_tools, of_server)) as _;
    let delivery = Delivery::new(parts, Box::new(make_tools));
    Ok(Core { hub, push, relay, counting, channels, nodes, pairings, delivery, late_server })
}

/// What is open before anything else.
struct Opened {
    store: Arc<dyn Store>,
    lock: Option<LockFile>,
    stamp: Stamp,
    loaded: Loaded,
    token: GatewayToken,
    front: Front,
}

/// Listens, and says where.
async fn listen(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), GatewayError> {
    let mut bound = TcpListener::bind(wanted).await;
    if bound.is_err() && wanted.ip() == Ipv6Addr::UNSPECIFIED {
        // A system without IPv6.
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, wanted.port())).await;
    }
    let listening = bound.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    listening.map_err(|error| GatewayError::Listen { address: wanted, reason: error.to_string() })
}

async fn open(
    home: &Home,
    open_store: impl FnOnce(&Path) -> Result<(Arc<dyn Store>, Option<LockFile>), StoreError>
    + Send
    + 'static,
) -> Result<Opened, GatewayError> {
    let (path, directory, of_config) = (store_path(home), gateway_directory(home), home.clone());
    let opening = tokio::task::spawn_blocking(move || {
        let (store, lock) = open_store(&path)?;
        // Before the file is read: what changes later is noticed.
        let stamp = Stamp::of(&of_config);
        let loaded = load_checked(&of_config.environment).map_err(AgentError::from)?;
        let token = GatewayToken::find_or_create(&loaded.config, &directory)?;
        let front = Front::read(&of_config, &loaded.config)?;
        Ok::<_, GatewayError>(Opened { store, lock, stamp, loaded, token, front })
    });
    let opened = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    opened.map_err(|error| match error {
        GatewayError::Store(StoreError::InUse { process_id, .. }) => {
            let directory = home.paths.state_dir().to_owned();
            GatewayError::AlreadyRuns { directory, process_id }
        }
        error => error,
    })
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped.
    Stopped,
    /// The owner or the owner's agent asked for a restart: the caller runs the program again.
    Restart,
}

/// The signals that a serving gateway obeys, and the callbacks that it calls.
pub struct Control {
    /// Fires when it is to stop.
    pub stop: CancellationToken,
    /// Makes it read the config again.
    pub reload: Arc<Notify>,
    /// Receives what the owner should know.
    pub say: Say,
    /// Receives each further config before anything uses it.
    pub on_config: OnConfig,
}

impl Running {
    /// The hashes of the certificates that it may show, as they change; none without TLS.
    pub fn certificates(&self) -> watch::Receiver<Vec<String>> {
        self.reloader.certificates.subscribe()
    }

    /// What is between the channels and the sessions.
    #[cfg(test)]
    pub(crate) fn delivery(&self) -> Arc<Delivery> {
        Arc::clone(&self.reloader.delivery)
    }

    /// Adds a channel of the program that embeds the gateway. A reload of the config leaves it alone. Its messages are taken
    /// as the owner's: it decides itself who may write.
    #[must_use]
    pub fn with_channel(self, channel: Arc<dyn Channel>) -> Self {
        self.reloader.channels.keep(channel);
        self
    }

    /// Ends it as a stop does, and has the caller run the program again.
    pub fn restart(&self) -> CancellationToken {
        self.reloader.delivery.restart()
    }

    /// Serves until it is stopped. Then takes no more messages, and gives running turns some time to finish; the next
    /// start continues the others.
    pub async fn serve(self, control: Control) -> Ended {
        let Control { stop, reload, say, on_config } = control;
        let restart = self.reloader.delivery.restart();
        // What a stop ends, a restart ends too.
        let (asked, stop) = (stop.clone(), stop.child_token());
        let (server, runner) =
            (Arc::clone(&self.reloader.server), Arc::clone(&self.reloader.runner));
        let (routing, nodes) = (Arc::clone(&self.routing), Arc::clone(&self.reloader.server.nodes));
        let _following = [
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&server.push).follow())),
            AbortOnDropHandle::new(tokio::spawn(async move { nodes.devices.follow().await })),
            AbortOnDropHandle::new(tokio::spawn(async move { routing.pairings().follow().await })),
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.reloader.delivery).share())),
        ];
        let _relaying = self.others.map(|others| {
            let relay = Arc::clone(&server.relay);
            AbortOnDropHandle::new(tokio::spawn(relay.follow(others, Arc::clone(&say))))
        });
        let claims = Arc::clone(self.reloader.delivery.ledger().claims());
        self.reloader.channels.receive(self.routing, stop.clone(), claims);
        let hosting = self.containers.map(|containers| {
            let delivery = Arc::downgrade(&self.reloader.delivery);
            let current = Arc::clone(&self.reloader.current);
            let (say, stop) = (Arc::clone(&say), stop.clone());
            tokio::spawn(async move { containers.serve((delivery, current), say, stop).await })
        });
        let scheduling = AbortOnDropHandle::new(tokio::spawn(runner.run()));
        let channels = Arc::clone(&self.reloader.channels);
        tokio::spawn(channels.report(Arc::clone(&say), stop.clone()));
        let _watching = AbortOnDropHandle::new(tokio::spawn(self.reloader.watch(
            reload,
            (say, on_config),
            stop.clone(),
        )));
        let serving = Arc::clone(&server).serve(self.listener, stop.clone());
        tokio::pin!(serving);
        // The server never ends without an order.
        tokio::select! {
            () = &mut serving => {}
            () = async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = restart.cancelled() => stop.cancel(),
                }
                scheduling.abort();
                server.close(PATIENCE).await;
            } => {}
        }
        if let Some(hosting) = hosting {
            // Its runs get their own time to end.
            drop(hosting.await);
        }
        let directory = self.directory;
        // Whether it is removed matters to nobody: the store says whether a gateway runs.
        let _ = tokio::task::spawn_blocking(move || RunningFile::remove(&directory)).await;
        // An order to end cancels a planned restart.
        match restart.is_cancelled() && !asked.is_cancelled() {
            true => Ended::Restart,
            false => Ended::Stopped,
        }
    }
}

#[cfg(test)]
mod tests;
