//! The thread that writes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::mpsc;

use super::Sharing;
pub(super) use super::read::Reply;
use super::read::{COLUMNS, get, record, stored};
use super::schema::{failed, open_for_writing};
use crate::{
    Batch, Claim, ClaimRequest, Commit, Place, QueueId, Record, RecordId, Refusal, StoreClock,
    StoreError, Version, Watches, Write,
};

/// Most calls that become durable together. A longer group would make its first caller wait.
const MOST_IN_GROUP: usize = 256;

/// One call that writes.
#[derive(Debug)]
pub(super) enum Task {
    Commit(Batch, Reply<Commit>),
    Claim(ClaimRequest, Reply<Vec<(Record, Claim)>>),
    Renew(Claim, Duration, Reply<bool>),
    /// Keeps the thread busy until the sender is gone, so that a test decides which calls form a group.
    #[cfg(test)]
    Hold(std::sync::mpsc::Receiver<()>),
}

/// The result of a task, to be sent when it is durable.
enum Outcome {
    Commit(Commit),
    Claim(Vec<(Record, Claim)>),
    Renew(bool),
    #[cfg(test)]
    Held,
}

/// The database, open for writing.
pub(super) struct Writer {
    connection: Connection,
    path: PathBuf,
    clock: StoreClock,
    /// The last version, epoch or position that was given. Of a shared database it is read in each transaction.
    counter: u64,
    sharing: Sharing,
    watches: Arc<Watches>,
    #[cfg(test)]
    groups: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Writer {
    pub(super) fn open(
        path: &Path,
        clock: StoreClock,
        sharing: Sharing,
        watches: Arc<Watches>,
    ) -> Result<Self, StoreError> {
        let connection = open_for_writing(path)?;
        let counter = counter_of(&connection).map_err(failed("read", path))?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            clock,
            counter,
            sharing,
            watches,
            #[cfg(test)]
            groups: std::sync::Arc::default(),
        })
    }

    #[cfg(test)]
    pub(super) fn count_groups(&self) -> std::sync::Arc<std::sync::atomic::AtomicUsize> {
        std::sync::Arc::clone(&self.groups)
    }

    /// Carries out calls until nobody can make any.
    pub(super) fn serve(mut self, mut tasks: mpsc::Receiver<Task>) {
        while let Some(first) = tasks.blocking_recv() {
            let mut group = vec![first];
            #[cfg(test)]
            if let Task::Hold(held) = &group[0] {
                let _ = held.recv();
                continue;
            }
            while group.len() < MOST_IN_GROUP
                && let Ok(next) = tasks.try_recv()
            {
                group.push(next);
            }
            self.carry_out(group);
        }
    }

    /// Makes a group durable, then answers its callers.
    fn carry_out(&mut self, group: Vec<Task>) {
        match self.transact(&group) {
            Ok(outcomes) => {
                group
                    .into_iter()
                    .zip(outcomes)
                    .for_each(|(task, outcome)| answer(task, Ok(outcome)));
            }
            Err(failure) if group.len() == 1 || failure.is_final => {
                let error = failed("write to", &self.path)(failure.error);
                group.into_iter().for_each(|task| answer(task, Err(error.clone())));
            }
            // One call of the group cannot be carried out. The others need not fail with it.
            Err(_) => group.into_iter().for_each(|task| self.carry_out(vec![task])),
        }
    }

    fn transact(&mut self, group: &[Task]) -> Result<Vec<Outcome>, Failure> {
        let Self { connection, counter, clock, sharing, watches, .. } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if *sharing == Sharing::Shared {
            *counter = counter_of(&transaction)?;
        }
        let (now, before) = (clock(), *counter);
        let touched = (!watches.is_empty()).then(HashSet::new);
        let mut work = Work { connection: &transaction, counter, now, touched };
        let outcomes: rusqlite::Result<Vec<Outcome>> =
            group.iter().map(|task| work.outcome(task)).collect();
        let (outcomes, touched) = (outcomes?, work.touched);
        // Where everything was refused there is nothing to write, and no `fsync`.
        if *counter != before {
            transaction
                .prepare_cached("UPDATE counter SET value = ?1")?
                .execute([stored(*counter)])?;
        }
        transaction.commit().map_err(|error| Failure { error, is_final: true })?;
        watches.wake(touched.iter().flatten());
        #[cfg(test)]
        self.groups.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(outcomes)
    }
}

