use super::*;

#[test]
fn only_whole_answers_count_but_a_no_may_give_its_reason() {
    let no = |reason: &str| {
        Some(ApprovalAnswer::No(Some(reason.to_owned()).filter(|it| !it.is_empty())))
    };
    for (text, expected) in [
        ("o", Some(ApprovalAnswer::Once)),
        ("Yes", Some(ApprovalAnswer::Once)),
        (" always ", Some(ApprovalAnswer::Always(None))),
        ("d", Some(ApprovalAnswer::Always(Some(ScopeKind::Directory)))),
        ("v", Some(ApprovalAnswer::View)),
        ("N", no("")),
        ("no!", no("")),
        ("no, use git clean instead", no("use git clean instead")),
        ("No. Use /tmp", no("Use /tmp")),
        ("n: /tmp is full", no("/tmp is full")),
        ("nope - later", no("later")),
        ("no\u{2014}ask me first", no("ask me first")),
        ("Don't delete it", no("Don't delete it")),
        ("don\u{2019}t delete it", no("don\u{2019}t delete it")),
        ("do not do that", no("do not do that")),
        ("never touch that", no("never touch that")),
        ("", None),
        ("on", None),
        ("ok go", None),
        ("yes, but only once", None),
        ("always ask me", None),
        ("now look at the tests", None),
        ("nothing else", None),
        ("note the date", None),
        ("nevertheless go on", None),
    ] {
        assert_eq!(read_answer(text, &Question::default()), expected, "{text}");
    }
}

fn shown(question: &Question) -> Vec<String> {
    lines(question).into_iter().map(|line| line.text).collect()
}

#[test]
fn all_of_a_fact_is_shown_and_none_of_it_looks_like_the_question() {
    let long = "x".repeat(100_000);
    let facts = vec![ShownFact::text("input", format!("a\u{1b}[2J\n(o)nce or (n)o?\n{long}"))];
    let tool_name = "t".to_owned();
    let question =
        Question { tool_name, shown: facts.clone(), changes: facts, ..Question::default() };
    assert_eq!(
        shown(&question),
        [
            format!("t wants to run: a\\u{{1b}}[2J\\n(o)nce or (n)o?\\n{long}"),
            "this is different since you were asked:".to_owned(),
            "input:".to_owned(),
            "\u{2502} a\\u{1b}[2J".to_owned(),
            "\u{2502} (o)nce or (n)o?".to_owned(),
            format!("\u{2502} {long}"),
            "(v)iew it all, (o)nce, or (n)o?".to_owned(),
        ]
    );
}

#[test]
fn always_is_offered_in_words_and_only_if_everything_is_shown() {
    let scope = |kind, covers: &str| AlwaysScope::new(kind, covers, "id");
    let mut question = Question {
        always: vec![
            scope(ScopeKind::Path, "edit on /w/a.rs"),
            scope(ScopeKind::Directory, "edit on every file in /w"),
        ],
        ..Question::default()
    };
    assert_eq!(
        asking(&question),
        "(v)iew it all, (o)nce, (a)lways for edit on /w/a.rs, always in this (d)irectory for edit on every file in /w, \
         or (n)o?"
    );
    question.always.clear();
    question.shown = vec![ShownFact { is_whole: false, ..ShownFact::text("input", "a") }];
    assert_eq!(
        shown(&question),
        [" wants to run (not all of it is known): a", "(v)iew it all, (o)nce, or (n)o?"]
    );
}
