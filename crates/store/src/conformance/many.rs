//! What a store must do when several parties use it, and several processes write at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{done, found, insert, keys, names, replace, request, text};
use crate::{
    Batch, Blob, ClaimRequest, Cursor, MAX_BLOB_BYTES, MAX_VALUE_BYTES, Partition, Place, QueueId,
    Record, RecordId, Store, StoreError,
};

/// How long a watch may take to wake, with time for a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same names in two partitions are different records and queues.
pub async fn partitions_are_apart(store: Arc<dyn Store>) {
    let mine = RecordId::new("thing", "one");
    let theirs = mine.clone().of(Partition::new("theirs"));
    let place = || Some(Place::new("jobs", 1));
    done(store.commit(Batch::of(insert(&mine, "mine", place()))).await);
    assert_eq!(store.get(theirs.clone()).await.expect("a store that works"), None);
    done(store.commit(Batch::of(insert(&theirs, "theirs", place()))).await);
    for (id, value) in [(&mine, "mine"), (&theirs, "theirs")] {
        let record = found(&*store, id).await;
        assert_eq!((&record.id, text(&record).as_str()), (id, value));
        let queue = id.queue("jobs");
        let scanned = store.scan(queue.clone(), None, 10).await.expect("a store that works");
        assert_eq!(scanned.iter().collect::<Vec<_>>(), [&record], "the queue of {id}");
        let claimed = store.claim(ClaimRequest { queue, ..request("owner", 1, 10) }).await;
        let claimed = claimed.expect("a store that works");
        assert_eq!(claimed.iter().map(|(record, _)| record).collect::<Vec<_>>(), [&record]);
        let new = Batch::of(replace(id, record.version, "new", place()));
        done(store.commit(new.under(claimed[0].1.clone())).await);
    }
    let elsewhere = QueueId { partition: Partition::new("nobody"), name: "jobs".to_owned() };
    assert_eq!(store.scan(elsewhere, None, 10).await.expect("a store that works"), []);
}

/// Records that enter at the last place are in the order in which the store took them, and keep their position.
pub async fn the_last_place_follows_the_order_of_the_store(store: Arc<dyn Store>) {
    let id = |key: &str| RecordId::new("thing", key);
    let last = || Some(Place::last("queue"));
    for key in ["d", "a", "c"] {
        done(store.commit(Batch::of(insert(&id(key), key, last()))).await);
    }
    // In the order of a batch.
    let batch = vec![insert(&id("z"), "", last()), insert(&id("b"), "", last())];
    done(store.commit(batch.into()).await);
    assert_eq!(keys(&*store, "queue").await, ["d", "a", "c", "z", "b"]);
    let version = found(&*store, &id("a")).await.version;
    done(store.commit(Batch::of(replace(&id("a"), version, "new", last()))).await);
    assert_eq!(keys(&*store, "queue").await, ["d", "a", "c", "z", "b"]);
    // What has a place comes before.
    let first = Some(Place::new("queue", Place::LAST - 1));
    done(store.commit(Batch::of(insert(&id("y"), "", first))).await);
    assert_eq!(keys(&*store, "queue").await, ["y", "d", "a", "c", "z", "b"]);
}

