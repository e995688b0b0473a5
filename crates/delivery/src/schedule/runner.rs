//! Runs what is due.
//!
//! One task waits for the next due time. It compares wall clocks, and looks at the clock again every few seconds, so it
//! notices when somebody sets the clock or the machine has slept. What is due becomes a message to a session, whose
//! delivery does the rest; a task for each running occurrence waits for the end of its message.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::HEARTBEAT_PEER;
use myclaw_config::{AgentId, Heartbeat, HeartbeatSession};
use myclaw_engine::Clock;
use myclaw_schedule::Schedule;
use myclaw_session::SessionKey;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::book::{Book, Claimed, Replan, StoredJob};
use super::heartbeat::{PROMPT, has_nothing_to_do};
use super::job::{Destination, Job, JobWork, Missed, Occurrence, OccurrenceState, Outcome, Target};
use crate::DeliveryError;
use crate::delivery::Delivery;
use crate::route::Route;
use crate::rows::{Incoming, MessageState, Occasion};

/// Most occurrences that run at the same time. Others wait.
const MOST_RUNNING: usize = 16;
/// Longest sleep without a look at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
/// Pause before an occurrence that could not begin is tried again.
const POSTPONED: Duration = Duration::from_secs(2);
/// How late an occurrence may be and still be in time, in milliseconds.
const IN_TIME_MS: u64 = 60_000;
/// Most missed occurrences of a job that run one after the other.
const MOST_MISSED: usize = 100;
/// A job that is due this much later than its schedule says was planned by a wrong clock, in milliseconds.
const WRONG_CLOCK_MS: u64 = 24 * 60 * 60 * 1_000;
/// Pause before an end that could not be stored is stored again.
const END_PAUSE: Duration = Duration::from_secs(5);
/// Characters of an answer that are kept.
const SAID_CHARS: usize = 200;

/// Runs jobs and heartbeats.
pub struct Runner {
    pub(super) book: Arc<Book>,
    pub(super) delivery: Arc<Delivery>,
    clock: Arc<dyn Clock>,
    slots: Arc<Semaphore>,
    /// Wakes the wait for the next due time when there is room, or another config.
    changed: Notify,
    pub(super) tasks: TaskTracker,
}

/// What to do with an occurrence whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs, also for the due times up to this one.
    Run { until: Option<u64> },
    /// It is missed, with those up to `until`. The first due time after `after` is next.
    Miss { until: u64, after: u64 },
}

