//! The schedule with a clock that is set by hand, a real store, real sessions and the built-in model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_agent::{Home, Stores, config_check::load_checked};
use myclaw_config::{Config, Environment};
use myclaw_engine::Clock;
use myclaw_schedule::Schedule;
use myclaw_store::{MemoryStore, SqliteStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::task::TaskTracker;

use super::book::{Book, Claimed};
use super::job::{Job, JobWork, Missed, Occurrence, Outcome};
use super::request::JobFields;
use super::runner::{Runner, Verdict, verdict};
use crate::channels::Channels;
use crate::current::{Current, InForce};
use crate::delivery::{Delivery, DeliveryParts};
use crate::ledger::Ledger;
use crate::outbox::Outbox;
use crate::route::Route;
use crate::routing::Pairings;
use crate::rows::Incoming;
use crate::tests::{Nobody, OwnChannel};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// 1 January 2026, 00:00 UTC.
const BEGIN: u64 = 1_767_225_600_000;

/// A clock that is set by hand.
#[derive(Debug, Default)]
struct HandClock(AtomicU64);

impl HandClock {
    fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A gateway without a server.
struct Bench {
    clock: Arc<HandClock>,
    delivery: Arc<Delivery>,
    runner: Arc<Runner>,
    config: Arc<Config>,
    directory: TempDir,
}

/// Where a bench keeps what outlives a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    InFiles,
    InMemory,
}

impl Bench {
    async fn new(config: Value) -> Self {
        Self::keeping(Kept::InFiles, config).await
    }

    async fn keeping(kept: Kept, config: Value) -> Self {
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => TempDir::new_in(memory),
            false => TempDir::new(),
        };
        let directory = directory.expect("a directory");
        let home = directory.path().to_owned();
        std::fs::create_dir_all(home.join(".myclaw")).expect("created");
        // A test is no helper process of a sandbox.
        let sandbox = json!({"mode": "off"});
        let mut whole =
            json!({"agents": {"defaults": {"model": "builtin/demo", "sandbox": sandbox}}});
        for (key, value) in config.as_object().expect("an object") {
            match key.as_str() {
                "heartbeat" => whole["agents"]["defaults"]["heartbeat"] = value.clone(),
                _ => whole[key] = value.clone(),
            }
        }
        let environment = environment(&home);
        let paths = environment.paths().expect("paths");
        std::fs::write(paths.config_file(), whole.to_string()).expect("written");
        std::fs::create_dir_all(home.join(".myclaw/workspace")).expect("created");
        let config = load_checked(&environment).expect("a config").config;
        let clock = Arc::new(HandClock::default());
        clock.set(BEGIN);
        let mut of_bench = Home::new(environment, paths);
        if kept == Kept::InMemory {
            of_bench = of_bench.with_stores(Stores::in_memory(home.join("scratch")));
        }
        let (delivery, runner) =
            open(of_bench, kept, Arc::clone(&config), Arc::clone(&clock)).await;
        Self { clock, delivery, runner, config, directory }
    }

    fn book(&self) -> &Arc<Book> {
        self.delivery.book()
    }

    /// Adds a job.
    async fn add(&self, fields: Value) -> Job {
        let fields: JobFields = serde_json::from_value(fields).expect("fields");
        let now = self.clock.now_ms();
        let job = fields.job(&self.config, now).expect("a job");
        self.book().add(job, now).await.expect("added")
    }

    async fn job(&self, id: &str) -> Job {
        self.book().job(id).await.expect("read").expect("a job").row
    }

    /// Runs everything that is due, to its end. Returns when the next is due.
    async fn settle(&self) -> Option<u64> {
        loop {
            self.runner.turn().await.expect("a turn");
            for _ in 0..60_000 {
                if self.runner.tasks.is_empty() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(self.runner.tasks.is_empty(), "a run did not end");
            let due = self.book().next_due(self.clock.now_ms()).await.expect("read");
            if !due.is_one_due {
                return due.after_now;
            }
        }
    }

    /// Walks from one due time to the next, until `end`. Returns what became of each: job, due time, outcome.
    async fn walk(&self, end: u64) -> Vec<(String, u64, Outcome)> {
        let mut seen = Vec::new();
        while let Some(next) = self.settle().await.filter(|next| *next < end) {
            self.clock.set(next);
            let due: Vec<Job> = self.book().jobs().await.expect("read");
            let due: Vec<Job> = due.into_iter().filter(|job| job.next == Some(next)).collect();
            self.settle().await;
            for job in due {
                let last = self.job(&job.id).await.last.expect("an end");
                assert_eq!(last.due, next, "another due time of {} was run", job.name);
                seen.push((job.id, last.due, last.outcome));
            }
        }
        seen
    }
}

fn environment(home: &Path) -> Environment {
    let none: [(String, String); 0] = [];
    Environment::new(none, Some(home.to_owned()), None)
}

async fn open(
    home: Home,
    kept: Kept,
    config: Arc<Config>,
    clock: Arc<HandClock>,
) -> (Arc<Delivery>, Arc<Runner>) {
    let file = home.paths.state_dir().join("gateway/store.sqlite");
    let of_store = Arc::clone(&clock);
    let of_store = Arc::new(move || of_store.now_ms());
    let store: Arc<dyn Store> = match kept {
        Kept::InFiles => Arc::new(SqliteStore::open_with_clock(&file, of_store).expect("a store")),
        Kept::InMemory => Arc::new(MemoryStore::with_clock(of_store)),
    };
    let tasks = TaskTracker::new();
    let outbox = Outbox::new(
        Ledger::new(Arc::clone(&store)),
        Channels::new(Arc::new(OwnChannel::new()), Vec::new()),
        Arc::clone(&home.stores().outgoing),
        Arc::new(Nobody),
        tasks.clone(),
    );
    let pairings = Pairings::load(Ledger::new(Arc::clone(&store))).await.expect("pairings");
    let parts = DeliveryParts {
        others: Arc::new(crate::sharing::NoOthers),
        current: Current::new(InForce { home, config, found: true }),
        outbox,
        front: Arc::new(Nobody),
        pairings: Arc::new(pairings),
        tasks,
    };
    let delivery = Delivery::new(parts, Box::new(|_| Arc::new(Nobody)));
    delivery.recover().await.expect("recovered");
    let runner = Runner::new(Arc::clone(&delivery), clock);
    runner.recover().await.expect("recovered");
    (delivery, runner)
}

/// The due times of a schedule in a span, by the calendar alone.
fn calendar(schedule: &Schedule, from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(schedule.next_after(from), |due| schedule.next_after(*due))
        .take_while(|due| *due < to)
        .collect()
}

#[tokio::test]
async fn a_year_of_jobs_and_heartbeats_runs_each_due_time_once() {
    a_year(Kept::InFiles).await;
}

#[tokio::test]
async fn a_year_in_memory_is_the_same_and_leaves_no_file() {
    let bench = a_year(Kept::InMemory).await;
    for name in ["scratch", ".myclaw/sessions", ".myclaw/gateway"] {
        assert!(!bench.directory.path().join(name).exists(), "{name}");
    }
}

async fn a_year(kept: Kept) -> Bench {
    let bench = Bench::keeping(kept, json!({"heartbeat": {"every": "6h"}})).await;
    // Nothing to do, so that only the jobs ask the model.
    let workspace = bench.directory.path().join(".myclaw/workspace");
    std::fs::write(workspace.join("HEARTBEAT.md"), "# Tasks\n\n").expect("written");
    let mut jobs = vec![bench.job("heartbeat:main").await];
    for (expr, tz) in [
        ("30 2 * * *", "Europe/Berlin"),
        ("30 2 * * *", "America/New_York"),
        ("15 2 * * *", "Australia/Lord_Howe"),
        ("45 1 * * 0", "Australia/Lord_Howe"),
        ("30 * 28-30 3 *", "Europe/Berlin"),
    ] {
        let schedule = json!({"expr": expr, "tz": tz});
        let fields = json!({"schedule": schedule, "message": "hello", "target": "isolated"});
        jobs.push(bench.add(fields).await);
    }
    let end = BEGIN + 365 * DAY;
    let seen = bench.walk(end).await;
    for job in &jobs {
        let of_job: Vec<u64> =
            seen.iter().filter(|(id, ..)| *id == job.id).map(|(_, due, _)| *due).collect();
        assert_eq!(of_job, calendar(&job.schedule, BEGIN, end), "due times of {}", job.name);
        let is_right = |outcome: &Outcome| match job.work {
            JobWork::Heartbeat => matches!(outcome, Outcome::Skipped { .. }),
            JobWork::Message { .. } => matches!(outcome, Outcome::Answered { .. }),
        };
        let wrong = seen.iter().find(|(id, _, outcome)| *id == job.id && !is_right(outcome));
        assert_eq!(wrong, None, "{}", job.name);
    }
    assert!(seen.len() > 365 * 7, "only {} due times", seen.len());
    assert_eq!(bench.delivery.open_count(), 0);
    bench
}

#[tokio::test]
async fn missed_due_times_follow_the_policy_of_the_job() {
    let bench = Bench::new(json!({"heartbeat": {"enabled": false}})).await;
    let fields = |missed: &str| {
        json!({
            "schedule": {"every": "10m"}, "message": "hello", "target": "isolated", "missed": missed,
        })
    };
    let skip = bench.add(fields("skip")).await;
    let once = bench.add(fields("once")).await;
    let all = bench.add(fields("all")).await;
    // The clock is set forward by three hours and five minutes: 18 due times have passed.
    bench.clock.set(BEGIN + 3 * HOUR + 5 * MINUTE);
    bench.settle().await;
    let ended = |runs: &[Occurrence]| -> Vec<u64> {
        let answered = runs.iter().filter(|run| {
            matches!(
                run.state,
                super::job::OccurrenceState::Ended { outcome: Outcome::Answered { .. }, .. }
            )
        });
        answered.map(|run| (run.due - BEGIN) / MINUTE).rev().collect()
    };
    let (book, next) = (bench.book(), Some(BEGIN + 190 * MINUTE));
    assert_eq!(ended(&book.runs(&skip.id, 50).await.expect("read")), [] as [u64; 0]);
    let once_runs = book.runs(&once.id, 50).await.expect("read");
    assert_eq!(ended(&once_runs), [10]);
    assert_eq!(once_runs[0].until, Some(BEGIN + 180 * MINUTE));
    let every: Vec<u64> = (1..=18).map(|number| number * 10).collect();
    assert_eq!(ended(&book.runs(&all.id, 50).await.expect("read")), every);
    let last = bench.job(&skip.id).await.last.expect("an end");
    assert_eq!(last.outcome, Outcome::Missed { until: BEGIN + 180 * MINUTE });
    for job in [&skip, &once, &all] {
        assert_eq!(bench.job(&job.id).await.next, next, "{:?}", job.missed);
    }
}

#[test]
fn the_verdict_on_late_occurrences_is_bounded() {
    let mut job: Job = serde_json::from_value(json!({
        "id": "a", "name": "a", "agent": "main", "enabled": true, "since": 0, "missed": "skip",
        "schedule": {"kind": "every", "everyMs": MINUTE, "anchorMs": 0}, "deleteAfterRun": false,
        "work": {"kind": "message", "text": "t", "target": "main", "delivery": "last"},
        "createdAt": 0, "next": null, "last": null,
    }))
    .expect("a job");
    let due = 1_000 * MINUTE;
    let occurrence = Occurrence::planned("a", due);
    let at = |job: &Job, late: u64| verdict(job, &occurrence, due + late);
    assert_eq!(at(&job, MINUTE - 1), Verdict::Run { until: None });
    let miss = Verdict::Miss { until: due + 4 * MINUTE, after: due + 5 * MINUTE - 1 };
    assert_eq!(at(&job, 5 * MINUTE), miss);
    job.missed = Missed::Once;
    assert_eq!(at(&job, 0), Verdict::Run { until: None });
    assert_eq!(at(&job, 10 * 365 * DAY), Verdict::Run { until: Some(due + 10 * 365 * DAY) });
    job.missed = Missed::All;
    assert_eq!(at(&job, 5 * MINUTE), Verdict::Run { until: None });
    // Of 1,001 the newest 100 run.
    let cut = due + 901 * MINUTE;
    assert_eq!(at(&job, 1_000 * MINUTE), Verdict::Miss { until: cut - 1, after: cut - 1 });
    job.schedule = Schedule::At { at_ms: due };
    job.missed = Missed::Skip;
    assert_eq!(at(&job, MINUTE), Verdict::Run { until: None });
    assert_eq!(at(&job, MINUTE + 1), Verdict::Miss { until: due, after: due });
}

#[tokio::test]
async fn a_clock_that_goes_back_repeats_nothing_and_a_wrong_one_is_corrected() {
    let bench = Bench::new(json!({"heartbeat": {"enabled": false}})).await;
    let fields = json!({"schedule": {"every": "10m"}, "message": "hello", "target": "isolated"});
    let job = bench.add(fields).await;
    bench.walk(BEGIN + HOUR).await;
    let before = bench.book().runs(&job.id, 50).await.expect("read").len();
    assert_eq!(before, 5);
    bench.clock.set(BEGIN);
    bench.runner.correct_plans().await.expect("corrected");
    assert_eq!(bench.settle().await, Some(BEGIN + HOUR), "a due time is repeated");
    // A clock that was years ahead and then is right again does not stop the job for years.
    bench.clock.set(BEGIN + 3 * 365 * DAY);
    bench.settle().await;
    bench.clock.set(BEGIN + 2 * HOUR);
    bench.runner.correct_plans().await.expect("corrected");
    assert_eq!(bench.settle().await, Some(BEGIN + 2 * HOUR + 10 * MINUTE));
}

#[tokio::test]
async fn an_ended_lease_is_taken_over_and_the_older_claim_is_refused() {
    let bench = Bench::new(json!({"heartbeat": {"enabled": false}})).await;
    let job = bench.add(json!({"schedule": {"at": "10m"}, "message": "hello"})).await;
    let due = BEGIN + 10 * MINUTE;
    bench.clock.set(due);
    let claim = |book: Arc<Book>| async move {
        let claimed: Vec<Claimed> = book.claim_due(due, 10).await.expect("claimed");
        claimed
    };
    let first = claim(Arc::clone(bench.book())).await.remove(0);
    assert!(claim(Arc::clone(bench.book())).await.is_empty(), "claimed twice");
    bench.clock.set(due + 6_000);
    let second = claim(Arc::clone(bench.book())).await.remove(0);
    let epoch = |claimed: &Claimed| claimed.claim.as_ref().map(|claim| claim.epoch);
    assert!(epoch(&second) > epoch(&first));
    let end = |claimed: Claimed| {
        let book = Arc::clone(bench.book());
        async move { book.end(&claimed, Outcome::Quiet, due, due).await.expect("stored") }
    };
    assert!(!end(first.clone()).await, "an older claim was accepted");
    assert!(end(second.clone()).await);
    assert!(!end(second).await, "it ended twice");
    // A single time that succeeded is gone.
    assert!(bench.book().job(&job.id).await.expect("read").is_none());
}

#[tokio::test]
async fn what_runs_is_taken_over_also_by_a_process_that_starts_at_once() {
    let bench = Bench::new(json!({"heartbeat": {"enabled": false}})).await;
    bench.add(json!({"schedule": {"at": "10m"}, "message": "hello"})).await;
    let due = BEGIN + 10 * MINUTE;
    bench.clock.set(due);
    let claimed = bench.book().claim_due(due, 1).await.expect("claimed").remove(0);
    let start = bench.book().start(&claimed, &claimed.occurrence, None, due).expect("a batch");
    let session = bench.delivery.job_session("main", "job");
    let [source, text] = ["source", "hello"].map(str::to_owned);
    let row = Incoming::new(Route::nowhere(), source, session, text, due);
    let begun = bench.delivery.begin(claimed.occurrence.message_id(), row, start).await;
    assert!(begun.expect("stored").is_some());
    for _ in 0..2 {
        assert_eq!(bench.book().take_over().await.expect("read").len(), 1);
    }
    let running = bench.book().take_over().await.expect("read").remove(0);
    assert!(bench.book().end(&running, Outcome::Quiet, due, due).await.expect("stored"));
    assert!(!bench.book().end(&claimed, Outcome::Quiet, due, due).await.expect("stored"));
}

#[tokio::test]
async fn changes_while_an_occurrence_waits_or_runs_move_only_later_ones() {
    let bench = Bench::new(json!({"heartbeat": {"enabled": false}})).await;
    let fields = json!({"schedule": {"every": "10m"}, "message": "hello", "target": "isolated"});
    let job = bench.add(fields).await;
    let change = |patch: Value| {
        let patch: JobFields = serde_json::from_value(patch).expect("fields");
        let (config, now) = (Arc::clone(&bench.config), bench.clock.now_ms());
        let (book, id) = (Arc::clone(bench.book()), job.id.clone());
        async move {
            let change = |job: &mut Job| {
                patch.apply(job, &config, now)?;
                Ok(super::book::Replan::Yes)
            };
            book.change(&id, now, change).await.expect("changed").expect("a job")
        }
    };
    let hourly = change(json!({"schedule": {"every": "1h"}})).await;
    assert_eq!(hourly.next, Some(BEGIN + HOUR));
    assert_eq!(bench.settle().await, Some(BEGIN + HOUR));
    assert_eq!(change(json!({"enabled": false})).await.next, None);
    assert_eq!(bench.settle().await, None);
    bench.clock.set(BEGIN + 5 * HOUR + MINUTE);
    assert_eq!(change(json!({"enabled": true})).await.next, Some(BEGIN + 6 * HOUR));
    // It is claimed, and paused before it begins to run: then it does not run.
    bench.clock.set(BEGIN + 6 * HOUR);
    let claimed = bench.book().claim_due(BEGIN + 6 * HOUR, 1).await.expect("claimed").remove(0);
    change(json!({"enabled": false})).await;
    let start = bench.book().start(&claimed, &claimed.occurrence, None, BEGIN).expect("a batch");
    let id = claimed.occurrence.message_id();
    let row = Incoming::new(
        Route::nowhere(),
        "source".to_owned(),
        bench.delivery.job_session("main", &job.id),
        "hello".to_owned(),
        BEGIN,
    );
    let begun = bench.delivery.begin(id, row, start).await.expect("stored");
    assert!(begun.is_none(), "a paused job runs");
    assert_eq!(bench.delivery.open_count(), 0);
}
