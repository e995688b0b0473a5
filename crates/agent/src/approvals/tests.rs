use serde_json::json;

use super::*;
use crate::workspace::tests::session;

fn grant(digest: &str, audience: &str, call: &str, format: u32) -> Grant {
    Grant {
        digest: digest.to_owned(),
        audience: audience.to_owned(),
        tool: "bash".to_owned(),
        call: call.to_owned(),
        covers: String::new(),
        ts: 1,
        format,
    }
}

#[test]
fn an_answer_holds_for_those_who_gave_it() {
    let chat = "agent:main:channel:telegram:account:default:peer:direct:42";
    for (key, expected) in [
        ("main", "agent:main:cli"),
        ("trip", "agent:main:cli"),
        (chat, chat),
        ("agent:main:channel:web:account:default:peer:direct:owner", ""),
        ("agent:main:channel:cron:account:default:peer:direct:job", ""),
    ] {
        let (_directory, session) = session(json!({}), key);
        let expected = if expected.is_empty() { key } else { expected };
        assert_eq!(audience(&session), expected);
    }
}

#[test]
fn an_old_answer_does_not_hold_and_the_new_one_replaces_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = ApprovalStore::in_state_dir(directory.path());
    let covers = |audience: &str, digest: &str| {
        store.covers(audience, &["x".to_owned(), digest.to_owned()]).unwrap()
    };
    let digests = || -> Vec<String> {
        store.list().unwrap().0.into_iter().map(|grant| grant.digest).collect()
    };
    store.grant(grant("old", "me", "ls", GRANT_FORMAT - 1)).unwrap();
    store.grant(grant("other", "me", "pwd", GRANT_FORMAT - 1)).unwrap();
    assert!(!covers("me", "old"));
    store.grant(grant("new", "me", "ls", GRANT_FORMAT)).unwrap();
    assert_eq!(digests(), ["other", "new"]);
    assert!(covers("me", "new") && !covers("you", "new") && !covers("me", "other"));
    store.grant(grant("new", "you", "ls", GRANT_FORMAT)).unwrap();
    assert_eq!(digests(), ["other", "new", "new"]);
}
