use proptest::prelude::*;
use serde_json::json;

use crate::harness::Workspace;

/// One line of a file: bytes that may be no UTF-8, and how it ends.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let content = prop_oneof![
        4 => "[a-c ]{0,6}".prop_map(String::into_bytes),
        1 => "[äöß€🎉]{1,3}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(prop_oneof![Just(b'x'), 0x80..=0xFF_u8], 1..4),
    ];
    let ending = prop_oneof![Just(&b"\n"[..]), Just(&b"\r\n"[..])];
    (content, ending).prop_map(|(content, ending)| [&content, ending].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// A marker somewhere in any bytes: everything around it stays, whatever the edit.
    #[test]
    fn bytes_outside_the_edit_never_change(
        before in proptest::collection::vec(line(), 0..8),
        after in proptest::collection::vec(line(), 0..8),
        ends in any::<bool>(),
        new in "[a-z\n]{0,12}",
    ) {
        let (before, mut after) = (before.concat(), after.concat());
        if !ends && after.last() == Some(&b'\n') {
            after.pop();
        }
        let workspace = Workspace::in_memory();
        workspace.put("f", [&before, &b"<<marker>>"[..], &after].concat());
        workspace.ok("edit", json!({"path": "f", "oldText": "<<marker>>", "newText": new}));
        let bytes = workspace.bytes("f");
        prop_assert!(bytes.starts_with(&before));
        prop_assert!(bytes.ends_with(&after));
        let middle = &bytes[before.len()..bytes.len() - after.len()];
        prop_assert_eq!(String::from_utf8_lossy(middle).replace("\r\n", "\n"), new);
    }

    /// Lines found with tolerance: lines outside the block stay, and so do lines of it that the edit keeps.
    #[test]
    fn tolerance_changes_no_other_line(
        lines in proptest::collection::vec(("[a-d]{3,6}", "[ \t]{0,3}", prop_oneof![Just("\n"), Just("\r\n")]), 3..12),
        at in any::<prop::sample::Index>(),
        ends in any::<bool>(),
    ) {
        let mut whole: Vec<String> = lines.iter().map(|(text, space, ending)| format!("{text}{space}{ending}")).collect();
        if !ends {
            let last = whole.last_mut().unwrap();
            *last = last.trim_end_matches(['\r', '\n']).to_owned();
        }
        let at = at.index(lines.len() - 1);
        let (first, second) = (&lines[at].0, &lines[at + 1].0);
        let workspace = Workspace::in_memory();
        workspace.put("f", whole.concat());
        let old = format!("{first}\n{second}");
        let arguments = json!({"path": "f", "oldText": old, "newText": format!("{first}\nNEW")});
        match workspace.call("edit", arguments) {
            Ok(_) => {
                let text = workspace.text("f");
                let start: String = whole[..=at].concat();
                let end: String = whole[at + 2..].concat();
                prop_assert!(text.starts_with(&start), "{text:?}");
                prop_assert!(text.ends_with(&end), "{text:?}");
                prop_assert!(text[start.len()..text.len() - end.len()].starts_with("NEW"), "{text:?}");
            }
            // The same two lines elsewhere.
            Err(error) => prop_assert!(error.to_string().contains("times"), "{error}"),
        }
    }
}
