use std::sync::Mutex;

use myclaw_engine::{ScopeKind, ShownFact, TurnId};
use serde_json::json;

use super::*;
use crate::permissions::tests::calls::prepared;
use crate::workspace::tests::session;

fn grant(digest: &str, audience: &str, call: &str, format: u32) -> Grant {
    Grant {
        digest: digest.to_owned(),
        command_id: None,
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
    store.grant(&grant("old", "me", "ls", GRANT_FORMAT - 1)).unwrap();
    store.grant(&grant("other", "me", "pwd", GRANT_FORMAT - 1)).unwrap();
    assert!(!covers("me", "old"));
    store.grant(&grant("new", "me", "ls", GRANT_FORMAT)).unwrap();
    assert_eq!(digests(), ["other", "new"]);
    assert!(covers("me", "new") && !covers("you", "new") && !covers("me", "other"));
    store.grant(&grant("new", "you", "ls", GRANT_FORMAT)).unwrap();
    assert_eq!(digests(), ["other", "new", "new"]);
}

/// Gives the answers one after another.
struct Answers(Mutex<Vec<Approval>>);

impl Approver for Answers {
    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        let answer = self.0.lock().unwrap().remove(0);
        Box::pin(async move { answer })
    }
}

fn no() -> Approval {
    Approval::Denied { reason: "no".to_owned() }
}

/// The approver of a session whose person gives these answers.
fn approver(answers: Vec<Approval>) -> (myclaw_testkit::TempHome, SessionApprover) {
    let (directory, session) = session(json!({}), "main");
    let approver = SessionApprover {
        front_end: Some(Arc::new(Answers(Mutex::new(answers)))),
        permissions: Arc::new(Permissions::new(&session, None, &[]).unwrap()),
        store: ApprovalStore::in_state_dir(session.home.paths.state_dir()),
        audience: "me".to_owned(),
        limit: Duration::from_secs(600),
        context: ToolContext {
            working_directory: directory.path().to_owned(),
            artifact_directory: "/nowhere".into(),
            max_result_chars: 1000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        },
        session,
    };
    (directory, approver)
}

/// A question about a command that offers "always" with this id, which holds for its files as they are.
fn request(id: &str, command_id: Option<&str>, is_changed: bool) -> ApprovalRequest {
    let key = Arc::new(SessionKey::parse("agent:main:main").unwrap());
    let call = prepared("exec", &json!({"command": "./t.sh"}));
    let mut request = ApprovalRequest::new(key, call, "policy: ask");
    request.always = vec![AlwaysScope::new(ScopeKind::Call, "this", id)];
    request.command_id = command_id.map(str::to_owned);
    request.changes.extend(is_changed.then(|| ShownFact::text("changed: t.sh", "x")));
    request
}

/// What an answer to one question leaves of earlier ones.
#[tokio::test]
async fn a_no_withdraws_what_was_given_for_the_same_command_or_before_a_change() {
    // The grants: the digest, the command, and the sessions.
    let grants = [
        ("file", None, "me"),
        ("script-1", Some("script"), "me"),
        ("script-2", Some("script"), "me"),
        ("other", Some("other"), "me"),
        ("script-1", Some("script"), "you"),
        ("file", None, "you"),
    ];
    let kept = |left_out: &[usize]| -> Vec<(String, String)> {
        let rest = grants.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
        rest.map(|(_, (digest, _, audience))| ((*digest).to_owned(), (*audience).to_owned()))
            .collect()
    };
    let mut gap = request("x", Some("script"), false);
    gap.always.clear();
    for (asked, answer, left_out) in [
        // The script has changed since the answers, while the question waited or before it.
        (request("script-3", Some("script"), true), no(), vec![1, 2]),
        (request("script-3", Some("script"), false), no(), vec![1, 2]),
        // The question offers no "always" now.
        (gap, no(), vec![1, 2]),
        // A file: only a change while the question waited means what was approved.
        (request("file", None, true), no(), vec![0]),
        (request("file", None, false), no(), vec![]),
        (request("none", None, true), no(), vec![]),
        // Other answers withdraw nothing.
        (request("script-3", Some("script"), true), Approval::Once, vec![]),
        (request("file", None, true), Approval::Once, vec![]),
    ] {
        let (_directory, approver) = approver(vec![answer.clone()]);
        for (digest, command_id, audience) in grants {
            let command_id = command_id.map(str::to_owned);
            let call = format!("{digest} {audience}");
            approver
                .store
                .grant(&Grant { command_id, ..grant(digest, audience, &call, GRANT_FORMAT) })
                .unwrap();
        }
        assert_eq!(approver.decide(&asked).await, answer);
        let left: Vec<(String, String)> = approver
            .store
            .list()
            .unwrap()
            .0
            .into_iter()
            .map(|grant| (grant.digest, grant.audience))
            .collect();
        assert_eq!(left, kept(&left_out), "{asked:?}");
    }
}

#[tokio::test]
async fn an_answer_always_notes_the_command_and_holds_until_a_no() {
    let asked = request("script-1", Some("script"), false);
    let always = Approval::Always(asked.always[0].clone());
    let (_directory, approver) = approver(vec![always, no()]);
    approver.decide(&asked).await;
    assert!(approver.has_approved(&asked).await);
    // Another content of the script is not covered, and the refusal is for both.
    let changed = request("script-2", Some("script"), false);
    assert!(!approver.has_approved(&changed).await);
    approver.decide(&changed).await;
    assert!(!approver.has_approved(&asked).await);
}
