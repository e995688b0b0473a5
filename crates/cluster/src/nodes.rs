//! The nodes that share a database: which there are, what they hold, and how one is emptied.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_config::Config;
use myclaw_files::{hex, now_ms};
use myclaw_store::{Change, Place, QueueId, Records, Store, StoreError};
use myclaw_store_postgres::PostgresStore;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::ClusterError;

const NODES: Records<Node> = Records::new(KIND);
pub(crate) const KIND: &str = "node";
/// What the nodes know each other by: a random number that everybody has who can read the database.
const SECRETS: Records<String> = Records::new(SECRET_KIND);
pub(crate) const SECRET_KIND: &str = "node-secret";
const SECRET: &str = "1";
const SECRET_BYTES: usize = 32;
const QUEUE: &str = "nodes";
/// The kind of what a node has to hold to listen on an account.
const ACCOUNT: &str = "account";
/// Digits of a digest that tell configs apart.
const DIGEST_DIGITS: usize = 12;
/// Shortest pause between two looks at the list because of a change.
const LIST_PAUSE: Duration = Duration::from_millis(200);
/// A clock that differs more from the database's is wrong.
const MOST_SKEW_MS: i64 = 10_000;
/// How long a node that gives no sign stays in the list.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A gateway that shares the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The name of the machine.
    pub name: String,
    /// The name under which the process claims things.
    pub holder: String,
    /// The version of the program.
    pub version: String,
    /// Where it listens.
    pub address: String,
    /// The hashes of the certificates that it may show; none without TLS.
    #[serde(default)]
    pub certificates: Vec<String>,
    /// Tells its config from those of others, without the section `gateway`.
    pub config: String,
    /// When it gave its last sign, by the database's clock, in milliseconds since the Unix epoch.
    pub seen: u64,
    /// Whether it looks for old parts of logs in the object storage. Earlier versions do not, and do not say so.
    #[serde(default)]
    pub reads_old_parts: bool,
    /// Whether somebody has asked it to stop.
    #[serde(default)]
    pub is_draining: bool,
}

/// A node as the database knows it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// The node.
    #[serde(flatten)]
    pub node: Node,
    /// Milliseconds since its last sign.
    pub silent_ms: u64,
    /// What it holds: how many things of each kind, such as `desk` and `account`.
    pub leases: BTreeMap<String, usize>,
    /// The accounts of channels on which it listens, such as `telegram/default`.
    pub accounts: Vec<String>,
}

/// What one node holds.
pub type Lease = myclaw_store_postgres::Lease;

/// The nodes of a database.
#[derive(Clone)]
pub struct Nodes {
    store: Arc<PostgresStore>,
}

/// What a node hears from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Somebody wants it to stop.
    Drain,
    /// Another node has another config: its name.
    OtherConfig(String),
    /// The clock of this machine differs from that of the database, by so many seconds; it is ahead if they are more than zero.
    OtherClock(i64),
    /// The database cannot be used, for this reason. Said once, until it can.
    Unusable(String),
    /// It can be used again.
    Usable,
    /// These are the other nodes now.
    Others(Vec<Node>),
}

/// What the tokens are made of by which the nodes know each other. Each node has another key, so that a token which was sent to a
/// wrong machine opens nothing else.
pub struct NodeKeys(hmac::Key);

impl NodeKeys {
    /// The key of the node with this holder.
    pub fn of(&self, holder: &str) -> String {
        hex(hmac::sign(&self.0, holder.as_bytes()).as_ref())
    }
}

/// What a node says about itself, as it changes.
#[derive(Debug)]
pub struct Own {
    /// The config in force.
    pub configs: watch::Receiver<Arc<Config>>,
    /// The hashes of the certificates that it may show.
    pub certificates: watch::Receiver<Vec<String>>,
}

impl Node {
    /// This process.
    pub fn new(name: &str, holder: &str, address: &str, config: &Config) -> Self {
        Self {
            name: name.to_owned(),
            holder: holder.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: address.to_owned(),
            certificates: Vec::new(),
            config: config_digest(config),
            seen: 0,
            reads_old_parts: true,
            is_draining: false,
        }
    }
}

/// Tells configs apart. Keys and tokens do not count, and neither does what differs from machine to machine.
pub(crate) fn config_digest(config: &Config) -> String {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Some(sections) = value.as_object_mut() {
        sections.remove("gateway");
    }
    let mut digits = hex(digest(&SHA256, value.to_string().as_bytes()).as_ref());
    digits.truncate(DIGEST_DIGITS);
    digits
}

impl Nodes {
    pub(crate) fn new(store: Arc<PostgresStore>) -> Self {
        Self { store }
    }

