//! Waiting messages: durable, each in one state, for any writer.

use std::fs;
use std::sync::Arc;

use myclaw_files::Durability;
use myclaw_session::{
    DaySpending, EntryId, FileInbox, Inbox, Keeper, QueuedKind, QueuedMessage, SessionError,
    SessionStore, Spent, durability_of,
};
use proptest::prelude::*;

use crate::children::Child;
use crate::{Home, work};

fn message(kind: QueuedKind, content: &str) -> QueuedMessage {
    QueuedMessage {
        id: EntryId::generate(),
        kind,
        content: content.to_owned(),
        ts: 7,
        meta: None,
        keeper: Keeper::Inbox,
    }
}

fn lines(inbox: &FileInbox) -> usize {
    fs::read_to_string(inbox.path()).unwrap().lines().count()
}

#[test]
fn a_pushed_message_waits_until_it_is_settled() {
    let home = Home::new();
    let inbox = home.store().inbox(&work());
    assert_eq!((inbox.pending().unwrap(), inbox.may_hold_messages()), (vec![], false));

    let (first, second) =
        (message(QueuedKind::Steer, "first"), message(QueuedKind::Collect, "second\nline"));
    inbox.push(&first).unwrap();
    inbox.push(&second).unwrap();

    assert_eq!(lines(&inbox), 2, "one line a message");
    assert_eq!(inbox.pending().unwrap(), [first.clone(), second.clone()]);
    inbox.hold().unwrap().unwrap().change(&[], &[first.id]).unwrap();
    assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&second));
    assert!(inbox.remove(second.id).unwrap());
    assert!(!inbox.remove(second.id).unwrap(), "a message is removed once");
    assert_eq!(
        fs::metadata(inbox.path()).unwrap().len(),
        0,
        "settled messages leave nothing in the file"
    );
    assert!(!inbox.may_hold_messages());
}

#[test]
fn whoever_does_not_wait_learns_that_an_inbox_is_held() {
    let home = Home::new();
    let inbox = home.store().inbox(&work());
    assert!(inbox.try_hold().unwrap().is_none());
    let sent = message(QueuedKind::Steer, "first");
    inbox.push(&sent).unwrap();
    assert_eq!(inbox.bytes(), fs::metadata(inbox.path()).unwrap().len());

    let held = inbox.hold().unwrap().unwrap();
    assert!(matches!(inbox.try_hold(), Err(SessionError::Locked { .. })));
    assert!(matches!(inbox.try_pending(), Err(SessionError::Locked { .. })));
    drop(held);
    assert_eq!(inbox.try_pending().unwrap(), std::slice::from_ref(&sent));
    assert_eq!(inbox.try_hold().unwrap().unwrap().pending().unwrap(), [sent]);
}

