//! One transaction, in as many attempts as it takes.

use std::collections::{BTreeMap, HashMap};

use futures_util::future::{join, join4, join5};
use myclaw_store::{Claim, ClaimRequest, Commit, Partition, Record, RecordId, Refusal, StoreError};
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::{Done, Outcome, Task, Writers, sql, token};
use crate::failure::{Failure, Kind};
use crate::group::{Changes, Lease, Plan, State, lease_end};
use crate::pool::{ANSWER, Lent, Parameter, answer};
use crate::read::{COLUMNS, PARTITION, number, record, stored};

/// Bytes of values in one statement.
const MOST_STATEMENT_BYTES: usize = 16 * 1024 * 1024;

/// A group of calls on its way into the database.
pub(super) struct Transaction<'w> {
    writers: &'w Writers,
    partition: &'w Partition,
    tasks: &'w [Task],
    /// The same in all attempts, so that the database refuses a second one.
    token: i64,
    /// What an earlier attempt has done, if its commit was sent and not answered.
    unconfirmed: Option<Done>,
}

/// A record that is put.
type Put<'i> = (&'i RecordId, &'i State<'i>);

/// What was read under the lock.
struct Begun {
    counter: i64,
    now: i64,
    rows: Vec<Row>,
}

impl<'w> Transaction<'w> {
    pub(super) fn new(
        writers: &'w Writers,
        partition: &'w Partition,
        tasks: &'w [Task],
    ) -> Result<Self, Failure> {
        let token = token(&writers.random)?;
        Ok(Self { writers, partition, tasks, token, unconfirmed: None })
    }

    /// The error of calls that give up after a failure of this kind.
    pub(super) fn give_up(&self, error: StoreError, kind: Kind) -> (StoreError, Kind) {
        match error {
            StoreError::Database { server, problem } if self.unconfirmed.is_some() => {
                // Calls that may be stored are not tried again, also not alone.
                (StoreError::Unconfirmed { server, problem }, Kind::Passing)
            }
            error => (error, kind),
        }
    }

