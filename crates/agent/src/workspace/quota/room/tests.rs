use serde_json::json;

use super::*;
use crate::permissions::tests::calls::prepared;

#[test]
fn what_only_removes_or_looks_makes_room() {
    for command in [
        "rm a",
        " rm -rf 'old files/' *.log",
        "rmdir x",
        "rm a; rm b && rmdir c",
        "cd sub && rm -rf build",
        "rm -f a 2>/dev/null || true",
        "find . -name '*.o' -delete",
        "find . -type f -size +10M -print0 | xargs -0 rm -f",
        "find $TMPDIR -type f -delete",
        "rm -rf $TMPDIR/x \"$TMPDIR\"/y",
        "ls -la",
        "du -sh * | sort -h | tail -n 5",
        "ls\nrm a",
        "kill 12; pkill -f yes; wait",
    ] {
        assert!(makes_room(&prepared("bash", &json!({"command": command}))), "{command}");
    }
}

#[test]
fn what_could_add_a_file_makes_no_room() {
    for command in [
        "rmx a",
        "rm a; dd of=b",
        "rm a > b",
        "ls >> b",
        "rm $(touch b)",
        "rm `touch b`",
        "rm a && touch b",
        "rm a | tee b",
        "rm a\ntouch b",
        "touch rm a",
        "$X rm a",
        "r* a",
        "X=1 touch a",
        "find . -exec cp a b ;",
        "find . -name 'a;rm ' -exec cp a b ;",
        "find . -execdir cp a b ;",
        "find . -ok cp a b ;",
        "find . -fprint b",
        "find . -fprintf b x",
        "find . -fls b",
        "find . *",
        "find . $X",
        "sort -o b a",
        "sort -T . a",
        "sort --output=b",
        "ls | xargs cp -t b",
        "ls | xargs -I rm cp a b",
        "ls | xargs $X",
        "yes > a & rm b",
        "rm a & yes > b",
        "(yes > b)",
        "rm() { yes > b; }; rm",
    ] {
        assert!(!makes_room(&prepared("bash", &json!({"command": command}))), "{command}");
    }
}

#[test]
fn calls_about_jobs_and_patches_that_only_delete_are_taken() {
    // The tool `process` runs no command of its own.
    let mut call = prepared("bash", &json!({"command": "x"}));
    assert!(may_add_files(&call));
    call.subject.effects.clear();
    assert!(!may_add_files(&call));
    call.declaration.place = WorkPlace::Helper;
    assert!(may_add_files(&call));
    let patch = |body: &str| {
        let patch = format!("*** Begin Patch\n{body}*** End Patch");
        prepared("apply_patch", &json!({"patch": patch}))
    };
    assert!(makes_room(&patch("*** Delete File: a\n*** Delete File: b\n")));
    assert!(!makes_room(&patch("*** Delete File: a\n*** Add File: b\n+x\n")));
    assert!(!makes_room(&prepared("write", &json!({"path": "a", "content": ""}))));
}
