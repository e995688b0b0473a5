//! The jobs and their occurrences in the store.
//!
//! An occurrence is a record, unique by job and due time, in one queue after the other: `due` (planned, and claimed by
//! the store's lease), `running`, and that of the ended ones of its job. An enabled job has one occurrence that is planned
//! or runs; the end of it plans the next one, in the same transaction. Each transaction replaces the job under the
//! version that was read, so changes by people and by the clock cannot cross.

use std::sync::Arc;
use std::time::Duration;

use myclaw_store::{
    Batch, Claim, ClaimRequest, Claims, Commit, Held, Place, QueueId, QueueWatch, Record, Records,
    Refusal, Store, StoreError, Stored, Version, Write, scan,
};

use super::job::{Job, LastRun, Occurrence, OccurrenceState, Outcome};
use crate::DeliveryError;
use crate::ledger::OVER;

const JOBS: Records<Job> = Records::new("job");
/// Queue of the jobs, by the time at which they were made.
const ALL_JOBS: &str = "jobs";
const OCCURRENCES: Records<Occurrence> = Records::new("occurrence");
/// Queue of the occurrences that are planned, by due time.
const DUE: &str = "due";
/// Queue of those that run.
const RUNNING: &str = "running";
/// How long a claimed occurrence waits for the store until it can be claimed again.
const LEASE: Duration = Duration::from_secs(5);
/// Ended occurrences that are kept of a job.
pub(super) const KEPT_RUNS: usize = 50;
/// Records that are read at once.
const AT_ONCE: usize = 200;
/// Attempts to change a job that others change too.
const MOST_ATTEMPTS: usize = 20;

/// The jobs and their occurrences.
pub struct Book {
    store: Arc<dyn Store>,
    claims: Arc<Claims>,
}

/// A job as it was read.
pub(super) type StoredJob = Stored<Job>;

/// An occurrence that this process may work on.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) version: Version,
    pub(super) occurrence: Occurrence,
    /// The claim under which it began; `None` for one that an earlier process began.
    pub(super) claim: Option<Claim>,
}

impl Book {
    /// The book in the store of these claims.
    pub fn new(claims: Arc<Claims>) -> Self {
        Self { store: Arc::clone(claims.store()), claims }
    }

    /// Waits for changes of what is planned, whoever makes them.
    pub(super) fn watch(&self) -> QueueWatch {
        self.store.watch(QueueId::new(DUE))
    }

    /// All jobs, the oldest first.
    pub(super) async fn jobs(&self) -> Result<Vec<Job>, DeliveryError> {
        let jobs = JOBS.all(&*self.store, ALL_JOBS).await?;
        Ok(jobs.into_iter().map(|stored| stored.row).collect())
    }

    pub(super) async fn job(&self, id: &str) -> Result<Option<StoredJob>, DeliveryError> {
        Ok(JOBS.get(&*self.store, id).await?)
    }

    /// The planned occurrence that is due first, and whether there may be more that are due at `now`.
    pub(super) async fn next_due(&self, now: u64) -> Result<NextDue, DeliveryError> {
        let mut found = NextDue { after_now: None, is_one_due: false };
        let first = self.store.scan(QueueId::new(DUE), None, AT_ONCE).await?;
        for record in &first {
            let due = record.place.as_ref().map_or(0, |place| place.order);
            if due > now {
                found.after_now = Some(due);
                break;
            }
            found.is_one_due = true;
        }
        Ok(found)
    }

    /// Claims planned occurrences that are due.
    pub(super) async fn claim_due(
        &self,
        now: u64,
        most: usize,
    ) -> Result<Vec<Claimed>, DeliveryError> {
        self.claim(DUE, now, most, LEASE).await
    }

    async fn claim(
        &self,
        queue: &str,
        up_to: u64,
        most: usize,
        lease: Duration,
    ) -> Result<Vec<Claimed>, DeliveryError> {
        let process = || format!("process {}", std::process::id());
        let owner = self.claims.holder().map_or_else(process, str::to_owned);
        let request = ClaimRequest { queue: QueueId::new(queue), up_to, owner, lease, most };
        let mut ours = Vec::new();
        for (record, claim) in self.store.claim(request).await? {
            ours.push(self.claimed(record, Some(claim)).await?);
        }
        Ok(ours)
    }

    /// How often there may be running occurrences of another process that has died; `None` where there is no other one.
    pub(super) fn look(&self) -> Option<Duration> {
        self.claims.is_shared().then(|| self.claims.look())
    }