    pub(super) async fn attempt(&mut self) -> Result<Done, Failure> {
        let client = self.writers.pool.get().await?;
        let begun = self.begin(&client).await?;
        if self.unconfirmed.is_some() {
            // The lock was free, so the earlier transaction has ended in one way or the other.
            let token: [Parameter<'_>; 1] = [(&self.token, Type::INT8)];
            let row = answer(client.query_typed_one(sql::RECEIPT, &token)).await?;
            let is_stored: bool = row.try_get(0)?;
            let done = self.unconfirmed.take().filter(|_| is_stored);
            if let Some(done) = done {
                end(client).await;
                return Ok(done);
            }
        }
        let (outcomes, changes) = self.decide(&client, begun).await?;
        let touched = changes.touched.clone();
        let done = Done { outcomes, touched };
        if changes.is_empty() {
            end(client).await;
            return Ok(done);
        }
        self.write_and_commit(client, changes, done).await
    }

    /// Takes the lock and reads what the calls depend on, in one round trip.
    async fn begin(&self, client: &Lent) -> Result<Begun, Failure> {
        let name = self.partition.as_str();
        let clock = self.writers.clock.as_ref().map(|clock| stored(clock()));
        let lock: [Parameter<'_>; 1] = [(&name, Type::TEXT)];
        let now: [Parameter<'_>; 1] = [(&clock, Type::INT8)];
        // Requests are sent in the order in which their futures are polled first, and each statement sees what was
        // committed before it began: that of the records begins when the lock is taken.
        let asked = join4(
            client.batch_execute(sql::BEGIN),
            client.query_typed(sql::LOCK, &lock),
            self.read(client),
            client.query_typed_one(sql::NOW, &now),
        );
        let late = || Failure::passing(format!("did not answer for {} s", ANSWER.as_secs()));
        let (begun, locked, rows, now) = timeout(ANSWER, asked).await.map_err(|_| late())?;
        begun?;
        let (locked, mut rows, now) = (locked?, rows?, now?.try_get(0)?);
        let counter = match locked.first() {
            Some(row) => row.try_get(0)?,
            None => {
                // The first call of all in this partition.
                answer(client.execute_typed(sql::ADD_PARTITION, &lock)).await?;
                let row = answer(client.query_typed_one(sql::LOCK, &lock)).await?;
                rows = answer(self.read(client)).await?;
                row.try_get(0)?
            }
        };
        Ok(Begun { counter, now, rows })
    }

    /// The records on which the calls depend.
    async fn read(&self, client: &Lent) -> Result<Vec<Row>, Error> {
        let name = self.partition.as_str();
        if let [Task::Claim(request, _)] = self.tasks {
            let clock = self.writers.clock.as_ref().map(|clock| stored(clock()));
            let parameters: [Parameter<'_>; 5] = [
                (&name, Type::TEXT),
                (&request.queue.name, Type::TEXT),
                (&stored(request.up_to), Type::INT8),
                (&clock, Type::INT8),
                (&stored(request.most as u64), Type::INT8),
            ];
            return client.query_typed(sql::CLAIMABLE, &parameters).await;
        }
        let mut ids: Vec<&RecordId> = Vec::new();
        for task in self.tasks {
            match task {
                Task::Commit(batch, _) => {
                    ids.extend(batch.writes.iter().map(myclaw_store::Write::id));
                    ids.extend(batch.under.iter().map(|claim| &claim.id));
                }
                Task::Renew(claim, _, _) => ids.push(&claim.id),
                Task::Claim(..) => {}
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let (kinds, keys) = names(ids.into_iter());
        let parameters: [Parameter<'_>; 3] =
            [(&name, Type::TEXT), (&kinds, Type::TEXT_ARRAY), (&keys, Type::TEXT_ARRAY)];
        client.query_typed(sql::STATES, &parameters).await
    }

    /// The outcome of each call, and what has to be written for it.
    async fn decide(
        &self,
        client: &Lent,
        begun: Begun,
    ) -> Result<(Vec<Outcome>, Changes<'w>), Failure> {
        if let [Task::Claim(request, _)] = self.tasks {
            return self.claim(request, &begun);
        }
        let mut records = HashMap::with_capacity(begun.rows.len());
        for row in &begun.rows {
            let found = record(self.partition, row)?;
            records.insert(found.id.clone(), state(found, row)?);
        }
        let mut plan = Plan::new(begun.counter, begun.now, records);
        let mut outcomes = Vec::with_capacity(self.tasks.len());
        for task in self.tasks {
            outcomes.push(match task {
                Task::Commit(batch, _) => {
                    let mut decision = plan.commit(batch);
                    if let Some(id) = &decision.incomplete {
                        // Nothing of this group is in the database yet, so the value is the one that was compared.
                        complete(client, id, &mut decision.commit).await?;
                    }
                    Outcome::Commit(decision.commit)
                }
                Task::Renew(claim, lease, _) => Outcome::Renew(plan.renew(claim, *lease)),
                Task::Claim(..) => Outcome::Claim(Vec::new()),
            });
        }
        Ok((outcomes, plan.into_changes()))
    }

    fn claim(
        &self,
        request: &ClaimRequest,
        begun: &Begun,
    ) -> Result<(Vec<Outcome>, Changes<'w>), Failure> {
        let mut changes = Changes::from(begun.counter);
        let until = lease_end(number(begun.now), request.lease);
        let mut claims = Vec::with_capacity(begun.rows.len());
        for row in &begun.rows {
            let record = record(self.partition, row)?;
            let epoch = changes.next();
            let lease = Lease { epoch, owner: Some(request.owner.clone()), until };
            changes.leases.insert(record.id.clone(), lease);
            let claim = Claim { id: record.id.clone(), epoch };
            claims.push((record, claim));
        }
        Ok((vec![Outcome::Claim(claims)], changes))
    }

    async fn write_and_commit(
        &mut self,
        client: Lent,
        changes: Changes<'_>,
        done: Done,
    ) -> Result<Done, Failure> {
        let name = self.partition.as_str();
        let mut put: Vec<Put<'_>> = Vec::new();
        let mut removed = Vec::new();
        for (id, state) in &changes.records {
            match state {
                Some(state) => put.push((id, state)),
                None => removed.push(id),
            }
        }
        // All but the last of many bytes go one after the other.
        let mut rest = put.as_slice();
        while let Some((first, others)) = split_large(rest) {
            answer(put_records(&client, name, first)).await?;
            rest = others;
        }
        let counter = stored(changes.counter);
        let finish: [Parameter<'_>; 3] =
            [(&name, Type::TEXT), (&self.token, Type::INT8), (&counter, Type::INT8)];
        // From here on the commit may happen without an answer.
        self.unconfirmed = Some(done);
        let asked = join5(
            put_records(&client, name, rest),
            remove_records(&client, name, &removed),
            set_leases(&client, name, &changes.leases),
            client.execute_typed(sql::FINISH, &finish),
            join(client.batch_execute(sql::UNLIMITED), client.batch_execute(sql::COMMIT)),
        );
        let (put, removed, leased, finished, (unlimited, committed)) = asked.await;
        let written = [put.err(), removed.err(), leased.err(), finished.err(), unlimited.err()];
        if let Some(error) = written.into_iter().flatten().next() {
            if error.as_db_error().is_some() {
                // The server refused a statement, so its commit was none.
                self.unconfirmed = None;
            }
            return Err(error.into());
        }
        committed?;
        client.give_back();
        // Set above.
        Ok(self.unconfirmed.take().unwrap_or_default())
    }
}

/// Ends a transaction that changes nothing. A failure closes the connection, which does the same.
async fn end(client: Lent) {
    if answer(client.batch_execute(sql::ROLLBACK)).await.is_ok() {
        client.give_back();
    }
}

/// Reads the value of the record in a refusal.
async fn complete(client: &Lent, id: &RecordId, commit: &mut Commit) -> Result<(), Failure> {
    let Commit::Refused(Refusal::Exists(refused) | Refusal::Changed { now: Some(refused), .. }) =
        commit
    else {
        return Ok(());
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM myclaw.record WHERE partition = {PARTITION} AND kind = $2 AND key = $3"
    );
    let name = id.partition.as_str();
    let parameters: [Parameter<'_>; 3] =
        [(&name, Type::TEXT), (&id.kind, Type::TEXT), (&id.key, Type::TEXT)];
    let row = answer(client.query_typed_one(&sql, &parameters)).await?;
    **refused = record(&id.partition, &row)?;
    Ok(())
}

/// The state of a record, of a row of [`sql::STATES`].
fn state<'t>(record: Record, row: &Row) -> Result<State<'t>, Error> {
    let claim = Lease {
        epoch: number(row.try_get(7)?),
        owner: row.try_get(8)?,
        until: number(row.try_get(9)?),
    };
    let Record { version, place, entered, .. } = record;
    Ok(State { version: version.0, place, entered, claim, value: None })
}

fn names<'i>(ids: impl Iterator<Item = &'i RecordId>) -> (Vec<&'i str>, Vec<&'i str>) {
    ids.map(|id| (id.kind.as_str(), id.key.as_str())).unzip()
}

/// What is put, split where one statement has enough; `None` if it has not.
fn split_large<'p, 'i>(put: &'p [Put<'i>]) -> Option<(&'p [Put<'i>], &'p [Put<'i>])> {
    let mut bytes = 0;
    let at = put.iter().position(|(_, state)| {
        bytes += state.value.map_or(0, <[u8]>::len);
        bytes > MOST_STATEMENT_BYTES
    })?;
    Some(put.split_at(at.max(1)))
}

async fn put_records(client: &Lent, partition: &str, put: &[Put<'_>]) -> Result<u64, Error> {
    if put.is_empty() {
        return Ok(0);
    }
    let (kinds, keys) = names(put.iter().map(|(id, _)| *id));
    let states = || put.iter().map(|(_, state)| *state);
    let numbers = |of: fn(&State<'_>) -> u64| -> Vec<i64> {
        states().map(|state| stored(of(state))).collect()
    };
    let values: Vec<&[u8]> = states().map(|state| state.value.unwrap_or_default()).collect();
    let queues: Vec<Option<&str>> =
        states().map(|state| Some(state.place.as_ref()?.queue.as_str())).collect();
    let places: Vec<Option<i64>> =
        states().map(|state| Some(stored(state.place.as_ref()?.order))).collect();
    let owners: Vec<Option<&str>> = states().map(|state| state.claim.owner.as_deref()).collect();
    let parameters: [Parameter<'_>; 11] = [
        (&partition, Type::TEXT),
        (&kinds, Type::TEXT_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&numbers(|state| state.version), Type::INT8_ARRAY),
        (&values, Type::BYTEA_ARRAY),
        (&queues, Type::TEXT_ARRAY),
        (&places, Type::INT8_ARRAY),
        (&numbers(|state| state.entered), Type::INT8_ARRAY),
        (&numbers(|state| state.claim.epoch), Type::INT8_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&numbers(|state| state.claim.until), Type::INT8_ARRAY),
    ];
    client.execute_typed(sql::PUT, &parameters).await
}

async fn remove_records(
    client: &Lent,
    partition: &str,
    removed: &[&RecordId],
) -> Result<u64, Error> {
    if removed.is_empty() {
        return Ok(0);
    }
    let (kinds, keys) = names(removed.iter().copied());
    let parameters: [Parameter<'_>; 3] =
        [(&partition, Type::TEXT), (&kinds, Type::TEXT_ARRAY), (&keys, Type::TEXT_ARRAY)];
    client.execute_typed(sql::REMOVE, &parameters).await
}

async fn set_leases(
    client: &Lent,
    partition: &str,
    leases: &BTreeMap<RecordId, Lease>,
) -> Result<u64, Error> {
    if leases.is_empty() {
        return Ok(0);
    }
    let (kinds, keys) = names(leases.keys());
    let epochs: Vec<i64> = leases.values().map(|lease| stored(lease.epoch)).collect();
    let owners: Vec<Option<&str>> = leases.values().map(|lease| lease.owner.as_deref()).collect();
    let ends: Vec<i64> = leases.values().map(|lease| stored(lease.until)).collect();
    let parameters: [Parameter<'_>; 6] = [
        (&partition, Type::TEXT),
        (&kinds, Type::TEXT_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&epochs, Type::INT8_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&ends, Type::INT8_ARRAY),
    ];
    client.execute_typed(sql::LEASE, &parameters).await
}
