use super::Pastes;

#[test]
fn a_long_paste_is_one_line_and_comes_back_whole() {
    let pastes = Pastes::default();
    assert_eq!(pastes.fold("two\nlines".to_owned()), "two\nlines");
    let long = "a line\n".repeat(30);
    let mark = pastes.fold(long.clone());
    assert_eq!(mark, "[paste 1: 30 lines, 210 bytes]");
    let other = pastes.fold("x".repeat(2_000));
    assert_eq!(
        pastes.unfold(&format!("see {mark} and {other}")),
        format!("see {long} and {}", "x".repeat(2_000))
    );
    assert_eq!(pastes.unfold("[paste 3: 1 lines, 2 bytes]"), "[paste 3: 1 lines, 2 bytes]");
}
