//! A state directory into the database, and back.
//!
//! Logs are copied line by line as they are. Records keep their order in each queue, and get new versions, which nobody
//! has read yet. What belongs to running processes, such as claims, is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_auth::AuthStore;
use myclaw_files::{
    Documents as _, Durability, FileDocuments, create_private_directory, private_options,
};
use myclaw_session::rows::{DayTotals, RawLog, logs_in, visit_log};
use myclaw_session::{
    BlobLimits, Blobs, FileBlobs, SessionEntry, SessionError, SessionKey, SessionStore, Sessions,
};
use myclaw_store::{
    Batch, Commit, Partition, Record, Records, Store, StoreError, Write, scan, visit_records,
};
use serde_json::{Map, Value};
use std::io::Write as _;

use crate::documents::{self, RecordedDocuments};
use crate::{Cluster, ClusterError, approvals, keys, nodes, outgoing, spending};

/// Kinds of records that say what processes hold at the moment.
const OF_PROCESSES: [&str; 5] =
    ["desk", "account", nodes::KIND, nodes::SECRET_KIND, keys::LOGINS_KIND];
/// Kinds of records that are files in a state directory.
const FILES_ELSEWHERE: [&str; 6] = [
    approvals::KIND,
    spending::KIND,
    documents::KIND,
    outgoing::KIND,
    outgoing::PART_KIND,
    keys::KIND,
];
/// How the names of the documents begin that are copied. Lists for prompts last an hour and are left out.
const DOCUMENTS: [&str; 2] = ["", "projects/"];
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
    /// Copies a state directory into the database, which must be empty. Blocks.
    ///
    /// # Errors
    /// The database is not empty, a gateway has the directory open, or something cannot be read or written.
    pub fn import(&self, from: &StateDirectory) -> Result<Copied, ClusterError> {
        if !from.sessions.exists() && !from.store.exists() {
            return Err(ClusterError::Unusable(format!(
                "{} holds neither sessions nor a gateway's store; name the state directory of a MyClaw",
                from.path.display()
            )));
        }
        let ids = self.blocking().wait_for_ids()?;
        let is_of_program = |kind: &str| OF_PROCESSES.contains(&kind);
        if ids.iter().any(|id| !is_of_program(&id.kind)) || !self.sessions().all_keys()?.is_empty()
        {
            return Err(ClusterError::Unusable(format!(
                "the database {} is not empty; import into a new one, so that nothing is mixed",
                self.server()
            )));
        }
        let mut copied = Copied::default();
        // First what decides whether it may be read at all: a gateway that runs keeps the store closed.
        self.import_records(from, &mut copied)?;
        self.import_sessions(from, &mut copied)?;
        self.import_files(from, &mut copied)?;
        Ok(copied)
    }

    fn import_records(
        &self,
        from: &StateDirectory,
        copied: &mut Copied,
    ) -> Result<(), ClusterError> {
        let mut waiting = Waiting::default();
        let mut put = |writes: Vec<Write>| self.blocking().commit(writes);
        visit_records(&from.store, &mut |record| {
            if OF_PROCESSES.contains(&record.id.kind.as_str()) {
                return Ok(());
            }
            copied.records += 1;
            waiting.add(record).map_or(Ok(()), &mut put)
        })?;
        Ok(put(waiting.rest())?)
    }

    fn import_sessions(
        &self,
        from: &StateDirectory,
        copied: &mut Copied,
    ) -> Result<(), ClusterError> {
        let store = SessionStore::new(&from.sessions);
        for path in logs_in(&from.sessions)? {
            // The key stands in the header, and the lines go below a session of that key.
            let Some(RawLog { key, .. }) = visit_log(&path, &mut |_| Ok(()))? else {
                copied.left_out += 1;
                continue;
            };
            let entry = store.index().get(&key)?;
            let mut session = self.sessions().import(&key)?;
            let log = visit_log(&path, &mut |line| session.line(line))?;
            copied.left_out += session.left_out;
            if let Some(log) = log {
                session.side_files(&store.artifact_directory(&key))?;
                session.finish(&log, entry.as_ref())?;
                copied.sessions += 1;
            }
            let waiting = Sessions::inbox(&store, &key).pending()?;
            for message in &waiting {
                self.sessions().inbox(&key).push(message)?;
            }
            copied.waiting += waiting.len();
        }
        Ok(())
    }

    fn import_files(&self, from: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let approvals: Records<Value> = Records::new(approvals::KIND);
        self.import_file(&from.approvals, approvals, approvals::KEY)?;
        let spending: Records<DayTotals> = Records::new(spending::KIND);
        self.import_file(&from.spending, spending, spending::KEY)?;
        self.import_documents(from)?;
        self.import_keys(from, copied)?;
        let files = match fs::read_dir(&from.outgoing) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            files => files.map_err(failed("list", &from.outgoing))?,
        };
        for file in files {
            let path = file.map_err(failed("list", &from.outgoing))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let mut content = fs::File::open(&path).map_err(failed("open", &path))?;
            match self.stores().outgoing.put(name, &mut content, ALL) {
                Ok(_) => copied.files += 1,
                // The rest of a copy that was never completed.
                Err(_) if myclaw_session::checked_blob_name(name).is_err() => copied.left_out += 1,
                Err(error) => return Err(failed("copy", &path)(std::io::Error::other(error))),
            }
        }
        Ok(())
    }

    fn import_documents(&self, from: &StateDirectory) -> Result<(), ClusterError> {
        for collection in from.collections() {
            let files = from.documents(&collection);
            let records = self.documents(&collection);
            let copy = |prefix: &str| {
                // Logs and locks are there too.
                let names = files.list(prefix)?.into_iter().map(|(name, _)| name);
                for name in names.filter(|name| name.ends_with(".json")) {
                    let Some(document) = files.read(&name)? else { continue };
                    let mut text = |_: Option<&str>| document.text.clone();
                    records.change(&name, Durability::Synced, &mut text)?;
                }
                Ok(())
            };
            DOCUMENTS.iter().try_for_each(|prefix| copy(prefix)).map_err(
                |error: std::io::Error| {
                    failed("copy", &from.path)(std::io::Error::other(format!(
                        "{collection}: {error}"
                    )))
                },
            )?;
        }
        Ok(())
    }

    fn export_documents(&self, to: &StateDirectory) -> Result<(), ClusterError> {
        for id in self.blocking().wait_for_ids()?.iter().filter(|id| id.kind == documents::KIND) {
            let Some((collection, name)) = id.key.split_once('/') else { continue };
            let copied = self.documents(collection).read(name).and_then(|document| {
                let text = document.map(|document| document.text).unwrap_or_default();
                let files = to.documents(collection);
                files.change(name, Durability::Synced, &mut |_| text.clone())
            });
            copied.map_err(failed("copy", &to.path))?;
        }
        Ok(())
    }

    fn import_keys(&self, from: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let of_agents = from.agents().map(|agent| format!("{}{agent}", keys::OF_AGENT));
        for key in of_agents.chain([keys::OF_SERVERS.to_owned()]) {
            let files = from.keys(&key);
            if files.exists() {
                self.copy_keys(&key, copied, |records| (files, records))?;
            }
        }
        Ok(())
    }

    fn export_keys(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        for id in self.blocking().wait_for_ids()?.iter().filter(|id| id.kind == keys::KIND) {
            self.copy_keys(&id.key, copied, |records| (records, to.keys(&id.key)))?;
        }
        Ok(())
    }

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

    fn import_file<R: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        path: &Path,
        records: Records<R>,
        key: &str,
    ) -> Result<(), ClusterError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            bytes => bytes.map_err(failed("read", path))?,
        };
        let row: R = serde_json::from_slice(&bytes)
            .map_err(|error| failed("read", path)(std::io::Error::other(error)))?;
        self.blocking().wait(async |store| records.insert(store, key, &row, None).await)?;
        Ok(())
    }

    /// Copies the database into a state directory that must be empty or missing. Blocks.
    ///
    /// # Errors
    /// The directory is not empty, or something cannot be read or written.
    pub fn export(&self, to: &StateDirectory) -> Result<Copied, ClusterError> {
        let is_empty = fs::read_dir(&to.path).map_or(true, |mut files| files.next().is_none());
        if !is_empty {
            return Err(ClusterError::Unusable(format!(
                "{} is not empty; name a directory that does not exist yet",
                to.path.display()
            )));
        }
        for directory in [&to.path, &to.sessions] {
            create_private_directory(directory).map_err(failed("create", directory))?;
        }
        let mut copied = Copied::default();
        self.export_sessions(to, &mut copied)?;
        self.export_files(to, &mut copied)?;
        self.export_records(to, &mut copied)?;
        Ok(copied)
    }

    fn export_sessions(
        &self,
        to: &StateDirectory,
        copied: &mut Copied,
    ) -> Result<(), ClusterError> {
        let store = SessionStore::new(&to.sessions);
        let mut list: Map<String, Value> = Map::new();
        for key in self.sessions().all_keys()? {
            let path = store.transcript_path(&key);
            copied.sessions += usize::from(self.export_log(&key, &path)?);
            self.sessions().export_side_files(&key, &store.artifact_directory(&key))?;
            if let Some(entry) = self.stores().catalog.entry(&key)? {
                list.insert(key.as_str().to_owned(), listed(entry, &path)?);
            }
            for message in self.sessions().inbox(&key).pending()? {
                Sessions::inbox(&store, &key).push(&message)?;
                copied.waiting += 1;
            }
        }
        let path = store.index().path();
        let text = serde_json::to_vec_pretty(&list)
            .map_err(|source| SessionError::Encode { path: path.clone(), source })?;
        write(&path, &text)
    }

    fn export_log(&self, key: &SessionKey, path: &Path) -> Result<bool, ClusterError> {
        let mut file = None;
        let exists = self.sessions().visit_lines(key, &mut |line| {
            let io = |source| SessionError::Io { action: "write", path: path.to_owned(), source };
            let file = match &mut file {
                Some(file) => file,
                none => {
                    let new = private_options().write(true).create_new(true).open(path);
                    none.insert(std::io::BufWriter::new(new.map_err(io)?))
                }
            };
            file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(io)
        })?;
        if let Some(file) = file {
            let file =
                file.into_inner().map_err(|error| failed("write", path)(error.into_error()))?;
            file.sync_all().map_err(failed("write", path))?;
        }
        Ok(exists)
    }

    fn export_files(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let approvals: Records<Value> = Records::new(approvals::KIND);
        let found =
            self.blocking().wait(async |store| approvals.get(store, approvals::KEY).await)?;
        if let Some(found) = found {
            write(&to.approvals, found.row.to_string().as_bytes())?;
        }
        let spending: Records<Value> = Records::new(spending::KIND);
        let found = self.blocking().wait(async |store| spending.get(store, spending::KEY).await)?;
        if let Some(found) = found {
            write(&to.spending, found.row.to_string().as_bytes())?;
        }
        self.export_documents(to)?;
        self.export_keys(to, copied)?;
        let files = FileBlobs::new(&to.outgoing);
        for record in self.blocking().wait(|store| scan(store, outgoing::QUEUE, usize::MAX))? {
            let blob = myclaw_session::NamedBlob { name: record.id.key, digest: None };
            let put = self
                .stores()
                .outgoing
                .open(&blob)
                .and_then(|mut content| files.put(&blob.name, &mut content, ALL));
            put.map_err(|error| failed("copy", &to.outgoing)(std::io::Error::other(error)))?;
            copied.files += 1;
        }
        Ok(())
    }

    fn export_records(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let ids = self.blocking().wait_for_ids()?;
        let new = myclaw_store::SqliteStore::open(&to.store)?;
        let is_left = |kind: &str| OF_PROCESSES.contains(&kind) || FILES_ELSEWHERE.contains(&kind);
        let mut waiting = Waiting::default();
        let put = |writes: Vec<Write>| {
            self.blocking().wait(async |_| done(&new.commit(writes.into()).await?))
        };
        for id in ids.into_iter().filter(|id| !is_left(&id.kind)) {
            if let Some(record) = self.blocking().wait(|store| store.get(id))? {
                copied.records += 1;
                waiting.add(record).map_or(Ok(()), put)?;
            }
        }
        Ok(put(waiting.rest())?)
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

/// An entry of the list, for a log at `path`.
fn listed(entry: SessionEntry, path: &Path) -> Result<Value, SessionError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let entry = SessionEntry { session_file: name.to_owned(), ..entry };
    serde_json::to_value(entry)
        .map_err(|source| SessionError::Encode { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ClusterError> {
    let new = private_options().write(true).create_new(true).open(path);
    let written = new.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(failed("write", path))
}

fn failed<'p>(
    action: &'static str,
    path: &'p Path,
) -> impl FnOnce(std::io::Error) -> ClusterError + use<'p> {
    move |error| ClusterError::File { action, path: path.to_owned(), reason: error.to_string() }
}