    /// Holds a running occurrence until its end. `None` if another process has it.
    pub(super) async fn hold(&self, claim: Claim) -> Result<Option<Held>, DeliveryError> {
        Ok(self.claims.adopt(claim).await?)
    }

    /// Takes over the running occurrences that no process has any more. Of a process that has the store for itself, those are
    /// all; a lease would only delay this after a second crash.
    pub(super) async fn take_over(&self) -> Result<Vec<Claimed>, DeliveryError> {
        if let Some(lease) = self.claims.lease() {
            return self.claim(RUNNING, Place::LAST, AT_ONCE, lease).await;
        }
        let running = scan(&*self.store, RUNNING, usize::MAX).await?;
        let mut ours = Vec::with_capacity(running.len());
        for record in running {
            ours.push(self.claimed(record, None).await?);
        }
        Ok(ours)
    }

    async fn claimed(
        &self,
        record: Record,
        claim: Option<Claim>,
    ) -> Result<Claimed, DeliveryError> {
        let stored = OCCURRENCES.read(&*self.store, record).await?;
        Ok(Claimed { version: stored.version, occurrence: stored.row, claim })
    }

    /// Lets a claimed occurrence wait: nobody claims it for this time.
    pub(super) async fn postpone(
        &self,
        claimed: &Claimed,
        pause: Duration,
    ) -> Result<(), DeliveryError> {
        if let Some(claim) = claimed.claim.clone() {
            self.store.renew(claim, pause).await?;
        }
        Ok(())
    }

    /// The writes that make an occurrence run, under its claim. `job` is stored with it.
    pub(super) fn start(
        &self,
        claimed: &Claimed,
        running: &Occurrence,
        job: Option<&StoredJob>,
        now: u64,
    ) -> Result<Batch, DeliveryError> {
        let place = Place::new(RUNNING, now);
        let mut writes =
            vec![OCCURRENCES.put(&running.key(), Some(claimed.version), running, place)?];
        if let Some(job) = job {
            writes.push(put_job(&job.row, Some(job.version))?);
        }
        Ok(under(claimed, writes))
    }

    /// Ends an occurrence, and plans the next one of its job: the first due time after `after`. False if somebody else
    /// has changed the occurrence.
    pub(super) async fn end(
        &self,
        claimed: &Claimed,
        outcome: Outcome,
        mut after: u64,
        now: u64,
    ) -> Result<bool, DeliveryError> {
        let before = &claimed.occurrence;
        let (session, started_at) = match &before.state {
            OccurrenceState::Running { session, started_at, .. } => {
                (Some(session.clone()), Some(*started_at))
            }
            _ => (None, None),
        };
        let state =
            OccurrenceState::Ended { outcome: outcome.clone(), session, started_at, ended_at: now };
        let ended = Occurrence { state, ..before.clone() };
        for _ in 0..MOST_ATTEMPTS {
            let stored = self.job(&before.job).await?;
            let plan = stored.map(|stored| after_end(stored, before, &outcome, after, now));
            let mut writes = Vec::new();
            let is_kept = plan.as_ref().is_some_and(|plan| plan.is_kept);
            let queue = if is_kept { runs_queue(&before.job) } else { OVER.to_owned() };
            let place = Place::new(queue, now);
            writes.push(OCCURRENCES.put(&ended.key(), Some(claimed.version), &ended, place)?);
            if is_kept {
                writes.extend(self.trim(&before.job).await?);
            }
            if let Some(plan) = &plan {
                writes.extend(plan.writes()?);
            }
            match self.store.commit(under(claimed, writes)).await? {
                Commit::Done(_) => {
                    return Ok(true);
                }
                // This due time has been dealt with before, so the one after it is next.
                Commit::Refused(Refusal::Exists(record)) => {
                    after = OCCURRENCES.read(&*self.store, *record).await?.row.due;
                }
                Commit::Refused(Refusal::Fenced(_)) => return Ok(false),
                Commit::Refused(Refusal::Changed { id, .. })
                    if id == OCCURRENCES.id(&before.key()) =>
                {
                    return Ok(false);
                }
                Commit::Refused(Refusal::Changed { .. }) => {}
            }
        }
        Err(busy(&before.job))
    }

