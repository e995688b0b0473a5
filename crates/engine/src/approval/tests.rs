use super::*;

fn terms(shown: &[(&'static str, &str)], bound: &[(&str, &str, Option<&str>)]) -> ApprovalTerms {
    let shown = shown.iter().map(|(label, text)| ShownFact::text(*label, *text)).collect();
    let bound = bound.iter().map(|(label, state, text)| BoundFact {
        label: (*label).to_owned(),
        state: (*state).to_owned(),
        text: text.map(str::to_owned),
    });
    ApprovalTerms { shown, bound: bound.collect(), ..ApprovalTerms::default() }
}

/// The labels and texts of what is different.
fn changes(before: &ApprovalTerms, after: &ApprovalTerms) -> Vec<(String, String)> {
    let changes = before.changes(after).into_iter();
    changes.map(|fact| (fact.label.to_string(), fact.text)).collect()
}

#[test]
fn whatever_an_answer_is_bound_to_is_compared() {
    let shown = [("command", "./t.sh")];
    let one = terms(&shown, &[("file /t.sh", "sha256 1", Some("a\nold\nz\n"))]);
    let two = terms(&shown, &[("file /t.sh", "sha256 2", Some("a\nnew\nz\n"))]);
    let none = terms(&shown, &[]);
    let unread = terms(&shown, &[("file /t.sh", "no readable file", None)]);
    let changed = |text: &str| vec![("changed: file /t.sh".to_owned(), text.to_owned())];
    assert_eq!(changes(&one, &one), []);
    assert_eq!(changes(&one, &two), changed("-old\n+new\n"));
    assert_eq!(changes(&one, &unread), changed("was sha256 1, is no readable file"));
    assert_eq!(changes(&unread, &none), changed("was no readable file, is nothing"));
    assert_eq!(changes(&none, &unread), changed("was nothing, is no readable file"));
    // What appears, or is gone, is a change as well.
    assert_eq!(changes(&none, &one).len(), 1);
    assert_eq!(changes(&one, &none).len(), 1);
    // The same content of another file is another one.
    let moved = terms(&shown, &[("file /t.sh", "sha256 1, inode 2", Some("a\nold\nz\n"))]);
    assert_eq!(changes(&one, &moved).len(), 1);
    let other = terms(&[("command", "./t.sh x")], &[]);
    assert_eq!(
        changes(&none, &other),
        [("changed: command".to_owned(), "-./t.sh\n+./t.sh x\n".to_owned())]
    );
}

#[test]
fn what_is_not_whole_is_never_approved_for_good() {
    let mut terms = terms(&[("command", "x")], &[]);
    terms.always = vec![AlwaysScope::new(ScopeKind::Call, "x", "id")];
    assert_eq!(terms.clone().checked().always.len(), 1);
    terms.shown[0].is_whole = false;
    assert_eq!(terms.checked().always, []);
}