impl Runner {
    /// Nothing is begun until [`Runner::recover`].
    pub fn new(delivery: Arc<Delivery>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            book: Arc::clone(delivery.book()),
            delivery,
            clock,
            slots: Arc::new(Semaphore::new(MOST_RUNNING)),
            changed: Notify::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Brings the jobs up to date with the config and the clock, and takes over what an earlier process was running.
    pub async fn recover(self: &Arc<Self>) -> Result<(), DeliveryError> {
        self.take_over().await?;
        self.arrange_heartbeats().await?;
        self.correct_plans().await
    }

    /// Waits for the ends of what another process was running.
    async fn take_over(self: &Arc<Self>) -> Result<(), DeliveryError> {
        for claimed in self.book.take_over().await? {
            let this = Arc::clone(self);
            self.tasks.spawn(async move { this.finish(claimed, None).await });
        }
        Ok(())
    }

    /// Brings heartbeats up to date with a new config, and looks again at what is due.
    pub async fn rearrange(&self) -> Result<(), DeliveryError> {
        let arranged = self.arrange_heartbeats().await;
        self.changed.notify_one();
        arranged
    }

    /// Runs what is due, for ever.
    pub async fn run(self: Arc<Self>) {
        let mut before = self.clock.now_ms();
        let mut planned = self.book.watch();
        loop {
            let next = match self.turn().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::error!(%error, "scheduled jobs are not looked at; trying again");
                    Some(self.clock.now_ms().saturating_add(1_000))
                }
            };
            loop {
                let now = self.clock.now_ms();
                if now.saturating_add(WRONG_CLOCK_MS) < before
                    && let Err(error) = self.correct_plans().await
                {
                    tracing::error!(%error, "jobs are not planned by the new time");
                    break;
                }
                before = now;
                let longest =
                    self.book.look().map_or(LONGEST_SLEEP, |look| look.min(LONGEST_SLEEP));
                let wait = next.map_or(longest, |next| {
                    Duration::from_millis(next.saturating_sub(now)).min(longest)
                });
                if wait.is_zero() {
                    break;
                }
                tokio::select! {
                    () = planned.changed() => break,
                    () = self.changed.notified() => break,
                    () = self.clock.sleep(wait) => {}
                }
            }
        }
    }

    /// Begins everything that is due, as far as there is room. Returns when to look again.
    pub(super) async fn turn(self: &Arc<Self>) -> Result<Option<u64>, DeliveryError> {
        let now = self.clock.now_ms();
        if self.book.look().is_some() {
            self.take_over().await?;
        }
        if !self.delivery.config().cron.enabled {
            return Ok(None);
        }
        let due = self.book.next_due(now).await?;
        if !due.is_one_due {
            return Ok(due.after_now);
        }
        let mut slots = Vec::new();
        while let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            slots.push(slot);
        }
        if !slots.is_empty() {
            for claimed in self.book.claim_due(now, slots.len()).await? {
                let (this, slot) = (Arc::clone(self), slots.pop());
                self.tasks.spawn(async move { this.begin(claimed, slot).await });
            }
        }
        // Its end, or the end of its postponement, is not known yet.
        let again = now.saturating_add(u64::try_from(POSTPONED.as_millis()).unwrap_or_default());
        Ok(Some(due.after_now.map_or(again, |next| next.min(again))))
    }

    async fn begin(self: Arc<Self>, claimed: Claimed, slot: Option<OwnedSemaphorePermit>) {
        match self.try_begin(&claimed).await {
            Ok(Some(running)) => self.finish(running, slot).await,
            Ok(None) => {}
            Err(error) => {
                let job = claimed.occurrence.job.as_str();
                tracing::error!(job, %error, "a scheduled job is not begun; trying again");
            }
        }
    }

    /// Ends an occurrence that need not run, or makes it run. `None` if it is over, or has to wait.
    async fn try_begin(&self, claimed: &Claimed) -> Result<Option<Claimed>, DeliveryError> {
        let (occurrence, now) = (&claimed.occurrence, self.clock.now_ms());
        let Some(stored) = self.book.job(&occurrence.job).await? else {
            let reason = "the job was removed".to_owned();
            self.book.end(claimed, Outcome::Skipped { reason }, occurrence.due, now).await?;
            return Ok(None);
        };
        let job = &stored.row;
        let until = match verdict(job, occurrence, now) {
            Verdict::Run { until } => until,
            Verdict::Miss { until, after } => {
                self.book.end(claimed, Outcome::Missed { until }, after, now).await?;
                return Ok(None);
            }
        };
        if let Some(session) = job.session()
            && !(job.is_in_shown_session() && self.exists(&session).await?)
        {
            self.remind(claimed, job, session, (until, now)).await?;
            return Ok(None);
        }
        let heartbeat = match job.is_heartbeat() {
            true => self.delivery.config().heartbeat(&AgentId::new(&job.agent)),
            false => None,
        };
        if job.is_heartbeat() {
            let reason = match &heartbeat {
                None => Some("the config has no heartbeat for the agent"),
                Some(heartbeat) => self.why_not(&stored, heartbeat, now).await?,
            };
            if let Some(reason) = reason {
                let outcome = Outcome::Skipped { reason: reason.to_owned() };
                self.book.end(claimed, outcome, until.unwrap_or(occurrence.due), now).await?;
                return Ok(None);
            }
            if self.delivery.is_busy(&self.heartbeat_session(heartbeat.as_ref(), &job.agent)?) {
                self.book.postpone(claimed, POSTPONED).await?;
                return Ok(None);
            }
        }
        self.start(claimed, stored, heartbeat.as_ref(), until, now).await
    }

    /// The session in which an agent's heartbeat is.
    fn heartbeat_session(
        &self,
        heartbeat: Option<&Heartbeat>,
        agent: &str,
    ) -> Result<String, DeliveryError> {
        match heartbeat.map(|heartbeat| heartbeat.session) {
            Some(HeartbeatSession::Main) => self.delivery.main_session(agent),
            _ => Ok(self.delivery.job_session(agent, HEARTBEAT_PEER)),
        }
    }

    /// Why this heartbeat makes no model call.
    async fn why_not(
        &self,
        stored: &StoredJob,
        heartbeat: &Heartbeat,
        now: u64,
    ) -> Result<Option<&'static str>, DeliveryError> {
        if heartbeat.active_hours.as_ref().is_some_and(|hours| !hours.contain(now)) {
            return Ok(Some("it is outside the active hours"));
        }
        if !stored.row.notes.is_empty() {
            return Ok(None);
        }
        let workspace = self.delivery.workspace(&stored.row.agent)?;
        let looking = tokio::task::spawn_blocking(move || has_nothing_to_do(&workspace));
        looking.await.map_err(|error| DeliveryError::Internal(error.to_string()))
    }

    /// Stores the message of an occurrence, in one transaction with the occurrence.
    async fn start(
        &self,
        claimed: &Claimed,
        stored: StoredJob,
        heartbeat: Option<&Heartbeat>,
        until: Option<u64>,
        now: u64,
    ) -> Result<Option<Claimed>, DeliveryError> {
        let job = &stored.row;
        let main = self.delivery.main_session(&job.agent)?;
        let (text, session, route, occasion) = match &job.work {
            JobWork::Heartbeat => {
                let target = heartbeat.map_or("last", |heartbeat| heartbeat.target.as_str());
                let destination = match target {
                    "last" => Destination::Last,
                    "none" => Destination::None,
                    channel => Destination::Channel(channel.to_owned()),
                };
                let mut text = PROMPT.to_owned();
                for note in &job.notes {
                    text.push_str("\n\n");
                    text.push_str(note);
                }
                let route = self.route(&destination, &main).await?;
                let session = self.heartbeat_session(heartbeat, &job.agent)?;
                (text, session, route, Occasion::Heartbeat)
            }
            JobWork::Message { text, target, delivery } => {
                let text = job.told(text);
                match (job.session(), target) {
                    // It is answered where somebody wrote there last.
                    (Some(key), _) => {
                        let session = key.as_str().to_owned();
                        let route = self.route(&Destination::Last, &session).await?;
                        (text, session, route, Occasion::Job)
                    }
                    (None, Target::Main) => {
                        let route = self.route(delivery, &main).await?;
                        (text, main.clone(), route, Occasion::Job)
                    }
                    (None, Target::Isolated) => {
                        let session = self.delivery.job_session(&job.agent, &job.id);
                        (text, session, self.route(delivery, &main).await?, Occasion::Job)
                    }
                }
            }
        };
        let message = claimed.occurrence.message_id();
        let state = OccurrenceState::Running {
            message: message.clone(),
            session: session.clone(),
            started_at: now,
        };
        let occurrence = Occurrence { state, until, ..claimed.occurrence.clone() };
        let incoming = Incoming {
            occasion: Some(occasion),
            ..Incoming::new(route, occurrence.key(), session, text, now)
        };
        let notes = (!job.notes.is_empty())
            .then(|| StoredJob { row: Job { notes: Vec::new(), ..job.clone() }, ..stored.clone() });
        let batch = self.book.start(claimed, &occurrence, notes.as_ref(), now)?;
        let Some(version) = self.delivery.begin(message, incoming, batch).await? else {
            // It was changed or removed meanwhile; as long as it is there, it is claimed again.
            return Ok(None);
        };
        Ok(Some(Claimed { version, occurrence, claim: claimed.claim.clone() }))
    }

    async fn exists(&self, session: &SessionKey) -> Result<bool, DeliveryError> {
        let (home, key) = (self.delivery.home(), session.clone());
        let looking = tokio::task::spawn_blocking(move || home.catalog().exists(&key)).await;
        looking.map_err(|error| DeliveryError::Internal(error.to_string()))
    }

    /// Where the answer of a job goes. Nowhere if nobody wrote to the session yet, or the channel was never used.
    async fn route(&self, to: &Destination, of_session: &str) -> Result<Route, DeliveryError> {
        let routes = &self.delivery.routes();
        let found = match to {
            Destination::None => None,
            Destination::Last => routes.last(of_session).await?,
            Destination::Channel(channel) => routes.of_channel(channel).await?,
            Destination::Chat(route) => Some(route.clone()),
        };
        Ok(found.unwrap_or_else(Route::nowhere))
    }

    /// Waits for the end of a running occurrence, and stores it.
    async fn finish(self: Arc<Self>, claimed: Claimed, slot: Option<OwnedSemaphorePermit>) {
        loop {
            match self.try_to_finish(&claimed).await {
                Ok(()) => break,
                Err(error) => {
                    let job = claimed.occurrence.job.as_str();
                    tracing::error!(job, %error, "the end of a scheduled job is not stored; trying again");
                    self.clock.sleep(END_PAUSE).await;
                }
            }
        }
        drop(slot);
        // Other occurrences may wait for the place that is free now.
        self.changed.notify_one();
    }

    /// As [`Runner::finish`], once. If another process takes the occurrence over, it is left to it.
    async fn try_to_finish(&self, claimed: &Claimed) -> Result<(), DeliveryError> {
        let OccurrenceState::Running { message, .. } = &claimed.occurrence.state else {
            return Ok(());
        };
        let held = match claimed.claim.clone() {
            Some(claim) if self.book.look().is_some() => match self.book.hold(claim).await? {
                Some(held) => Some(held),
                None => return Ok(()),
            },
            _ => None,
        };
        let lost = async {
            match &held {
                Some(held) => held.lost().await,
                None => std::future::pending().await,
            }
        };
        let row = self.delivery.outcome(message, lost).await?;
        if held.is_some_and(|held| held.is_lost()) {
            return Ok(());
        }
        let outcome = outcome(row.as_ref());
        let after = claimed.occurrence.until.unwrap_or(claimed.occurrence.due);
        // Somebody else has ended it, if this did not.
        self.book.end(claimed, outcome, after, self.clock.now_ms()).await.map(drop)
    }

    /// Makes the jobs of heartbeats as the config says.
    pub(crate) async fn arrange_heartbeats(&self) -> Result<(), DeliveryError> {
        let (config, now) = (self.delivery.config(), self.clock.now_ms());
        let agents: Vec<AgentId> = config.agent_ids();
        for agent in &agents {
            let id = Job::heartbeat_id(agent.as_str());
            let Some(heartbeat) = config.heartbeat(agent) else { continue };
            let every_ms = u64::try_from(heartbeat.every.as_millis()).unwrap_or(u64::MAX);
            let schedule = Schedule::Every { every_ms, anchor_ms: now };
            match self.book.job(&id).await? {
                None => {
                    self.book.add(heartbeat_job(id, agent, schedule, now), now).await?;
                }
                Some(StoredJob { row: job, .. }) => {
                    let is_same = matches!(
                        job.schedule, Schedule::Every { every_ms: before, .. } if before == every_ms
                    );
                    if !is_same {
                        let change = |job: &mut Job| {
                            job.schedule = schedule.clone();
                            Ok(Replan::Yes)
                        };
                        self.book.change(&id, now, change).await?;
                    }
                }
            }
        }
        for job in self.book.jobs().await? {
            let has_one = agents
                .iter()
                .any(|agent| agent.as_str() == job.agent && config.heartbeat(agent).is_some());
            if job.is_heartbeat() && !has_one {
                self.book.remove(&job.id).await?;
            }
        }
        Ok(())
    }

    /// Plans jobs anew that were planned while the clock was far ahead.
    pub(super) async fn correct_plans(&self) -> Result<(), DeliveryError> {
        let now = self.clock.now_ms();
        for job in self.book.jobs().await? {
            let next = job.schedule.next_after(now);
            let is_far = job
                .next
                .zip(next)
                .is_some_and(|(planned, next)| planned > next.saturating_add(WRONG_CLOCK_MS));
            if is_far {
                self.book.change(&job.id, now, |_| Ok(Replan::Yes)).await?;
            }
        }
        Ok(())
    }
}