    /// Adds a job, with its first occurrence.
    pub(super) async fn add(&self, mut job: Job, now: u64) -> Result<Job, DeliveryError> {
        job.next = job.enabled.then(|| job.next_after(now)).flatten();
        let mut writes = vec![put_job(&job, None)?];
        writes.extend(planned(&job)?);
        match self.store.commit(writes.into()).await? {
            Commit::Done(_) => Ok(job),
            // Another process adds the same heartbeat.
            Commit::Refused(_) => match self.job(&job.id).await? {
                Some(stored) => Ok(stored.row),
                None => Err(busy(&job.id)),
            },
        }
    }

    /// Changes a job. If `change` says so, its next occurrence is planned anew, unless one runs, whose end plans it.
    pub(super) async fn change(
        &self,
        id: &str,
        now: u64,
        change: impl Fn(&mut Job) -> Result<Replan, DeliveryError>,
    ) -> Result<Option<Job>, DeliveryError> {
        for _ in 0..MOST_ATTEMPTS {
            let Some(stored) = self.job(id).await? else { return Ok(None) };
            let (version, mut job) = (stored.version, stored.row);
            let planned_before = self.planned_record(&job).await?;
            let is_running = job.next.is_some() && planned_before.is_none();
            let mut writes = Vec::new();
            if change(&mut job)? == Replan::Yes {
                job.since = now;
                if !is_running {
                    job.next = job.enabled.then(|| job.next_after(now)).flatten();
                    let stays = |record: &Record| record.id.key == key_of(&job);
                    if !planned_before.as_ref().is_some_and(stays) {
                        writes.extend(planned_before.map(remove));
                        job.next = self.free_due(&job).await?;
                        writes.extend(planned(&job)?);
                    }
                }
            }
            writes.push(put_job(&job, Some(version))?);
            match self.store.commit(writes.into()).await? {
                Commit::Done(_) => {
                    return Ok(Some(job));
                }
                Commit::Refused(_) => {}
            }
        }
        Err(busy(id))
    }

    /// Removes a job with its planned occurrence and what is known about ended ones. One that runs keeps running. False if
    /// there is no such job.
    pub(super) async fn remove(&self, id: &str) -> Result<bool, DeliveryError> {
        for _ in 0..MOST_ATTEMPTS {
            let Some(job) = self.job(id).await? else { return Ok(false) };
            let mut writes = vec![JOBS.remove(id, job.version)];
            writes.extend(self.planned_record(&job.row).await?.map(remove));
            writes.extend(self.manual_of(id).await?.map(remove));
            let ended = scan(&*self.store, &runs_queue(id), KEPT_RUNS * 2).await?;
            writes.extend(ended.into_iter().map(remove));
            if let Commit::Done(_) = self.store.commit(writes.into()).await? {
                return Ok(true);
            }
        }
        Err(busy(id))
    }

    /// Plans an occurrence for this moment, outside the schedule. `None` if one waits already.
    pub(super) async fn run_now(
        &self,
        id: &str,
        now: u64,
    ) -> Result<Option<Occurrence>, DeliveryError> {
        if self.manual_of(id).await?.is_some() {
            return Ok(None);
        }
        let mut occurrence = Occurrence { manual: true, ..Occurrence::planned(id, now) };
        while let Commit::Refused(_) = self.store.commit(Batch::of(insert(&occurrence)?)).await? {
            occurrence.due += 1;
        }
        Ok(Some(occurrence))
    }

    /// What became of the occurrences of a job, the newest first, and those that run or wait.
    pub(super) async fn runs(
        &self,
        id: &str,
        most: usize,
    ) -> Result<Vec<Occurrence>, DeliveryError> {
        let mut runs = OCCURRENCES.first(&*self.store, &runs_queue(id), KEPT_RUNS * 2).await?;
        let running = OCCURRENCES.all(&*self.store, RUNNING).await?;
        runs.extend(running.into_iter().filter(|occurrence| occurrence.row.job == id));
        if let Some(record) = self.manual_of(id).await? {
            runs.push(OCCURRENCES.read(&*self.store, record).await?);
        }
        let mut runs: Vec<Occurrence> = runs.into_iter().map(|stored| stored.row).collect();
        runs.reverse();
        runs.truncate(most);
        Ok(runs)
    }

    /// How many occurrences run.
    pub(super) async fn running(&self) -> Result<usize, DeliveryError> {
        Ok(scan(&*self.store, RUNNING, AT_ONCE).await?.len())
    }

    /// The planned occurrence of a job, unless it runs.
    async fn planned_record(&self, job: &Job) -> Result<Option<Record>, DeliveryError> {
        let Some(due) = job.next else { return Ok(None) };
        let key = Occurrence::planned(&job.id, due).key();
        let record = self.store.get(OCCURRENCES.id(&key)).await?;
        Ok(record.filter(|record| record.place.as_ref().is_some_and(|place| place.queue == DUE)))
    }

