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
fn a_star_in_an_argument_stops_at_a_slash_and_two_do_not() {
    for (pattern, argument, expected) in [
        ("main", "main", true),
        ("main", "maintain", false),
        ("*", "a", true),
        ("*", "", true),
        ("*", "a/b", false),
        ("**", "a/b", true),
        ("**", "/a/b", true),
        ("scripts/*.py", "scripts/x.py", true),
        ("scripts/*.py", "scripts/a/x.py", false),
        ("scripts/**.py", "scripts/a/x.py", true),
        ("scripts/**", "scripts/../x", false),
        ("**", "..", false),
        ("**", "../x", false),
        ("**", "x/..", false),
        ("*", "..", false),
        (".*", "..", false),
        ("--out=*", "--out=..", false),
        ("--out=**", "--out=../x", false),
        ("-o*", "-o..", false),
        ("-o**", "-o../x", false),
        ("**", "a:../b", false),
        ("**", "a,..", false),
        ("*", "main..topic", true),
        ("*", "main...topic", true),
        ("*", "...", true),
        ("../*", "../x", false),
        ("../x", "../x", true),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-b/c", false),
        ("a**c", "ac", true),
        ("**/x", "x", false),
        ("***", "a/b", true),
        ("é*", "éa", true),
    ] {
        assert_eq!(matches_argument(pattern, argument), expected, "{pattern} and {argument}");
    }
}

#[test]
fn many_stars_cost_little() {
    assert!(!matches_argument(&"*a".repeat(200), &"a".repeat(199)));
    assert!(!matches_argument(&"**a".repeat(200), &"a/".repeat(99)));
    let pattern = "/**/a".repeat(200);
    assert!(!matches_path(&pattern, &"/a".repeat(199)));
    assert!(!matches_name(&"*a".repeat(5_000), &"a".repeat(4_999)));
}
