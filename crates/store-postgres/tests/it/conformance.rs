//! The store passes the conformance suite, against a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::server::{block_on, database, databases, open, open_with, server};
use myclaw_store::conformance::{self, TestClock};
use myclaw_store::{
    Batch, BoxFuture, Claim, ClaimRequest, Commit, Cursor, Place, QueueId, QueueWatch, Record,
    RecordId, Store, StoreError, Write,
};
use myclaw_store_postgres::Options;

fn with_store<F: Future<Output = ()>>(test: impl Fn(Arc<dyn Store>, TestClock) -> F) {
    for url in databases() {
        let clock = TestClock::default();
        let reading = clock.clone();
        let options =
            Options { clock: Some(Arc::new(move || reading.now())), ..Options::default() };
        block_on(async { test(open_with(&url, options).await, clock).await });
    }
}

#[test]
fn keys_are_unique() {
    with_store(|store, _| conformance::keys_are_unique(store));
}

#[test]
fn versions_decide() {
    with_store(|store, _| conformance::versions_decide(store));
}

#[test]
fn batches_are_atomic() {
    with_store(|store, _| conformance::batches_are_atomic(store));
}

#[test]
fn queues_are_in_order() {
    with_store(|store, _| conformance::queues_are_in_order(store));
}

#[test]
fn claims_are_fenced() {
    with_store(conformance::claims_are_fenced);
}

#[test]
fn claimers_share_a_queue() {
    with_store(|store, _| conformance::claimers_share_a_queue(store));
}

#[test]
fn limits_hold() {
    with_store(|store, _| conformance::limits_hold(store));
}

#[test]
fn partitions_are_apart() {
    with_store(|store, _| conformance::partitions_are_apart(store));
}

#[test]
fn the_last_place_follows_the_order_of_the_store() {
    with_store(|store, _| conformance::the_last_place_follows_the_order_of_the_store(store));
}

#[test]
fn no_record_is_missed() {
    with_store(|store, _| conformance::no_record_is_missed(store));
}

#[test]
fn queues_are_watched() {
    with_store(|store, _| conformance::queues_are_watched(store));
}

#[test]
fn blobs_are_whole() {
    with_store(|store, _| conformance::blobs_are_whole(store));
}

/// A check of the suite.
pub(crate) type Check = fn(Arc<dyn Store>) -> BoxFuture<'static, ()>;

pub(crate) const CHECKS: [Check; 7] = [
    |store| Box::pin(conformance::no_record_is_missed(store)),
    |store| Box::pin(conformance::keys_are_unique(store)),
    |store| Box::pin(conformance::versions_decide(store)),
    |store| Box::pin(conformance::queues_are_in_order(store)),
    |store| Box::pin(conformance::claimers_share_a_queue(store)),
    |store| Box::pin(conformance::partitions_are_apart(store)),
    |store| Box::pin(conformance::blobs_are_whole(store)),
];

/// Each call through the next of several openings, as if they were of different machines.
struct Spread(Vec<Arc<dyn Store>>, AtomicUsize);

impl Spread {
    fn next(&self) -> &dyn Store {
        &*self.0[self.1.fetch_add(1, Ordering::SeqCst) % self.0.len()]
    }
}

impl Store for Spread {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        self.next().commit(batch)
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        self.next().get(id)
    }

    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.next().scan(queue, after, most)
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        self.next().claim(request)
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.next().watch(queue)
    }

    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.next().renew(claim, lease)
    }
}

#[test]
fn several_openings_are_one_store() {
    for check in CHECKS {
        for url in databases() {
            block_on(async {
                let mut openings = Vec::new();
                for _ in 0..4 {
                    openings.push(open(&url).await);
                }
                check(Arc::new(Spread(openings, AtomicUsize::new(0)))).await;
            });
        }
    }
}

/// Without polling, what wakes a watch of another opening is a notification.
#[test]
fn watches_are_woken_by_notifications() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let options = || Options { poll: Duration::from_secs(3_600), ..Options::default() };
        let (one, other) = (open_with(&url, options()).await, open_with(&url, options()).await);
        conformance::queues_are_watched(Arc::clone(&one)).await;
        let mut watch = other.watch(QueueId::new("jobs"));
        // It may not listen yet, and nobody repeats a hint.
        let woken = async {
            for number in 0..100 {
                let id = RecordId::new("job", number.to_string());
                let place = Some(Place::last("jobs"));
                let write = Write::Insert { id, value: Vec::new(), place };
                let _ = one.commit(Batch::of(write)).await.unwrap();
                let changed = tokio::time::timeout(Duration::from_millis(200), watch.changed());
                if changed.await.is_ok() {
                    return true;
                }
            }
            false
        };
        assert!(woken.await, "no notification came");
    });
}

#[test]
fn two_see_each_other() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        conformance::two_see_each_other(open(&url).await, open(&url).await).await;
    });
}

#[test]
fn state_outlives_the_store() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let open = || -> Arc<dyn Store> {
            let opening = open(&url);
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(opening))
        };
        conformance::state_outlives_the_store(&open).await;
    });
}
