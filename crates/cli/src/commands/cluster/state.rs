//! What goes on in a cluster, for the command line and for the gateway's page, and emptying a node.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_cluster::{Cluster, NodeState, Nodes, PostgresStore, Standby, as_store};
use myclaw_delivery::ledger::waiting;
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::runtime;
use myclaw_gateway::ClusterView;
use serde::Serialize;
use serde_json::{Value, json};

use super::{of, opened};

/// How long a node may take to stop: it gives running turns ten seconds.
const STOPS_WITHIN: Duration = Duration::from_secs(40);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(200);

/// What a gateway is told, later.
type Later<'v, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'v>>;

/// What goes on in a cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterState {
    database: String,
    tenant: String,
    /// Those whose tables can be used.
    tenants: Vec<String>,
    /// A node that gives no sign for longer than this has lost what it held.
    lease_ms: u64,
    nodes: Vec<NodeState>,
    /// The servers that follow the database; `null` where it does not say.
    standbys: Option<Vec<Standby>>,
    configs_differ: bool,
    open_messages: usize,
    oldest_open_ms: Option<u64>,
}

impl ClusterState {
    fn is_alive(&self, node: &NodeState) -> bool {
        node.silent_ms <= self.lease_ms
    }
}

/// A cluster, as one of its gateways shows it.
pub(super) struct View {
    store: Arc<PostgresStore>,
    server: String,
    tenant: String,
    lease: Duration,
}

impl View {
    pub(super) fn new(cluster: &Cluster, store: Arc<PostgresStore>) -> Self {
        Self {
            store,
            server: cluster.server().to_owned(),
            tenant: cluster.tenant().to_owned(),
            lease: cluster.lease(),
        }
    }

    fn nodes(&self) -> Nodes {
        Cluster::nodes(Arc::clone(&self.store))
    }

    async fn look(&self) -> Result<ClusterState, String> {
        let waiting = waiting(as_store(&self.store)).await.map_err(|error| error.to_string())?;
        let mut state = ClusterState {
            database: self.server.clone(),
            tenant: self.tenant.clone(),
            tenants: self.store.tenants().await.map_err(|error| error.to_string())?,
            lease_ms: u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX),
            nodes: self.nodes().all().await.map_err(|error| error.to_string())?,
            standbys: self.store.standbys().await,
            configs_differ: false,
            open_messages: waiting.count,
            oldest_open_ms: waiting.oldest_ms,
        };
        let alive = state.nodes.iter().filter(|node| state.is_alive(node));
        let mut configs: Vec<&str> = alive.map(|state| state.node.config.as_str()).collect();
        configs.sort_unstable();
        configs.dedup();
        state.configs_differ = configs.len() > 1;
        Ok(state)
    }
}

impl ClusterView for View {
    fn state(&self) -> Later<'_, Value> {
        Box::pin(async { Ok(json!(self.look().await?)) })
    }

    fn drain<'v>(&'v self, node: &'v str) -> Later<'v, Vec<String>> {
        Box::pin(async { self.nodes().drain(node).await.map_err(|error| error.to_string()) })
    }
}

fn standby_in_words(standby: &Standby) -> String {
    let Standby { name, sync, lag_bytes, lag_ms } = standby;
    let Some(bytes) = lag_bytes else {
        return "one whose state the user of the address may not see (GRANT pg_monitor TO it)"
            .to_owned();
    };
    let time = lag_ms.map(|lag| format!(", {lag} ms")).unwrap_or_default();
    format!("{name} ({sync}), {bytes} bytes behind{time}")
}

pub(super) fn show(as_json: bool) -> Result<(), CliError> {
    let cluster = opened()?;
    let asking = async {
        let store = cluster.store().await.map_err(of)?;
        View::new(&cluster, store).look().await.map_err(CliError::failure)
    };
    let state = runtime::block_on(asking)??;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&json!(state))?;
        return printer.finish();
    }
    let oldest = match state.oldest_open_ms {
        Some(age) => format!(", the oldest for {} s", age / 1_000),
        None => String::new(),
    };
    printer.safe_lines([
        format!("database    {}", state.database),
        format!("waiting     {} messages without an answer{oldest}", state.open_messages),
    ])?;
    let standbys = state.standbys.iter().flatten().map(standby_in_words);
    printer.safe_lines(standbys.map(|words| format!("standby     {words}")))?;
    if state.tenants.len() > 1 {
        printer.safe_lines([format!("tenants     {}", state.tenants.join(", "))])?;
    }
    if state.nodes.is_empty() {
        printer.line("no gateway shares it; start one with `myclaw gateway`")?;
        return printer.finish();
    }
    let row = |of_node: &NodeState| {
        let held = |kind: &str| of_node.leases.get(kind).copied().unwrap_or(0).to_string();
        let sign = match (state.is_alive(of_node), of_node.node.is_draining) {
            (true, false) => format!("{} s ago", of_node.silent_ms / 1_000),
            (true, true) => "stopping".to_owned(),
            (false, _) => format!("NO SIGN for {} s", of_node.silent_ms / 1_000),
        };
        let node = &of_node.node;
        let [holder, version, address, config] =
            [&node.holder, &node.version, &node.address, &node.config].map(Clone::clone);
        vec![holder, version, address, config, sign, held("desk"), held("account")]
    };
    let titles = ["node", "version", "address", "config", "last sign", "sessions", "accounts"]
        .map(str::to_owned);
    let rows: Vec<Vec<String>> =
        std::iter::once(titles.to_vec()).chain(state.nodes.iter().map(row)).collect();
    printer.safe_lines(columns(&rows))?;
    let listening = state.nodes.iter().filter(|state| !state.accounts.is_empty());
    printer
        .safe_lines(listening.map(|state| {
            format!("{} listens on {}", state.node.holder, state.accounts.join(", "))
        }))?;
    if state.configs_differ {
        printer.line("the configs of these machines differ; give all of them the same file")?;
    }
    printer.finish()
}

pub(super) fn drain(name: &str) -> Result<(), CliError> {
    let cluster = opened()?;
    let draining = async {
        let nodes = Cluster::nodes(cluster.store().await.map_err(of)?);
        let asked = nodes.drain(name).await.map_err(|error| of(error.into()))?;
        if asked.is_empty() {
            let why = format!("no gateway has the name {name}; `myclaw cluster status` shows them");
            return Err(CliError::failure_of_class("not_found", why));
        }
        let until = Instant::now() + STOPS_WITHIN;
        loop {
            let all = nodes.all().await.map_err(|error| of(error.into()))?;
            if !all.iter().any(|state| asked.contains(&state.node.holder)) {
                return Ok(asked);
            }
            if Instant::now() > until {
                let why = format!(
                    "{name} does not stop; if its process is gone, its sessions are free already, and it leaves the list \
                     within a day"
                );
                return Err(CliError::failure(why));
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    for holder in runtime::block_on(draining)?? {
        note(format_args!("myclaw: {holder} has stopped"));
    }
    Ok(())
}
