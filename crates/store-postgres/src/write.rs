//! The calls that write.
//!
//! The calls of a partition that wait share a transaction: two round trips and one commit, however many there are. One
//! transaction of a partition is under way in this process at a time, so other processes wait for the lock seldom.

mod sql;
mod transaction;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use myclaw_store::{
    Batch, Claim, ClaimRequest, Commit, Partition, QueueId, Record, StoreClock, StoreError, Watches,
};
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::failure::{Failure, Kind};
use crate::hints::Hints;
use crate::pool::Pool;
pub(crate) use sql::{ADD_PARTITION, BEGIN, PARTITION_ID, UNLIMITED};
use transaction::Transaction;

/// Calls that share a transaction, and bytes of their values.
const MOST_IN_GROUP: usize = 64;
const MOST_GROUP_BYTES: usize = 16 * 1024 * 1024;
/// How often receipts are removed, and how long they are kept: far longer than a call is patient.
const SWEEP: Duration = Duration::from_secs(60);

/// Receives the outcome of a task.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// One call that writes.
#[derive(Debug)]
pub(crate) enum Task {
    Commit(Batch, Reply<Commit>),
    Claim(ClaimRequest, Reply<Vec<(Record, Claim)>>),
    Renew(Claim, Duration, Reply<bool>),
}

/// What a task returns.
#[derive(Debug)]
enum Outcome {
    Commit(Commit),
    Claim(Vec<(Record, Claim)>),
    Renew(bool),
}

/// The outcomes of a group, and the queues in which something changed.
#[derive(Debug, Default)]
struct Done {
    outcomes: Vec<Outcome>,
    touched: HashSet<QueueId>,
}

/// Those who carry out the calls.
pub(crate) struct Writers {
    pool: Arc<Pool>,
    watches: Arc<Watches>,
    hints: Hints,
    clock: Option<StoreClock>,
    runtime: Handle,
    /// The calls that wait. A partition is here while somebody works on it.
    waiting: Mutex<HashMap<Partition, VecDeque<Task>>>,
    random: SystemRandom,
    opened: Instant,
    /// When receipts were removed last, in seconds since the opening.
    swept: AtomicU64,
}

/// Works on a partition until no call waits.
struct Worker {
    writers: Arc<Writers>,
    partition: Partition,
    /// Whether the last transaction was a claim.
    was_claim: AtomicBool,
}

impl Writers {
    pub(crate) fn new(
        pool: Arc<Pool>,
        watches: Arc<Watches>,
        hints: Hints,
        clock: Option<StoreClock>,
    ) -> Self {
        Self {
            pool,
            watches,
            hints,
            clock,
            runtime: Handle::current(),
            waiting: Mutex::default(),
            random: SystemRandom::new(),
            opened: Instant::now(),
            swept: AtomicU64::new(0),
        }
    }

    /// Carries out a call, whether or not its caller waits for it.
    pub(crate) fn submit(self: &Arc<Self>, partition: &Partition, task: Task) {
        let mut waiting = self.waiting.lock();
        if let Some(queue) = waiting.get_mut(partition) {
            queue.push_back(task);
            return;
        }
        waiting.insert(partition.clone(), VecDeque::from([task]));
        drop(waiting);
        let (writers, partition) = (Arc::clone(self), partition.clone());
        let worker = Worker { writers, partition, was_claim: AtomicBool::new(false) };
        self.runtime.spawn(async move {
            while let Some(group) = worker.next_group() {
                worker.carry_out(group).await;
            }
        });
    }

    async fn sweep_receipts(&self) {
        let now = self.opened.elapsed().as_secs();
        let last = self.swept.load(Ordering::Relaxed);
        let is_due = now >= last + SWEEP.as_secs()
            && self.swept.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due {
            // If it fails, it is due again in a minute.
            drop(self.pool.query(sql::SWEEP_RECEIPTS, &[]).await);
        }
    }
}

