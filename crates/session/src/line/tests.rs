//! Tests of reading single lines.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn message(line: &str) -> TranscriptMessage {
    match decode(line.as_bytes(), 7) {
        Line::Entry(Entry::Message(message)) => message,
        other => panic!("{line} gave {other:?}"),
    }
}

#[test]
fn a_whole_message_is_read() {
    let line = r#"{"id":"a1","role":"tool","content":"ok","ts":12,"toolCallId":"c1","meta":{"isError":false}}"#;
    assert_eq!(
        message(line),
        TranscriptMessage {
            id: EntryId::from_text("a1"),
            role: Role::Tool,
            content: "ok".into(),
            ts: 12,
            tool_call_id: Some("c1".into()),
            meta: json!({"isError": false}).as_object().cloned().map(Meta::from),
        }
    );
    assert_eq!(message(line).meta.as_ref().map(Meta::as_str), Some(r#"{"isError":false}"#));
}

#[test]
fn each_role_is_read_as_it_is_written() {
    for role in [Role::User, Role::Assistant, Role::System, Role::Tool] {
        // With a number as the id of a call, the line is read field by field.
        for unusual in ["", r#","toolCallId":3"#] {
            let line = format!(r#"{{"role":"{}","content":"hi"{unusual}}}"#, role.as_str());
            assert_eq!(message(&line).role, role, "{line}");
        }
    }
}

#[test]
fn rows_of_other_writers_are_read() {
    let bare = message(r#"{"role":"user","content":"hi"}"#);
    assert_eq!(
        (bare.id, bare.ts, bare.tool_call_id, bare.meta),
        (EntryId::from_place(7), 0, None, None)
    );
    let odd = message(
        r#"{"type":"message","role":"user","content":"hi","ts":12.9,"toolCallId":3,"meta":[],"id":5}"#,
    );
    assert_eq!(
        (odd.id, odd.ts, odd.tool_call_id, odd.meta),
        (EntryId::from_place(7), 12, None, None)
    );
    assert_eq!(message(r#"{"role":"user","content":"hi","ts":-3}"#).ts, 0);
    for unnamed in [
        r#"{"id":"","role":"user","content":"hi"}"#,
        r#"{"id":"","role":"user","content":"hi","ts":1.5}"#,
    ] {
        assert_eq!(message(unnamed).id, EntryId::from_place(7), "several rows would share it");
    }
    assert_eq!(message("\u{feff} {\"role\":\"user\",\"content\":\"hi\"}\r\n").content, "hi");
}

#[test]
fn a_line_that_is_not_an_entry_is_recognised() {
    assert_eq!(decode(b"", 0), Line::Blank);
    assert_eq!(decode(b" \t\r\n", 0), Line::Blank);
    for line in [
        "nonsense",
        "{",
        "[]",
        "5",
        "null",
        r#"{"role":"user"}"#,
        r#"{"content":"x"}"#,
        r#"{"role":1,"content":"x"}"#,
        r#"{"role":"user","content":["x"]}"#,
        r#"{"role":"user","content":"x"} trailing"#,
        r#"{"type":"session","createdAt":1}"#,
        r#"{"type":"compaction","summary":"x"}"#,
        "{\"role\":\"user\",\"content\":\"\0\"}",
    ] {
        assert_eq!(decode(line.as_bytes(), 0), Line::Corrupt, "{line}");
    }
    assert_eq!(decode(b"{\"role\":\"user\",\"content\":\"\xff\"}", 0), Line::Corrupt);
}

#[test]
fn types_and_roles_of_a_later_version_are_kept() {
    for value in
        [json!({"type": "label", "id": "x", "n": 1}), json!({"role": "critic", "content": "hm"})]
    {
        assert_eq!(decode(value.to_string().as_bytes(), 0), Line::Entry(Entry::Unknown(value)));
    }
}

#[test]
fn headers_with_and_without_a_version_are_read() {
    let header = |line: &str| match decode(line.as_bytes(), 0) {
        Line::Header(header) => (header.version, header.session_key, header.created_at),
        other => panic!("{line} gave {other:?}"),
    };
    assert_eq!(header(r#"{"type":"session","sessionKey":"k","createdAt":5}"#), (0, "k".into(), 5));
    assert_eq!(header(r#"{"type":"session","version":1,"sessionKey":"k"}"#), (1, "k".into(), 0));
    assert_eq!(
        header(r#"{"type":"session","version":"x","sessionKey":"k"}"#),
        (u32::MAX, "k".into(), 0)
    );
}

#[test]
fn half_a_surrogate_pair_becomes_one_character() {
    let cut = message(
        r#"{"role":"tool","content":"a\ud83d","meta":{"x":"\uDE00 \ud83d\ude00 \\ud83d"}}"#,
    );
    assert_eq!(cut.content, "a\u{fffd}");
    assert_eq!(cut.meta.unwrap().to_object()["x"], "\u{fffd} 😀 \\ud83d");
    assert_eq!(message(r#"{"role":"tool","content":"\ud83d\ud83d\ude00"}"#).content, "\u{fffd}😀");
}

#[test]
fn entries_survive_writing_and_reading() {
    let entries = [
        Entry::Message(TranscriptMessage {
            tool_call_id: Some("call".into()),
            meta: json!({"contentBlocks": [{"type": "text", "text": "a\nb"}], "n": 1.5})
                .as_object()
                .cloned()
                .map(Meta::from),
            ..TranscriptMessage::new(Role::Assistant, "line\nbreak \u{2028} \u{1F600} \u{0}", 99)
        }),
        Entry::Compaction(CompactionEntry {
            id: EntryId::generate(),
            ts: 3,
            summary: "s".into(),
            first_kept_id: EntryId::generate(),
            tokens_before: 4,
            old_count: 5,
            new_count: 6,
        }),
        Entry::Unknown(json!({"type": "later", "x": [1, 2]})),
    ];
    for entry in entries {
        let line = serde_json::to_vec(&entry).unwrap();
        assert!(!line.contains(&b'\n'));
        assert_eq!(decode(&line, 0), Line::Entry(entry));
    }
}

#[test]
fn lines_are_written_in_the_documented_shape() {
    let id = EntryId::from_text("i");
    let message = TranscriptMessage { id, ..TranscriptMessage::new(Role::User, "hi", 1) };
    assert_eq!(
        serde_json::to_string(&Entry::from(message)).unwrap(),
        r#"{"id":"i","role":"user","content":"hi","ts":1}"#
    );
    let compaction = CompactionEntry {
        id,
        ts: 1,
        summary: "s".into(),
        first_kept_id: EntryId::from_text("k"),
        tokens_before: 2,
        old_count: 3,
        new_count: 4,
    };
    assert_eq!(
        serde_json::to_string(&Entry::from(compaction)).unwrap(),
        r#"{"type":"compaction","id":"i","ts":1,"summary":"s","firstKeptId":"k","tokensBefore":2,"oldCount":3,"newCount":4}"#
    );
    let header = SessionHeader::new("k", 2);
    assert_eq!(
        serde_json::to_string(&header).unwrap(),
        r#"{"type":"session","version":1,"sessionKey":"k","createdAt":2}"#
    );
}

proptest! {
    #[test]
    fn text_in_utf_16_escapes_is_read_as_far_as_it_is_text(
        units in prop::collection::vec(prop_oneof![0xd7fe_u16..0xe002, 0x20_u16..0x7f], 0..12)
    ) {
        let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let found = message(&format!("{{\"role\":\"user\",\"content\":\"\\\\{escaped}\"}}"));
        prop_assert_eq!(found.content, format!("\\{}", String::from_utf16_lossy(&units)));
    }

    #[test]
    fn any_bytes_are_read_as_something(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode(&bytes, 0);
        replace_lone_surrogates(&bytes);
    }
}
