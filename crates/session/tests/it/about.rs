//! Titles and labels.

use std::fs;

use myclaw_session::{About, LockWait, SessionError};

use crate::{Home, assistant, user, work};

fn titled(title: &str, labels: &[&str]) -> About {
    About {
        title: Some(title.to_owned()),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        ..About::default()
    }
}

#[test]
fn the_latest_title_applies_and_survives_the_loss_of_the_index() {
    let home = Home::new();
    home.open(&work()).append(&[user("hello").into(), assistant("hi").into()]).unwrap();
    let store = home.store();
    let rome = titled("Rome", &["travel", "2026"]);
    store.change_about(&work(), LockWait::Fail, |about| *about = titled("Paris", &[])).unwrap();
    let now = store.change_about(&work(), LockWait::Fail, |about| *about = rome.clone()).unwrap();
    assert_eq!(now, rome);
    home.open(&work()).append(&[user("more").into()]).unwrap();

    assert_eq!(store.reader(&work()).unwrap().unwrap().about().unwrap(), rome);
    let listed = || {
        let sessions = home.store().index().list().unwrap();
        About::from_extra(sessions[0].entry.extra.as_ref())
    };
    // The index was made from the log, with a title of the first message for the time without another one.
    let expected = About { automatic_title: Some("hello".to_owned()), ..rome };
    assert_eq!(listed(), expected);
    fs::remove_file(store.index().path()).unwrap();
    assert_eq!(listed(), expected);
}

#[test]
fn a_change_that_changes_nothing_writes_nothing() {
    let home = Home::new();
    home.open(&work()).append(&[user("hello").into()]).unwrap();
    let store = home.store();
    store.change_about(&work(), LockWait::Fail, |about| *about = titled("Rome", &["a"])).unwrap();
    let before = fs::read(store.transcript_path(&work())).unwrap();
    store.change_about(&work(), LockWait::Fail, |_about| {}).unwrap();
    assert_eq!(fs::read(store.transcript_path(&work())).unwrap(), before);
}

#[test]
fn a_session_that_does_not_exist_is_not_created() {
    let home = Home::new();
    let error = home.store().change_about(&work(), LockWait::Fail, |_about| {}).unwrap_err();
    assert!(matches!(error, SessionError::NoSuchSession { .. }), "{error}");
    assert_eq!(home.names(), Vec::<String>::new());
}

#[test]
fn a_running_session_is_not_written_to() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[user("hello").into()]).unwrap();
    let error = home.store().change_about(&work(), LockWait::Fail, |_about| {}).unwrap_err();
    assert!(matches!(error, SessionError::Locked { .. }), "{error}");
}