impl Worker {
    /// The next calls, in their order; `None` if there are none, and then the work is over.
    fn next_group(&self) -> Option<Vec<Task>> {
        let mut waiting = self.writers.waiting.lock();
        let queue = waiting.get_mut(&self.partition)?;
        // A claim looks for its records in the database, so it has a transaction of its own.
        let is_claim = |task: &Task| matches!(task, Task::Claim(..));
        let claim = queue.iter().position(is_claim);
        let others = queue.iter().position(|task| !is_claim(task));
        // Many claims at once, of what a dead process had, keep no message waiting: no two follow each other before it.
        let is_turn = |claim: usize| {
            others.is_none_or(|other| claim < other && !self.was_claim.load(Ordering::Relaxed))
        };
        let claim = claim.filter(|claim| is_turn(*claim));
        self.was_claim.store(claim.is_some(), Ordering::Relaxed);
        let mut group: Vec<Task> =
            claim.and_then(|claim| queue.remove(claim)).into_iter().collect();
        let (mut at, mut bytes) = (0, 0);
        while claim.is_none()
            && let Some(task) = queue.get(at)
        {
            if is_claim(task) {
                at += 1;
                continue;
            }
            bytes += task.bytes();
            if !group.is_empty() && (group.len() >= MOST_IN_GROUP || bytes > MOST_GROUP_BYTES) {
                break;
            }
            group.extend(queue.remove(at));
        }
        if group.is_empty() {
            waiting.remove(&self.partition);
            return None;
        }
        Some(group)
    }

    /// Makes a group durable, then answers its callers.
    async fn carry_out(&self, group: Vec<Task>) {
        match self.transact(&group).await {
            Ok(done) => self.finish(group, done).await,
            Err((_, Kind::Final | Kind::Refused)) if group.len() > 1 => {
                // One call of the group cannot be carried out. The others need not fail with it.
                for task in group {
                    Box::pin(self.carry_out(vec![task])).await;
                }
            }
            Err((error, _)) => group.into_iter().for_each(|task| task.fail(error.clone())),
        }
    }

    async fn finish(&self, group: Vec<Task>, done: Done) {
        self.writers.watches.wake(&done.touched);
        self.writers.hints.send(done.touched);
        group.into_iter().zip(done.outcomes).for_each(|(task, outcome)| task.answer(outcome));
        self.writers.sweep_receipts().await;
    }

    /// One transaction, tried again while the database cannot be reached.
    async fn transact(&self, group: &[Task]) -> Result<Done, (StoreError, Kind)> {
        let server = self.writers.pool.server();
        let attempts = self.writers.pool.attempts();
        let mut transaction = Transaction::new(&self.writers, &self.partition, group)
            .map_err(|failure| (failure.into_error(server), Kind::Passing))?;
        loop {
            let failure = match attempts.within(transaction.attempt()).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let kind = failure.kind;
            attempts
                .after(failure, server)
                .await
                .map_err(|error| transaction.give_up(error, kind))?;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Only where the runtime ends in the middle of the work: callers then get to know that the store is closed.
        self.writers.waiting.lock().remove(&self.partition);
    }
}

impl Task {
    fn bytes(&self) -> usize {
        let Self::Commit(batch, _) = self else { return 0 };
        batch.writes.iter().filter_map(|write| write.value()).map(<[u8]>::len).sum()
    }

    /// Sends the result. A caller that no longer waits is no failure.
    fn answer(self, outcome: Outcome) {
        match (self, outcome) {
            (Self::Commit(_, reply), Outcome::Commit(commit)) => drop(reply.send(Ok(commit))),
            (Self::Claim(_, reply), Outcome::Claim(claims)) => drop(reply.send(Ok(claims))),
            (Self::Renew(_, _, reply), Outcome::Renew(renewed)) => drop(reply.send(Ok(renewed))),
            // An outcome belongs to the task at its position.
            (_, _) => {}
        }
    }

    fn fail(self, error: StoreError) {
        match self {
            Self::Commit(_, reply) => drop(reply.send(Err(error))),
            Self::Claim(_, reply) => drop(reply.send(Err(error))),
            Self::Renew(_, _, reply) => drop(reply.send(Err(error))),
        }
    }
}

/// A number that no other transaction has.
fn token(random: &SystemRandom) -> Result<i64, Failure> {
    let mut bytes = [0; 8];
    let filled = random.fill(&mut bytes);
    filled.map_err(|_| Failure::lasting("cannot be used, because there are no random numbers"))?;
    Ok(i64::from_le_bytes(bytes))
}
