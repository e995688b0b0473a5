//! Connections that end in the middle of appends, and owners that are gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myclaw_session::{
    Catalog as _, Keeper, LockWait, MetaPatch, SessionKey, Sessions as _, TranscriptMessage,
};
use myclaw_store_postgres::Options;

use crate::proxy::{Cut, Proxy};
use crate::server::{block_on, connect, database, server};
use crate::subjects::{open, open_with};
use crate::values::{Push as _, assistant, user, waiting, work};

#[test]
fn each_append_is_there_once_when_connections_are_ended_at_random() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let sessions = open(&url, home.path());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                let admin = connect(&url).await;
                for round in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                               WHERE datname = current_database() AND pid <> pg_backend_pid()";
                    admin.query(sql, &[]).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20 + round * 7 % 60)).await;
                }
            });
        });
        let mut log = sessions.open(&work(), LockWait::Fail).unwrap();
        for number in 0..20 {
            log.push(&[user(&format!("q{number}")).into(), assistant("a").into()]).unwrap();
            let message = waiting(&number.to_string(), Keeper::Inbox);
            sessions.inbox(&work()).push(&message).unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let reader = sessions.read(&work()).unwrap().unwrap();
    let said = reader.last_messages(1_000).unwrap();
    let wanted: Vec<String> =
        (0..20).flat_map(|number| [format!("q{number}"), "a".to_owned()]).collect();
    assert_eq!(said.iter().map(|row| row.content.as_str()).collect::<Vec<_>>(), wanted);
    let waiting = sessions.inbox(&work()).pending().unwrap();
    let waiting: Vec<String> = waiting.into_iter().map(|message| message.content).collect();
    assert_eq!(waiting, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
}

/// An answer to an append that is lost leaves open whether it happened. The owner finds out before it reports.
#[test]
fn an_append_whose_answer_is_lost_is_made_once() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(server.port(), b"WITH moved AS", |append| match append % 3 {
        0 => Some(Cut::After),
        1 => Some(Cut::Before),
        _ => None,
    });
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    let mut log = open(&through, home.path()).open(&work(), LockWait::Fail).unwrap();
    for number in 0..12 {
        log.push(&[user(&number.to_string()).into()]).unwrap();
    }
    assert!(proxy.commits.load(Ordering::SeqCst) > 12);
    let reader = open(&url, home.path()).read(&work()).unwrap().unwrap();
    let said = reader.last_messages(100).unwrap();
    let wanted: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    assert_eq!(said.iter().map(|row| row.content.as_str()).collect::<Vec<_>>(), wanted);
}

/// A lease that nobody renews ends by itself, and whoever had it finds itself fenced.
#[test]
fn a_session_of_a_program_that_is_gone_is_free_after_its_lease() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let (here, elsewhere) = (open(&url, home.path()), open(&url, home.path()));
    let mut log = here.open(&work(), LockWait::Fail).unwrap();
    log.push(&[user("q").into()]).unwrap();
    elsewhere.open(&work(), LockWait::Fail).unwrap_err();
    // As if its program had died some time ago.
    let sql = "UPDATE myclaw.session SET lease_until = clock_timestamp() - interval '1 s'";
    block_on(async { connect(&url).await.batch_execute(sql).await.unwrap() });
    let mut next = elsewhere.open(&work(), LockWait::Fail).unwrap();
    log.push(&[assistant("late").into()]).unwrap_err();
    next.push(&[assistant("a").into()]).unwrap();
    drop(log);
    assert!(here.is_in_use(&work()).unwrap(), "the next owner still has it");
}

/// Renewed leases do not end, also where the owner writes nothing for longer than a lease.
#[test]
fn a_session_that_is_open_stays_so() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let (here, elsewhere) = (open(&url, home.path()), open(&url, home.path()));
    let _log = here.open(&work(), LockWait::Fail).unwrap();
    // The lease is renewed before its last third.
    let sql = "UPDATE myclaw.session SET lease_until = clock_timestamp() + interval '7 s'";
    block_on(async { connect(&url).await.batch_execute(sql).await.unwrap() });
    std::thread::sleep(Duration::from_secs(8));
    elsewhere.open(&work(), LockWait::Fail).unwrap_err();
}

