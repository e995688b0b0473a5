//! Claims on every store, which two processes have open.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use myclaw_store::conformance::{self, TestClock};
use myclaw_store::{
    Batch, BoxFuture, Claim, ClaimRequest, Claims, Commit, Cursor, MemoryStore, QueueId,
    QueueWatch, Record, RecordId, SqliteStore, Store, StoreClock, StoreError,
};
use tempfile::TempDir;

type Two = (Arc<dyn Store>, Arc<dyn Store>, TestClock);

/// Tests the store in memory, and a database that is opened twice.
fn with_stores<F: Future<Output = ()>>(test: impl Fn(Two) -> F) {
    let clock = || {
        let clock = TestClock::default();
        let reading = clock.clone();
        let now: StoreClock = Arc::new(move || reading.now());
        (clock, now)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (moved, now) = clock();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(now));
    runtime.block_on(test((Arc::clone(&store), store, moved)));

    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let (moved, now) = clock();
    let open = || Arc::new(SqliteStore::open_shared(&path, Arc::clone(&now)).unwrap());
    runtime.block_on(test((open(), open(), moved)));
}

#[test]
fn a_thing_has_one_holder() {
    with_stores(|(first, second, _)| conformance::a_thing_has_one_holder(first, second));
}

#[test]
fn what_a_dead_holder_left_goes_to_one() {
    with_stores(|(first, second, clock)| {
        conformance::what_a_dead_holder_left_goes_to_one(first, second, clock)
    });
}

#[test]
fn a_holder_that_wakes_late_is_fenced() {
    with_stores(|(first, second, clock)| {
        conformance::a_holder_that_wakes_late_is_fenced(first, second, clock)
    });
}

#[test]
fn claims_survive_a_clock_that_jumps() {
    with_stores(|(first, second, clock)| {
        conformance::claims_survive_a_clock_that_jumps(first, second, clock)
    });
}

#[test]
fn what_is_released_is_free_at_once() {
    with_stores(|(first, second, _)| conformance::what_is_released_is_free_at_once(first, second));
}

#[test]
fn alone_a_process_has_everything_once_and_writes_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (claims, desk) = (Claims::alone(Arc::clone(&store)), RecordId::new("desk", "one"));
        let held = claims.acquire(&desk).await.unwrap().unwrap();
        assert!(claims.acquire(&desk).await.unwrap().is_none());
        claims.renew().await;
        assert!(claims.holds(&desk) && !held.is_lost());
        assert_eq!(held.under(Batch::default()), Batch::default());
        assert_eq!(claims.under(&desk, Batch::default()), Batch::default());
        assert_eq!(store.get(desk.clone()).await.unwrap(), None);
        assert!(held.release().await.unwrap());
        let again = claims.acquire(&desk).await.unwrap();
        assert!(again.is_some());
        drop(again);
        assert!(!claims.holds(&desk));
        // Who waits gets it when it is given back.
        let held = claims.own(&desk).await.unwrap();
        let (waiting, wanted) = (Arc::clone(&claims), desk.clone());
        let waiting = tokio::spawn(async move { waiting.own(&wanted).await.map(|_| ()) });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap();
    });
}

/// A store that does not answer those who renew a lease, like a database that is cut off.
struct Silent(MemoryStore);

impl Store for Silent {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        self.0.commit(batch)
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        self.0.get(id)
    }

    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.0.scan(queue, after, most)
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        self.0.claim(request)
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.0.watch(queue)
    }

    fn renew(&self, _: Claim, _: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_holder_that_the_store_does_not_answer_stops_before_its_lease_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(Silent(MemoryStore::default()));
        let lease = Duration::from_millis(300);
        let claims = Claims::shared(Arc::clone(&store), "one".to_owned(), lease);
        let held = claims.acquire(&RecordId::new("desk", "one")).await.unwrap().unwrap();
        let lost = tokio::time::timeout(Duration::from_secs(30), held.lost());
        tokio::select! {
            lost = lost => lost.expect("the holder goes on after its lease"),
            () = claims.keep() => {}
        }
        assert!(held.is_lost());
    });
}
