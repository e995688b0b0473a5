use super::*;

fn stripped(text: &str) -> Option<String> {
    let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    without_line_numbers(&lines).map(|lines| lines.join("\n"))
}

#[test]
fn numbers_go_where_every_line_has_one() {
    assert_eq!(stripped("9: a\n10:   b\n11:\n").as_deref(), Some("a\n  b\n\n"));
    assert_eq!(stripped("   9 | a\n  10 |\tb").as_deref(), Some("a\n\tb"));
    assert_eq!(stripped("     9\ta\n    10\t b").as_deref(), Some("a\n b"));
    assert_eq!(stripped("9→a").as_deref(), Some("a"));
}

#[test]
fn other_numbers_are_data() {
    assert_eq!(stripped("1: a\n3: b"), None);
    assert_eq!(stripped("1: a\nb"), None);
    assert_eq!(stripped("12345678: a"), None);
    assert_eq!(stripped("1 a"), None);
    assert_eq!(stripped(""), None);
}
