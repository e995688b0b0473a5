//! What every [`Store`] must do, as functions for the tests of an implementation.
//!
//! Each function takes an empty store, except for those of [`crash`], which are for a process that is killed. A
//! violation panics.
#![expect(clippy::expect_used, clippy::panic, reason = "a check that fails is a failed test")]

mod claims;
pub mod crash;
mod many;

pub use claims::{
    a_holder_that_wakes_late_is_fenced, a_thing_has_one_holder, claims_survive_a_clock_that_jumps,
    what_a_dead_holder_left_goes_to_one, what_is_released_is_free_at_once,
};
pub use many::{
    blobs_are_whole, no_record_is_missed, partitions_are_apart, queues_are_watched,
    the_last_place_follows_the_order_of_the_store, two_see_each_other,
};

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{
    Batch, Claim, ClaimRequest, Commit, MAX_KEY_BYTES, MAX_VALUE_BYTES, Partition, Place, QueueId,
    Record, RecordId, Refusal, Store, StoreError, Version, Write,
};

/// A lease that no test outlives by itself.
const LEASE: Duration = Duration::from_secs(60);

/// A clock that stands still until it is moved. It counts milliseconds.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<AtomicU64>);

impl Default for TestClock {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000)))
    }
}

impl TestClock {
    /// The time.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sets the time, also back.
    pub fn set(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

/// A key is inserted once, even if many insert it at the same time.
pub async fn keys_are_unique(store: Arc<dyn Store>) {
    let id = RecordId::new("thing", "one");
    let first = done(store.commit(Batch::of(insert(&id, "first", None))).await);
    let again = store.commit(Batch::of(insert(&id, "second", None))).await;
    let Ok(Commit::Refused(Refusal::Exists(found))) = again else {
        panic!("a second insertion gave {again:?}");
    };
    assert_eq!((found.version, text(&found).as_str()), (first, "first"));
    // The same key of another kind is another record.
    done(store.commit(Batch::of(insert(&RecordId::new("other", "one"), "x", None))).await);

    let mut tasks = Vec::new();
    for number in 0..20 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let id = RecordId::new("thing", "contended");
            store.commit(Batch::of(insert(&id, &number.to_string(), None))).await
        }));
    }
    let mut winners = 0;
    for task in tasks {
        let commit = task.await.expect("an insertion that ends").expect("a store that works");
        winners += usize::from(matches!(commit, Commit::Done(_)));
    }
    assert_eq!(winners, 1, "insertions of one key that succeeded");
}

/// A record changes only from the version that its writer has read, and no version comes back.
pub async fn versions_decide(store: Arc<dyn Store>) {
    let id = RecordId::new("thing", "one");
    let first = done(store.commit(Batch::of(insert(&id, "a", None))).await);
    let second = done(store.commit(Batch::of(replace(&id, first, "b", None))).await);
    assert!(second > first, "the version does not grow");
    let late = store.commit(Batch::of(replace(&id, first, "late", None))).await;
    assert_changed(&late, &id, Some(second));
    let late = store.commit(Batch::of(Write::Remove { id: id.clone(), expected: first })).await;
    assert_changed(&late, &id, Some(second));

    done(store.commit(Batch::of(Write::Remove { id: id.clone(), expected: second })).await);
    assert_eq!(store.get(id.clone()).await.expect("a store that works"), None);
    let gone = store.commit(Batch::of(replace(&id, second, "late", None))).await;
    assert_changed(&gone, &id, None);
    let third = done(store.commit(Batch::of(insert(&id, "c", None))).await);
    assert!(third > second, "a version came back with a new record of the same name");
}

/// A batch is carried out as a whole or not at all.
pub async fn batches_are_atomic(store: Arc<dyn Store>) {
    let [a, b] = ["a", "b"].map(|key| RecordId::new("thing", key));
    let both = vec![insert(&a, "1", Some(Place::new("queue", 1))), insert(&b, "1", None)];
    let version = done(store.commit(both.into()).await);
    let stale = store
        .commit(vec![replace(&a, version, "2", None), replace(&b, Version(0), "2", None)].into())
        .await;
    assert_changed(&stale, &b, Some(version));
    for id in [&a, &b] {
        assert_eq!(text(&found(&*store, id).await), "1", "a refused batch changed {id}");
    }
    assert_eq!(keys(&*store, "queue").await, ["a"], "a refused batch moved a record");
    let twice = store
        .commit(vec![replace(&a, version, "2", None), replace(&a, version, "3", None)].into())
        .await;
    assert!(matches!(twice, Err(StoreError::Unusable(_))), "{twice:?}");
}