#[test]
fn a_torn_line_is_skipped_and_hides_no_message() {
    let home = Home::new();
    let inbox = home.store().inbox(&work());
    let (first, second) =
        (message(QueuedKind::Steer, "first"), message(QueuedKind::Steer, "second"));
    inbox.push(&first).unwrap();
    let mut torn = fs::read(inbox.path()).unwrap();
    torn.extend_from_slice(br#"{"type":"queued","id":"x","kind":"steer","content":"ha"#);
    fs::write(inbox.path(), torn).unwrap();

    inbox.push(&second).unwrap();

    assert_eq!(inbox.pending().unwrap(), [first, second]);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let home = Home::new();
    let store = home.store();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let inbox = store.inbox(&work());
            std::thread::spawn(move || {
                for number in 0..25 {
                    inbox.push(&message(QueuedKind::Steer, &format!("{writer} {number}"))).unwrap();
                }
            })
        })
        .collect();
    let inbox = store.inbox(&work());
    let mut seen = Vec::new();
    while seen.len() < 100 {
        let is_over = writers.iter().all(std::thread::JoinHandle::is_finished);
        let Some(mut open) = inbox.hold().unwrap() else { continue };
        let pending = open.pending().unwrap();
        if is_over && pending.is_empty() {
            break;
        }
        let ids: Vec<EntryId> = pending.iter().map(|message| message.id).collect();
        open.change(&[], &ids).unwrap();
        seen.extend(pending.into_iter().map(|message| message.content));
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(inbox.pending().unwrap().is_empty());
    seen.sort();
    let mut expected: Vec<_> =
        (0..4).flat_map(|writer| (0..25).map(move |number| format!("{writer} {number}"))).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn a_full_inbox_refuses_messages_and_keeps_those_it_has() {
    let home = Home::new();
    let inbox = home.store().inbox(&work());
    let large = "x".repeat(9 * 1024 * 1024);
    inbox.push(&message(QueuedKind::FollowUp, &large)).unwrap();

    let error = inbox.push(&message(QueuedKind::FollowUp, &large)).unwrap_err();

    assert!(matches!(error, SessionError::InboxFull { .. }), "{error}");
    assert_eq!(inbox.pending().unwrap().len(), 1);
}

#[test]
fn the_cost_of_an_acknowledgement_does_not_grow_with_the_waiting_messages() {
    let home = Home::new();
    let report = Child::new("acknowledge").directory(home.sessions()).run();
    assert!(report.succeeded, "{}", report.printed);
    for waiting in [1, 10_000] {
        let value = |name: &str| report.value(&format!("{name}_{waiting}"));
        assert_eq!(value("waiting"), Some((waiting + 1).to_string()));
        let Some((read, writes)) = value("read").zip(value("writes")) else {
            myclaw_testkit::skip_here("this system does not count what is read and written");
            return;
        };
        assert_eq!(writes, "1", "one append");
        // Looking at the counters reads too; the inbox itself gives its last byte.
        let read: u64 = read.parse().unwrap();
        assert!(read < 1_000, "{read} bytes read beside {waiting} messages");
    }
}

#[test]
fn deleting_a_session_deletes_its_inbox() {
    let home = Home::new();
    let store = home.store();
    store.inbox(&work()).push(&message(QueuedKind::Steer, "gone")).unwrap();
    store.delete(&work()).unwrap();
    assert_eq!(home.names(), Vec::<String>::new());
}

#[test]
fn a_session_is_in_use_while_it_is_open() {
    let home = Home::new();
    let store = home.store();
    assert!(!store.is_in_use(&work()).unwrap());
    let open = home.open(&work());
    assert!(store.is_in_use(&work()).unwrap());
    drop(open);
    assert!(!store.is_in_use(&work()).unwrap());
    fs::write(home.sessions().join(format!("{}.lock", work().slug())), "1").unwrap();
    assert!(!store.is_in_use(&work()).unwrap(), "the lock file of a killed process has no effect");
}

#[test]
fn the_totals_of_a_day_add_up_and_the_next_day_begins_at_zero() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state").join("usage.json");
    let used = |tokens, micro_dollars| Spent { tokens, micro_dollars };
    let spending = DaySpending::new(&path);
    assert_eq!(spending.of("2026-01-31").unwrap(), Spent::default());
    assert_eq!(spending.add("2026-01-31", used(5, u64::MAX - 9)).unwrap().tokens, 5);
    let total = DaySpending::new(&path).add("2026-01-31", used(7, 3)).unwrap();
    assert_eq!(total, used(12, u64::MAX - 6));
    assert_eq!(spending.of("2026-01-31").unwrap(), total);
    assert_eq!(spending.of("2026-01-30").unwrap(), total, "a clock that jumps back");
    assert_eq!(spending.of("2026-02-01").unwrap(), Spent::default());
    assert_eq!(spending.add("2026-02-01", used(1, 1)).unwrap(), used(1, 1));
    fs::write(&path, "no json").unwrap();
    assert_eq!(spending.add("2026-02-01", used(2, 2)).unwrap(), used(2, 2));
    assert_eq!(spending.of("2026-02-01").unwrap(), used(2, 2));
}

#[test]
fn a_clock_that_was_far_ahead_neither_resets_the_totals_nor_blocks_later_days() {
    let home = tempfile::tempdir().unwrap();
    let spending = DaySpending::new(home.path().join("usage.json"));
    let used = |tokens| Spent { tokens, micro_dollars: 0 };
    spending.add("2036-07-01", used(5)).unwrap();
    assert_eq!(spending.of("2026-02-28").unwrap(), used(5), "the usage counts for today");
    assert_eq!(spending.add("2026-02-28", used(2)).unwrap(), used(7));
    assert_eq!(spending.of("2026-03-01").unwrap(), used(0), "the next day begins");
    // Also where a limit that is reached lets nothing be used meanwhile.
    spending.add("2036-07-01", used(8)).unwrap();
    assert_eq!(spending.of("2026-02-28").unwrap(), used(8));
    assert_eq!(spending.of("2026-03-01").unwrap(), used(0));
    // An hour or so around midnight changes nothing: the day that was begun continues.
    spending.add("2026-03-01", used(3)).unwrap();
    assert_eq!(spending.add("2026-02-28", used(1)).unwrap(), used(4));
    assert_eq!(spending.of("2026-03-01").unwrap(), used(4));
}