/// A process that stands still while it changes the list, or holds an inbox, does not keep the session from others.
#[test]
fn a_process_that_stands_still_keeps_no_session() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(server.port(), b"SET listed = $2", |number| {
        (number == 0).then_some(Cut::Hold)
    });
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    let (frozen, other) = (open(&through, home.path()), open(&url, home.path()));
    std::thread::scope(|scope| {
        let held = scope.spawn(|| frozen.record(&work(), MetaPatch::default()).outcome);
        while proxy.commits.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut log = other.open(&work(), LockWait::Fail).unwrap();
        log.push(&[user("q").into()]).unwrap();
        assert!(!held.is_finished());
        proxy.is_released.store(true, Ordering::SeqCst);
        held.join().unwrap().unwrap();
    });
    let _held = frozen.inbox(&work()).hold_or_create().unwrap();
    drop(other.inbox(&work()).hold_or_create().unwrap());
}

/// A sender that was cut off repeats a message that the log has taken since.
#[test]
fn a_message_that_the_log_has_taken_does_not_wait_again() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    let sessions = open(&url, home.path());
    let waiting = waiting("q", Keeper::Inbox);
    sessions.inbox(&work()).push(&waiting).unwrap();
    let meta = serde_json::json!({"queuedIds": [waiting.id]}).as_object().unwrap().clone();
    let mut log = sessions.open(&work(), LockWait::Fail).unwrap();
    let row = TranscriptMessage { meta: Some(meta.into()), ..user("q") };
    log.push(&[row.into()]).unwrap();
    // The transaction that appends takes it out: there is no moment with both or none.
    assert_eq!(sessions.inbox(&work()).pending().unwrap(), []);
    let mut held = sessions.inbox(&work()).hold().unwrap().unwrap();
    held.change(&[], &[waiting.id]).unwrap();
    drop(held);
    sessions.inbox(&work()).push(&waiting).unwrap();
    assert_eq!(sessions.inbox(&work()).pending().unwrap(), []);
    // Another session has nothing to do with it.
    let other = SessionKey::for_cli("main", "other");
    sessions.inbox(&other).push(&waiting).unwrap();
    assert_eq!(sessions.inbox(&other).pending().unwrap().len(), 1);
}

#[test]
fn a_renewal_that_waits_gives_nobody_a_session_that_was_released_meanwhile() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let home = tempfile::tempdir().unwrap();
    // Long, so that nothing ends by itself; the first renewal comes after a third of it.
    let options = Options { lease: Duration::from_secs(9), ..Options::default() };
    let sessions = open_with(&url, home.path(), &options);
    let other = SessionKey::for_cli("main", "other");
    let [_other, released] = [&other, &work()].map(|key| {
        let mut log = sessions.open(key, LockWait::Fail).unwrap();
        log.push(&[user("q").into()]).unwrap();
        log
    });
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let (asking, locking) = runtime.block_on(async { (connect(&url).await, connect(&url).await) });
    let count = |sql: &str| -> i64 { runtime.block_on(asking.query_one(sql, &[])).unwrap().get(0) };
    let until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let lock = "BEGIN; SELECT FROM myclaw.session WHERE key LIKE '%other' FOR UPDATE";
    runtime.block_on(locking.batch_execute(lock)).unwrap();
    let all = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let renewals = format!("{all} AND query LIKE '%AS mine (id, epoch)%'");
    until(&|| count(&renewals) == 1);
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| drop(released));
        // It waits too if the renewal came to its row first.
        until(&|| releasing.is_finished() || count(all) == 2);
        runtime.block_on(locking.batch_execute("COMMIT")).unwrap();
    });
    until(&|| count(&renewals) == 0);
    assert_eq!(count("SELECT count(*) FROM myclaw.session WHERE lease_until = '-infinity'"), 1);
    assert!(!open(&url, home.path()).is_in_use(&work()).unwrap());
}
