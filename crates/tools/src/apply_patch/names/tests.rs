use super::*;

#[test]
fn names_come_without_times() {
    assert_eq!(clean_name("a/f\t2024-01-01 10:00:00 +0000\r"), "a/f");
    assert_eq!(clean_name("a/f 2024-01-01T10:00:00Z"), "a/f");
    assert_eq!(clean_name("notes 2024-01-01.md"), "notes 2024-01-01.md");
    assert_eq!(clean_name("\"a/x\\ty\" \t2024"), "a/x\ty");
}

#[test]
fn quotes_are_those_of_c() {
    assert_eq!(unquote(r#""a\"b\\c\n\303\244\0""#), "a\"b\\c\nä\0");
    assert_eq!(unquote(r#""open"#), "\"open");
    assert_eq!(unquote("plain"), "plain");
}

#[test]
fn two_names_on_a_line_are_reported_apart() {
    let names = |line| git_names(line).map(|(old, new)| format!("{old}|{new}"));
    assert_eq!(names("a/f b/f").as_deref(), Some("a/f|b/f"));
    assert_eq!(names("a/one two b/one two").as_deref(), Some("a/one two|b/one two"));
    assert_eq!(names("a/f b/g").as_deref(), Some("a/f|b/g"));
    assert_eq!(names("f f").as_deref(), Some("f|f"));
    assert_eq!(names("\"a/\\303\\244\" \"b/\\303\\244\"").as_deref(), Some("a/ä|b/ä"));
    assert_eq!(names("a/x \"b/\\303\\244\"").as_deref(), Some("a/x|b/ä"));
    assert_eq!(names("a/one two b/three"), None);
    assert_eq!(names(""), None);
}
