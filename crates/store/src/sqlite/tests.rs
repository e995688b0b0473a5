//! Tests of the file, and of transactions that writes share.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use tempfile::TempDir;

use super::*;
use crate::{Place, Write};

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join("state").join("gateway.sqlite")
}

fn batch(number: usize) -> Batch {
    let id = RecordId::new("thing", number.to_string());
    Batch::of(Write::Insert { id, value: vec![1], place: Some(Place::new("queue", 0)) })
}

fn is_done(commit: &Result<Commit, StoreError>) -> bool {
    matches!(commit, Ok(Commit::Done(_)))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[test]
fn writes_that_wait_share_a_transaction() {
    let directory = TempDir::new().unwrap();
    create_private_directory(&parent_of(&path(&directory))).unwrap();
    let writer =
        Writer::open(&path(&directory), Arc::new(now_ms), Sharing::Alone, Arc::default()).unwrap();
    let groups = writer.count_groups();
    let (sender, tasks) = mpsc::channel(MOST_WAITING);
    let (hold, held) = sync_channel(0);
    sender.try_send(Task::Hold(held)).unwrap();
    let mut answers = Vec::new();
    for number in 0..100 {
        let (reply, answer) = oneshot::channel();
        sender.try_send(Task::Commit(batch(number), reply)).unwrap();
        answers.push(answer);
    }
    // The last of them cannot be inserted again, which does not concern the others.
    let (reply, refused) = oneshot::channel();
    sender.try_send(Task::Commit(batch(99), reply)).unwrap();
    drop(hold);
    drop(sender);
    writer.serve(tasks);
    assert_eq!(groups.load(Ordering::SeqCst), 1, "transactions for 101 writes");
    assert!(answers.into_iter().all(|answer| is_done(&answer.blocking_recv().unwrap())));
    assert!(!is_done(&refused.blocking_recv().unwrap()));
}

#[test]
fn a_write_that_fails_does_not_take_along_those_it_shares_a_transaction_with() {
    let directory = TempDir::new().unwrap();
    create_private_directory(&parent_of(&path(&directory))).unwrap();
    let writer =
        Writer::open(&path(&directory), Arc::new(now_ms), Sharing::Alone, Arc::default()).unwrap();
    let groups = writer.count_groups();
    // Stands for whatever makes SQLite refuse one statement.
    let trigger = "CREATE TRIGGER spoilt BEFORE INSERT ON records WHEN NEW.key = '3' \
                   BEGIN SELECT RAISE(ABORT, 'spoilt'); END";
    rusqlite::Connection::open(path(&directory)).unwrap().execute_batch(trigger).unwrap();
    let (sender, tasks) = mpsc::channel(MOST_WAITING);
    let (hold, held) = sync_channel(0);
    sender.try_send(Task::Hold(held)).unwrap();
    let answers = [0, 1, 2, 3, 4].map(|number| {
        let (reply, answer) = oneshot::channel();
        sender.try_send(Task::Commit(batch(number), reply)).unwrap();
        answer
    });
    drop(hold);
    drop(sender);
    writer.serve(tasks);
    let are_done = answers.map(|answer| is_done(&answer.blocking_recv().unwrap()));
    assert_eq!(are_done, [true, true, true, false, true]);
    assert_eq!(groups.load(Ordering::SeqCst), 4, "each of the others has one of its own");
    let store = SqliteStore::open(&path(&directory)).unwrap();
    for (number, is_done) in are_done.into_iter().enumerate() {
        let found = runtime().block_on(store.get(RecordId::new("thing", number.to_string())));
        assert_eq!(found.unwrap().is_some(), is_done, "{number}");
    }
}

#[test]
fn what_is_acknowledged_is_synced() {
    let directory = TempDir::new().unwrap();
    create_private_directory(&parent_of(&path(&directory))).unwrap();
    let connection = schema::open_for_writing(&path(&directory)).unwrap();
    let number = |name: &str| -> i64 {
        connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    };
    // 2 is FULL: the log is synced at the end of each transaction.
    assert_eq!(number("synchronous"), 2);
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn only_the_user_can_read_its_files() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(&path(&directory)).unwrap();
    assert!(is_done(&runtime().block_on(store.commit(batch(1)))));
    let mut files = 0;
    for entry in std::fs::read_dir(parent_of(&path(&directory))).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
        files += 1;
    }
    // The database, its log, the memory map of the log, and the lock.
    assert_eq!(files, 4);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    drop(SqliteStore::open(&path(&directory)).unwrap());
    let connection = rusqlite::Connection::open(path(&directory)).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let before = std::fs::read(path(&directory)).unwrap();
    let refused = SqliteStore::open(&path(&directory)).unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 7, known: 2, .. }), "{refused}");
    assert!(refused.to_string().contains("Install the newer version"), "{refused}");
    assert_eq!(std::fs::read(path(&directory)).unwrap(), before);
}

#[test]
fn a_file_of_something_else_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = parent_of(&path(&directory));
    create_private_directory(&state).unwrap();
    std::fs::write(path(&directory), "no database, but long enough to look like a page".repeat(99))
        .unwrap();
    let refused = SqliteStore::open(&path(&directory)).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    std::fs::remove_file(path(&directory)).unwrap();
    let connection = rusqlite::Connection::open(path(&directory)).unwrap();
    connection.pragma_update(None, "user_version", 3).unwrap();
    drop(connection);
    let refused = SqliteStore::open(&path(&directory)).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
}

#[test]
fn a_store_that_cannot_be_written_says_so_and_goes_on() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(&path(&directory)).unwrap();
    let runtime = runtime();
    assert!(is_done(&runtime.block_on(store.commit(batch(1)))));
    // Another connection holds the only write lock, as a backup program might.
    let other = rusqlite::Connection::open(path(&directory)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = runtime.block_on(store.commit(batch(2)));
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(is_done(&runtime.block_on(store.commit(batch(2)))));
}
