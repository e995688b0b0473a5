use serde_json::{Value, json};

use super::*;

fn checked(method: &str, params: &Value, headers: &[(&'static str, &str)]) -> bool {
    let params = params.as_object().cloned().unwrap_or_default();
    let request = Request { id: json!(1), method: method.to_owned(), params };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    check(&request, &map).is_ok()
}

#[test]
fn each_header_says_what_the_message_says() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let call = |name: &str| json!({"_meta": meta, "name": name});
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    for (name, given, expected) in [
        ("ask", &[version, method, ("mcp-name", "ask")][..], true),
        ("\u{e4}", &[version, method, ("mcp-name", "=?base64?w6Q=?=")], true),
        ("\u{e4}", &[version, method, ("mcp-name", "=?base64?w6Q?=")], false),
        ("ask", &[version, method, ("mcp-name", "send")], false),
        ("ask", &[version, method], false),
        ("ask", &[version, ("mcp-method", "tools/list"), ("mcp-name", "ask")], false),
        ("ask", &[method, ("mcp-name", "ask")], false),
        ("ask", &[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "ask")], false),
        ("ask", &[version, version, method, ("mcp-name", "ask")], false),
    ] {
        assert_eq!(checked("tools/call", &call(name), given), expected, "{name} {given:?}");
    }
    let task = json!({"_meta": meta, "taskId": "1.m"});
    let get = [version, ("mcp-method", "tasks/get"), ("mcp-name", "1.m")];
    assert!(checked("tasks/get", &task, &get));
    assert!(!checked("tasks/get", &task, &get[..2]));
    // What a message lacks is another mistake.
    assert!(checked("tools/call", &json!({"name": "ask"}), &[]));
}
