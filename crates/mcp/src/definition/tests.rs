use serde_json::json;

use super::*;

fn named(name: &str) -> ToolDefinition {
    ToolDefinition::parse(json!({"name": name, "inputSchema": {"type": "object"}})).unwrap()
}

#[test]
fn names_of_tools_are_taken_by_every_provider_and_differ() {
    let plain = named("read_file").offered_name("files");
    assert_eq!(plain, "files__read_file");
    let odd = [
        "read.file",
        "read file",
        "read/file",
        "lire_fichié",
        "读",
        &"x".repeat(200),
        "a\u{202e}b",
    ];
    let mut offered: Vec<String> =
        odd.iter().map(|name| named(name).offered_name("files")).collect();
    for name in &offered {
        assert!(name.len() <= 64, "{name}");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!(name.starts_with("files__") && name.bytes().all(is_plain), "{name}");
    }
    offered.push(named("read_file").offered_name("files"));
    offered.sort();
    offered.dedup();
    assert_eq!(offered.len(), odd.len() + 1);
}

#[test]
fn a_digest_follows_every_word_and_no_order_of_keys() {
    let of = |entry: Value| ToolDefinition::parse(entry).unwrap().digest();
    let first = of(
        json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "e"}}}}),
    );
    let same = of(
        json!({"inputSchema": {"properties": {"x": {"description": "e", "type": "string"}}, "type": "object"}, "description": "d", "name": "a"}),
    );
    assert_eq!(first, same);
    for changed in [
        json!({"name": "b", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "e"}}}}),
        json!({"name": "a", "description": "D", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "e"}}}}),
        json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "f"}}}}),
        json!({"name": "a", "description": "d", "title": "t", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "e"}}}}),
        json!({"name": "a", "description": "d", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": "e"}}}}),
    ] {
        assert_ne!(of(changed), first);
    }
}

#[test]
fn entries_that_are_no_tools_are_refused_with_a_reason() {
    for (entry, reason) in [
        (json!({"inputSchema": {}}), "missing field `name`"),
        (json!({"name": " ", "inputSchema": {}}), "has no name"),
        (json!({"name": "a", "inputSchema": "x"}), "no object"),
        (json!({"name": "a"}), "inputSchema"),
        (json!("a"), "without a name"),
        (json!({"name": "a", "inputSchema": {}, "description": "d".repeat(70_000)}), "bytes"),
    ] {
        let error = ToolDefinition::parse(entry.clone()).unwrap_err();
        assert!(error.contains(reason), "{entry}: {error}");
    }
}

#[test]
fn a_tool_reads_only_if_its_server_says_so_plainly() {
    for (hints, expected) in [
        (json!(null), false),
        (json!({"readOnlyHint": true}), true),
        (json!({"readOnlyHint": false}), false),
        (json!({"readOnlyHint": "true"}), false),
        (json!({"destructiveHint": false}), false),
    ] {
        let entry = json!({"name": "a", "inputSchema": {"type": "object"}, "annotations": hints});
        assert_eq!(ToolDefinition::parse(entry).unwrap().is_read_only(), expected, "{hints}");
    }
}
