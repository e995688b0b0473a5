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
        // An accent would belong to the last character of the marker.
        let is_accent = |char: char| ('\u{300}'..'\u{2000}').contains(&char);
        let first = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
        prop_assume!(!first.is_some_and(is_accent));
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

    /// Edits of lines with typographic characters, by a model that writes plain ones: what stays keeps its bytes, and no
    /// quotation gets one quote of each kind.
    #[test]
    fn quotations_are_never_mixed(
        lines in proptest::collection::vec(proptest::collection::vec(piece(), 1..6), 1..6),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5_u8, piece()), 1..5),
        by_patch in any::<bool>(),
    ) {
        let mut changed = lines.clone();
        for (line, at, kind, (new, _)) in edits {
            // What is new is in no file: other words.
            let new = new.to_uppercase();
            let line = line.index(changed.len());
            let at = at.index(changed[line].len());
            match kind {
                0 => changed[line].insert(at, (new, Vec::new())),
                1 => changed[line][at] = (new, Vec::new()),
                2 if changed[line].len() > 1 => drop(changed[line].remove(at)),
                3 => changed.insert(line, vec![(new, Vec::new())]),
                _ if changed.len() > 1 => drop(changed.remove(line)),
                _ => {}
            }
        }
        let written = |lines: &[Vec<(String, Vec<char>)>]| -> Vec<String> {
            lines.iter().map(|line| line.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ")).collect()
        };
        let (old, new) = (written(&lines), written(&changed));
        let file: Vec<String> = lines.iter().map(|line| {
            line.iter().map(|(text, fancy)| fancied(text, fancy)).collect::<Vec<_>>().join(" ")
        }).collect();
        let workspace = Workspace::in_memory();
        workspace.put("f", format!("before “x”\n{}\nafter “y”\n", file.join("\n")));
        let done = if by_patch {
            let body = |sign: char, lines: &[String]| lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>();
            let patch = format!("--- a/f\n+++ b/f\n@@ -2,{} +2,{} @@\n{}{}", old.len(), new.len(), body('-', &old), body('+', &new));
            workspace.call("apply_patch", json!({"patch": patch}))
        } else {
            workspace.call("edit", json!({"path": "f", "oldText": old.join("\n"), "newText": new.join("\n")}))
        };
        prop_assert!(done.is_ok() || old == new || done.as_ref().is_err_and(|error| error.to_string().contains("times")), "{done:?}");
        let text = workspace.text("f");
        prop_assert!(text.starts_with("before “x”\n") && text.ends_with("\nafter “y”\n"), "{text}");
        for line in text.lines() {
            let quotes: Vec<char> = line.chars().filter(|char| "\"“”".contains(*char)).collect();
            let is_whole = quotes.chunks(2).all(|pair| matches!(pair, ['"', '"'] | ['“', '”']));
            prop_assert!(is_whole, "{line}\n{file:?}\n{new:?}");
        }
        if done.is_ok() {
            let plain = text.replace(['“', '”'], "\"").replace('’', "'").replace('…', "...").replace('–', "-").replace('\u{A0}', " ");
            prop_assert_eq!(plain, format!("before \"x\"\n{}\nafter \"y\"\n", new.join("\n")));
        }
    }
}

/// A part of a line as a model writes it, and the characters that the file has for an apostrophe, a dash and three dots,
/// none if it is plain.
fn piece() -> impl Strategy<Value = (String, Vec<char>)> {
    let text = prop_oneof![
        3 => "[a-c]{1,3}",
        3 => "\"[a-c]{1,3}( [a-c]{1,2})?[.]?\"",
        1 => "it's",
        1 => "[a-c]-[a-c]",
        1 => "[a-c]{2}[.]{3}",
    ];
    (text, any::<bool>()).prop_map(|(text, is_fancy)| {
        (text, if is_fancy { vec!['’', '–', '…'] } else { Vec::new() })
    })
}

fn fancied(text: &str, fancy: &[char]) -> String {
    let [apostrophe, dash, ellipsis] = fancy else { return text.to_owned() };
    text.replacen('"', "“", 1)
        .replacen('"', "”", 1)
        .replace('\'', &apostrophe.to_string())
        .replace('-', &dash.to_string())
        .replace("...", &ellipsis.to_string())
}
