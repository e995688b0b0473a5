//! What several machines share: the stores of an agent in a PostgreSQL database, and the nodes that use it.
//!
//! | what | where |
//! |---|---|
//! | sessions, their inboxes and their list, outputs of tools | tables of `store-postgres` |
//! | the totals of the day, approvals, what was forgotten, files to send | records of the trait `Store` |
//! | keys and logins | records that are sealed with a key of the machine; without one, files of the machine |
//! | workspaces, background jobs, vectors of notes, a copy of the outputs of tools | files of the machine, because commands and tools work with them there |
//!
//! The traits of these stores block, and `Store` does not. So their calls go through the thread that serves the connections
//! of the sessions (`blocking::Blocking`).
//!
//! This crate does not know the gateway: what runs there gets a store and the name under which it claims things.
#![forbid(unsafe_code)]

mod address;
mod approvals;
mod blocking;
mod documents;
mod error;
mod keys;
mod nodes;
mod objects;
mod outgoing;
mod spending;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::approvals::ApprovalStore;
use myclaw_agent::{Home, ServerStores, Stores};
use myclaw_config::Config;
use myclaw_files::{hex, tenants};
use myclaw_store::{Partition, Store};
use myclaw_store_postgres::{Options, PostgresSessions};
use ring::rand::{SecureRandom, SystemRandom};

pub use address::{address_of, lease_of};
pub use error::ClusterError;
pub use myclaw_store_postgres::{Address, PostgresStore, Standby};
pub use nodes::{Lease, Node, NodeKeys, NodeState, Nodes, Own, Watch};
pub use transfer::{Copied, StateDirectory};

use blocking::Blocking;

/// Directory in the state directory with what tools write in full.
const SIDE_FILES: &str = "side-files";
/// Random bytes that tell the starts of a node apart.
const START_BYTES: usize = 4;
/// Most connections of the stores whose calls block.
const FEW: usize = 2;

/// A database that several machines share, and this machine's place in it.
pub struct Cluster {
    address: Address,
    options: Options,
    sessions: Arc<PostgresSessions>,
    blocking: Arc<Blocking>,
    keys: Option<Arc<keys::RecordedKeys>>,
    stores: Stores,
    objects: Option<Arc<objects::ObjectBlobs>>,
    name: String,
    holder: String,
    lease: Duration,
}

impl Cluster {
    /// Connects to the database, and creates or updates its tables, those of another tenant than `main` only if they are there.
    /// Blocks. A call tries for `patience` while the database cannot be reached.
    ///
    /// # Errors
    /// The database cannot be reached or used, has no such tenant, or an import into it is not complete.
    pub fn open(
        home: &Home,
        config: &Config,
        address: Address,
        patience: Duration,
    ) -> Result<Self, ClusterError> {
        let cluster =
            Self::connect(home, config, address, Options { patience, ..Options::default() })?;
        cluster.check_import()?;
        Ok(cluster)
    }

    /// The same, and creates the tables of any tenant.
    ///
    /// # Errors
    /// The database cannot be reached or used.
    pub fn create(
        home: &Home,
        config: &Config,
        address: Address,
        patience: Duration,
    ) -> Result<Self, ClusterError> {
        let options = Options { patience, creates_tenant: true, ..Options::default() };
        Self::connect(home, config, address, options)
    }

