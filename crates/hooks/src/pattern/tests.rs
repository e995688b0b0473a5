use super::matches;

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name, expected) in [
        ("bash", "bash", true),
        ("bash", "bash2", false),
        ("bash", "my_bash", false),
        ("*", "", true),
        ("*", "anything", true),
        ("mcp_*", "mcp_read", true),
        ("mcp_*", "mcp", false),
        ("*_file", "write_file", true),
        ("*_file", "file", false),
        ("w*_*e", "write_file", true),
        ("ab*ba", "aba", false),
        ("a*b*b", "ab", false),
        ("", "", true),
        ("", "x", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}
