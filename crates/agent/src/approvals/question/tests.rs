use std::sync::Arc;

use myclaw_engine::{FactForm, PreparedCall};
use myclaw_session::SessionKey;
use serde_json::json;

use super::*;
use crate::permissions::tests::calls::prepared;

/// Characters that hide, move or reorder text: a control, a direction, a space without width, a tag, a variation.
const MARKS: [char; 7] =
    ['\u{1b}', '\u{202e}', '\u{200b}', '\u{e0041}', '\u{fe0f}', '\u{85}', '\u{2066}'];

#[test]
fn no_text_of_a_question_hides_or_moves_anything() {
    let call: PreparedCall = prepared("bash", &json!({"command": "ls"}));
    for mark in MARKS {
        let text = format!("a{mark}b\n\tc{mark}");
        let fact = ShownFact { is_whole: false, ..ShownFact::diff(format!("la{mark}bel"), &text) };
        let session = Arc::new(SessionKey::for_cli("main", "main"));
        let mut request = ApprovalRequest::new(session, call.clone(), format!("policy: {text}"));
        request.shown = vec![fact.clone()];
        request.changes = vec![fact];
        let covers = format!("write on /{mark}/\nx");
        request.always = vec![AlwaysScope::new(ScopeKind::Path, covers, "id")];
        let question = Question::from(&request);
        let json = serde_json::to_string(&question).unwrap();
        assert!(!json.contains(mark), "{json}");
        let shown = myclaw_policy::escape(&mark.to_string());
        let expected = ShownFact {
            label: format!("la{shown}bel").into(),
            text: format!("a{shown}b\n\tc{shown}"),
            form: FactForm::Diff,
            is_whole: false,
        };
        assert_eq!([&question.shown[0], &question.changes[0]], [&expected, &expected]);
        assert_eq!(question.reason, format!("policy: a{shown}b\n\tc{shown}"));
        assert_eq!(question.always[0].covers(), format!("write on /{shown}/\\nx"));
        // A front-end elsewhere reads the same, and may write it out once more.
        let read: Question = serde_json::from_str(&json).unwrap();
        assert_eq!(read.shown, question.shown);
        assert_eq!(read.always[0].covers(), question.always[0].covers());
    }
}

#[test]
fn a_reason_for_a_no_reaches_the_model() {
    for (reason, expected) in [
        (None, "the user said no"),
        (Some("  "), "the user said no"),
        (Some(" use git clean "), "the user said no: use git clean"),
    ] {
        assert_eq!(refusal(reason), expected);
    }
}

#[test]
fn a_line_is_the_words_of_a_question_that_wants_some_unless_it_is_a_command() {
    let wants = WantedWords { label: "branch".to_owned(), choices: Vec::new(), without: None };
    let question = Question { wants: Some(wants), ..Question::default() };
    let said = |words: &str| Some(WrittenAnswer::Said(words.to_owned()));
    for (line, expected) in [
        (" main ", said("main")),
        ("yes", said("yes")),
        ("no, not that", said("no, not that")),
        ("-", said("")),
        ("\"-\"", said("-")),
        ("\"/decline\"", said("/decline")),
        ("\"\"", said("\"\"")),
        ("/decline", Some(WrittenAnswer::No(None))),
        ("/cancel", Some(WrittenAnswer::Cancel)),
        ("/queue", None),
        ("  ", None),
    ] {
        assert_eq!(question.read(line), expected, "{line}");
    }
    assert_eq!(Question::default().read("yes"), Some(WrittenAnswer::Once));
}
