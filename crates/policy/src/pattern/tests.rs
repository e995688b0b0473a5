use super::*;

#[test]
fn a_star_in_a_name_stands_for_any_characters() {
    for (pattern, name, expected) in [
        ("read", "read", true),
        ("read", "reader", false),
        ("*", "", true),
        ("*", "anything", true),
        ("sessions_*", "sessions_list", true),
        ("sessions_*", "session_status", false),
        ("*_search", "web_search", true),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("a*a", "a", false),
        ("", "", true),
        ("", "x", false),
    ] {
        assert_eq!(matches_name(pattern, name), expected, "{pattern} and {name}");
    }
}

#[test]
fn a_star_in_a_path_stays_in_its_directory() {
    for (pattern, path, expected) in [
        ("/usr/bin/git", "/usr/bin/git", true),
        ("/usr/bin/*", "/usr/bin/git", true),
        ("/usr/bin/*", "/usr/bin/x/git", false),
        ("/usr/*/git", "/usr/bin/git", true),
        ("/usr/**", "/usr/bin/git", true),
        ("/usr/**/git", "/usr/git", true),
        ("/usr/**/git", "/usr/a/b/git", true),
        ("/usr/**/git", "/usr/a/b/gut", false),
        ("/**", "/anything/at/all", true),
        ("/usr/bin/*", "/usr/bin/../../tmp/git", false),
        ("/usr/**", "/usr/../tmp/git", false),
        ("/usr/**", "/usr/./git", false),
        ("/usr/**", "/usr//git", false),
        ("/usr/bin/*", "usr/bin/git", false),
        ("git", "/usr/bin/git", false),
    ] {
        assert_eq!(matches_path(pattern, path), expected, "{pattern} and {path}");
    }
}

#[test]
fn many_stars_cost_little() {
    let pattern = "/**/a".repeat(200);
    assert!(!matches_path(&pattern, &"/a".repeat(199)));
    assert!(!matches_name(&"*a".repeat(5_000), &"a".repeat(4_999)));
}
