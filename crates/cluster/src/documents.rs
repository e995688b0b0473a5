//! Small documents of agents as records, so that every node knows what was approved and what was forgotten.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{AgentMemory, MemoryStores};
use myclaw_files::{Document, Documents, Durability, checked_document_name as checked, now_ms};
use myclaw_store::{Change, MAX_VALUE_BYTES, Place, Records, Store as _, StoreError, scan};
use serde::{Deserialize, Serialize};

use crate::blocking::Blocking;

const DOCUMENTS: Records<Kept> = Records::new(KIND);
pub(crate) const KIND: &str = "document";
/// What the owner has approved of MCP servers.
pub(crate) const SERVERS: &str = "mcp";
/// Begins the names of the collections with what belongs to the notes of an agent.
pub(crate) const MEMORY: &str = "memory-";

/// The documents of one collection.
#[derive(Debug)]
pub(crate) struct RecordedDocuments {
    records: Arc<Blocking>,
    collection: String,
}

/// A document. Its place in the queue of its collection is the time at which it was written or used, in milliseconds since
/// the Unix epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    text: String,
}

impl RecordedDocuments {
    pub(crate) fn new(records: Arc<Blocking>, collection: impl Into<String>) -> Self {
        Self { records, collection: collection.into() }
    }

    fn key(&self, name: &str) -> io::Result<String> {
        Ok(format!("{}/{}", self.collection, checked(name)?))
    }

    fn place(&self) -> Place {
        Place::new(format!("documents-{}", self.collection), now_ms())
    }
}

impl Documents for RecordedDocuments {
    fn read(&self, name: &str) -> io::Result<Option<Document>> {
        let key = self.key(name)?;
        let record = self.records.wait(|store| store.get(DOCUMENTS.id(&key))).map_err(failed)?;
        let Some(record) = record else { return Ok(None) };
        let age = age(record.place.as_ref());
        let kept = self.records.wait(|store| DOCUMENTS.read(store, record)).map_err(failed)?;
        Ok(Some(Document { text: kept.row.text, age }))
    }

    fn change(
        &self,
        name: &str,
        _: Durability,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> io::Result<()> {
        let (key, place) = (self.key(name)?, self.place());
        let mut is_too_large = false;
        let decide = |before: Option<Kept>| {
            let after = Kept { text: change(before.as_ref().map(|kept| kept.text.as_str())) };
            let bytes = serde_json::to_vec(&after).map_or(usize::MAX, |json| json.len());
            is_too_large = bytes > MAX_VALUE_BYTES;
            if is_too_large { Change::Keep } else { Change::put(after, place.clone()) }
        };
        self.records.wait(|store| DOCUMENTS.update(store, &key, decide)).map_err(failed)?;
        if is_too_large {
            return Err(io::Error::other(format!("it has more than {MAX_VALUE_BYTES} bytes")));
        }
        Ok(())
    }

    fn note_use(&self, name: &str) -> io::Result<()> {
        let (key, place) = (self.key(name)?, self.place());
        let decide = |before: Option<Kept>| {
            before.map_or(Change::Keep, |kept| Change::put(kept, place.clone()))
        };
        let noted = self.records.wait(|store| DOCUMENTS.update(store, &key, decide));
        noted.map(drop).map_err(failed)
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        let key = self.key(name)?;
        let found = self.records.wait(|store| store.get(DOCUMENTS.id(&key))).map_err(failed)?;
        if found.is_some() {
            self.records.wait(|store| DOCUMENTS.delete(store, &key)).map_err(failed)?;
        }
        Ok(found.is_some())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Duration)>> {
        let queue = self.place().queue;
        let all = self.records.wait(|store| scan(store, queue.as_str(), usize::MAX));
        let start = format!("{}/", self.collection);
        let named = all.map_err(failed)?.into_iter().filter_map(|record| {
            let name = record.id.key.strip_prefix(&start)?;
            let is_meant = name.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/'));
            is_meant.then(|| (name.to_owned(), age(record.place.as_ref())))
        });
        Ok(named.collect())
    }

    fn describe(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.records.server(), self.collection)
    }
}

/// What belongs to the notes of the agents, with its documents in the database. The rest is on the machine, as the notes are.
#[derive(Debug)]
pub(crate) struct RecordedMemory {
    records: Arc<Blocking>,
    machine: Arc<dyn MemoryStores>,
}

impl RecordedMemory {
    pub(crate) fn new(records: Arc<Blocking>, machine: Arc<dyn MemoryStores>) -> Self {
        Self { records, machine }
    }
}

impl MemoryStores for RecordedMemory {
    fn of_agent(&self, id: &str, own_directory: &Path) -> AgentMemory {
        let records = Arc::clone(&self.records);
        let documents = Arc::new(RecordedDocuments::new(records, format!("{MEMORY}{id}")));
        AgentMemory { documents, ..self.machine.of_agent(id, own_directory) }
    }
}

fn age(place: Option<&Place>) -> Duration {
    Duration::from_millis(place.map_or(0, |place| now_ms().saturating_sub(place.order)))
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests;