    fn connect(
        home: &Home,
        config: &Config,
        address: Address,
        options: Options,
    ) -> Result<Self, ClusterError> {
        let lease = lease_of(&home.environment)?;
        let seal = keys::Seal::find(home)?;
        let name = config.gateway.node.clone().unwrap_or_else(host_name);
        let holder = format!("{name}#{}", start_id());
        // A session is free before what a dead gateway has claimed of it is, so its next holder never waits for it.
        let options = Options { lease: lease * 2 / 3, ..options };
        let scratch = home.paths.state_dir().join(of_tenant(SIDE_FILES, config, '-'));
        let sessions =
            PostgresSessions::open(address.clone(), &options, &Partition::MAIN, scratch)?;
        let objects = objects::objects_of(home, config, sessions.runtime())?;
        if let Some(objects) = &objects {
            sessions.put_contents_in(Arc::clone(objects) as _);
        }
        let sessions = Arc::new(sessions);
        let few = Options { connections: FEW, ..options.clone() };
        let blocking = Arc::new(Blocking::open(Arc::clone(&sessions), address.clone(), few)?);
        let keys = seal
            .map(|seal| Arc::new(keys::RecordedKeys::new(Arc::clone(&blocking), seal, &holder)));
        let stores = Stores {
            keys: match &keys {
                Some(keys) => Arc::clone(keys) as _,
                None => Arc::clone(&home.stores().keys),
            },
            catalog: Arc::clone(&sessions) as _,
            side_files: Arc::clone(&sessions) as _,
            sessions: Arc::clone(&sessions) as _,
            outgoing: Arc::new(outgoing::RecordedBlobs::new(Arc::clone(&blocking))),
            spending: Arc::new(spending::RecordedSpending::new(Arc::clone(&blocking))),
            approvals: ApprovalStore::kept_by(Arc::new(approvals::RecordedApprovals::new(
                Arc::clone(&blocking),
            ))),
            memory: Arc::new(documents::RecordedMemory::new(
                Arc::clone(&blocking),
                Arc::clone(&home.stores().memory),
            )),
            servers: ServerStores {
                approvals: Arc::new(documents::RecordedDocuments::new(
                    Arc::clone(&blocking),
                    documents::SERVERS,
                )),
                ..home.stores().servers.clone()
            },
            ..home.stores().clone()
        };
        Ok(Self {
            address,
            options,
            sessions,
            blocking,
            keys,
            stores,
            objects,
            name,
            holder,
            lease,
        })
    }

    /// The stores of an agent, those of the cluster in the database.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    pub(crate) fn sessions(&self) -> &PostgresSessions {
        &self.sessions
    }

    pub(crate) fn blocking(&self) -> &Arc<Blocking> {
        &self.blocking
    }

    /// Takes which other nodes there are: old parts of logs stay in the database as long as one of them would not find them
    /// elsewhere.
    pub fn heed(&self) -> impl Fn(&[Node]) + Send + use<> {
        let sessions = Arc::clone(&self.sessions);
        move |others| sessions.keep_old_parts(!others.iter().all(|node| node.reads_old_parts))
    }

    /// Writes to the object storage, reads and removes what it wrote. Returns where it is; `None` without one. Blocks.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn check_objects(&self) -> Result<Option<&str>, ClusterError> {
        let Some(objects) = &self.objects else { return Ok(None) };
        objects.check().map_err(ClusterError::Unusable)?;
        Ok(Some(objects.place()))
    }

    /// The store of the gateway. It works as long as the runtime in which this is called.
    ///
    /// # Errors
    /// The database cannot be reached or used.
    pub async fn store(&self) -> Result<Arc<PostgresStore>, ClusterError> {
        Ok(Arc::new(PostgresStore::open(self.address.clone(), self.options.clone()).await?))
    }

    /// The nodes of the cluster.
    pub fn nodes(store: Arc<PostgresStore>) -> Nodes {
        Nodes::new(store)
    }

    /// The name of this machine, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name under which this process claims things. No other one has it.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// How long what a gateway holds stays its own after its death.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// The tenant whose sessions and records these are.
    pub fn tenant(&self) -> &str {
        self.address.tenant()
    }

    /// The server, the database, and the tenant if it is another one than `main`, for people.
    pub fn server(&self) -> &str {
        self.address.server()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Cluster")
            .field("server", &self.server())
            .field("holder", &self.holder)
            .finish()
    }
}

/// A name that no other tenant has.
pub(crate) fn of_tenant(name: &str, config: &Config, between: char) -> String {
    match config.gateway.tenant.as_str() {
        tenants::MAIN => name.to_owned(),
        tenant => format!("{name}{between}{tenant}"),
    }
}

fn host_name() -> String {
    myclaw_files::portable::host_name()
}

fn start_id() -> String {
    let mut bytes = [0; START_BYTES];
    // Without random numbers the number of the process tells the starts of one machine apart.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => hex(&bytes),
        Err(_) => std::process::id().to_string(),
    }
}

/// A store as the trait that its users know.
pub fn as_store(store: &Arc<PostgresStore>) -> Arc<dyn Store> {
    Arc::clone(store) as Arc<dyn Store>
}