/// What may happen to an inbox.
#[derive(Debug, Clone)]
enum Step {
    Push(QueuedKind),
    /// Settles the message that was pushed so many ago.
    Settle(usize),
    Remove(usize),
    /// A writer that dies in the middle of a line.
    Tear(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        Just(QueuedKind::Steer),
        Just(QueuedKind::FollowUp),
        Just(QueuedKind::Collect),
        Just(QueuedKind::Overflow)
    ];
    let step = prop_oneof![
        3 => kind.prop_map(Step::Push),
        1 => (0..6_usize).prop_map(Step::Settle),
        1 => (0..6_usize).prop_map(Step::Remove),
        1 => (1..40_usize).prop_map(Step::Tear),
    ];
    prop::collection::vec(step, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any operations, exactly the acknowledged messages wait that were not settled, in order.
    #[test]
    fn what_waits_is_what_was_acknowledged_and_not_settled(steps in steps()) {
        let home = tempfile::tempdir().unwrap();
        let store = SessionStore::new(home.path());
        let inbox = store.inbox(&work());
        let mut expected: Vec<QueuedMessage> = Vec::new();
        for step in steps {
            match step {
                Step::Push(kind) => {
                    let pushed = message(kind, "said \u{1f600}\n");
                    inbox.push(&pushed).unwrap();
                    expected.push(pushed);
                }
                Step::Settle(back) if back < expected.len() => {
                    let id = expected.remove(expected.len() - 1 - back).id;
                    inbox.hold().unwrap().unwrap().change(&[], &[id]).unwrap();
                }
                Step::Remove(back) if back < expected.len() => {
                    let id = expected.remove(expected.len() - 1 - back).id;
                    prop_assert!(inbox.remove(id).unwrap());
                }
                Step::Settle(_) | Step::Remove(_) => {}
                Step::Tear(length) => {
                    let line = serde_json::to_vec(&message(QueuedKind::Steer, "torn")).unwrap();
                    let mut file =
                        fs::OpenOptions::new().append(true).create(true).open(inbox.path()).unwrap();
                    std::io::Write::write_all(&mut file, &line[..length]).unwrap();
                }
            }
            prop_assert_eq!(inbox.pending().unwrap(), expected.clone());
        }
    }
}

#[test]
fn messages_of_a_full_inbox_can_be_settled() {
    let home = Home::new();
    let inbox = home.store().inbox(&work());
    let first = message(QueuedKind::Steer, &"x".repeat(15 * 1024 * 1024));
    inbox.push(&first).unwrap();
    let before = fs::metadata(inbox.path()).unwrap().len();
    let error = inbox.push(&message(QueuedKind::Steer, &"y".repeat(1024 * 1024))).unwrap_err();
    let SessionError::InboxFull { limit, .. } = &error else { panic!("{error}") };
    assert_eq!(*limit, 16 * 1024 * 1024);
    assert_eq!(fs::metadata(inbox.path()).unwrap().len(), before, "nothing was written");
    let small = message(QueuedKind::Steer, "small");
    inbox.push(&small).unwrap();
    assert_eq!(inbox.pending().unwrap(), [first.clone(), small]);
    assert!(inbox.remove(first.id).unwrap(), "settling needs no room");
}

/// A file that takes what is written to it and refuses `fsync`, because nothing of it is on a disk.
#[cfg(target_os = "linux")]
const UNSYNCABLE: &str = "/proc/thread-self/comm";

#[cfg(target_os = "linux")]
#[test]
fn a_message_is_acknowledged_only_after_it_is_on_disk() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let inbox = home.store().inbox(&work());
    std::os::unix::fs::symlink(UNSYNCABLE, inbox.path()).unwrap();
    let error = inbox.push(&message(QueuedKind::Steer, "hi")).unwrap_err();
    assert!(error.to_string().contains("failed to write to the inbox"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_is_durable_only_after_it_is_on_disk() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    std::os::unix::fs::symlink(UNSYNCABLE, home.store().transcript_path(&work())).unwrap();
    let mut log = home.open(&work());
    log.append(&[crate::user("hi").into()]).unwrap();
    let error = log.sync_handle().sync().unwrap_err();
    assert!(error.to_string().contains("failed to write to disk"), "{error}");
}

#[test]
fn watchers_are_notified_of_messages_from_this_process_and_others() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let (store, other) = (home.store(), myclaw_session::SessionKey::for_cli("main", "other"));
    let elsewhere = myclaw_session::SessionKey::for_cli("main", "with-1");
    let watch = |inbox: FileInbox| {
        let (sender, notified) = std::sync::mpsc::channel();
        (inbox.watch(Arc::new(move || sender.send(()).unwrap_or_default())), notified)
    };
    let (_first, notified) = watch(store.inbox(&work()));
    let (_second, of_other) = watch(store.inbox(&other));

    store.inbox(&work()).push(&message(QueuedKind::Steer, "from here")).unwrap();
    notified.try_recv().unwrap();
    assert!(of_other.try_recv().is_err(), "another session's message");

    let (third, notified) = watch(store.inbox(&elsewhere));
    third.notice_other_processes();
    let mut child = Child::new("acknowledge").directory(home.sessions()).command().spawn().unwrap();
    let patience = std::time::Duration::from_secs(30);
    notified.recv_timeout(patience).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_messages_that_their_senders_keep_need_no_disk() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let inbox = home.store().inbox(&work());
    let own = message(QueuedKind::Steer, "own");
    let kept = QueuedMessage { keeper: Keeper::Sender, ..message(QueuedKind::Steer, "kept") };
    inbox.push(&kept).unwrap();
    inbox.push(&own).unwrap();
    let pending = inbox.pending().unwrap();
    assert_eq!(pending, [kept.clone(), own.clone()]);
    let needs = |taken: &[EntryId]| durability_of(&pending, taken);
    assert_eq!(needs(&[kept.id]), Durability::Unsynced);
    assert_eq!(needs(&[own.id]), Durability::Synced);
    assert_eq!(needs(&[kept.id, own.id]), Durability::Synced);
    inbox.hold().unwrap().unwrap().settle_taken(&pending, &[kept.id]).unwrap();
    assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&own));
    // A line of an older version does not say who keeps its message.
    let line = fs::read_to_string(inbox.path()).unwrap();
    assert!(!line.lines().nth(1).unwrap().contains("keeper"), "{line}");
}