/// Why a group was not stored.
struct Failure {
    error: rusqlite::Error,
    /// True if the disk refused the group as a whole.
    is_final: bool,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self { error, is_final: false }
    }
}

/// Sends the result. A caller that no longer waits is no failure.
fn answer(task: Task, result: Result<Outcome, StoreError>) {
    match (task, result) {
        (Task::Commit(_, reply), Ok(Outcome::Commit(commit))) => drop(reply.send(Ok(commit))),
        (Task::Claim(_, reply), Ok(Outcome::Claim(claims))) => drop(reply.send(Ok(claims))),
        (Task::Renew(_, _, reply), Ok(Outcome::Renew(renewed))) => drop(reply.send(Ok(renewed))),
        (Task::Commit(_, reply), Err(error)) => drop(reply.send(Err(error))),
        (Task::Claim(_, reply), Err(error)) => drop(reply.send(Err(error))),
        (Task::Renew(_, _, reply), Err(error)) => drop(reply.send(Err(error))),
        // A result belongs to the task at its position.
        (_, _) => {}
    }
}

/// An open transaction.
struct Work<'a> {
    connection: &'a Connection,
    counter: &'a mut u64,
    now: u64,
    /// The queues in which something changes, if anybody watches one.
    touched: Option<HashSet<QueueId>>,
}

fn counter_of(connection: &Connection) -> rusqlite::Result<u64> {
    let read = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(0)? as u64);
    connection.prepare_cached("SELECT value FROM counter")?.query_row([], read)
}