/// A queue is in order: by place, then by the moment of entering. A scan continues where the last one ended.
pub async fn queues_are_in_order(store: Arc<dyn Store>) {
    let id = |key: &str| RecordId::new("thing", key);
    let at = |order| Some(Place::new("queue", order));
    for (key, order) in [("c", 5), ("a", 1), ("d", 5), ("b", 1), ("e", 0)] {
        done(store.commit(Batch::of(insert(&id(key), key, at(order)))).await);
    }
    done(store.commit(Batch::of(insert(&id("elsewhere"), "", Some(Place::new("q", 0))))).await);
    assert_eq!(keys(&*store, "queue").await, ["e", "a", "b", "c", "d"]);

    let first = store.scan(QueueId::new("queue"), None, 2).await.expect("a store that works");
    let cursor = first.last().and_then(Record::cursor);
    let rest = store.scan(QueueId::new("queue"), cursor, 10).await.expect("a store that works");
    assert_eq!(names(&first), ["e", "a"]);
    assert_eq!(names(&rest), ["b", "c", "d"]);

    // A change in place keeps the position; leaving and entering does not.
    let a = found(&*store, &id("a")).await;
    done(store.commit(Batch::of(replace(&id("a"), a.version, "new", at(1)))).await);
    assert_eq!(keys(&*store, "queue").await, ["e", "a", "b", "c", "d"]);
    let version = found(&*store, &id("a")).await.version;
    let version = done(store.commit(Batch::of(replace(&id("a"), version, "out", None))).await);
    assert_eq!(keys(&*store, "queue").await, ["e", "b", "c", "d"]);
    done(store.commit(Batch::of(replace(&id("a"), version, "in", at(1)))).await);
    assert_eq!(keys(&*store, "queue").await, ["e", "b", "a", "c", "d"]);
}

/// A claim keeps others out until its lease ends, and then a write under it is refused.
pub async fn claims_are_fenced(store: Arc<dyn Store>, clock: TestClock) {
    let id = RecordId::new("job", "one");
    let version =
        done(store.commit(Batch::of(insert(&id, "planned", Some(Place::new("jobs", 10))))).await);
    assert_eq!(claim(&*store, "early", 9).await, [], "a record that is not due was claimed");
    let (record, first) = one(claim(&*store, "first", 10).await);
    assert_eq!((record.version, text(&record).as_str()), (version, "planned"));
    assert_eq!(claim(&*store, "second", 10).await, [], "a claimed record was claimed again");

    // A clock that goes back makes a lease longer, and takes nothing from its holder.
    let begun = clock.now();
    clock.set(begun - 500_000);
    assert_eq!(claim(&*store, "second", 10).await, []);
    clock.set(begun + LEASE.as_millis() as u64 / 2);
    assert!(store.renew(first.clone(), LEASE).await.expect("a store that works"));
    clock.set(begun + LEASE.as_millis() as u64 + 1);
    assert_eq!(claim(&*store, "second", 10).await, [], "a renewed lease ended at its old time");
    let running = replace(&id, version, "running", Some(Place::new("jobs", 10)));
    let version = done(store.commit(Batch::of(running).under(first.clone())).await);

    // A clock that jumps ahead ends the lease; the epoch keeps the old holder out.
    clock.set(begun + 1_000 * LEASE.as_millis() as u64);
    // Nobody else has claimed it yet, so the holder may still finish.
    let (_, second) = one(claim(&*store, "second", 10).await);
    assert!(second.epoch > first.epoch, "the epoch does not grow");
    assert!(!store.renew(first.clone(), LEASE).await.expect("a store that works"));
    let late = store.commit(Batch::of(replace(&id, version, "late", None)).under(first)).await;
    assert_eq!(late.expect("a store that works"), Commit::Refused(Refusal::Fenced(id.clone())));
    let end = Batch::of(replace(&id, version, "ended", None)).under(second.clone());
    let version = done(store.commit(end).await);

    // Back in the queue the claim of before counts no more, although its lease would still run.
    done(
        store.commit(Batch::of(replace(&id, version, "again", Some(Place::new("jobs", 10))))).await,
    );
    let (_, third) = one(claim(&*store, "third", 10).await);
    assert!(third.epoch > second.epoch, "the epoch does not grow");
}

/// Many claimers share a queue: each record goes to exactly one, the first ones first.
pub async fn claimers_share_a_queue(store: Arc<dyn Store>) {
    const RECORDS: u64 = 100;
    for number in 0..RECORDS {
        let id = RecordId::new("job", number.to_string());
        done(store.commit(Batch::of(insert(&id, "", Some(Place::new("jobs", number))))).await);
    }
    let claimers = (0..8).map(|name| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let request = request(&name.to_string(), u64::MAX >> 1, 3);
                let claims = store.claim(request).await.expect("a store that works");
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims.into_iter().map(|(record, _)| record.id.key));
            }
        })
    });
    let mut all = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        let mine = claimer.await.expect("a claimer that ends");
        let order: Vec<u64> = mine.iter().map(|key| key.parse().expect("a number")).collect();
        assert!(order.is_sorted(), "a claimer got {order:?}");
        all.extend(mine);
    }
    let different: HashSet<&String> = all.iter().collect();
    assert_eq!((all.len() as u64, different.len() as u64), (RECORDS, RECORDS));
}