/// A reader that continues behind the last record that it has seen finds all records that enter meanwhile, once each.
///
/// A store that numbers records before they are committed, and shows each as soon as it is, fails here: a record with a
/// lower number that is committed later lies behind the reader.
pub async fn no_record_is_missed(store: Arc<dyn Store>) {
    const WRITERS: usize = 8;
    const EACH: usize = 50;
    let left = Arc::new(AtomicUsize::new(WRITERS));
    for writer in 0..WRITERS {
        let (store, left) = (Arc::clone(&store), Arc::clone(&left));
        tokio::spawn(async move {
            for number in 0..EACH {
                let id = RecordId::new("thing", format!("{writer}-{number}"));
                done(store.commit(Batch::of(insert(&id, "", Some(Place::last("queue"))))).await);
            }
            left.fetch_sub(1, Ordering::SeqCst);
        });
    }
    let (mut seen, mut after): (Vec<Record>, Option<Cursor>) = (Vec::new(), None);
    loop {
        // Before the scan, so that the last scan comes after the last commit.
        let are_done = left.load(Ordering::SeqCst) == 0;
        let records = store.scan(QueueId::new("queue"), after, 7).await;
        let records = records.expect("a store that works");
        match records.last() {
            Some(last) => after = last.cursor(),
            None if are_done => break,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
        seen.extend(records);
    }
    let positions: Vec<Option<Cursor>> = seen.iter().map(Record::cursor).collect();
    assert!(positions.is_sorted(), "scans go back");
    let mut all =
        names(&store.scan(QueueId::new("queue"), None, 1_000).await.expect("a store that works"));
    let mut seen = names(&seen);
    all.sort();
    seen.sort();
    assert_eq!(seen, all, "records that a reader has seen, and those that are there");
    assert_eq!(all.len(), WRITERS * EACH);
}

/// Who watches a queue is woken by each kind of change, also by one that came before the wait.
pub async fn queues_are_watched(store: Arc<dyn Store>) {
    let id = RecordId::new("thing", "one");
    let mut watch = store.watch(QueueId::new("queue"));
    let mut elsewhere = store.watch(QueueId::new("elsewhere"));
    let place = Some(Place::last("queue"));
    let version = done(store.commit(Batch::of(insert(&id, "a", place.clone()))).await);
    woken(watch.changed(), "an insertion").await;
    let version = done(store.commit(Batch::of(replace(&id, version, "b", place.clone()))).await);
    woken(watch.changed(), "a change").await;
    let moved = Some(Place::last("elsewhere"));
    let version = done(store.commit(Batch::of(replace(&id, version, "b", moved))).await);
    woken(watch.changed(), "leaving").await;
    woken(elsewhere.changed(), "entering").await;
    let remove = crate::Write::Remove { id: id.clone(), expected: version };
    done(store.commit(Batch::of(remove)).await);
    woken(elsewhere.changed(), "a removal").await;

    // Somebody who waits already.
    let waiting = tokio::spawn(async move { watch.changed().await });
    tokio::task::yield_now().await;
    done(store.commit(Batch::of(insert(&id, "c", place))).await);
    woken(async { waiting.await.expect("a wait that ends") }, "an insertion during the wait").await;
}

/// Two openings of one store: each sees what the other writes, is woken by it, and is kept out by its claims.
pub async fn two_see_each_other(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    // The order is that of the writes, whoever makes them.
    let turns: Vec<String> = (0..9).map(|turn| format!("{turn}")).collect();
    for (turn, key) in turns.iter().enumerate() {
        let writer = if turn % 3 == 0 { &one } else { &other };
        let id = RecordId::new("turn", key.as_str());
        done(writer.commit(Batch::of(insert(&id, "", Some(Place::last("turns"))))).await);
    }
    assert_eq!(keys(&*one, "turns").await, turns);
    let mut watch = other.watch(QueueId::new("jobs"));
    let id = RecordId::new("job", "one");
    let place = Some(Place::new("jobs", 1));
    let version = done(one.commit(Batch::of(insert(&id, "planned", place.clone()))).await);
    woken(watch.changed(), "the other opening").await;
    assert_eq!(found(&*other, &id).await.version, version);
    let (_, claim) = super::one(super::claim(&*other, "other", 1).await);
    assert_eq!(super::claim(&*one, "one", 1).await, [], "a record was claimed twice");
    let running = Batch::of(replace(&id, version, "running", place));
    let later = done(other.commit(running.under(claim)).await);
    assert!(later > version, "a version came back");
    let late = one.commit(Batch::of(replace(&id, version, "late", None))).await;
    super::assert_changed(&late, &id, Some(later));
    let both = [Arc::clone(&one), other].map(|store| {
        tokio::spawn(async move {
            for number in 0..50 {
                let id = RecordId::new("contended", number.to_string());
                let _ = store.commit(Batch::of(insert(&id, "", Some(Place::last("all"))))).await;
            }
        })
    });
    for writer in both {
        writer.await.expect("a writer that ends");
    }
    assert_eq!(keys(&*one, "all").await.len(), 50);
}

async fn woken(changed: impl Future<Output = ()>, by: &str) {
    assert!(tokio::time::timeout(PATIENCE, changed).await.is_ok(), "{by} wakes nobody");
}

/// Values that are too large for a record are stored in chunks, with what refers to them or not at all.
pub async fn blobs_are_whole(store: Arc<dyn Store>) {
    let bytes: Vec<u8> = (0..MAX_VALUE_BYTES * 2 + 5).map(|number| (number % 251) as u8).collect();
    for length in [0, 1, MAX_VALUE_BYTES, MAX_VALUE_BYTES + 1, bytes.len()] {
        let (blob, writes) = Blob::put(&bytes[..length]).expect("a blob");
        assert_eq!(
            blob.read(&*store).await.expect("a store that works"),
            (length == 0).then(Vec::new)
        );
        done(store.commit(writes.into()).await);
        let read = blob.read(&*store).await.expect("a store that works");
        assert!(read.as_deref() == Some(&bytes[..length]), "a blob of {length} bytes changed");
        // The same bytes again are another blob, which stays when the first one goes.
        let (other, writes) = Blob::put(&bytes[..length]).expect("a blob");
        done(store.commit(writes.into()).await);
        blob.delete(&*store).await.expect("a store that works");
        let is_there = |read: Option<Vec<u8>>| read.is_some_and(|read| !read.is_empty());
        assert!(!is_there(blob.read(&*store).await.expect("a store that works")));
        let read = other.read(&*store).await.expect("a store that works");
        assert_eq!(is_there(read), length > 0);
    }
    let refused = Blob::put(&vec![0; MAX_BLOB_BYTES + 1]);
    assert!(matches!(refused, Err(StoreError::Unusable(_))), "a blob without a limit");
}
