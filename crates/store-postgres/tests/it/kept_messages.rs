//! Messages that their senders keep, turns that cost few transactions, and lists that are not counted.

use myclaw_session::{
    Catalog as _, Keeper, LockWait, MetaPatch, QueuedMessage, SessionError, Sessions as _,
    TranscriptMessage,
};
use myclaw_store_postgres::PostgresSessions;

use crate::server::{block_on, connect, database, server};
use crate::subjects::open;
use crate::values::{self, Push as _, assistant, taking, user, work};

/// Two processes.
struct Two {
    url: String,
    _home: tempfile::TempDir,
    here: PostgresSessions,
    elsewhere: PostgresSessions,
}

impl Two {
    /// `None` without a server.
    fn open() -> Option<Self> {
        let url = block_on(database(server()?));
        let home = tempfile::tempdir().unwrap();
        let (here, elsewhere) = (open(&url, home.path()), open(&url, home.path()));
        Some(Self { url, _home: home, here, elsewhere })
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM myclaw.{table}");
        block_on(async { connect(&self.url).await.query_one(&sql, &[]).await.unwrap().get(0) })
    }
}

fn waiting(content: &str, keeper: Keeper, ts: u64) -> QueuedMessage {
    QueuedMessage { ts, ..values::waiting(content, keeper) }
}

#[test]
fn a_message_that_its_sender_keeps_is_not_in_the_database() {
    let Some(two) = Two::open() else { return };
    let inbox = two.here.inbox(&work());
    let (first, second) = (waiting("1", Keeper::Sender, 1), waiting("2", Keeper::Inbox, 2));
    let third = waiting("3", Keeper::Sender, 3);
    assert!(inbox.push_once(&first).unwrap());
    assert!(!inbox.push_once(&first).unwrap(), "it waits already");
    assert_eq!((two.count("mailbox"), two.count("inbox")), (0, 0));
    assert!(inbox.may_hold_messages());
    inbox.push(&third).unwrap();
    two.elsewhere.inbox(&work()).push(&second).unwrap();
    // The oldest first, wherever they wait, once somebody has looked again.
    assert!(inbox.bytes() > 0);
    let held = inbox.hold().unwrap().unwrap();
    assert_eq!(held.pending().unwrap(), [first.clone(), second.clone(), third.clone()]);
    drop(held);
    assert_eq!(two.elsewhere.inbox(&work()).pending().unwrap(), std::slice::from_ref(&second));
    let mut log = two.here.open(&work(), LockWait::Fail).unwrap();
    log.push(&[taking(&first).into(), taking(&second).into()]).unwrap();
    assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&third));
    assert!(inbox.remove(third.id).unwrap());
    assert!(!inbox.may_hold_messages());
    inbox.push(&third).unwrap();
    inbox.push(&waiting("4", Keeper::Inbox, 4)).unwrap();
    inbox.forget_kept();
    let left = inbox.pending().unwrap();
    assert_eq!(left.iter().map(|it| it.content.as_str()).collect::<Vec<_>>(), ["4"]);
}

#[test]
fn a_kept_message_that_another_process_has_answered_is_not_taken_in_again() {
    let Some(two) = Two::open() else { return };
    let message = waiting("q", Keeper::Sender, 1);
    two.here.inbox(&work()).push(&message).unwrap();
    let mut log = two.elsewhere.open(&work(), LockWait::Fail).unwrap();
    log.push(&[taking(&message).into(), assistant("a").into()]).unwrap();
    drop(log);
    let mut late = two.here.open(&work(), LockWait::Fail).unwrap();
    // Under another id of the row nothing else refuses it.
    let row = TranscriptMessage { id: user("").id, ..taking(&message) };
    let refused = late.push(&[row.into()]).unwrap_err();
    assert!(matches!(refused, SessionError::Fenced { .. }), "{refused}");
    assert_eq!(two.here.inbox(&work()).pending().unwrap(), [], "it is forgotten");
    late.push(&[user("next").into()]).unwrap();
    assert_eq!(two.count("entry"), 3);
}

#[test]
fn one_holder_of_a_process_has_the_kept_messages_at_a_time() {
    let Some(two) = Two::open() else { return };
    let inbox = two.here.inbox(&work());
    inbox.push(&waiting("q", Keeper::Sender, 1)).unwrap();
    // The look finds nothing in the database, so the holder needs no lock there.
    assert!(inbox.bytes() > 0);
    let held = inbox.try_hold().unwrap().unwrap();
    assert_eq!(two.count("mailbox"), 0);
    let refused = inbox.try_hold().unwrap_err();
    assert!(matches!(refused, SessionError::Locked { .. }), "{refused}");
    drop(held);
    drop(inbox.try_hold().unwrap().unwrap());
}

#[test]
fn the_first_rows_of_a_turn_say_that_it_begins_and_its_end_gives_the_session_back() {
    let Some(two) = Two::open() else { return };
    let mut log = two.here.open(&work(), LockWait::Fail).unwrap();
    log.push(&[user("q").into()]).unwrap();
    // What is not in the list yet gets there.
    assert!(two.here.begins_turn_with_append(&work()));
    log.push(&[assistant("a").into()]).unwrap();
    let is_in_turn = |two: &Two| two.here.entry(&work()).unwrap().unwrap().in_turn;
    assert!(is_in_turn(&two));
    let end = || MetaPatch { in_turn: Some(false), ..MetaPatch::default() };
    two.here.record(&work(), end()).outcome.unwrap();
    assert!(!is_in_turn(&two));
    assert!(!two.elsewhere.is_in_use(&work()).unwrap());
    // A turn that goes on nevertheless has it again.
    assert!(two.here.begins_turn_with_append(&work()));
    log.push(&[user("q").into()]).unwrap();
    assert!(is_in_turn(&two));
    two.elsewhere.open(&work(), LockWait::Fail).unwrap_err();
    // A title that is set meanwhile ends no turn.
    two.elsewhere.update(&work(), MetaPatch::default()).unwrap();
    assert!(is_in_turn(&two));
    two.here.record(&work(), end()).outcome.unwrap();
    let mut next = two.elsewhere.open(&work(), LockWait::Fail).unwrap();
    log.push(&[assistant("late").into()]).unwrap_err();
    drop(log);
    next.push(&[assistant("a").into()]).unwrap();
    assert!(two.here.is_in_use(&work()).unwrap());
    assert!(!two.here.begins_turn_with_append(&work()), "it is not open here");
}

#[test]
fn a_long_list_is_not_counted_one_by_one() {
    let Some(two) = Two::open() else { return };
    two.here.record(&work(), MetaPatch::default()).outcome.unwrap();
    let execute = |sql: &str| block_on(async { connect(&two.url).await.batch_execute(sql).await });
    let copy = |numbers: &str| {
        let sql = format!(
            "INSERT INTO myclaw.session (partition, key, listed, listed_at)
             SELECT partition, key || '-' || number, listed, listed_at
             FROM (SELECT * FROM myclaw.session LIMIT 1) AS sample, generate_series({numbers}) AS number"
        );
        execute(&sql).unwrap();
    };
    let count = || two.here.latest(1).unwrap().1;
    // The statistics are those of the test.
    execute("ALTER TABLE myclaw.session SET (autovacuum_enabled = false)").unwrap();
    copy("1, 9999");
    assert_eq!(count(), 10_000);
    copy("10000, 29999");
    assert_eq!(count(), 30_000, "without statistics all are counted");
    execute("ANALYZE myclaw.session").unwrap();
    copy("30000, 39999");
    let counted = count();
    assert!((29_000..=31_000).contains(&counted), "{counted} is not what the statistics say");
}
