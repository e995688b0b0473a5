//! Tests of the lines that name files.

use super::*;

#[test]
fn lines_that_name_files_are_found_outside_of_code() {
    let cases: [(&str, &str, &[&str]); 6] = [
        ("no file", "no file", &[]),
        ("Here.\nMEDIA: a/b.png\nMore.", "Here.\nMore.", &["a/b.png"]),
        ("  MEDIA:`one.txt`\nMEDIA: \"two words.txt\"", "", &["one.txt", "two words.txt"]),
        ("MEDIA:", "MEDIA:", &[]),
        ("say MEDIA: x", "say MEDIA: x", &[]),
        ("```\nMEDIA: x\n```\nMEDIA: y", "```\nMEDIA: x\n```", &["y"]),
    ];
    for (text, left, paths) in cases {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(find(text), (left.to_owned(), paths), "{text}");
    }
    for (path, name) in [("a/b.png", "b.png"), ("x\ny", "xy"), ("a/", "file")] {
        assert_eq!(name_of(path), name);
    }
}

#[test]
fn copies_that_wait_have_a_limit_together() {
    let with = |megabytes: u32| {
        let config = serde_json::json!({"sideFiles": {"totalMb": megabytes}});
        room(&serde_json::from_value(config).unwrap())
    };
    assert_eq!((with(0), with(3)), (None, Some(3 << 20)));
}
