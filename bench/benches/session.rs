//! Measures the session log: opening a session for one more turn, and appending to it.
//!
//! The cost of opening must not depend on the length of the session.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::io::Write;
use std::path::Path;

use divan::{Bencher, black_box};
use myclaw_session::{
    CompactionEntry, DaySpending, Entry, EntryId, Inbox, Keeper, LockWait, MetaPatch, QueuedKind,
    QueuedMessage, Role, SessionKey, SessionLog, SessionStore, Spent, TailLimit, TranscriptMessage,
};
use tempfile::TempDir;

/// Lengths of the sessions, in messages.
const MESSAGES: [usize; 3] = [1_000, 10_000, 100_000];

/// Bytes of text that a turn takes from a log without a summary: about what fits a window of 200,000 tokens.
const WINDOW_BYTES: u64 = 800_000;

/// Messages after the summary, where there is one.
const KEPT: usize = 200;

/// Entries appended at a time while a session is prepared.
const BATCH: usize = 1_000;

fn main() {
    divan::main();
}

/// Opens the log and takes as much of its end as a model's window holds.
#[divan::bench(args = MESSAGES)]
fn open_and_read_a_window(bencher: Bencher<'_, '_>, messages: usize) {
    let directory = long_log(messages, &[]);
    bencher.bench_local(|| {
        let limit = TailLimit {
            max_cost: WINDOW_BYTES,
            cost: |message, _reduction| message.content.len() as u64,
            ..TailLimit::UNLIMITED
        };
        black_box(open(directory.path()).tail(limit).expect("the end of the log"))
    });
}

/// Opens the log and takes what its last summary left.
#[divan::bench(args = MESSAGES)]
fn open_and_read_since_the_summary(bencher: Bencher<'_, '_>, messages: usize) {
    let kept: Vec<TranscriptMessage> = (0..KEPT).map(message).collect();
    let summary = CompactionEntry {
        id: EntryId::generate(),
        ts: 0,
        summary: "They talked for long.".to_owned(),
        first_kept_id: kept[0].id,
        tokens_before: 150_000,
        old_count: messages as u64,
        new_count: KEPT as u64,
    };
    let mut end: Vec<Entry> = kept.into_iter().map(Entry::from).collect();
    end.push(summary.into());
    let directory = long_log(messages, &end);
    bencher.bench_local(|| {
        black_box(open(directory.path()).tail(TailLimit::UNLIMITED).expect("the end of the log"))
    });
}

/// Acknowledges a message for an active session with so many that wait: to be held against the bare append and
/// `fsync` below.
#[divan::bench(args = [1, 10_000], sample_count = 400, sample_size = 1)]
fn acknowledge_a_steering_message(bencher: Bencher<'_, '_>, waiting: usize) {
    let directory = long_log(0, &[]);
    let inbox = SessionStore::new(directory.path()).inbox(&SessionKey::for_cli("main", "bench"));
    let earlier: Vec<QueuedMessage> = (0..waiting).map(|_| steering()).collect();
    inbox
        .hold_or_create()
        .and_then(|mut open| open.change(&earlier, &[]))
        .expect("messages that wait");
    bencher
        .with_inputs(steering)
        .bench_local_values(|message| inbox.push(&message).expect("an acknowledged message"));
}

fn steering() -> QueuedMessage {
    QueuedMessage {
        id: EntryId::generate(),
        kind: QueuedKind::Steer,
        content: "Not that one.".to_owned(),
        ts: 0,
        meta: None,
        keeper: Keeper::Inbox,
    }
}

/// What the disk alone takes for the same bytes.
#[divan::bench(sample_count = 400, sample_size = 1)]
fn bare_append_and_fsync(bencher: Bencher<'_, '_>) {
    let directory = long_log(0, &[]);
    let path = directory.path().join("bare");
    let mut file =
        std::fs::OpenOptions::new().append(true).create(true).open(path).expect("a file");
    bencher.bench_local(|| {
        file.write_all(&[b'x'; 96]).and_then(|()| file.sync_data()).expect("a durable append");
    });
}

/// Notes in the index of so many sessions that a turn begins, as each turn does: to be held against the appends.
#[divan::bench(args = [10, 100_000], sample_count = 400, sample_size = 1)]
fn note_that_a_turn_begins(bencher: Bencher<'_, '_>, sessions: usize) {
    let directory = long_log(1, &[]);
    let index = SessionStore::new(directory.path()).index();
    let key = SessionKey::for_cli("main", "bench");
    for number in 1..sessions {
        let other = SessionKey::for_cli("main", &format!("other-{number}"));
        index.record(&other, MetaPatch::default()).expect("an index");
    }
    index.record(&key, MetaPatch::default()).expect("an index");
    bencher.bench_local(|| index.begin_turn(&key, MetaPatch::default()).expect("an index"));
}

/// Appends one message to an open log, without waiting for the disk.
#[divan::bench]
fn append_one_message(bencher: Bencher<'_, '_>) {
    let directory = long_log(0, &[]);
    let mut log = open(directory.path());
    bencher
        .with_inputs(|| [Entry::from(message(0))])
        .bench_local_refs(|entries| log.append(entries).expect("room on the disk"));
}

/// An event while logs are off, which an append and a model call emit a few of: to be held against the append above.
#[divan::bench]
fn log_event_while_logs_are_off(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(|| 1_u64).bench_local_values(|at| {
        tracing::debug!(
            entries = 1,
            bytes = 120,
            at = black_box(at),
            "appended to the session log"
        );
    });
}

/// Adds a model call to the totals of the day, as each call of each run does: alone, and while seven others do the same.
/// Each opens the file for itself, so the lock separates these threads as it separates processes.
#[divan::bench(threads = [1, 8])]
fn add_a_call_to_the_totals_of_the_day(bencher: Bencher<'_, '_>) {
    let directory = TempDir::new().expect("a temporary directory");
    let spending = DaySpending::new(directory.path().join("usage.json"));
    let used = Spent { tokens: 1_000, micro_dollars: 3_000 };
    bencher.bench(|| spending.add("2026-01-31", used).expect("the totals"));
}

/// Appends one message and waits until it is on the disk.
#[divan::bench(sample_count = 20)]
fn append_one_message_and_sync(bencher: Bencher<'_, '_>) {
    let directory = long_log(0, &[]);
    let mut log = open(directory.path());
    let disk = log.sync_handle();
    bencher.with_inputs(|| [Entry::from(message(0))]).bench_local_refs(|entries| {
        log.append(entries).expect("room on the disk");
        disk.sync().expect("a disk that syncs");
    });
}

fn open(directory: &Path) -> SessionLog {
    let key = SessionKey::for_cli("main", "bench");
    SessionStore::new(directory)
        .open(&key, LockWait::Fail)
        .expect("a log that nobody else has open")
}

/// A log of `messages` messages and then `end`.
fn long_log(messages: usize, end: &[Entry]) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let mut log = open(directory.path());
    let entries: Vec<Entry> = (0..messages).map(|number| message(number).into()).collect();
    for batch in entries.chunks(BATCH).chain([end]) {
        log.append(batch).expect("room on the disk");
    }
    directory
}

fn message(number: usize) -> TranscriptMessage {
    let (role, text) = if number.is_multiple_of(2) {
        (
            Role::User,
            format!("What is in the file number {number}, and does it differ from the one before?"),
        )
    } else {
        (
            Role::Assistant,
            format!("The file number {number} has three lines and differs in its number only."),
        )
    };
    TranscriptMessage::new(role, text, 0)
}
