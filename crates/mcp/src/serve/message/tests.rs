use super::*;

#[test]
fn a_message_is_a_request_a_notification_or_a_response() {
    let parse = |text: &str| Message::parse(text.as_bytes());
    let request = Request { id: json!(7), method: "ping".to_owned(), params: Map::new() };
    let text = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#;
    assert_eq!(parse(text), Ok(Message::Request(request)));
    let told = Message::Notification { method: "a".to_owned(), params: Map::new() };
    assert_eq!(parse(r#"{"jsonrpc":"2.0","method":"a"}"#), Ok(told));
    for (text, outcome) in [
        (r#"{"jsonrpc":"2.0","id":"x","result":{"a":1}}"#, Ok(json!({"a": 1}))),
        (r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}"#, Err("no".to_owned())),
        (r#"{"jsonrpc":"2.0","id":"x","error":{}}"#, Err("an error without a message".to_owned())),
    ] {
        assert_eq!(parse(text), Ok(Message::Response { id: json!("x"), outcome }));
    }
}

#[test]
fn what_is_no_message_is_refused_under_its_id() {
    for (text, id, code) in [
        ("{", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}"#, json!("a"), -32602),
    ] {
        let refused = Message::parse(text.as_bytes()).unwrap_err();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&id, &json!(code)), "{text}");
    }
}