#[test]
fn reading_notifies_nobody() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let other = myclaw_session::SessionKey::for_cli("main", "other");
    let (inbox, last) = (home.store().inbox(&work()), home.store().inbox(&other));
    inbox.push(&message(QueuedKind::Steer, "waits")).unwrap();
    let (sender, notified) = std::sync::mpsc::channel();
    let of_last = sender.clone();
    let watch = inbox.watch(Arc::new(move || sender.send("read").unwrap_or_default()));
    let _last = last.watch(Arc::new(move || of_last.send("last").unwrap_or_default()));
    watch.notice_other_processes();
    for _ in 0..3 {
        assert_eq!(inbox.pending().unwrap().len(), 1);
    }
    // The system reports in order.
    fs::write(last.path(), "").unwrap();
    let patience = std::time::Duration::from_secs(30);
    assert_eq!(notified.recv_timeout(patience).unwrap(), "last", "reading counts as a change");
}

#[test]
fn damaged_totals_of_the_day_are_copied_and_reported() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("usage.json");
    for damage in [&b"{\"day\":\"2026-01-3"[..], &[0; 160], b"[]"] {
        fs::write(&path, damage).unwrap();
        let spending = DaySpending::new(path.clone());
        assert_eq!(spending.of("2026-01-31").unwrap(), Spent::default());
        let copy = spending.set_aside().unwrap().to_path_buf();
        assert_eq!(fs::read(&copy).unwrap(), damage);
        let used = Spent { tokens: 3, micro_dollars: 4 };
        assert_eq!(spending.add("2026-01-31", used).unwrap(), used);
        let again = DaySpending::new(path.clone());
        assert_eq!((again.of("2026-01-31").unwrap(), again.set_aside()), (used, None));
        fs::remove_file(copy).unwrap();
    }
}
