use proptest::prelude::*;

use super::*;

#[test]
fn makes_an_id_of_any_text() {
    for (text, id) in [
        ("main", "main"),
        ("", "main"),
        ("  ", "main"),
        ("!!!", "main"),
        ("Coder", "coder"),
        ("My Agent!", "my-agent"),
        ("a  b//c", "a-b-c"),
        ("--a--", "a"),
        ("__a__", "a__"),
        ("a-_-b", "a-_-b"),
        ("../../etc", "etc"),
        ("Ünal", "nal"),
        ("日本", "main"),
        ("9", "9"),
    ] {
        assert_eq!(AgentId::new(text).as_str(), id, "{text:?}");
    }
    assert_eq!(AgentId::new(&"x".repeat(100)).as_str(), "x".repeat(64));
    assert_eq!(AgentId::new(&format!("{} y", "x".repeat(63))).as_str(), "x".repeat(63));
}

proptest! {
    #[test]
    fn an_id_is_well_formed_and_stays_as_it_is(text in "(\\PC|[A-Za-z0-9_ -]){0,90}") {
        let id = AgentId::new(&text);
        prop_assert!((1..=64).contains(&id.as_str().len()));
        prop_assert!(id.as_str().starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()));
        prop_assert!(id.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-'));
        prop_assert_eq!(AgentId::new(id.as_str()), id);
    }
}