    /// The job's next due time that has no occurrence yet.
    async fn free_due(&self, job: &Job) -> Result<Option<u64>, DeliveryError> {
        let mut next = job.next;
        while let Some(due) = next {
            let key = Occurrence::planned(&job.id, due).key();
            if self.store.get(OCCURRENCES.id(&key)).await?.is_none() {
                break;
            }
            next = job.next_after(due);
        }
        Ok(next)
    }

    /// The occurrence of a job that somebody asked for and that waits.
    async fn manual_of(&self, id: &str) -> Result<Option<Record>, DeliveryError> {
        for record in scan(&*self.store, DUE, usize::MAX).await? {
            let occurrence = OCCURRENCES.read(&*self.store, record.clone()).await?.row;
            if occurrence.manual && occurrence.job == id {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Removes the oldest ended occurrences of a job, to make room for one more.
    async fn trim(&self, id: &str) -> Result<Vec<Write>, DeliveryError> {
        let ended = scan(&*self.store, &runs_queue(id), KEPT_RUNS * 2).await?;
        let surplus = (ended.len() + 1).saturating_sub(KEPT_RUNS);
        Ok(ended.into_iter().take(surplus).map(remove).collect())
    }
}

/// The writes, under the claim of the occurrence.
fn under(claimed: &Claimed, writes: Vec<Write>) -> Batch {
    Batch { writes, under: claimed.claim.iter().cloned().collect() }
}

/// Whether a change of a job moves its due times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replan {
    Yes,
    No,
}

/// When the next occurrences are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextDue {
    /// The first one after the present.
    pub(super) after_now: Option<u64>,
    /// Whether one is due that is not running.
    pub(super) is_one_due: bool,
}

/// A job after the end of an occurrence.
struct AfterEnd {
    job: Job,
    version: Version,
    /// Whether the job stays.
    is_kept: bool,
    /// Whether it has a new planned occurrence.
    is_planned: bool,
}

impl AfterEnd {
    fn writes(&self) -> Result<Vec<Write>, DeliveryError> {
        if !self.is_kept {
            return Ok(vec![JOBS.remove(&self.job.id, self.version)]);
        }
        let mut writes = vec![put_job(&self.job, Some(self.version))?];
        if self.is_planned {
            writes.extend(planned(&self.job)?);
        }
        Ok(writes)
    }
}

fn after_end(
    stored: StoredJob,
    ended: &Occurrence,
    outcome: &Outcome,
    after: u64,
    now: u64,
) -> AfterEnd {
    let (version, mut job) = (stored.version, stored.row);
    job.last = Some(LastRun { due: ended.due, ended_at: now, outcome: outcome.clone() });
    let is_next = !ended.manual && job.next == Some(ended.due);
    if is_next {
        job.next = job.enabled.then(|| job.next_after(after)).flatten();
    }
    let succeeded = matches!(outcome, Outcome::Answered { .. } | Outcome::Quiet);
    let is_over = is_next && job.enabled && job.next.is_none();
    if is_over {
        job.enabled = false;
    }
    let is_kept = !(is_over && succeeded && job.delete_after_run);
    AfterEnd { is_planned: is_next && job.next.is_some(), job, version, is_kept }
}

/// Queue of the ended occurrences of a job, by the time of their end.
fn runs_queue(id: &str) -> String {
    format!("runs/{id}")
}

fn key_of(job: &Job) -> String {
    job.next.map(|due| Occurrence::planned(&job.id, due).key()).unwrap_or_default()
}

fn put_job(job: &Job, known: Option<Version>) -> Result<Write, StoreError> {
    JOBS.put(&job.id, known, job, Place::new(ALL_JOBS, job.created_at))
}

/// The planned occurrence of a job, if it is to become due.
fn planned(job: &Job) -> Result<Option<Write>, StoreError> {
    job.next.map(|due| insert(&Occurrence::planned(&job.id, due))).transpose()
}

fn insert(occurrence: &Occurrence) -> Result<Write, StoreError> {
    OCCURRENCES.put(&occurrence.key(), None, occurrence, Place::new(DUE, occurrence.due))
}

fn remove(record: Record) -> Write {
    Write::Remove { expected: record.version, id: record.id }
}

fn busy(id: &str) -> DeliveryError {
    DeliveryError::Unusable(format!("the job {id} is being changed by others; try again"))
}
