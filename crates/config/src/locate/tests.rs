use super::*;

const TEXT: &str =
    "// first\n{ provider: { 'authProfiles': [{ id: 'a' }, { id: 'b' }] }, \"agent\": 5 }";

fn shown(path: &ConfigPath, target: Target) -> &'static str {
    &TEXT[Located::new(TEXT).span(path, target).unwrap()]
}

fn profiles() -> ConfigPath {
    ConfigPath::default().key("provider").key("authProfiles")
}

#[test]
fn finds_keys_and_values() {
    assert_eq!(shown(&profiles().index(1).key("id"), Target::Value), "'b'");
    assert_eq!(shown(&profiles().index(1).key("id"), Target::Key), "id");
    assert_eq!(shown(&profiles(), Target::Value), "'authProfiles'");
    assert_eq!(shown(&profiles().index(1), Target::Value), "{");
    assert_eq!(shown(&ConfigPath::default().key("agent"), Target::Key), "\"agent\"");
    assert_eq!(shown(&ConfigPath::default(), Target::Value), "{");
}

#[test]
fn a_path_that_leads_nowhere_is_found_as_far_as_it_goes() {
    assert_eq!(shown(&profiles().index(0).key("apiKey"), Target::Key), "{");
    assert_eq!(shown(&profiles().index(7), Target::Value), "'authProfiles'");
    assert_eq!(shown(&ConfigPath::default().key("agent").key("x"), Target::Value), "\"agent\"");
    assert_eq!(shown(&ConfigPath::default().key("nope"), Target::Key), "{");
}

#[test]
fn tells_the_path_of_a_place() {
    let at = |needle: &str| Located::new(TEXT).path_at(TEXT.find(needle).unwrap());
    assert_eq!(at("'b'"), Some(profiles().index(1).key("id")));
    assert_eq!(at("5"), Some(ConfigPath::default().key("agent")));
    assert_eq!(at("// first"), None);
}

#[test]
fn finds_keys_that_stand_twice() {
    let text = "{ a: 1, b: [{ c: 1, c: 2, 'c': 3 }], a: 2 }";
    let found = Located::new(text).duplicate_keys(9);
    let paths: Vec<_> = found
        .iter()
        .map(|duplicate| (duplicate.path.to_string(), &text[duplicate.span.clone()]))
        .collect();
    assert_eq!(
        paths,
        [("b[0].c".to_owned(), "c"), ("b[0].c".to_owned(), "'c'"), ("a".to_owned(), "a")]
    );
    assert_eq!(found[2].first, 2..3);
    assert_eq!(Located::new(text).duplicate_keys(1).len(), 1);
}

#[test]
fn text_that_cannot_be_read_has_no_places() {
    for text in ["", "{", "{a: 1 b: 2}", "// nothing"] {
        assert_eq!(
            Located::new(text).span(&ConfigPath::default().key("b"), Target::Key),
            None,
            "{text}"
        );
    }
}
