use super::Pastes;

#[test]
fn a_long_paste_is_one_line_and_comes_back_whole() {
    let pastes = Pastes::default();
    assert_eq!(pastes.fold("two\nlines".to_owned()), "two\nlines");
    let long = "a line\n".repeat(30);
    let mark = pastes.fold(long.clone());
    assert!(mark.starts_with("[paste ") && mark.ends_with(": 30 lines, 210 bytes]"), "{mark}");
    let other = pastes.fold("x".repeat(2_000));
    assert_eq!(
        pastes.unfold(&format!("see {mark} and {other}")),
        Ok(format!("see {long} and {}", "x".repeat(2_000)))
    );
    for text in ["[paste 3: 1 lines, 2 bytes]", "[paste me here", "a [paste ] b"] {
        assert_eq!(pastes.unfold(text), Ok(text.to_owned()));
    }
}

#[test]
fn a_later_chat_finds_a_paste_that_was_sent() {
    let home = tempfile::tempdir().expect("a directory");
    let before = Pastes::kept_in(home.path().join("pastes"));
    let long = "a line\n".repeat(30);
    let mark = before.fold(long.clone());
    before.keep(&format!("look: {mark}")).expect("kept");
    let later = Pastes::kept_in(home.path().join("pastes"));
    assert_eq!(later.unfold(&format!("look: {mark}")), Ok(format!("look: {long}")));
    std::fs::remove_dir_all(home.path().join("pastes")).expect("removed");
    assert_eq!(later.unfold(&mark), Err(mark.clone()));
}