    /// How the nodes know each other. The first node makes the secret.
    ///
    /// # Errors
    /// The database cannot be used, or the system has no random numbers.
    pub async fn keys(&self) -> Result<NodeKeys, ClusterError> {
        let secret = loop {
            if let Some(known) = SECRETS.get(&*self.store, SECRET).await? {
                break known.row;
            }
            let mut bytes = [0; SECRET_BYTES];
            let filled = SystemRandom::new().fill(&mut bytes);
            let why = "the system has no random numbers; look what is wrong with it";
            filled.map_err(|_| ClusterError::Unusable(why.to_owned()))?;
            // Another node may have been faster.
            SECRETS.insert(&*self.store, SECRET, &hex(&bytes), None).await?;
        };
        Ok(NodeKeys(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())))
    }

    /// Gives signs of life of this node every `pause`, until the future is dropped. `hear` is called for what others want, and
    /// for which others there are.
    pub async fn attend(&self, mut node: Node, own: Own, pause: Duration, hear: impl Fn(Watch)) {
        let mut changes = self.store.watch(QueueId::new(QUEUE));
        let mut differed: Option<(String, String)> = None;
        let (mut was_wrong, mut is_unusable) = (false, false);
        loop {
            node.config = config_digest(&own.configs.borrow().clone());
            node.certificates.clone_from(&own.certificates.borrow());
            match self.sign(&node).await {
                Ok((is_draining, ahead_ms)) => {
                    if std::mem::take(&mut is_unusable) {
                        hear(Watch::Usable);
                    }
                    let is_wrong = ahead_ms.abs() > MOST_SKEW_MS;
                    if is_wrong && !was_wrong {
                        hear(Watch::OtherClock((ahead_ms + 500).div_euclid(1_000)));
                    }
                    was_wrong = is_wrong;
                    if is_draining {
                        hear(Watch::Drain);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "this node gives no sign; trying again");
                    if !std::mem::replace(&mut is_unusable, true) {
                        hear(Watch::Unusable(error.to_string()));
                    }
                }
            }
            if let Ok(others) = self.others(&node, pause * 4).await {
                hear(Watch::Others(others.clone()));
                let other = others.into_iter().find(|other| other.config != node.config);
                let seen = other.map(|other| (other.name, other.config));
                if let Some((name, _)) = seen.as_ref().filter(|_| seen != differed) {
                    hear(Watch::OtherConfig(name.clone()));
                }
                differed = seen;
            }
            // The signs of others are changes too, and are not answered by one.
            let until = tokio::time::sleep(pause);
            tokio::pin!(until);
            // A node that has begun is heard of at once, but not more often than this.
            let mut listed = Instant::now();
            loop {
                tokio::select! {
                    () = &mut until => break,
                    () = changes.changed() => {
                        if matches!(NODES.get(&*self.store, &node.holder).await, Ok(Some(row)) if row.row.is_draining) {
                            hear(Watch::Drain);
                        }
                        if listed.elapsed() >= LIST_PAUSE
                            && let Ok(others) = self.others(&node, pause * 4).await
                        {
                            listed = Instant::now();
                            hear(Watch::Others(others));
                        }
                    }
                }
            }
        }
    }

    /// Writes that this node is there. Returns whether it is asked to stop, and by how many milliseconds its clock is ahead of the
    /// database's.
    async fn sign(&self, node: &Node) -> Result<(bool, i64), StoreError> {
        let asked = now_ms();
        let seen = self.store.now_ms().await?;
        // The database looked at its clock in between.
        let ahead = |own: u64| own.cast_signed().saturating_sub(seen.cast_signed());
        let (earliest, latest) = (ahead(asked), ahead(now_ms()));
        let ahead = if earliest > 0 { earliest } else { latest.min(0) };
        let place = Place::new(QUEUE, 0);
        let signed = NODES.update(&*self.store, &node.holder, |known| {
            let is_draining = known.is_some_and(|known| known.is_draining);
            Change::put(Node { seen, is_draining, ..node.clone() }, place.clone())
        });
        Ok((signed.await?.is_some_and(|signed| signed.row.is_draining), ahead))
    }

    /// The other nodes that gave a sign within `longest`. Removes those that are long gone.
    async fn others(&self, node: &Node, longest: Duration) -> Result<Vec<Node>, StoreError> {
        let now = self.store.now_ms().await?;
        let mut others = Vec::new();
        for stored in NODES.all(&*self.store, QUEUE).await? {
            let silent = Duration::from_millis(now.saturating_sub(stored.row.seen));
            if silent > FORGOTTEN_AFTER {
                let gone = NODES.remove(&stored.id, stored.version);
                // Another node may have removed it.
                drop(self.store.commit(myclaw_store::Batch::of(gone)).await?);
            } else if silent <= longest && stored.row.holder != node.holder {
                others.push(stored.row);
            }
        }
        Ok(others)
    }

    /// Takes this node off the list, at its end.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn leave(&self, holder: &str) -> Result<(), StoreError> {
        NODES.delete(&*self.store, holder).await
    }

    /// All nodes with what they hold, by name.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn all(&self) -> Result<Vec<NodeState>, StoreError> {
        let (now, leases) = (self.store.now_ms().await?, self.store.leases().await?);
        let mut all = Vec::new();
        for stored in NODES.all(&*self.store, QUEUE).await? {
            let node: Node = stored.row;
            let (mut held, mut accounts) = (BTreeMap::<String, usize>::new(), Vec::new());
            for Lease { id, .. } in leases.iter().filter(|lease| lease.owner == node.holder) {
                *held.entry(id.kind.clone()).or_default() += 1;
                accounts.extend((id.kind == ACCOUNT).then(|| id.key.clone()));
            }
            accounts.sort_unstable();
            let silent_ms = now.saturating_sub(node.seen);
            all.push(NodeState { silent_ms, leases: held, accounts, node });
        }
        all.sort_by(|one, other| one.node.holder.cmp(&other.node.holder));
        Ok(all)
    }

    /// Asks the nodes with this name or holder to stop. Returns their holders.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn drain(&self, name: &str) -> Result<Vec<String>, StoreError> {
        let mut asked = Vec::new();
        for stored in NODES.all(&*self.store, QUEUE).await? {
            if stored.row.name != name && stored.row.holder != name {
                continue;
            }
            let place = Place::new(QUEUE, 0);
            let change = NODES.update(&*self.store, &stored.row.holder, |known| match known {
                Some(known) => Change::put(Node { is_draining: true, ..known }, place.clone()),
                None => Change::Keep,
            });
            if change.await?.is_some() {
                asked.push(stored.row.holder);
            }
        }
        Ok(asked)
    }
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Nodes").field(&self.store).finish()
    }
}
