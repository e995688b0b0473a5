//! `myclaw cluster` and `myclaw store`, and the gateway on a database that several machines share.

mod state;

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{Home, SessionConfig, SessionOptions, Stores};
use myclaw_cluster::{
    Address, Cluster, ClusterError, Copied, Node, Own, StateDirectory, Watch, address_of, as_store,
};
use myclaw_config::Config;
use myclaw_delivery::sharing::Sharing;
use myclaw_files::variables;
use myclaw_gateway::{Gateway, GatewayError, MakeHost, Peer, Peers, Running};
use myclaw_gateway_client::{GatewayToken, Say};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::args::{ClusterArgs, ClusterCommand, StoreArgs, StoreCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::memory::finish_forgetting_in;
use myclaw_front::print::{Printer, note};

/// How long a gateway tries to reach its database, at its start and in each call.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same for a command that somebody waits for.
const SHORT_PATIENCE: Duration = Duration::from_secs(3);

/// The database that this gateway shares with others, and its place among them.
pub(crate) struct Shared {
    cluster: Cluster,
    configs: watch::Sender<Arc<Config>>,
}

/// The presence of a gateway in its cluster. It gives signs of life until this is dropped.
pub(crate) struct Presence {
    nodes: myclaw_cluster::Nodes,
    holder: String,
    _attending: AbortOnDropHandle<()>,
}

impl Shared {
    /// The database that the config names; `None` if it names none. Blocks.
    pub(crate) fn find(home: &Home, config: &Arc<Config>) -> Result<Option<Self>, CliError> {
        let Some(address) = address(home, config)? else { return Ok(None) };
        let cluster = Cluster::open(home, config, address, PATIENCE).map_err(of)?;
        Ok(Some(Self { cluster, configs: watch::Sender::new(Arc::clone(config)) }))
    }

    /// The home with the stores in the database.
    pub(crate) fn home(&self, home: Home) -> Home {
        home.with_stores(self.cluster.stores().clone())
    }

    /// Starts a gateway among the others. `stop` fires when somebody drains it.
    pub(crate) async fn start(
        &self,
        home: Home,
        host: MakeHost,
        stop: CancellationToken,
        say: Say,
    ) -> Result<(Running, Presence), GatewayError> {
        let failed = |error| match error {
            ClusterError::Store(error) => GatewayError::Store(error),
            error => GatewayError::Elsewhere(error.to_string()),
        };
        let store = self.cluster.store().await.map_err(failed)?;
        let holder = self.cluster.holder().to_owned();
        let sharing = Sharing::Shared { holder: holder.clone(), lease: self.cluster.lease() };
        let nodes = Cluster::nodes(Arc::clone(&store));
        let keys = nodes.keys().await.map_err(failed)?;
        let (list, others) = watch::channel(Vec::new());
        let view = Arc::new(state::View::new(&self.cluster, Arc::clone(&store)));
        let peers = Peers { key: GatewayToken::of(keys.of(&holder)), others, view };
        let running = Gateway::start_on(home, host, (as_store(&store), sharing), peers);
        let running = running.await?;
        say(&format!("sharing the database {} as {holder}", self.cluster.server()));
        let address = match running.is_everywhere {
            true => running.url.replace("127.0.0.1", self.cluster.name()),
            false => running.url.clone(),
        };
        let configs = self.configs.subscribe();
        let node = Node::new(self.cluster.name(), &holder, &address, &configs.borrow().clone());
        let own = Own { configs, certificates: running.certificates() };
        let pause = self.cluster.lease() / 3;
        let (attending, heed) = (nodes.clone(), self.cluster.heed());
        let hear = move |heard: Watch| match heard {
            Watch::Drain => {
                if !stop.is_cancelled() {
                    say("somebody drains this gateway; it stops");
                }
                stop.cancel();
            }
            Watch::Others(nodes) => {
                heed(&nodes);
                let peer = |node: myclaw_cluster::Node| Peer {
                    key: GatewayToken::of(keys.of(&node.holder)),
                    holder: node.holder,
                    address: node.address,
                    certificates: node.certificates,
                };
                let listed: Vec<Peer> = nodes.into_iter().map(peer).collect();
                list.send_if_modified(|known| {
                    let is_new = *known != listed;
                    *known = listed;
                    is_new
                });
            }
            Watch::OtherClock(seconds) => say(&format!(
                "the clock of this machine is {} s {} that of the database; set it (with NTP), or its times of messages and \
                 schedules are wrong",
                seconds.abs(),
                if seconds > 0 { "ahead of" } else { "behind" },
            )),
            Watch::Unusable(problem) => {
                say(&format!("{problem}; trying again until it can be used"))
            }
            Watch::Usable => say("the database can be used again"),
            Watch::OtherConfig(name) => say(&format!(
                "the config of {name} differs from the one here; give all machines the same file"
            )),
        };
        let attending = tokio::spawn(async move { attending.attend(node, own, pause, hear).await });
        Ok((running, Presence { nodes, holder, _attending: AbortOnDropHandle::new(attending) }))
    }

    /// Heeds a config that is in force from now on.
    pub(crate) fn use_config(&self, config: &Config) {
        self.configs.send_replace(Arc::new(config.clone()));
    }
}

impl Presence {
    /// Takes the gateway off the list, after it has given everything back.
    pub(crate) async fn leave(self) {
        let Self { nodes, holder, _attending } = self;
        drop(_attending);
        if let Err(error) = nodes.leave(&holder).await {
            note(format_args!(
                "myclaw: this gateway stays in the list of nodes for a while: {error}"
            ));
        }
    }
}

/// The home of commands that read sessions: those in the database, if the config names one.
pub(crate) fn home_of_sessions() -> Result<Home, CliError> {
    let home = find_home()?;
    // Sessions can be listed without a config that can be read.
    let Ok(config) = SessionConfig::load(home.clone(), &SessionOptions::default()) else {
        return Ok(home);
    };
    let Some(address) = address(&home, &config.config)? else { return Ok(home) };
    let cluster = Cluster::open(&home, &config.config, address, SHORT_PATIENCE).map_err(of)?;
    let home = home.with_stores(cluster.stores().clone());
    finish_forgetting_in(&home, &config.config)?;
    Ok(home)
}

/// The home with the keys in the database, if the config names one and they are there.
pub(crate) fn with_shared_keys(home: Home, config: &Config) -> Result<Home, CliError> {
    let has_key =
        home.environment.get(variables::STORE_KEY).is_some_and(|key| !key.trim().is_empty());
    let Some(address) = address(&home, config)?.filter(|_| has_key) else { return Ok(home) };
    let cluster = Cluster::open(&home, config, address, SHORT_PATIENCE).map_err(of)?;
    let keys = Arc::clone(&cluster.stores().keys);
    let stores = Stores { keys, ..home.stores().clone() };
    Ok(home.with_stores(stores))
}

/// Runs one of the commands about nodes.
pub(crate) fn run(args: &ClusterArgs) -> Result<(), CliError> {
    match &args.command {
        ClusterCommand::Status { json } => state::show(*json),
        ClusterCommand::Drain { node } => state::drain(node),
    }
}

/// Runs one of the commands about the database.
pub(crate) fn store(args: &StoreArgs) -> Result<(), CliError> {
    match &args.command {
        StoreCommand::Migrate => {
            let cluster = opened_by(Cluster::create)?;
            note(format_args!(
                "myclaw: the tables in {} have the form of this version",
                cluster.server()
            ));
            Ok(())
        }
        StoreCommand::Check { json } => check(*json),
        StoreCommand::Import { directory } => {
            let cluster = opened_by(Cluster::create)?;
            let home = find_home()?;
            let from = directory.as_deref().unwrap_or(home.paths.state_dir());
            let copied = cluster.import(&StateDirectory::at(from)).map_err(of)?;
            say_copied(copied, cluster.server());
            Ok(())
        }
        StoreCommand::Export { directory } => {
            let copied = opened()?.export(&StateDirectory::at(directory)).map_err(of)?;
            say_copied(copied, &directory.display().to_string());
            Ok(())
        }
    }
}

fn say_copied(copied: Copied, to: &str) {
    let Copied { sessions, waiting, records, files, keys, sealed, left_out } = copied;
    note(format_args!(
        "myclaw: copied to {to}: {sessions} sessions with {waiting} waiting messages, {records} records, {files} files to \
         send, {keys} keys and logins"
    ));
    if sealed > 0 {
        note(format_args!(
            "myclaw: keys and logins were left out, because MYCLAW_STORE_KEY is not set (docs/operate/cluster.md)"
        ));
    }
    if left_out > 0 {
        note(format_args!("myclaw: {left_out} damaged lines, logs or files were left out"));
    }
}

/// The database, which the config must name.
fn opened() -> Result<Cluster, CliError> {
    opened_by(Cluster::open)
}

fn opened_by(
    open: impl FnOnce(&Home, &Config, Address, Duration) -> Result<Cluster, ClusterError>,
) -> Result<Cluster, CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let Some(address) = address(&session.home, &session.config)? else {
        let why = "the config names no database; set gateway.store, or MYCLAW_STORE_URL, to \
                   postgresql://user:password@host/database (docs/operate/cluster.md)";
        return Err(CliError::config(why));
    };
    open(&session.home, &session.config, address, SHORT_PATIENCE).map_err(of)
}

fn address(home: &Home, config: &Config) -> Result<Option<Address>, CliError> {
    address_of(home, config).map_err(of)
}

fn of(error: ClusterError) -> CliError {
    match error {
        ClusterError::Config(why) => CliError::config(why),
        ClusterError::Session(error) => error.into(),
        error => CliError::failure_of_class("store", error.to_string()),
    }
}

fn check(as_json: bool) -> Result<(), CliError> {
    let cluster = opened()?;
    let sessions = cluster.stores().catalog.latest(0)?.1;
    let objects = cluster.check_objects().map_err(of)?;
    let mut printer = Printer::stdout();
    if as_json {
        let found = json!({"database": cluster.server(), "sessions": sessions, "objects": objects});
        printer.json(&found)?;
    } else {
        printer.safe_lines([
            format!(
                "database    {}: it takes writes, and its tables have the form of this version",
                cluster.server()
            ),
            format!("sessions    {sessions}"),
        ])?;
        let objects =
            objects.map(|place| format!("contents    {place}: it can be written and read"));
        printer.safe_lines(objects)?;
    }
    printer.finish()
}
