use super::{Page, Pressed, key_length};
use crate::terminal::{Paint, Size, Style, StyledLine};

const SIZE: Size = Size { columns: 12, rows: 4 };

fn screen(page: &Page) -> Vec<String> {
    let mut screen = vt100::Parser::new(SIZE.rows as u16, SIZE.columns as u16, 0);
    screen.process(page.picture(Paint::Styled).as_bytes());
    screen.screen().rows(0, SIZE.columns as u16).collect()
}

#[test]
fn it_begins_at_a_line_and_moves_by_keys() {
    let lines: Vec<_> =
        (0..20).map(|number| StyledLine::new(Style::Dim, format!("line {number}"))).collect();
    let mut page = Page::new(&lines, 5, SIZE);
    assert_eq!(screen(&page), ["line 5", "line 6", "line 7", "Up, Down, …"]);
    for (keys, first) in [
        (&b"\x1b[B"[..], "line 6"),
        (b"\x1b[A", "line 5"),
        (b" ", "line 8"),
        (b"\x1b[5~", "line 5"),
        (b"G", "line 17"),
        (b"j", "line 17"),
        (b"g", "line 0"),
        (b"k", "line 0"),
    ] {
        assert_eq!(page.press(keys), Pressed::Moved);
        assert_eq!(screen(&page)[0], first, "{keys:?}");
    }
    for keys in [&b"\x0f"[..], b"q", b"\x1b"] {
        assert_eq!(page.press(keys), Pressed::Close);
    }
}

#[test]
fn long_lines_take_several_rows() {
    let line = |text: String| StyledLine::new(Style::Dim, text);
    let lines = [line("a".repeat(11) + "漢字"), line("one two three".to_owned())];
    assert_eq!(
        screen(&Page::new(&lines, 0, SIZE))[..4],
        ["a".repeat(11).as_str(), "漢字", "one two", "Up, Down, …"]
    );
}

#[test]
fn keys_that_arrive_at_once_are_told_apart() {
    for (keys, length) in [
        (&b"\x1b[B\x1b[B"[..], 3),
        (b"\x1b[5~q", 4),
        (b"\x1bOAq", 3),
        (b"jq", 1),
        (b"\x1b", 1),
        (b"\x1b[", 2),
        (b"\x1bxq", 2),
    ] {
        assert_eq!(key_length(keys), length, "{keys:?}");
    }
}
