//! What a group of calls changes, decided before anything is written.
//!
//! The lock of the partition is held, so the records are as they were read until the transaction ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use myclaw_store::{
    Batch, Claim, Commit, Place, QueueId, Record, RecordId, Refusal, Version, Write,
};

use crate::read::{number, stored};

/// A record without its value.
#[derive(Debug, Clone)]
pub(crate) struct State<'t> {
    pub(crate) version: u64,
    pub(crate) place: Option<Place>,
    pub(crate) entered: u64,
    pub(crate) claim: Lease,
    /// The value that this group gave it; otherwise it is in the database.
    pub(crate) value: Option<&'t [u8]>,
}

/// The newest claim of a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lease {
    pub(crate) epoch: u64,
    pub(crate) owner: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub(crate) until: u64,
}

/// What a group does to the records of one partition.
#[derive(Debug)]
pub(crate) struct Plan<'t> {
    now: u64,
    /// The records that are there, as the calls so far leave them.
    records: HashMap<RecordId, State<'t>>,
    changes: Changes<'t>,
}

/// What has to be written.
#[derive(Debug, Default)]
pub(crate) struct Changes<'t> {
    /// The last version, epoch or position that was given.
    pub(crate) counter: u64,
    /// Records that are put; `None` if they are removed.
    pub(crate) records: BTreeMap<RecordId, Option<State<'t>>>,
    /// Claims of records whose other columns stay.
    pub(crate) leases: BTreeMap<RecordId, Lease>,
    /// The queues in which something changes.
    pub(crate) touched: HashSet<QueueId>,
}

/// The outcome of a batch.
pub(crate) struct Decision {
    pub(crate) commit: Commit,
    /// The record whose value is missing in the refusal.
    pub(crate) incomplete: Option<RecordId>,
}

impl Changes<'_> {
    /// Nothing yet, from this state of the counter on.
    pub(crate) fn from(counter: i64) -> Self {
        Self { counter: number(counter), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.leases.is_empty()
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

impl<'t> Plan<'t> {
    /// Nothing yet. `now` is in milliseconds since the Unix epoch.
    pub(crate) fn new(counter: i64, now: i64, records: HashMap<RecordId, State<'t>>) -> Self {
        Self { now: number(now), records, changes: Changes::from(counter) }
    }

    pub(crate) fn into_changes(self) -> Changes<'t> {
        self.changes
    }

    pub(crate) fn commit(&mut self, batch: &'t Batch) -> Decision {
        // All conditions come before the first change, so a refusal changes nothing.
        for claim in &batch.under {
            let holds = self.records.get(&claim.id).is_some_and(|it| it.claim.epoch == claim.epoch);
            if !holds {
                let commit = Commit::Refused(Refusal::Fenced(claim.id.clone()));
                return Decision { commit, incomplete: None };
            }
        }
        for write in &batch.writes {
            let state = self.records.get(write.id());
            let record = state.map(|state| state.record(write.id()));
            if let Some(refusal) = write.refusal(record.as_ref()) {
                let is_missing = state.is_some_and(|state| state.value.is_none());
                let incomplete = is_missing.then(|| write.id().clone());
                return Decision { commit: Commit::Refused(refusal), incomplete };
            }
        }
        let version = self.changes.next();
        for write in &batch.writes {
            self.apply(write, version);
        }
        Decision { commit: Commit::Done(Version(version)), incomplete: None }
    }

    fn apply(&mut self, write: &'t Write, version: u64) {
        let id = write.id();
        let before = self.records.remove(id);
        let left = before.as_ref().and_then(|before| before.place.as_ref());
        let places = left.into_iter().chain(write.place());
        self.changes.touched.extend(places.map(|place| id.queue(&place.queue)));
        // What is put has its claim with it.
        self.changes.leases.remove(id);
        let after = write.value().map(|value| {
            let queue = |place: &Option<Place>| place.as_ref().map(|place| place.queue.clone());
            let place = write.place().cloned();
            let stays = before.as_ref().filter(|before| before.place == place);
            let entered = stays.map(|before| before.entered);
            let mut claim = Lease::default();
            if let Some(before) = before {
                // A record that moves is somebody else's work: its claim ends. The epoch stays, for the next claim must
                // have a higher one.
                let until =
                    if queue(&before.place) == queue(&place) { before.claim.until } else { 0 };
                claim = Lease { until, ..before.claim };
            }
            let entered = entered.unwrap_or_else(|| self.changes.next());
            State { version, place, entered, claim, value: Some(value) }
        });
        if let Some(after) = &after {
            self.records.insert(id.clone(), after.clone());
        }
        self.changes.records.insert(id.clone(), after);
    }

    pub(crate) fn renew(&mut self, claim: &Claim, lease: Duration) -> bool {
        let Some(state) = self.records.get_mut(&claim.id) else { return false };
        if state.claim.epoch != claim.epoch {
            return false;
        }
        state.claim.until = lease_end(self.now, lease);
        match self.changes.records.get_mut(&claim.id) {
            Some(put) => *put = Some(state.clone()),
            None => drop(self.changes.leases.insert(claim.id.clone(), state.claim.clone())),
        }
        true
    }
}

impl State<'_> {
    /// The record, without its value if that is in the database only.
    fn record(&self, id: &RecordId) -> Record {
        Record {
            id: id.clone(),
            version: Version(self.version),
            value: self.value.map(<[u8]>::to_vec).unwrap_or_default(),
            place: self.place.clone(),
            entered: self.entered,
        }
    }
}

/// The end of a lease, which the database can store.
pub(crate) fn lease_end(now: u64, lease: Duration) -> u64 {
    let end = now.saturating_add(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
    number(stored(end))
}
