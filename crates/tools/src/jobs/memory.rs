//! Jobs that are written down in this process alone.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, ready};
use myclaw_exec::TreeTrace;
use myclaw_files::remove_if_there;
use parking_lot::Mutex;

use super::record::JobRecord;
use super::store::JobStore;

/// The jobs of a program that keeps nothing. If it is killed, nobody ends what it left running. The records of a session stay
/// until the program ends.
#[derive(Debug, Default)]
pub struct MemoryJobs {
    records: Mutex<HashMap<String, Vec<JobRecord>>>,
    begun: AtomicU64,
}

impl JobStore for MemoryJobs {
    fn all(&self, session: &str) -> Vec<JobRecord> {
        let mut records = self.records.lock().get(session).cloned().unwrap_or_default();
        records.sort_by_key(JobRecord::number);
        records
    }

    fn insert(&self, record: &mut JobRecord, mut number: u64) -> io::Result<()> {
        let mut records = self.records.lock();
        let of_session = records.entry(record.session.clone()).or_default();
        while of_session.iter().any(|other| other.number() == number) {
            number += 1;
        }
        record.id = JobRecord::id_of(number);
        of_session.push(record.clone());
        Ok(())
    }

    fn save(&self, record: &JobRecord) -> io::Result<()> {
        let mut records = self.records.lock();
        let of_session = records.entry(record.session.clone()).or_default();
        of_session.retain(|other| other.id != record.id);
        of_session.push(record.clone());
        Ok(())
    }

    fn remove(&self, record: &JobRecord) -> io::Result<()> {
        remove_if_there(&record.output)?;
        if let Some(of_session) = self.records.lock().get_mut(&record.session) {
            of_session.retain(|other| other.id != record.id);
        }
        Ok(())
    }

    fn begin(&self, _trace: TreeTrace, _job: Option<&JobRecord>) -> io::Result<u64> {
        Ok(self.begun.fetch_add(1, Ordering::Relaxed))
    }

    fn end(&self, _number: u64) {}

    fn close(&self) {}

    fn end_leftovers(&self) -> BoxFuture<'_, Vec<JobRecord>> {
        Box::pin(ready(Vec::new()))
    }
}
