use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn grant(number: usize) -> Grant {
    Grant {
        digest: format!("{number:064x}"),
        command_id: None,
        audience: "agent:main:cli".to_owned(),
        tool: "bash".to_owned(),
        call: "cargo test".to_owned(),
        covers: "exactly this command in /w".to_owned(),
        ts: number as u64,
        format: GRANT_FORMAT,
    }
}

fn digest(number: usize) -> Vec<String> {
    vec![grant(number).digest]
}

fn waiting(session: &str, id: &str) -> WaitingApproval {
    WaitingApproval {
        session: session.to_owned(),
        tool_call_id: id.to_owned(),
        tool: "bash".to_owned(),
        call: "rm x".to_owned(),
        reason: "policy: it is not in the allowlist".to_owned(),
        ts: 1,
        begun: None,
        answer: None,
    }
}

#[test]
fn an_answer_holds_for_its_digest_and_its_sessions_until_it_is_revoked() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    let store = ApprovalStore::in_state_dir(&state);
    assert!(!store.covers("agent:main:cli", &digest(1)).unwrap());

    store.grant(&grant(1)).unwrap();
    store.grant(&grant(1)).unwrap();
    let again = ApprovalStore::in_state_dir(&state);
    assert!(again.covers("agent:main:cli", &digest(1)).unwrap());
    assert!(!again.covers("agent:main:cli", &digest(2)).unwrap());
    assert!(!again.covers("agent:other:cli", &digest(1)).unwrap());
    assert_eq!(again.list().unwrap(), (vec![grant(1)], vec![]));
    let mode = fs::metadata(state.join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    assert_eq!(again.revoke(&"0".repeat(63)).unwrap(), [grant(1)]);
    assert!(!store.covers("agent:main:cli", &digest(1)).unwrap());
}

#[test]
fn a_question_waits_until_it_is_answered() {
    let home = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(home.path());
    store.begin_wait(&waiting("a", "call_1")).unwrap();
    store.begin_wait(&waiting("b", "call_1")).unwrap();
    assert!(store.waits("a", "call_1").unwrap() && !store.waits("a", "call_2").unwrap());
    store.end_wait("a", "call_1").unwrap();
    assert!(!store.waits("a", "call_1").unwrap() && store.waits("b", "call_1").unwrap());
}

#[test]
fn the_first_answer_counts_until_the_question_does_not_take_it() {
    let home = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(home.path());
    let answer_of = || store.waiting("a", "call_1").unwrap().unwrap().answer;
    store.begin_wait(&waiting("a", "call_1")).unwrap();
    assert!(store.answer("a", "call_1", "perhaps").unwrap());
    assert!(!store.answer("a", "call_1", "no").unwrap());
    assert_eq!(answer_of().as_deref(), Some("perhaps"));
    store.reject("a", "call_1").unwrap();
    assert!(store.answer("a", "call_1", "no").unwrap());
    assert_eq!(answer_of().as_deref(), Some("no"));
    store.end_wait("a", "call_1").unwrap();
    assert!(!store.answer("a", "call_1", "yes").unwrap());
}

#[test]
fn the_lists_are_bounded_and_lose_their_oldest_entries() {
    let home = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(home.path());
    store.change(|kept| kept.always = (0..MAX_GRANTS).map(grant).collect()).unwrap();
    store.grant(&grant(MAX_GRANTS)).unwrap();
    let (always, _) = store.list().unwrap();
    assert_eq!((always.len(), always[0].ts), (MAX_GRANTS, 1));
}

#[test]
fn a_file_that_cannot_be_read_approves_nothing_and_is_not_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(home.path());
    let path = home.path().join(FILE);
    for (text, expected) in [("{", "is damaged"), ("{\"version\": 9}", "has format 9")] {
        fs::write(&path, text).unwrap();
        let message = store.covers("agent:main:cli", &digest(1)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(store.grant(&grant(1)).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert!(store.clear().is_err(), "the file of a later version stays");
    fs::write(&path, "{").unwrap();
    store.clear().unwrap();
    assert_eq!(store.list().unwrap(), (vec![], vec![]));
}

#[test]
fn answers_of_the_first_format_are_listed_as_old_and_hold_for_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(home.path());
    let old = serde_json::json!({"version": 1, "always": [{
        "digest": grant(1).digest, "audience": "agent:main:cli", "tool": "bash", "call": "cargo test",
        "covers": "exactly this command in /w", "ts": 1,
    }]});
    fs::write(home.path().join(FILE), old.to_string()).unwrap();
    let listed = |store: &ApprovalStore| -> Vec<bool> {
        store.list().unwrap().0.iter().map(Grant::is_old).collect()
    };
    assert_eq!(listed(&store), [true]);
    assert!(!store.covers("agent:main:cli", &digest(1)).unwrap());
    // Another question is answered, and then the old one once more.
    store.grant(&Grant { call: "ls".to_owned(), ..grant(2) }).unwrap();
    assert_eq!(listed(&store), [true, false]);
    assert!(!store.covers("agent:main:cli", &digest(1)).unwrap());
    store.grant(&grant(3)).unwrap();
    assert_eq!(listed(&store), [false, false]);
    assert!(store.covers("agent:main:cli", &digest(3)).unwrap());
    assert_eq!(store.revoke(&grant(3).digest).unwrap().len(), 1);
}

#[test]
fn approvals_in_memory_hold_for_all_copies_and_end_with_them() {
    let store = ApprovalStore::in_memory();
    let copy = store.clone();
    store.grant(&grant(1)).unwrap();
    store.grant(&grant(2)).unwrap();
    copy.begin_wait(&waiting("a", "call_1")).unwrap();
    assert!(copy.covers("agent:main:cli", &digest(1)).unwrap());
    assert!(!copy.covers("agent:other:cli", &digest(1)).unwrap());
    assert!(store.waits("a", "call_1").unwrap());
    assert_eq!(store.revoke(&"0".repeat(63)).unwrap(), [grant(1), grant(2)]);
    store.grant(&grant(3)).unwrap();
    assert_eq!(copy.list().unwrap(), (vec![grant(3)], vec![waiting("a", "call_1")]));
    copy.end_wait("a", "call_1").unwrap();
    assert_eq!(store.clear().unwrap(), 1);
    assert_eq!(copy.list().unwrap(), (vec![], vec![]));
    assert_eq!(ApprovalStore::in_memory().list().unwrap(), (vec![], vec![]));
}
