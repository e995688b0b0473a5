use unicode_width::UnicodeWidthStr;

use super::wrapped;

#[test]
fn lines_are_broken_at_spaces_and_hang_below_their_column() {
    assert_eq!(wrapped("one two three", 20), ["one two three"]);
    assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    assert_eq!(
        wrapped("/fork [NAME]  go on in a copy", 26),
        ["/fork [NAME]  go on in a", "    copy"]
    );
    assert_eq!(
        wrapped("/fork  go on in a copy of it", 16),
        ["/fork  go on in", "       a copy of", "       it"]
    );
    assert_eq!(wrapped("a\n\nb", 5), ["a", "", "b"]);
}

#[test]
fn only_a_word_that_is_longer_than_a_line_is_cut() {
    assert_eq!(wrapped("ab abcdefghij k", 4), ["ab", "abcd", "efgh", "ij k"]);
    assert_eq!(wrapped("漢字漢字", 5), ["漢字", "漢字"]);
}

#[test]
fn no_line_is_too_wide() {
    let text = "  - the quick  brown 漢字 fox jumps over the lazy-dog-with-a-long-name";
    for columns in 1..60 {
        let lines = wrapped(text, columns);
        assert!(lines.iter().all(|line| line.width() <= columns.max(2)), "{columns}: {lines:?}");
        let joined: String = lines.concat().split_whitespace().collect();
        assert_eq!(joined, text.split_whitespace().collect::<String>());
    }
}