/// What to do with an occurrence whose time has come.
pub(super) fn verdict(job: &Job, occurrence: &Occurrence, now: u64) -> Verdict {
    if occurrence.manual {
        return Verdict::Run { until: None };
    }
    let due = occurrence.due;
    let passed = job.schedule.newest(due, now, MOST_MISSED);
    let newest = passed.last().copied().unwrap_or(due).max(due);
    match job.missed {
        Missed::Once => Verdict::Run { until: (newest > due).then_some(newest) },
        Missed::Skip if newest > due => {
            let until = passed.iter().rev().nth(1).copied().unwrap_or(due).max(due);
            Verdict::Miss { until, after: newest - 1 }
        }
        Missed::Skip if now.saturating_sub(due) > IN_TIME_MS => {
            Verdict::Miss { until: due, after: due }
        }
        Missed::All if passed.len() == MOST_MISSED && passed[0] > due => {
            Verdict::Miss { until: passed[0] - 1, after: passed[0] - 1 }
        }
        Missed::Skip | Missed::All => Verdict::Run { until: None },
    }
}

fn heartbeat_job(id: String, agent: &AgentId, schedule: Schedule, now: u64) -> Job {
    Job {
        id,
        name: format!("Heartbeat of {agent}"),
        agent: agent.to_string(),
        enabled: true,
        schedule,
        since: now,
        work: JobWork::Heartbeat,
        missed: Missed::Once,
        delete_after_run: false,
        created_at: now,
        next: None,
        last: None,
        notes: Vec::new(),
    }
}

/// How an occurrence ended, by its message.
fn outcome(row: Option<&Incoming>) -> Outcome {
    let Some(row) = row else {
        let message = "what became of its message is not known any more".to_owned();
        return Outcome::Failed { class: "unknown".to_owned(), message };
    };
    match &row.state {
        MessageState::Reported { class, message, .. } => {
            Outcome::Failed { class: class.clone(), message: message.clone() }
        }
        MessageState::Dropped { reason, .. } => {
            Outcome::Failed { class: "dropped".to_owned(), message: reason.clone() }
        }
        MessageState::Answered { .. } | MessageState::Open => match &row.said {
            None => Outcome::Quiet,
            Some(said) => Outcome::Answered { said: said.chars().take(SAID_CHARS).collect() },
        },
    }
}
