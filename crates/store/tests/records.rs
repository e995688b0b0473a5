//! Rows of one type, in a real store.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::Arc;

use myclaw_store::{Change, Place, Records, SqliteStore, Store, StoreError, sweep};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

const COUNTS: Records<u64> = Records::new("count");

fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test(Arc::new(store)));
}

#[test]
fn changes_at_the_same_moment_are_all_made() {
    const WRITERS: u64 = 10;
    with_store(async |store| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let more = |count: Option<u64>| Change::put(count.unwrap_or(0) + 1, None);
                    COUNTS.update(&*store, "one", more).await.unwrap().unwrap();
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(COUNTS.get(&*store, "one").await.unwrap().unwrap().row, WRITERS);
    });
}

#[test]
fn a_change_is_decided_again_with_what_somebody_else_has_stored() {
    with_store(async |store| {
        let first = COUNTS.insert(&*store, "one", &1, None).await.unwrap().unwrap();
        let mut seen = Vec::new();
        let changed = COUNTS
            .update(&*store, "one", |count| {
                seen.push(count);
                if seen.len() == 1 {
                    // Somebody else, between the look and the write.
                    let other = COUNTS.replace(&*store, "one", first, &10, None);
                    block_in_place(|| Handle::current().block_on(other)).unwrap().unwrap();
                }
                Change::put(count.unwrap() + 1, None)
            })
            .await;
        assert_eq!((changed.unwrap().unwrap().row, seen), (11, vec![Some(1), Some(10)]));
    });
}

#[test]
fn rows_are_inserted_once_and_replaced_in_their_version_only() {
    with_store(async |store| {
        let first = COUNTS.insert(&*store, "one", &1, None).await.unwrap().unwrap();
        assert_eq!(COUNTS.insert(&*store, "one", &2, None).await.unwrap(), None);
        let second = COUNTS.replace(&*store, "one", first, &3, None).await.unwrap();
        assert!(second.unwrap() > first);
        assert_eq!(COUNTS.replace(&*store, "one", first, &4, None).await.unwrap(), None);
        assert_eq!(COUNTS.get(&*store, "one").await.unwrap().unwrap().row, 3);
        let kept = COUNTS.update(&*store, "one", |_| Change::Keep).await.unwrap();
        assert!(kept.is_none());
        COUNTS.delete(&*store, "one").await.unwrap();
        COUNTS.delete(&*store, "one").await.unwrap();
        assert!(COUNTS.get(&*store, "one").await.unwrap().is_none());
    });
}

#[test]
fn a_queue_is_read_in_its_order_and_swept_up_to_a_place() {
    with_store(async |store| {
        for number in (0..500).rev() {
            let place = Place::new("queue", number);
            COUNTS.insert(&*store, &number.to_string(), &number, place).await.unwrap().unwrap();
        }
        let rows = |rows: Vec<myclaw_store::Stored<u64>>| -> Vec<u64> {
            rows.into_iter().map(|stored| stored.row).collect()
        };
        let all = rows(COUNTS.all(&*store, "queue").await.unwrap());
        assert_eq!(all, (0..500).collect::<Vec<_>>());
        assert_eq!(rows(COUNTS.first(&*store, "queue", 3).await.unwrap()), [0, 1, 2]);
        sweep(&*store, "queue", 450).await.unwrap();
        assert_eq!(
            rows(COUNTS.all(&*store, "queue").await.unwrap()),
            (450..500).collect::<Vec<_>>()
        );
    });
}

#[test]
fn a_row_of_something_else_is_an_error_that_names_it() {
    with_store(async |store| {
        const WORDS: Records<String> = Records::new("count");
        WORDS.insert(&*store, "one", &"word".to_owned(), None).await.unwrap().unwrap();
        let error = COUNTS.get(&*store, "one").await.unwrap_err();
        assert!(matches!(&error, StoreError::Row { id, .. } if id == "count/one"), "{error}");
    });
}

#[test]
fn a_row_that_is_too_large_for_a_record_is_stored_too() {
    const TEXTS: Records<String> = Records::new("text");
    with_store(async |store| {
        let large = |letter: &str| letter.repeat(3 * 1024 * 1024);
        let place = || Place::new("queue", 1);
        TEXTS.insert(&*store, "one", &large("a"), place()).await.unwrap().unwrap();
        let record = store.get(TEXTS.id("one")).await.unwrap().unwrap();
        assert!(record.value.len() < 1024, "{} bytes", record.value.len());
        let all = TEXTS.all(&*store, "queue").await.unwrap();
        assert!(all.len() == 1 && all[0].row == large("a"));
        let more = |text: Option<String>| Change::put(text.unwrap() + "b", place());
        TEXTS.update(&*store, "one", more).await.unwrap().unwrap();
        assert!(TEXTS.get(&*store, "one").await.unwrap().unwrap().row == large("a") + "b");
        let small = |_| Change::put("small".to_owned(), place());
        TEXTS.update(&*store, "one", small).await.unwrap().unwrap();
        assert_eq!(TEXTS.get(&*store, "one").await.unwrap().unwrap().row, "small");
    });
}
