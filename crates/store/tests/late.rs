//! A store with a fault: it numbers records when a commit begins, and shows them when it ends. Databases with many writers do
//! that. The conformance suite must notice it; and that such a store can be written here shows that the trait needs nothing
//! private of its crate.
#![expect(clippy::expect_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myclaw_store::conformance;
use myclaw_store::{
    Batch, BoxFuture, Claim, ClaimRequest, Commit, Cursor, MemoryStore, Place, QueueId, QueueWatch,
    Record, RecordId, Store, StoreError, Write,
};

/// A good store, in which the numbers of records are given too early.
#[derive(Default)]
struct LateStore {
    store: MemoryStore,
    numbers: AtomicU64,
    /// Whether commits take different times.
    is_late: bool,
}

impl Store for LateStore {
    fn commit(&self, mut batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        Box::pin(async move {
            let number = self.numbers.fetch_add(1, Ordering::SeqCst);
            for write in &mut batch.writes {
                if let Write::Insert { place: Some(place), .. } = write {
                    *place = Place::new(place.queue.clone(), number);
                }
            }
            if self.is_late && number.is_multiple_of(3) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.store.commit(batch).await
        })
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        self.store.get(id)
    }

    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.store.scan(queue, after, most)
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        self.store.claim(request)
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.store.watch(queue)
    }

    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.store.renew(claim, lease)
    }
}

/// What the suite says about a store: `None` if it is content.
fn complaint(is_late: bool) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let store = Arc::new(LateStore { is_late, ..LateStore::default() });
    runtime.expect("a runtime").block_on(async {
        let test = tokio::spawn(conformance::no_record_is_missed(store));
        let panic = test.await.err()?.into_panic();
        Some(panic.downcast_ref::<String>().cloned().unwrap_or_default())
    })
}

#[test]
fn a_store_that_shows_a_lower_number_later_is_noticed() {
    let complaint = complaint(true).expect("a complaint");
    assert!(complaint.contains("records that a reader has seen"), "{complaint}");
    // In the order of their numbers, the same store misses nothing.
    assert_eq!(self::complaint(false), None);
}
