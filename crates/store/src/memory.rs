//! A store in memory, for tests and for programs that keep nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::now_ms;
use parking_lot::Mutex;

use crate::{
    Batch, BoxFuture, Claim, ClaimRequest, Commit, Cursor, MAX_SCAN, QueueId, QueueWatch, Record,
    RecordId, Refusal, Store, StoreClock, StoreError, Version, Watches, Write,
};

/// A store that is gone with its process.
pub struct MemoryStore {
    state: Mutex<State>,
    clock: StoreClock,
    watches: Watches,
}

#[derive(Default)]
struct State {
    records: HashMap<RecordId, Entry>,
    /// The records of the queues, in their order.
    queues: BTreeMap<(QueueId, u64, u64), RecordId>,
    /// The last version, epoch or position that was given.
    counter: u64,
}

struct Entry {
    record: Record,
    epoch: u64,
    lease_until: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_clock(Arc::new(now_ms))
    }
}

impl MemoryStore {
    /// An empty store with this clock for its leases: milliseconds since the Unix epoch.
    pub fn with_clock(clock: StoreClock) -> Self {
        Self { state: Mutex::default(), clock, watches: Watches::default() }
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn commit(&mut self, batch: Batch) -> Result<Version, Refusal> {
        for Claim { id, epoch } in &batch.under {
            if self.records.get(id).is_none_or(|entry| entry.epoch != *epoch) {
                return Err(Refusal::Fenced(id.clone()));
            }
        }
        for write in &batch.writes {
            let now = self.records.get(write.id()).map(|entry| &entry.record);
            if let Some(refusal) = write.refusal(now) {
                return Err(refusal);
            }
        }
        let version = Version(self.next());
        for write in batch.writes {
            let id = write.id().clone();
            let before = self.records.remove(&id);
            if let Some(position) = before.as_ref().and_then(|entry| position(&entry.record)) {
                self.queues.remove(&position);
            }
            let (Write::Insert { value, place, .. } | Write::Replace { value, place, .. }) = write
            else {
                continue;
            };
            let stays = before.as_ref().filter(|entry| entry.record.place == place);
            let entered = match stays {
                Some(entry) => entry.record.entered,
                None => self.next(),
            };
            let queue = |record: &Record| record.place.as_ref().map(|place| place.queue.clone());
            let record = Record { id: id.clone(), version, value, place, entered };
            let (epoch, lease_until) = match &before {
                Some(entry) if queue(&entry.record) == queue(&record) => {
                    (entry.epoch, entry.lease_until)
                }
                Some(entry) => (entry.epoch, 0),
                None => (0, 0),
            };
            if let Some(position) = position(&record) {
                self.queues.insert(position, id.clone());
            }
            self.records.insert(id, Entry { record, epoch, lease_until });
        }
        Ok(version)
    }

    fn scan(&self, queue: &QueueId, after: Option<Cursor>, most: usize) -> Vec<Record> {
        let last = (queue.clone(), u64::MAX, u64::MAX);
        let after = after.unwrap_or(Cursor { order: 0, entered: 0 });
        let from = (queue.clone(), after.order, after.entered + 1);
        let found = self.queues.range(from..=last).take(most.min(MAX_SCAN));
        found.filter_map(|(_, id)| Some(self.records.get(id)?.record.clone())).collect()
    }

    fn claim(&mut self, request: &ClaimRequest, now: u64) -> Vec<(Record, Claim)> {
        let most = request.most.min(MAX_SCAN);
        let from = (request.queue.clone(), 0, 0);
        let up_to = (request.queue.clone(), request.up_to, u64::MAX);
        let is_free = |id: &RecordId| self.records.get(id).is_some_and(|it| it.lease_until <= now);
        let ids = self.queues.range(from..=up_to).map(|(_, id)| id).filter(|id| is_free(id));
        let ids: Vec<RecordId> = ids.take(most).cloned().collect();
        let mut claims = Vec::with_capacity(ids.len());
        for id in ids {
            let epoch = self.next();
            let Some(entry) = self.records.get_mut(&id) else { continue };
            (entry.epoch, entry.lease_until) = (epoch, lease_end(now, request.lease));
            claims.push((entry.record.clone(), Claim { id, epoch }));
        }
        claims
    }
}

fn position(record: &Record) -> Option<(QueueId, u64, u64)> {
    let place = record.place.as_ref()?;
    Some((record.id.queue(&place.queue), place.order, record.entered))
}

fn lease_end(now: u64, lease: Duration) -> u64 {
    now.saturating_add(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

impl Store for MemoryStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        Box::pin(async move {
            batch.check()?;
            let mut state = self.state.lock();
            let mut touched: HashSet<QueueId> = batch.queues().collect();
            for write in &batch.writes {
                let before = state.records.get(write.id());
                touched.extend(before.and_then(|entry| Some(position(&entry.record)?.0)));
            }
            Ok(match state.commit(batch) {
                Ok(version) => {
                    drop(state);
                    self.watches.wake(&touched);
                    Commit::Done(version)
                }
                Err(refusal) => Commit::Refused(refusal),
            })
        })
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            id.check()?;
            Ok(self.state.lock().records.get(&id).map(|entry| entry.record.clone()))
        })
    }

    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            queue.check()?;
            Ok(self.state.lock().scan(&queue, after, most))
        })
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        Box::pin(async move {
            request.check()?;
            let now = (self.clock)();
            Ok(self.state.lock().claim(&request, now))
        })
    }

    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let until = lease_end((self.clock)(), lease);
            let mut state = self.state.lock();
            let entry = state.records.get_mut(&claim.id);
            Ok(entry.filter(|entry| entry.epoch == claim.epoch).is_some_and(|entry| {
                entry.lease_until = until;
                true
            }))
        })
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.watches.watch(queue)
    }
}