/// Everything is there after the store was closed, versions and epochs continue, and a lease still holds.
pub async fn state_outlives_the_store(open: &dyn Fn() -> Arc<dyn Store>) {
    let id = RecordId::new("job", "one");
    let store = open();
    let version =
        done(store.commit(Batch::of(insert(&id, "x", Some(Place::new("jobs", 1))))).await);
    let (_, first) = one(claim(&*store, "first", 1).await);
    drop(store);
    let store = open();
    assert_eq!(found(&*store, &id).await.version, version);
    assert_eq!(claim(&*store, "second", 1).await, [], "a lease ended with the store");
    let next = Batch::of(replace(&id, version, "y", None)).under(first);
    assert!(done(store.commit(next).await) > version, "a version came back");
}

/// What is too long is refused with an error, and changes nothing.
pub async fn limits_hold(store: Arc<dyn Store>) {
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    for write in [
        insert(&RecordId::new("thing", long.clone()), "", None),
        insert(&RecordId::new(long.clone(), "key"), "", None),
        insert(&RecordId::new("thing", ""), "", None),
        insert(&RecordId::new("thing", "k\0"), "", None),
        insert(&RecordId::new("thing", "key"), "", Some(Place::new(long, 0))),
        insert(&RecordId::new("thing", "key"), "", Some(Place::new("queue", u64::MAX))),
    ] {
        let refused = store.commit(Batch::of(write)).await;
        assert!(matches!(refused, Err(StoreError::Unusable(_))), "{refused:?}");
    }
    let most = RecordId::new("thing", "k".repeat(MAX_KEY_BYTES));
    done(store.commit(Batch::of(insert(&most, "", None))).await);
    let (large, id) = ("v".repeat(MAX_VALUE_BYTES), RecordId::new("thing", "large"));
    done(store.commit(Batch::of(insert(&id, &large, None))).await);
    let id = RecordId::new("thing", "too large");
    let refused = store.commit(Batch::of(insert(&id, &(large + "v"), None))).await;
    assert!(matches!(refused, Err(StoreError::Unusable(_))), "{refused:?}");
    let other = RecordId::new("thing", "one").of(Partition::new("other"));
    let both = vec![insert(&id, "", None), insert(&other, "", None)];
    let refused = store.commit(both.into()).await;
    assert!(
        matches!(refused, Err(StoreError::Unusable(_))),
        "a batch of two partitions: {refused:?}"
    );
}

fn insert(id: &RecordId, value: &str, place: Option<Place>) -> Write {
    Write::Insert { id: id.clone(), value: value.as_bytes().to_vec(), place }
}

fn replace(id: &RecordId, expected: Version, value: &str, place: Option<Place>) -> Write {
    Write::Replace { id: id.clone(), expected, value: value.as_bytes().to_vec(), place }
}

fn request(owner: &str, up_to: u64, most: usize) -> ClaimRequest {
    ClaimRequest { queue: QueueId::new("jobs"), up_to, owner: owner.to_owned(), lease: LEASE, most }
}

async fn claim(store: &dyn Store, owner: &str, up_to: u64) -> Vec<(Record, Claim)> {
    store.claim(request(owner, up_to, 10)).await.expect("a store that works")
}

fn one(mut claims: Vec<(Record, Claim)>) -> (Record, Claim) {
    assert_eq!(claims.len(), 1, "claims: {claims:?}");
    claims.remove(0)
}

async fn found(store: &dyn Store, id: &RecordId) -> Record {
    let found = store.get(id.clone()).await.expect("a store that works");
    found.unwrap_or_else(|| panic!("{id} is gone"))
}

async fn keys(store: &dyn Store, queue: &str) -> Vec<String> {
    names(&store.scan(QueueId::new(queue), None, 100).await.expect("a store that works"))
}

fn names(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.id.key.clone()).collect()
}

fn text(record: &Record) -> String {
    String::from_utf8_lossy(&record.value).into_owned()
}

fn done(commit: Result<Commit, StoreError>) -> Version {
    match commit.expect("a store that works") {
        Commit::Done(version) => version,
        Commit::Refused(why) => panic!("refused: {why:?}"),
    }
}

fn assert_changed(commit: &Result<Commit, StoreError>, id: &RecordId, version: Option<Version>) {
    let Ok(Commit::Refused(Refusal::Changed { id: which, now })) = commit else {
        panic!("a write on an old version gave {commit:?}");
    };
    assert_eq!((which, now.as_ref().map(|now| now.version)), (id, version));
}
