use agent_client_protocol_schema::v1::{CancelNotification, NewSessionRequest};

use super::*;

fn error_of(line: &str) -> (RequestId, i32, String) {
    let bad = Message::parse(line).unwrap_err();
    (bad.id, bad.error.code.into(), bad.error.message)
}

#[test]
fn requests_notifications_and_responses_are_reported_apart() {
    let call = |method: &str| Call { method: method.to_owned(), params: None };
    let parsed = |line| Message::parse(line).unwrap();
    assert_eq!(
        parsed(r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#),
        Message::Request(RequestId::Number(7), call("a"))
    );
    assert_eq!(
        parsed(r#"{"jsonrpc":"2.0","id":"x","method":"a"}"#),
        Message::Request(RequestId::Str("x".to_owned()), call("a"))
    );
    assert_eq!(
        parsed(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#),
        Message::Request(RequestId::Null, call("a"))
    );
    assert_eq!(parsed(r#"{"jsonrpc":"2.0","method":"a"}"#), Message::Notification(call("a")));
    assert_eq!(
        parsed(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        Message::Response(RequestId::Number(1), Ok(Value::Null))
    );
    assert_eq!(
        parsed(r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#),
        Message::Response(RequestId::Number(1), Err("no".to_owned()))
    );
}

#[test]
fn what_is_no_message_is_answered_as_the_standard_says() {
    let (id, code, message) = error_of("not json");
    assert_eq!((id, code), (RequestId::Null, -32700));
    assert!(message.contains("not JSON"), "{message}");
    assert_eq!(error_of("[]").1, -32600);
    assert!(error_of("[]").2.contains("batches"));
    assert_eq!(error_of("17").1, -32600);
    assert_eq!(
        (error_of(r#"{"id":3,"method":"a"}"#).0, error_of(r#"{"id":3,"method":"a"}"#).1),
        (RequestId::Number(3), -32600)
    );
    assert_eq!(error_of(r#"{"jsonrpc":"2.0","id":3}"#).0, RequestId::Number(3));
    assert_eq!(error_of(r#"{"jsonrpc":"2.0","id":3,"method":4}"#).0, RequestId::Number(3));
    for id in ["1.5", "true", "[1]", "99999999999999999999"] {
        let (known, code, message) =
            error_of(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#));
        assert_eq!((known, code), (RequestId::Null, -32600), "{id}");
        assert!(message.contains("`id`"), "{message}");
    }
}

#[test]
fn params_that_do_not_fit_are_refused_with_the_reason() {
    let call = |params: Option<Value>| {
        Call { method: "session/new".to_owned(), params }.params::<NewSessionRequest>()
    };
    for (params, why) in [
        (None, "missing field `cwd`"),
        (Some(Value::Null), "missing field `cwd`"),
        (Some(serde_json::json!(["/", []])), "not an object"),
        (Some(serde_json::json!({"cwd": 4, "mcpServers": []})), "invalid type"),
    ] {
        let error = call(params).unwrap_err();
        assert_eq!(i32::from(error.code), -32602);
        assert!(error.message.starts_with("session/new: "), "{}", error.message);
        assert!(error.message.contains(why), "{}", error.message);
    }
    let cancel = Call {
        method: "session/cancel".to_owned(),
        params: Some(serde_json::json!({"sessionId": "a"})),
    };
    assert_eq!(cancel.params::<CancelNotification>().unwrap().session_id.0.as_ref(), "a");
}
