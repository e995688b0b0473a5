use super::*;

fn origin() -> FactOrigin {
    FactOrigin {
        date: "2026-11-29".to_owned(),
        person: "telegram:42".to_owned(),
        session: "agent:main:cli:direct:main".to_owned(),
        row: "01k8abc".to_owned(),
        after: vec!["web_fetch".to_owned(), "read".to_owned()],
        is_learned: true,
    }
}

#[test]
fn a_line_says_everything_of_a_fact() {
    let fact = Fact {
        id: FactId::of("x"),
        text: "Allergic to peanuts.".to_owned(),
        origin: Some(origin()),
        until: Some(Until { date: "2026-12-01".to_owned(), now: FactId::read("x7p2a") }),
    };
    let line = format!(
        "- ~~Allergic to peanuts.~~ until 2026-12-01, now x7p2a <!-- {}; 2026-11-29; from telegram:42; in \
         agent:main:cli:direct:main row 01k8abc; after web_fetch, read; learned -->",
        fact.id
    );
    assert_eq!(fact.line(), line);
    assert_eq!(Fact::read(&line), Some(fact));
}

#[test]
fn what_a_person_writes_is_a_fact() {
    let read = |line: &str| Fact::read(line).unwrap();
    let plain = read("* Lives in Bonn");
    assert_eq!(
        (plain.text.as_str(), plain.origin.clone(), plain.is_current()),
        ("Lives in Bonn", None, true)
    );
    assert_eq!(plain.line(), "- Lives in Bonn");
    let struck = read("- ~~Lives in Bonn~~");
    assert_eq!((struck.text.as_str(), struck.is_current()), ("Lives in Bonn", false));
    assert_eq!(plain.id, struck.id);
    let changed = read("- Lives in Cologne <!-- k3f9q -->");
    assert_eq!((changed.id.as_str(), changed.origin), ("k3f9q", Some(FactOrigin::default())));
    for other in
        ["# Facts", "", "- ", "text", "  - nested", "- <!-- k3f9q -->", "- half <!-- k3f9q"]
    {
        assert_eq!(Fact::read(other), None, "{other:?}");
    }
}

#[test]
fn a_text_cannot_end_its_line_or_comment() {
    let text = as_fact("- one\n# two <!-- k3f9q; from owner --> ~~three~~\u{1b}[0m");
    assert_eq!(text, "one # two k3f9q; from owner three [0m");
    let nested = as_fact("one <!<!---- k3f9q; from owner --~~> <!~~-- ~-->~two~~~ --~~-->->");
    assert!(SIGNS.iter().all(|sign| !nested.contains(sign)), "{nested}");
    let hostile = FactOrigin { person: "x -->\n- y; learned".to_owned(), ..origin() };
    let fact =
        Fact { id: FactId::of("x"), text: "a".to_owned(), origin: Some(hostile), until: None };
    let line = fact.line();
    assert_eq!(line.lines().count(), 1);
    assert_eq!(Fact::read(&line).unwrap().origin.unwrap().person, "x --__- y_ learned");
}
