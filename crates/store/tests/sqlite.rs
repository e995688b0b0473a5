//! The SQLite store passes the conformance suite, in a real file and with real processes that are killed.
//!
//! `MYCLAW_KILLS` sets the number of kills.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use myclaw_store::conformance::{self, TestClock, crash};
use myclaw_store::{
    Batch, Blob, Claim, Commit, MAX_VALUE_BYTES, QueueId, RecordId, SqliteStore, Store, StoreError,
    Version, Write,
};
use tempfile::TempDir;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 20;
/// Names the database of a process that is to be killed.
const VICTIM: &str = "MYCLAW_STORE_OF_VICTIM";

fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>, TestClock) -> F) {
    let directory = TempDir::new().unwrap();
    let clock = TestClock::default();
    let reading = clock.clone();
    let path = directory.path().join("gateway.sqlite");
    let store = SqliteStore::open_with_clock(&path, Arc::new(move || reading.now())).unwrap();
    block_on(test(Arc::new(store), clock));
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
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

#[test]
fn state_outlives_the_store() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let open = || -> Arc<dyn Store> { Arc::new(SqliteStore::open(&path).unwrap()) };
    block_on(conformance::state_outlives_the_store(&open));
}

#[test]
fn a_second_process_is_kept_out() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let first = SqliteStore::open(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    let id = std::process::id();
    assert!(
        matches!(refused, StoreError::InUse { process_id: Some(holder), .. } if holder == id),
        "{refused}"
    );
    drop(first);
    SqliteStore::open(&path).unwrap();
}

/// Two processes on one database would do the same; production keeps the second one out.
#[test]
fn two_writers_of_one_database_see_what_the_other_one_writes() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let open = || -> Arc<dyn Store> {
        Arc::new(SqliteStore::open_shared(&path, Arc::new(myclaw_files::now_ms)).unwrap())
    };
    block_on(conformance::two_see_each_other(open(), open()));
}

#[test]
fn a_store_of_the_first_format_is_read_and_becomes_one_of_this_format() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("data/format-1.sql")).unwrap();
    drop(old);
    for _ in 0..2 {
        let store = SqliteStore::open(&path).unwrap();
        block_on(async {
            let open = store.scan(QueueId::new("open"), None, 10).await.unwrap();
            let keys: Vec<&str> = open.iter().map(|record| record.id.key.as_str()).collect();
            assert_eq!(keys, ["m1", "m2"]);
            assert_eq!((open[0].version, open[0].value.as_slice()), (Version(3), &b"one"[..]));
            let job = store.get(RecordId::new("job", "j")).await.unwrap().unwrap();
            assert_eq!(job.place, None);
            // The claim of the earlier version still holds.
            let claim = Claim { id: RecordId::new("incoming", "m1"), epoch: 7 };
            assert!(store.renew(claim, Duration::from_secs(1)).await.unwrap());
        });
    }
    // Versions continue.
    let store = SqliteStore::open(&path).unwrap();
    let write =
        Write::Insert { id: RecordId::new("incoming", "m3"), value: Vec::new(), place: None };
    let commit = block_on(store.commit(Batch::of(write))).unwrap();
    assert!(matches!(commit, Commit::Done(version) if version > Version(9)), "{commit:?}");
}

#[test]
fn a_change_of_all_values_reaches_words_that_stand_in_two_chunks() {
    const WORD: &[u8] = b"secret";
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let mut bytes = vec![b'x'; MAX_VALUE_BYTES * 2 + 100];
    for at in [0, MAX_VALUE_BYTES - 3, MAX_VALUE_BYTES * 2 - 1] {
        bytes[at..at + WORD.len()].copy_from_slice(WORD);
    }
    let blobs: Vec<Blob> = [&bytes[..], WORD, &bytes[..], b"other"]
        .into_iter()
        .map(|bytes| {
            let (blob, writes) = Blob::put(bytes).unwrap();
            let store = SqliteStore::open(&path).unwrap();
            assert!(matches!(block_on(store.commit(writes.into())), Ok(Commit::Done(_))));
            blob
        })
        .collect();
    let mut to_stars = |value: &mut [u8]| {
        let mut is_changed = false;
        for at in 0..value.len().saturating_sub(WORD.len() - 1) {
            if value[at..].starts_with(WORD) {
                value[at..at + WORD.len()].fill(b'*');
                is_changed = true;
            }
        }
        is_changed
    };
    myclaw_store::change_values(&path, &mut to_stars).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    to_stars(&mut bytes);
    for (blob, wanted) in blobs.iter().zip([&bytes[..], b"******", &bytes[..], b"other"]) {
        assert!(block_on(blob.read(&store)).unwrap().as_deref() == Some(wanted));
    }
}

#[test]
fn what_a_killed_process_was_told_is_stored_is_there() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("gateway.sqlite");
    let kills = std::env::var("MYCLAW_KILLS").ok().and_then(|text| text.parse().ok());
    let mut stored = [0; crash::CHAINS];
    for kill in 0..kills.unwrap_or(DEFAULT_KILLS) {
        let mut acknowledged = stored;
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(VICTIM, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It dies after this many steps, wherever the others are then.
        let mut steps = 1 + kill * 7 % 50;
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            // On a machine with one core, the name of the test is in front of the first line.
            let Some((_, step)) = line.split_once("stored ") else { continue };
            let (chain, step) = step.split_once(' ').unwrap();
            acknowledged[chain.parse::<usize>().unwrap()] = step.parse().unwrap();
            steps -= 1;
            if steps == 0 {
                victim.kill().unwrap();
                // What it reported before it died counts too.
                steps = u64::MAX;
            }
        }
        victim.wait().unwrap();
        assert!(acknowledged > stored, "kill {kill} came before the first step");
        let store = SqliteStore::open(&path).unwrap();
        stored = block_on(crash::verify(&store, acknowledged));
    }
}

/// The process of the test above; alone it does nothing.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let store = Arc::new(SqliteStore::open(path.as_ref()).unwrap());
    // Nobody waits for it longer than this if its parent is gone.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        std::process::abort();
    });
    block_on(crash::write_until_killed(store, |chain, step| {
        // One write per line, so that a kill leaves no half line.
        let _ = std::io::stdout().write_all(format!("stored {chain} {step}\n").as_bytes());
    }));
}
