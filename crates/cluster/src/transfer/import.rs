//! A state directory into the database. What is begun is written down first, so an import that was killed is continued: each
//! of its steps finds what it has done before.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use myclaw_files::{Documents as _, Durability};
use myclaw_session::rows::{DayTotals, RawLog, logs_in, visit_log};
use myclaw_session::{SessionError, SessionStore, Sessions};
use myclaw_store::{RecordId, Records, Write, visit_records};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ALL, Copied, OF_PROCESSES, StateDirectory, Waiting, failed};
use crate::{Cluster, ClusterError, approvals, keys, spending};

const IMPORTS: Records<Begun> = Records::new(KIND);
/// Kind of the record that is there while an import is not over, and its key.
pub(super) const KIND: &str = "import";
const KEY: &str = "1";
/// How the names of the documents begin that are copied. Lists for prompts last an hour and are left out.
const DOCUMENTS: [&str; 2] = ["", "projects/"];

/// An import that is not over.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    /// The state directory.
    from: String,
}

impl Begun {
    fn unfinished(&self, server: &str) -> ClusterError {
        let from = &self.from;
        ClusterError::Unusable(format!(
            "the import of {from} into {server} is not complete; run `myclaw store import {from}` again on its machine, which \
             goes on with it, or use a new database"
        ))
    }
}

impl Cluster {
    /// Copies a state directory into the database, which must be empty. What was killed in the middle is continued by the next
    /// call; until then the database cannot be used otherwise. Blocks.
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
        let place = std::path::absolute(&from.path).map_err(failed("find", &from.path))?;
        let begun = Begun { from: place.display().to_string() };
        let ids = self.blocking().wait_for_ids()?;
        let mut copied = Copied::default();
        let is_continued = match self.begun_import()? {
            Some(earlier) if earlier != begun => return Err(earlier.unfinished(self.server())),
            Some(_) => true,
            None => {
                let is_of_program = |kind: &str| OF_PROCESSES.contains(&kind);
                if ids.iter().any(|id| !is_of_program(&id.kind))
                    || !self.sessions().all_keys()?.is_empty()
                {
                    return Err(ClusterError::Unusable(format!(
                        "the database {} is not empty; import into a new one, so that nothing is mixed",
                        self.server()
                    )));
                }
                self.blocking()
                    .wait(async |store| IMPORTS.insert(store, KEY, &begun, None).await)?;
                false
            }
        };
        // First what decides whether it may be read at all: a gateway that runs keeps the store closed.
        let imported = self.import_records(from, &ids.into_iter().collect(), &mut copied);
        if imported.is_err() && copied.records == 0 && !is_continued {
            // Nothing was written, so there is nothing to continue.
            self.blocking().wait(async |store| IMPORTS.delete(store, KEY).await)?;
        }
        imported?;
        self.import_sessions(from, &mut copied)?;
        self.import_files(from, &mut copied)?;
        self.blocking().wait(async |store| IMPORTS.delete(store, KEY).await)?;
        Ok(copied)
    }

    /// Refuses a database into which a state directory was copied in part.
    pub(crate) fn check_import(&self) -> Result<(), ClusterError> {
        match self.begun_import()? {
            Some(begun) => Err(begun.unfinished(self.server())),
            None => Ok(()),
        }
    }

    fn begun_import(&self) -> Result<Option<Begun>, ClusterError> {
        let found = self.blocking().wait(async |store| IMPORTS.get(store, KEY).await)?;
        Ok(found.map(|found| found.row))
    }

    fn import_records(
        &self,
        from: &StateDirectory,
        known: &HashSet<RecordId>,
        copied: &mut Copied,
    ) -> Result<(), ClusterError> {
        let mut waiting = Waiting::default();
        let mut put = |writes: Vec<Write>| self.blocking().commit(writes);
        visit_records(&from.store, &mut |record| {
            if OF_PROCESSES.contains(&record.id.kind.as_str()) {
                return Ok(());
            }
            copied.records += 1;
            // An import that was killed has copied it.
            if known.contains(&record.id) {
                return Ok(());
            }
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
            let waiting = Sessions::inbox(&store, &key).pending()?;
            for message in &waiting {
                self.sessions().inbox(&key).push_once(message)?;
            }
            copied.waiting += waiting.len();
            let mut session = match self.sessions().import(&key) {
                // An import that was killed has copied it.
                Err(SessionError::SessionExists { .. }) => {
                    copied.sessions += 1;
                    continue;
                }
                session => session?,
            };
            let log = visit_log(&path, &mut |line| session.line(line))?;
            copied.left_out += session.left_out;
            if let Some(log) = log {
                session.side_files(&store.artifact_directory(&key))?;
                session.finish(&log, entry.as_ref())?;
                copied.sessions += 1;
            }
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
}
