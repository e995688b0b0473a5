use super::*;

#[test]
fn only_the_owners_own_sessions_are_main() {
    let facts = |key| SessionFacts {
        key,
        main_keys: &["agent:a:main"],
        host_says_main: false,
        is_open_project: false,
    };
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

#[test]
fn an_open_project_is_sandboxed_by_the_mode_all_only() {
    let facts =
        SessionFacts { key: "thing", main_keys: &[], host_says_main: false, is_open_project: true };
    assert!(!facts.is_main());
    assert_eq!(facts.scope(SandboxMode::NonMain), SandboxScope::Unsandboxed);
    assert_eq!(facts.scope(SandboxMode::Off), SandboxScope::Unsandboxed);
    assert_eq!(facts.scope(SandboxMode::All), SandboxScope::Sandboxed);
}