impl Work<'_> {
    fn outcome(&mut self, task: &Task) -> rusqlite::Result<Outcome> {
        Ok(match task {
            Task::Commit(batch, _) => Outcome::Commit(self.commit(batch)?),
            Task::Claim(request, _) => Outcome::Claim(self.claim(request)?),
            Task::Renew(claim, lease, _) => Outcome::Renew(self.renew(claim, *lease)?),
            #[cfg(test)]
            Task::Hold(_) => Outcome::Held,
        })
    }

    fn next(&mut self) -> u64 {
        *self.counter += 1;
        *self.counter
    }

    fn commit(&mut self, batch: &Batch) -> rusqlite::Result<Commit> {
        // All conditions come before the first write, so a refusal changes nothing.
        for claim in &batch.under {
            if self.epoch(&claim.id)? != Some(claim.epoch) {
                return Ok(Commit::Refused(Refusal::Fenced(claim.id.clone())));
            }
        }
        let mut before = Vec::with_capacity(batch.writes.len());
        for write in &batch.writes {
            let now = get(self.connection, write.id())?;
            if let Some(refusal) = write.refusal(now.as_ref()) {
                return Ok(Commit::Refused(refusal));
            }
            before.push(now);
        }
        let version = self.next();
        for (write, before) in batch.writes.iter().zip(before) {
            self.apply(write, before.as_ref(), version)?;
        }
        Ok(Commit::Done(Version(version)))
    }

    fn apply(
        &mut self,
        write: &Write,
        before: Option<&Record>,
        version: u64,
    ) -> rusqlite::Result<()> {
        let RecordId { partition, kind, key } = write.id();
        let partition = partition.as_str();
        let (queue, order) = columns(write.place());
        if let Some(touched) = &mut self.touched {
            let left = before.and_then(|before| before.place.as_ref());
            let places = left.into_iter().chain(write.place());
            touched.extend(places.map(|place| write.id().queue(&place.queue)));
        }
        match write {
            Write::Insert { value, .. } => {
                let entered = stored(self.next());
                let mut insert = self.connection.prepare_cached(
                    "INSERT INTO records (kind, key, version, value, queue, place, entered, partition)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?;
                insert.execute(params![
                    kind,
                    key,
                    stored(version),
                    value,
                    queue,
                    order,
                    entered,
                    partition
                ])?;
            }
            Write::Replace { value, place, .. } => {
                let stays = before.filter(|before| before.place == *place);
                let entered = stays.map_or_else(|| self.next(), |before| before.entered);
                // A record that moves is somebody else's work: its claim ends. The epoch stays, for the next claim must
                // have a higher one.
                let mut update = self.connection.prepare_cached(
                    "UPDATE records SET version = ?3, value = ?4, queue = ?5, place = ?6, entered = ?7,
                     lease_until = CASE WHEN queue IS ?5 THEN lease_until ELSE 0 END
                     WHERE partition = ?8 AND kind = ?1 AND key = ?2",
                )?;
                update.execute(params![
                    kind,
                    key,
                    stored(version),
                    value,
                    queue,
                    order,
                    stored(entered),
                    partition
                ])?;
            }
            Write::Remove { .. } => {
                let mut delete = self.connection.prepare_cached(
                    "DELETE FROM records WHERE partition = ?1 AND kind = ?2 AND key = ?3",
                )?;
                delete.execute([partition, kind, key])?;
            }
        }
        Ok(())
    }

    fn claim(&mut self, request: &ClaimRequest) -> rusqlite::Result<Vec<(Record, Claim)>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE partition = ?5 AND queue = ?1 AND place <= ?2
             AND lease_until <= ?3 ORDER BY place, entered LIMIT ?4"
        );
        let found: Vec<Record> = self
            .connection
            .prepare_cached(&sql)?
            .query_map(
                params![
                    request.queue.name,
                    stored(request.up_to),
                    stored(self.now),
                    stored(request.most as u64),
                    request.queue.partition.as_str()
                ],
                record,
            )?
            .collect::<rusqlite::Result<_>>()?;
        let until = self.lease_end(request.lease);
        let mut claims = Vec::with_capacity(found.len());
        for record in found {
            let epoch = self.next();
            let mut update = self.connection.prepare_cached(
                "UPDATE records SET epoch = ?3, owner = ?4, lease_until = ?5
                 WHERE partition = ?6 AND kind = ?1 AND key = ?2",
            )?;
            let RecordId { partition, kind, key } = &record.id;
            let partition = partition.as_str();
            update.execute(params![kind, key, stored(epoch), request.owner, until, partition])?;
            let claim = Claim { id: record.id.clone(), epoch };
            claims.push((record, claim));
        }
        Ok(claims)
    }

    fn renew(&mut self, claim: &Claim, lease: Duration) -> rusqlite::Result<bool> {
        let until = self.lease_end(lease);
        let mut update = self.connection.prepare_cached(
            "UPDATE records SET lease_until = ?4
             WHERE partition = ?5 AND kind = ?1 AND key = ?2 AND epoch = ?3",
        )?;
        let RecordId { partition, kind, key } = &claim.id;
        let epoch = stored(claim.epoch);
        Ok(update.execute(params![kind, key, epoch, until, partition.as_str()])? > 0)
    }

    fn epoch(&self, id: &RecordId) -> rusqlite::Result<Option<u64>> {
        let mut select = self.connection.prepare_cached(
            "SELECT epoch FROM records WHERE partition = ?1 AND kind = ?2 AND key = ?3",
        )?;
        let mut rows = select.query([id.partition.as_str(), &id.kind, &id.key])?;
        rows.next()?.map(|row| Ok(row.get::<_, i64>(0)? as u64)).transpose()
    }

    fn lease_end(&self, lease: Duration) -> i64 {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        stored(self.now.saturating_add(lease))
    }
}

fn columns(place: Option<&Place>) -> (Option<&str>, Option<i64>) {
    (place.map(|place| place.queue.as_str()), place.map(|place| stored(place.order)))
}
