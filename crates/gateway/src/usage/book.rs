//! The records of usage in the store.

use std::collections::BTreeMap;
use std::time::Duration;

use myclaw_delivery::counters::Caller;
use myclaw_delivery::ledger::{Ledger, now_ms};
use myclaw_llm::Usage;
use myclaw_store::{Commit, Place, Records, StoreError, Write, sweep};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{Bucket, OTHER, Used};
use crate::GatewayError;

/// Shortest pause between two writes. After a crash, what was used in this time is missing.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause grows by this for each row of the larger record, because all of its rows are written again: with the most rows
/// of a day it is twenty seconds.
const PAUSE_OF_A_ROW: Duration = Duration::from_millis(10);
/// Most attempts to add to a record that somebody else changes.
const MOST_ATTEMPTS: usize = 5;

/// One hour or day, in the store.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
}

/// What one caller has used in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) caller: Caller,
    #[serde(flatten)]
    pub(super) used: Used,
}

/// What is not in the store yet, by the hour's beginning and the caller.
type Pending = BTreeMap<(u64, Caller), Used>;

/// Counts calls, and keeps the counts.
pub(crate) struct UsageBook {
    ledger: Ledger,
    pending: Mutex<Pending>,
    wake: Notify,
}

impl Page {
    /// Adds to the row of a caller. Beyond `most` rows sessions are counted together, and beyond one more for each of
    /// those, everything is.
    fn add(&mut self, caller: &Caller, used: &Used, most: usize) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.caller == *caller) {
            row.used.add(used);
            return;
        }
        if self.rows.len() < most {
            self.rows.push(Row { caller: caller.clone(), used: *used });
            return;
        }
        let other = || OTHER.to_owned();
        if caller.session != OTHER {
            let together = Caller { session: other(), ..caller.clone() };
            return self.add(&together, used, most + most / 4);
        }
        let rest = Caller { model: other(), agent: other(), channel: other(), session: other() };
        self.add(&rest, used, usize::MAX);
    }
}

impl UsageBook {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, pending: Mutex::default(), wake: Notify::new() }
    }

    /// Counts a call.
    pub(crate) fn note(&self, caller: Caller, usage: &Usage) {
        let mut used = Used::default();
        used.add_call(usage);
        self.count(now_ms(), caller, &used);
        self.wake.notify_one();
    }

    /// Counts what a caller has used. If too many callers wait for the store, their sessions are counted together.
    pub(super) fn count(&self, now: u64, caller: Caller, used: &Used) {
        let hour = Bucket::Hour.start_of(now);
        let mut pending = self.pending.lock();
        let is_full = pending.len() >= Bucket::Day.most_rows();
        let mut key = (hour, caller);
        if is_full && !pending.contains_key(&key) {
            key.1.session = OTHER.to_owned();
        }
        pending.entry(key).or_default().add(used);
    }

    /// Stores what is counted, as long as the process runs.
    pub(crate) async fn record(&self) {
        let mut swept = None;
        loop {
            let day = Bucket::Day.start_of(now_ms());
            if swept != Some(day) {
                match self.sweep(now_ms()).await {
                    Ok(()) => swept = Some(day),
                    Err(error) => tracing::warn!(%error, "old usage is not removed"),
                }
            }
            self.wake.notified().await;
            let rows = self.flush().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "usage is not stored; trying again");
                self.wake.notify_one();
                0
            });
            tokio::time::sleep(PAUSE.max(PAUSE_OF_A_ROW * rows)).await;
        }
    }

    /// Stores what is counted. Returns the rows of the largest record that was written.
    ///
    /// # Errors
    /// The store failed. Nothing is lost: it is counted again.
    pub(crate) async fn flush(&self) -> Result<u32, GatewayError> {
        let mut most = 0;
        loop {
            let next = {
                let pending = self.pending.lock();
                pending.keys().next().map(|(hour, _)| *hour)
            };
            let Some(hour) = next else { return Ok(most) };
            let taken: Pending =
                self.pending.lock().extract_if(.., |(of_hour, _), _| *of_hour == hour).collect();
            match self.store(hour, &taken).await {
                Ok(rows) => most = most.max(rows),
                Err(error) => {
                    for ((_, caller), used) in taken {
                        self.count(hour, caller, &used);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Adds to the records of an hour and of its day, in one transaction. Returns the rows of the larger one.
    async fn store(&self, hour: u64, taken: &Pending) -> Result<u32, GatewayError> {
        for _ in 0..MOST_ATTEMPTS {
            let (mut writes, mut most) = (Vec::with_capacity(2), 0);
            for bucket in [Bucket::Hour, Bucket::Day] {
                let (write, rows) = self.with(bucket, bucket.start_of(hour), taken).await?;
                writes.push(write);
                most = most.max(rows);
            }
            if let Commit::Done(_) = self.ledger.store().commit(writes.into()).await? {
                return Ok(u32::try_from(most).unwrap_or(u32::MAX));
            }
        }
        Err(StoreError::Contended("usage".to_owned()).into())
    }

    async fn with(
        &self,
        bucket: Bucket,
        start: u64,
        taken: &Pending,
    ) -> Result<(Write, usize), GatewayError> {
        let key = start.to_string();
        let stored = pages(bucket).get(self.ledger.store(), &key).await?;
        let (version, mut page) =
            stored.map_or_else(Default::default, |it| (Some(it.version), it.row));
        for ((_, caller), used) in taken {
            page.add(caller, used, bucket.most_rows());
        }
        let place = Place::new(bucket.kind(), start);
        Ok((pages(bucket).put(&key, version, &page, place)?, page.rows.len()))
    }

    /// One hour or day.
    pub(super) async fn page(&self, bucket: Bucket, start: u64) -> Result<Page, GatewayError> {
        let stored = pages(bucket).get(self.ledger.store(), &start.to_string()).await?;
        Ok(stored.map(|stored| stored.row).unwrap_or_default())
    }

    /// Removes what is too old.
    async fn sweep(&self, now: u64) -> Result<(), GatewayError> {
        for bucket in [Bucket::Hour, Bucket::Day] {
            let until = now.saturating_sub(bucket.kept_ms());
            sweep(self.ledger.store(), bucket.kind(), until).await?;
        }
        Ok(())
    }
}

/// The records of hours, or of days.
fn pages(bucket: Bucket) -> Records<Page> {
    Records::new(bucket.kind())
}
