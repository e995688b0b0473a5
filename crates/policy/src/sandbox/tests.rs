use super::*;

#[test]
fn only_the_owners_own_sessions_are_main() {
    let facts = |key| SessionFacts { key, main_keys: &["agent:a:main"], host_says_main: false };
    for (key, expected) in [
        ("main", true),
        ("main:work", true),
        ("agent:a:main", true),
        ("agent:b:main", false),
        ("agent:a:main:x", false),
        ("Main", false),
        ("mainx", false),
        (" main", false),
        ("", false),
    ] {
        assert_eq!(facts(key).is_main(), expected, "{key:?}");
    }
}
