use super::*;

#[test]
fn lines_end_with_lf_or_crlf_or_the_text() {
    let lines = Lines::of("a\r\n\n\rb\nc");
    let all: Vec<_> = (0..lines.len())
        .map(|index| (lines.content(index), lines.ending(index), lines.start(index)))
        .collect();
    assert_eq!(
        all,
        [
            ("a", Some(LineEnding::CrLf), 0),
            ("", Some(LineEnding::Lf), 3),
            ("\rb", Some(LineEnding::Lf), 4),
            ("c", None, 7)
        ]
    );
    assert_eq!(lines.start(4), 8);
    assert_eq!(Lines::of("").len(), 0);
    assert_eq!(Lines::of("a\n").len(), 1);
}

#[test]
fn an_offset_is_in_the_line_whose_ending_is_not_passed() {
    let lines = Lines::of("a\r\nb\n");
    assert_eq!([0, 1, 2, 3, 4, 5].map(|offset| lines.index_at(offset)), [0, 0, 0, 1, 1, 1]);
}

#[test]
fn new_lines_end_like_those_around_them() {
    let lines = Lines::of("a\r\nb\r\nc\nd\ne");
    assert_eq!(lines.ending_at(0..1), LineEnding::CrLf);
    assert_eq!(lines.ending_at(2..3), LineEnding::Lf);
    assert_eq!(lines.ending_at(2..2), LineEnding::CrLf);
    assert_eq!(lines.ending_at(4..5), LineEnding::Lf);
    assert_eq!(Lines::of("a\r\nb").ending_at(1..2), LineEnding::CrLf);
    assert_eq!(Lines::of("").ending_at(0..0), LineEnding::Lf);
}
