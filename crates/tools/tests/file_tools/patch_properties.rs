use proptest::prelude::*;
use serde_json::json;
use similar::TextDiff;

use crate::harness::Workspace;

/// A text of few different lines, so that places are easily mistaken, with any endings.
fn text() -> impl Strategy<Value = String> {
    let line =
        (r"[ab]{0,2}|-- a|\+\+ b|[ \t]{1,2}c|ü€", prop_oneof![4 => Just("\n"), 1 => Just("\r\n")]);
    (proptest::collection::vec(line, 0..14), any::<bool>()).prop_map(|(lines, ends)| {
        let mut text: String = lines.into_iter().map(|(line, ending)| line + ending).collect();
        if !ends {
            // Not only `\n`: `similar` takes a `\r` alone for the end of a line, git and diffy do not.
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    })
}

/// Different lines only, so that every block of them has one place.
fn distinct_lines() -> impl Strategy<Value = Vec<String>> {
    (4_usize..30)
        .prop_map(|count| (0..count).map(|line| format!("line number {line} of {count}")).collect())
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

fn apply(old: &str, patch: &str) -> Result<String, String> {
    let workspace = Workspace::in_memory();
    workspace.put("f", old);
    workspace.call("apply_patch", json!({"patch": patch})).map_err(|error| error.to_string())?;
    Ok(workspace.text("f"))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn well_formed_diffs_give_their_target(old in text(), new in text(), context in 1_usize..4) {
        prop_assume!(!old.is_empty() && !new.is_empty() && old != new);
        let by_similar = TextDiff::from_lines(&old, &new)
            .unified_diff()
            .context_radius(context)
            .header("a/f", "b/f")
            .to_string();
        let mut options = diffy::DiffOptions::new();
        options.set_context_len(context).set_original_filename("a/f").set_modified_filename("b/f");
        let patch = options.create_patch(&old, &new);
        let by_diffy = patch.to_string();
        prop_assert_eq!(&diffy::apply(&old, &patch).unwrap(), &new);
        for diff in [by_similar, by_diffy] {
            prop_assert_eq!(apply(&old, &diff), Ok(new.clone()), "{}", diff);
        }
    }

    #[test]
    fn files_are_created_and_deleted_by_diffs(content in text()) {
        prop_assume!(!content.is_empty());
        let workspace = Workspace::in_memory();
        let diff = |old: &str, new: &str, names: (&str, &str)| {
            TextDiff::from_lines(old, new).unified_diff().header(names.0, names.1).to_string()
        };
        let create = diff("", &content, ("/dev/null", "b/f"));
        workspace.ok("apply_patch", json!({"patch": create}));
        prop_assert_eq!(&workspace.text("f"), &content);
        workspace.ok("apply_patch", json!({"patch": diff(&content, "", ("a/f", "/dev/null"))}));
        prop_assert_eq!(workspace.everything(), vec![]);
    }

    /// Counts that are wrong and lines that moved do not matter where the place is plain.
    #[test]
    fn wrong_headers_are_corrected(
        lines in distinct_lines(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 1..4),
        (counts, shift) in ((0_usize..9, 0_usize..9), 0_usize..200),
        above in 0_usize..5,
    ) {
        let mut changed = lines.clone();
        for (at, kind) in changes {
            let at = at.index(changed.len());
            match kind {
                0 => changed[at].push_str(" changed"),
                1 => changed.insert(at, format!("new {at}")),
                _ if changed.len() > 1 => { changed.remove(at); }
                _ => {}
            }
        }
        let (old, new) = (joined(&lines), joined(&changed));
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new).unified_diff().header("a/f", "b/f").to_string();
        let header = format!("@@ -{shift},{} +{shift},{} @@", counts.0, counts.1);
        let wrong: String = diff
            .lines()
            .map(|line| if line.starts_with("@@") { format!("{header}\n") } else { format!("{line}\n") })
            .collect();
        let top: String = (0..above).map(|line| format!("above {line}\n")).collect();
        prop_assert_eq!(apply(&format!("{top}{old}"), &wrong), Ok(format!("{top}{new}")), "{}", wrong);
        let bare: String = diff
            .lines()
            .map(|line| if line.starts_with("@@") { "@@\n".to_owned() } else { format!("{line}\n") })
            .collect();
        prop_assert_eq!(apply(&old, &bare), Ok(new), "{}", bare);
    }

    /// A patch with LF for a file with CRLF, and the reverse.
    #[test]
    fn endings_follow_the_file(lines in distinct_lines(), at in any::<prop::sample::Index>()) {
        let mut changed = lines.clone();
        changed[at.index(lines.len())] = "changed\nand more".to_owned();
        let (old, new) = (joined(&lines), joined(&changed));
        let diff = TextDiff::from_lines(&old, &new).unified_diff().header("a/f", "b/f").to_string();
        let crlf = |text: &str| text.replace('\n', "\r\n");
        prop_assert_eq!(apply(&crlf(&old), &diff), Ok(crlf(&new)));
        prop_assert_eq!(apply(&old, &crlf(&diff)), Ok(new));
    }

    /// Bytes that are no UTF-8, in lines that the patch does not touch, stay; a change in another file that does not
    /// fit keeps all of them.
    #[test]
    fn bytes_outside_hunks_stay(
        before in proptest::collection::vec(1..=0xFF_u8, 0..40),
        after in proptest::collection::vec(1..=0xFF_u8, 0..40),
    ) {
        // A byte order mark would make it another encoding.
        let before = [b"#", &before[..], b"\n"].concat();
        let after = [b"\n", &after[..]].concat();
        let workspace = Workspace::in_memory();
        workspace.put("f", [&before, &b"<first>\n<second>"[..], &after].concat());
        workspace.put("g", "other\n");
        let patch = "--- a/f\n+++ b/f\n@@\n <first>\n-<second>\n+<third>\n";
        let bad = format!("{patch}--- a/g\n+++ b/g\n@@\n-missing\n+x\n");
        workspace.refused("apply_patch", json!({"patch": bad}));
        workspace.ok("apply_patch", json!({"patch": patch}));
        prop_assert_eq!(workspace.bytes("f"), [&before, &b"<first>\n<third>"[..], &after].concat());
    }

    /// Pieces of patches in any order: an answer or an error, never a panic, and an error changes nothing.
    #[test]
    fn garbage_does_no_harm(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("--- a/f\n"), Just("+++ b/f\n"), Just("@@ -1,2 +1,2 @@\n"), Just("@@\n"), Just("@@ -0,0 +1 @@\n"),
                Just("@@ -99999999999999999999 +1 @@\n"), Just("@@ -18446744073709551615,18446744073709551615 +1 @@\n"),
                Just(" a\n"), Just("-a\n"), Just("+b\n"), Just("\n"), Just("\\ No newline at end of file\n"),
                Just("diff --git a/f b/g\n"), Just("diff --git \"a/\n"), Just("rename from f\n"), Just("rename to g\n"),
                Just("new file mode 100755\n"), Just("deleted file mode 100644\n"), Just("--- /dev/null\n"),
                Just("+++ /dev/null\n"), Just("*** Begin Patch\n"), Just("*** Update File: f\n"), Just("*** Add File: h\n"),
                Just("*** Delete File: f\n"), Just("*** Move to: i\n"), Just("*** End of File\n"), Just("*** End Patch\n"),
                Just("```\n"), Just("prose\r\n"), Just("@@ a @@\n"), Just("copy from f\n"), Just("copy to k\n"),
            ],
            0..14,
        ),
        noise in "\\PC{0,20}",
    ) {
        let patch = pieces.concat() + &noise;
        let workspace = Workspace::in_memory();
        workspace.put("f", "a\na\n\nb");
        let before = workspace.everything();
        if workspace.call("apply_patch", json!({"patch": patch})).is_err() {
            prop_assert_eq!(workspace.everything(), before);
        }
    }
}
