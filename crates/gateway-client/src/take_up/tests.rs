//! Tests of what a reader gets when an answer begins anew.

use super::*;

fn more(text: &str) -> Lacking {
    Lacking::More(text.to_owned())
}

#[test]
fn what_a_reader_has_of_an_attempt_that_broke_off_is_not_shown_again() {
    let mut text = TakeUp::default();
    assert_eq!(["one ", "two"].map(|delta| text.arrives(delta)), [more("one "), more("two")]);
    // The next holder dies before it has caught up, and the third one goes on.
    text.run_begins();
    text.call_begins();
    assert_eq!(text.arrives("one"), Lacking::Nothing);
    text.run_begins();
    text.call_begins();
    assert_eq!(text.shown(), "one two");
    assert_eq!(text.arrives("one t"), Lacking::Nothing);
    assert_eq!(text.arrives("wo three"), more(" three"));
    assert_eq!(text.arrives(" four"), more(" four"));
    assert_eq!(text.shown(), "one two three four");
    // The next message begins with the same words.
    text.is_whole();
    text.run_begins();
    assert_eq!(text.arrives("one two"), more("one two"));
}

#[test]
fn an_attempt_that_says_something_else_is_shown_from_its_beginning() {
    let mut text = TakeUp::default();
    text.arrives("one two");
    text.run_begins();
    assert_eq!(text.arrives("one"), Lacking::Nothing);
    assert_eq!(text.arrives(" three"), Lacking::Anew("one three".to_owned()));
    assert_eq!(text.arrives("."), more("."));
}
