use super::{did_you_mean, nearest};

const COMMANDS: [&str; 6] = ["/help", "/new", "/model", "/sessions", "/usage", "/quit"];

#[test]
fn typing_errors_are_recognised() {
    for (typed, meant) in [
        ("/hepl", "/help"),
        ("/modle", "/model"),
        ("/sess", "/sessions"),
        ("/exit", "/quit"),
        ("/QUIT", "/quit"),
    ] {
        assert_eq!(nearest(typed, COMMANDS), Some(meant), "{typed}");
    }
}

#[test]
fn other_words_are_left_alone() {
    for typed in ["", "/xyzzy-plugh", "/banana"] {
        assert_eq!(nearest(typed, COMMANDS), None, "{typed}");
    }
}

#[test]
fn a_message_ends_with_a_suggestion_or_a_full_stop() {
    assert_eq!(did_you_mean("/modle", COMMANDS), "; did you mean `/model`?");
    assert_eq!(did_you_mean("/banana", COMMANDS), ".");
}
