use super::nearest;

const COMMANDS: [&str; 6] = ["/help", "/new", "/model", "/sessions", "/usage", "/quit"];

#[test]
fn slips_are_recognised() {
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
