//! Several processes and one session.

use std::process::Stdio;
use std::time::Duration;

use myclaw_session::{LockWait, SessionError, SessionKey, TailLimit};

use crate::children::{Child, Report, reports, wait_for_report};
use crate::{Home, entries, user, work};

#[test]
fn a_second_process_gets_the_id_of_the_process_that_has_the_session() {
    let home = Home::new();
    let mut child = Child::new("hold").directory(home.sessions()).command().spawn().unwrap();
    let holding = wait_for_report(&mut child);
    assert_eq!(holding, format!("holding={}", child.id()));

    let error = home.store().open(&work(), LockWait::Fail).unwrap_err();
    let SessionError::Locked { process_id, waited, .. } = &error else { panic!("{error}") };
    assert_eq!((*process_id, *waited), (Some(child.id()), Duration::ZERO));
    let lock_path = home.sessions().join(format!("{}.lock", work().slug()));
    assert_eq!(
        error.to_string(),
        format!(
            "session is in use by process {}: {} is locked; wait until it is done, stop it, or choose another \
             session with --session",
            child.id(),
            lock_path.display()
        )
    );
    let short = LockWait::Until(Duration::from_millis(20));
    assert!(matches!(home.store().open(&work(), short), Err(SessionError::Locked { .. })));
    assert!(matches!(home.store().delete(&work()), Err(SessionError::Locked { .. })));
    assert_eq!(entries(&home, &work()).len(), 1, "reading needs no lock");
    home.open(&SessionKey::for_cli("main", "other")).append(&[user("free").into()]).unwrap();

    drop(child.stdin.take());
    let mut log = home.store().open(&work(), LockWait::Until(Duration::from_secs(30))).unwrap();
    log.append(&[user("mine").into()]).unwrap();
    assert_eq!(entries(&home, &work()).len(), 2);
    child.wait().unwrap();
}

#[test]
fn a_killed_process_leaves_no_lock() {
    let home = Home::new();
    let mut child = Child::new("hold").directory(home.sessions()).command().spawn().unwrap();
    wait_for_report(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    home.open(&work()).append(&[user("next").into()]).unwrap();
    assert_eq!(entries(&home, &work()).len(), 2);
    assert_eq!(home.names(), [format!("{}.jsonl", work().slug())]);
}

#[test]
fn entries_that_a_killed_process_appended_are_read() {
    let home = Home::new();
    for round in 1..=12_usize {
        let before = home
            .store()
            .reader(&work())
            .unwrap()
            .map_or(0, |reader| reader.message_count().unwrap());
        let mut child =
            Child::new("append_forever").directory(home.sessions()).command().spawn().unwrap();
        let mut reported = reports(&mut child);
        let last = reported.by_ref().nth(round * 3).unwrap();
        drop(reported);
        child.kill().unwrap();
        child.wait().unwrap();

        let appended: usize = last.strip_prefix("appended=").unwrap().parse().unwrap();
        let mut log = home.open(&work());
        let tail = log.tail(TailLimit::UNLIMITED).unwrap();
        assert_eq!(tail.skipped_lines, 0, "round {round}");
        let new = &tail.messages[before..];
        assert!(
            new.len() >= 2 * (appended + 1),
            "round {round}: {} of {}",
            new.len(),
            2 * (appended + 1)
        );
        for (number, batch) in new.chunks(2).enumerate() {
            assert!(batch[0].content.starts_with(&format!("{number} ")), "round {round}");
        }
        log.append(&[user("after the crash").into()]).unwrap();
    }
}

#[test]
fn one_process_cannot_open_a_session_twice() {
    let home = Home::new();
    let first = home.open(&work());
    let error = home.store().open(&work(), LockWait::Fail).unwrap_err();
    assert!(
        matches!(error, SessionError::Locked { process_id: Some(id), .. } if id == std::process::id())
    );
    drop(first);
    home.open(&work());
}

#[test]
fn processes_that_take_turns_lose_nothing() {
    let home = Home::new();
    let start = || Child::new("append_often").directory(home.sessions()).command().spawn().unwrap();
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    let ids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
    for child in children {
        let report = Report::of(child);
        assert!(report.succeeded, "{}", report.printed);
    }
    let reader = home.store().reader(&work()).unwrap().unwrap();
    let mut all = reader.entries();
    let messages = all.by_ref().count();
    assert_eq!((messages, all.skipped_lines(), all.has_torn_tail()), (200, 0, false));
    // Each process's messages are in its own order.
    let written: Vec<String> = crate::texts(&reader.last_messages(200).unwrap())
        .iter()
        .map(|text| text.trim_end_matches('x').trim_end().to_owned())
        .collect();
    for id in ids {
        let own: Vec<_> =
            written.iter().filter(|text| text.starts_with(&format!("{id} "))).cloned().collect();
        assert_eq!(own, (0..50).map(|number| format!("{id} {number}")).collect::<Vec<_>>());
    }
    assert_eq!(home.names(), [format!("{}.jsonl", work().slug())]);
    let text = std::fs::read_to_string(reader.path()).unwrap();
    assert_eq!(text.matches("\"type\":\"session\"").count(), 1, "one header, whoever came first");
}

#[test]
fn an_opened_session_is_not_inherited_by_programs_that_run_meanwhile() {
    let home = Home::new();
    let log = home.open(&work());
    let mut sleeper =
        std::process::Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    drop(log);
    let reopened = home.store().open(&work(), LockWait::Fail);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    reopened.unwrap();
}
