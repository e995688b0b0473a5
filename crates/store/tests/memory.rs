//! The store in memory passes the conformance suite.
#![expect(clippy::expect_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::Arc;

use myclaw_store::conformance::{self, TestClock};
use myclaw_store::{MemoryStore, Store};

fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>, TestClock) -> F) {
    let clock = TestClock::default();
    let reading = clock.clone();
    let store = MemoryStore::with_clock(Arc::new(move || reading.now()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test(Arc::new(store), clock));
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
