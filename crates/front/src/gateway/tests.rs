use serde_json::json;

use super::*;
use crate::exit::Exit;

#[test]
fn a_report_has_the_exit_code_that_it_would_have_here() {
    let of = |class: &str| {
        let outcome = json!({"state": "reported", "class": class, "message": "why"});
        let error = failure_of(&outcome).expect("a failure");
        assert_eq!(error.message, "why");
        (error.exit, error.class)
    };
    assert_eq!(of("server_error"), (Exit::Model, "server_error"));
    assert_eq!(of("aborted"), (Exit::Aborted, "aborted"));
    assert_eq!(of("queue_full"), (Exit::Failure, "queue_full"));
    assert_eq!(of("of a later version"), (Exit::Failure, "reported"));
    assert!(failure_of(&json!({"state": "answered", "reply": "x"})).is_none());
    assert!(failure_of(&json!({"state": "open"})).is_none());
}

#[test]
fn options_that_a_gateway_decides_are_refused() {
    let args = SessionArgs { model: Some("a/b".to_owned()), ..SessionArgs::default() };
    let error = session_of(&args).expect_err("a refusal");
    assert!(error.message.starts_with("--model cannot be used"), "{}", error.message);
    let args = SessionArgs { agent: Some("work".to_owned()), ..SessionArgs::default() };
    assert!(session_of(&args).expect("a key").starts_with("agent:work:"));
    assert_eq!(session_of(&SessionArgs::default()).expect("a name"), "main");
}
