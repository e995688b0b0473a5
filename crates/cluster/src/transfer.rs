//! A state directory into the database, and back.
//!
//! Logs are copied line by line as they are. Records keep their order in each queue, and get new versions, which nobody
//! has read yet. What belongs to running processes, such as claims, is left out.

mod export;
mod import;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_auth::AuthStore;
use myclaw_files::FileDocuments;
use myclaw_session::BlobLimits;
use myclaw_store::{Batch, Commit, Partition, Record, Store, StoreError, Write};

use crate::documents::{self, RecordedDocuments};
use crate::{Cluster, ClusterError, approvals, keys, nodes, outgoing, spending};

/// Kinds of records that say what processes hold at the moment.
const OF_PROCESSES: [&str; 6] =
    ["desk", "account", nodes::KIND, nodes::SECRET_KIND, keys::LOGINS_KIND, import::KIND];
/// Kinds of records that are files in a state directory.
const FILES_ELSEWHERE: [&str; 6] = [
    approvals::KIND,
    spending::KIND,
    documents::KIND,
    outgoing::KIND,
    outgoing::PART_KIND,
    keys::KIND,
];
/// Records and bytes that are written at once.
const AT_ONCE: usize = 200;
const BYTES_AT_ONCE: usize = 8 * 1024 * 1024;
/// No limits: what is copied was kept before.
const ALL: BlobLimits = BlobLimits { each: u64::MAX - 1, together: None };

/// Where the parts of a state directory are.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    /// The directory.
    pub path: PathBuf,
    /// That of its sessions.
    pub sessions: PathBuf,
    /// The file of the gateway's store.
    pub store: PathBuf,
    /// The directory with files that wait to be sent.
    pub outgoing: PathBuf,
    /// The file with the answers "always".
    pub approvals: PathBuf,
    /// The file with the totals of the day.
    pub spending: PathBuf,
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Sessions.
    pub sessions: usize,
    /// Messages that wait for one.
    pub waiting: usize,
    /// Records of the gateway.
    pub records: usize,
    /// Files that wait to be sent.
    pub files: usize,
    /// Keys of providers, and logins.
    pub keys: usize,
    /// Stores of them that cannot be copied, because the key that seals them is not set.
    pub sealed: usize,
    /// Lines and logs that cannot be copied: they are no text, or have no header.
    pub left_out: usize,
}

impl StateDirectory {
    /// That at `path`.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            sessions: path.join("sessions"),
            store: path.join("gateway/store.sqlite"),
            outgoing: path.join("gateway/outgoing"),
            approvals: path.join("approvals.json"),
            spending: path.join("usage.json"),
        }
    }

    /// The documents of a collection.
    fn documents(&self, collection: &str) -> FileDocuments {
        FileDocuments::new(match collection.strip_prefix(documents::MEMORY) {
            Some(agent) => self.path.join("agents").join(agent).join("agent/memory"),
            None => self.path.join(collection),
        })
    }

    /// The ids of its agents.
    fn agents(&self) -> impl Iterator<Item = String> {
        let agents = fs::read_dir(self.path.join("agents")).into_iter().flatten().flatten();
        agents.filter_map(|agent| agent.file_name().into_string().ok())
    }

    /// The names of all collections that it may have.
    fn collections(&self) -> Vec<String> {
        let of_agents = self.agents().map(|agent| format!("{}{agent}", documents::MEMORY));
        of_agents.chain([documents::SERVERS.to_owned()]).collect()
    }

    /// The store of keys that has this key in the database.
    fn keys(&self, key: &str) -> AuthStore {
        AuthStore::in_agent_dir(&match key.strip_prefix(keys::OF_AGENT) {
            Some(agent) => self.path.join("agents").join(agent).join("agent"),
            None => self.path.join("mcp/logins"),
        })
    }
}

impl Cluster {
    /// Copies a store of keys in the direction that `pair` says: from the first to the second.
    fn copy_keys(
        &self,
        key: &str,
        copied: &mut Copied,
        pair: impl FnOnce(AuthStore) -> (AuthStore, AuthStore),
    ) -> Result<(), ClusterError> {
        let Some(records) = &self.keys else {
            copied.sealed += 1;
            return Ok(());
        };
        let (from, to) = pair(records.of(key));
        let file = from.load().map_err(|error| ClusterError::Unusable(error.to_string()))?;
        copied.keys += file.profiles().count();
        let kept = to.change(|kept| *kept = file.clone());
        kept.map(drop).map_err(|error| ClusterError::Unusable(error.to_string()))
    }

    fn documents(&self, collection: &str) -> RecordedDocuments {
        RecordedDocuments::new(Arc::clone(self.blocking()), collection)
    }
}

/// Records that are written together.
#[derive(Default)]
struct Waiting {
    writes: Vec<Write>,
    bytes: usize,
}

impl Waiting {
    /// Returns those that are enough for a batch.
    fn add(&mut self, record: Record) -> Option<Vec<Write>> {
        self.bytes += record.value.len();
        let Record { id, value, place, .. } = record;
        self.writes.push(Write::Insert { id, value, place });
        let is_full = self.writes.len() >= AT_ONCE || self.bytes >= BYTES_AT_ONCE;
        is_full.then(|| self.rest())
    }

    fn rest(&mut self) -> Vec<Write> {
        self.bytes = 0;
        std::mem::take(&mut self.writes)
    }
}

impl crate::blocking::Blocking {
    fn wait_for_ids(&self) -> Result<Vec<myclaw_store::RecordId>, StoreError> {
        self.wait(async |store| store.ids(&Partition::MAIN).await)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.wait(async |store| done(&store.commit(Batch::from(writes)).await?))
    }
}

/// Nobody else writes what is copied.
fn done(commit: &Commit) -> Result<(), StoreError> {
    match commit {
        Commit::Done(_) => Ok(()),
        Commit::Refused(_) => Err(StoreError::Contended("that is copied".to_owned())),
    }
}

fn failed<'p>(
    action: &'static str,
    path: &'p Path,
) -> impl FnOnce(std::io::Error) -> ClusterError + use<'p> {
    move |error| ClusterError::File { action, path: path.to_owned(), reason: error.to_string() }
}
