use std::io::BufReader;

use super::{Line, next_line};

/// All lines of `input`, read through a buffer that is smaller than most of them.
fn lines(input: &[u8], limit: u64) -> Vec<Line> {
    let mut reader = BufReader::with_capacity(3, input);
    std::iter::from_fn(|| next_line(&mut reader, limit)).collect()
}

#[test]
fn lines_come_without_their_ends_and_blank_ones_not_at_all() {
    let text = |text: &str| Line::Text(text.to_owned());
    assert_eq!(lines(b"one\r\n\n  \ntwo\nthree", 10), [text("one"), text("two"), text("three")]);
    assert_eq!(lines(b"", 10), []);
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
    let found = lines(b"0123456789\n01234567890\nok\n", 10);
    assert_eq!(found[0], Line::Text("0123456789".to_owned()));
    assert_eq!(found[1], Line::Unusable("the line is longer than 10 bytes".to_owned()));
    assert_eq!(found[2], Line::Text("ok".to_owned()));
    assert_eq!(lines(b"01234567890", 10).len(), 1);
}

#[test]
fn bytes_that_are_no_text_are_reported_by_place() {
    let found = lines(b"ab\xff\nok\n", 10);
    assert_eq!(found[0], Line::Unusable("the line is not UTF-8 (byte 3)".to_owned()));
    assert_eq!(found[1], Line::Text("ok".to_owned()));
}
