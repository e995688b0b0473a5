use unicode_width::UnicodeWidthChar;

use super::layout::layout;
use super::{MAX_TEXT_COLUMNS, MarkdownStream, Paint, Size};
use crate::terminal::highlight::CodeColours;

/// A terminal: what the escape sequences that the renderer uses do to a screen, scrollback included.
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    size: Size,
}

impl Screen {
    fn new(size: Size) -> Self {
        Self { rows: vec![Vec::new()], row: 0, column: 0, size }
    }

    fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\r' => self.column = 0,
                '\n' => self.line_feed(),
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut digits = String::new();
                    let command = loop {
                        match chars.next().expect("a whole sequence") {
                            digit @ ('0'..='9' | ';') => digits.push(digit),
                            command => break command,
                        }
                    };
                    self.command(command, &digits);
                }
                '\t' => {
                    // A terminal stops at its last column.
                    let stop = (self.column / 8 + 1) * 8;
                    while self.column < stop.min(self.size.columns) {
                        self.put(' ');
                    }
                }
                char => self.put(char),
            }
        }
    }

    fn command(&mut self, command: char, digits: &str) {
        match command {
            'A' => {
                let up: usize = digits.parse().expect("a number");
                let top = self.rows.len().saturating_sub(self.size.rows);
                assert!(self.row >= up + top, "moved up {up} rows beyond the top of the screen");
                self.row -= up;
            }
            'J' => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].truncate(self.column);
            }
            'm' => {}
            other => panic!("unexpected command {other}"),
        }
    }

    fn put(&mut self, char: char) {
        let width = char.width().unwrap_or(0);
        if self.column + width > self.size.columns {
            self.column = 0;
            self.line_feed();
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + width), ' ');
        row[self.column] = char;
        // The second half of a wide character holds nothing of its own.
        row[self.column + 1..self.column + width].fill('\0');
        self.column += width;
    }

    fn line_feed(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn text(&self) -> String {
        let rows: Vec<String> = self
            .rows
            .iter()
            .map(|row| row.iter().filter(|char| **char != '\0').collect())
            .collect();
        rows.join("\n")
    }
}

const WIDE: Size = Size { columns: 60, rows: 200 };

/// What stands on a screen after `pieces` were drawn one by one.
fn drawn<'a>(pieces: impl IntoIterator<Item = &'a str>, size: Size) -> String {
    let mut screen = Screen::new(size);
    let mut stream = MarkdownStream::new(Paint::Styled);
    let mut out = String::new();
    for piece in pieces {
        stream.push(piece);
        out.clear();
        stream.draw(size, &mut out);
        screen.write(&out);
    }
    out.clear();
    stream.finish(size, &mut out);
    screen.write(&out);
    assert!(stream.is_empty());
    screen.text()
}

fn one_by_one(source: &str, size: Size) -> String {
    drawn(source.split_inclusive(|_| true), size)
}

/// What the whole text looks like when it is laid out at once.
fn at_once(source: &str, size: Size) -> String {
    let mut text = String::new();
    for line in layout(
        source,
        (size.columns - 1).min(MAX_TEXT_COLUMNS),
        Paint::Styled,
        &mut CodeColours::default(),
    )
    .lines
    {
        line.write(Paint::Plain, &mut text);
        text.push('\n');
    }
    let mut screen = Screen::new(Size { columns: 1_000, rows: 1_000 });
    screen.write(&text.replace('\n', "\r\n"));
    screen.text()
}

const DOCUMENT: &str = "\
# Title

A paragraph with words that wrap around the end of the line, because it is long.
It goes on here.

Setext
------

- one
- two
  more of two

  - nested
- three

  a second paragraph

1. first
2. second

> quoted
> text

```rust
fn main() {
    println!(\"hello\");

}
```

| name | size |
|------|-----:|
| a | 1 |
| bcd | 200 |

    indented code

---
The end, with a [link](https://example.org) and <https://example.org/2>.
";

#[test]
fn a_streamed_document_looks_like_one_laid_out_at_once() {
    assert_eq!(one_by_one(DOCUMENT, WIDE), at_once(DOCUMENT, WIDE));
}

#[test]
fn pieces_of_any_length_give_the_same_screen() {
    let expected = at_once(DOCUMENT, WIDE);
    for length in 2..60 {
        let pieces: Vec<&str> = DOCUMENT
            .as_bytes()
            .chunks(length)
            .map(|chunk| std::str::from_utf8(chunk).expect("ASCII"))
            .collect();
        assert_eq!(drawn(pieces, WIDE), expected, "pieces of {length} bytes");
    }
}

#[test]
fn a_list_higher_than_the_screen_is_complete_and_never_repeated() {
    let list: String = (0..100).map(|number| format!("- item {number}\n")).collect();
    let expected: String = (0..100).map(|number| format!("• item {number}\n")).collect();
    assert_eq!(one_by_one(&list, Size { columns: 30, rows: 10 }), expected);
}

#[test]
fn code_higher_and_wider_than_the_screen_is_complete_and_unbroken() {
    let line = "0123456789".repeat(5);
    let code = format!("```\n{}```\nafter\n", format!("{line}\n").repeat(30));
    let shown = one_by_one(&code, Size { columns: 20, rows: 5 });
    let unwrapped: String = shown.lines().collect();
    assert_eq!(unwrapped, format!("    {line}").repeat(30) + "after");
}

#[test]
fn a_fence_that_never_closes_is_shown() {
    assert_eq!(one_by_one("text\n\n```sh\nls -la\nrm x", WIDE), "text\n\n    ls -la\n    rm x\n");
}

#[test]
fn a_paragraph_becomes_a_heading_or_a_table_without_a_trace() {
    assert_eq!(one_by_one("Title\n=====\n", WIDE), "# Title\n");
    assert_eq!(one_by_one("| a | b |\n|---|---|\n| 1 | 2 |\n", WIDE), "a │ b\n──┼──\n1 │ 2\n");
}

#[test]
fn text_that_turns_into_nothing_leaves_nothing() {
    assert_eq!(one_by_one("[name]: https://example.org\n", WIDE), "");
    assert_eq!(one_by_one("[name]: https://example.org\n\nText\n", WIDE), "Text\n");
}

#[test]
fn emphasis_that_closes_late_moves_nothing_but_itself() {
    assert_eq!(
        one_by_one("a **bold** and *soft* and `code` word", WIDE),
        "a bold and soft and code word\n"
    );
}

#[test]
fn controls_of_the_model_never_reach_the_terminal() {
    let mut stream = MarkdownStream::new(Paint::Plain);
    let mut out = String::new();
    stream.push("a\x1b[2Jb `c\u{9b}d`\n\n```\n\x07\u{1b}]0;x\n```\n");
    stream.finish(WIDE, &mut out);
    assert_eq!(out, "a\\x1b[2Jb `c\\x9bd`\r\n\r\n    \\x07\\x1b]0;x\r\n");
}

#[test]
fn a_narrow_terminal_is_no_reason_to_fail() {
    for columns in 1..12 {
        let shown = one_by_one(DOCUMENT, Size { columns, rows: 3 });
        assert!(shown.contains('T'), "{columns} columns");
    }
}

#[test]
fn a_terminal_made_narrower_in_the_middle_keeps_every_word() {
    let mut stream = MarkdownStream::new(Paint::Plain);
    let mut out = String::new();
    stream.push("one two three four five six");
    stream.draw(Size { columns: 80, rows: 24 }, &mut out);
    stream.push(" seven");
    stream.draw(Size { columns: 12, rows: 24 }, &mut out);
    stream.finish(Size { columns: 12, rows: 24 }, &mut out);
    for word in ["one", "two", "three", "four", "five", "six", "seven"] {
        assert!(out.contains(word), "{word} in {out:?}");
    }
}

/// Pieces that random documents are made of: everything that changes what stands before it.
const FRAGMENTS: [&str; 26] = [
    "word ",
    "two words",
    "\n",
    "\n\n",
    "\n",
    "# ",
    "- ",
    "  - ",
    "1. ",
    "2. ",
    "> ",
    "```",
    "```\n",
    "~~~~\n",
    "| a | b |\n",
    "|---|--:|\n",
    "**",
    "*",
    "`",
    "    ",
    "---\n",
    "===\n",
    "<b>",
    "\\",
    "世界",
    "\t",
];

#[test]
fn random_documents_look_alike_streamed_and_at_once() {
    // Wide enough for every line of code: what a terminal wraps itself is another matter.
    let size = Size { columns: 700, rows: 300 };
    let mut state = 1_u64;
    let mut below = |limit: usize| {
        // Knuth's linear congruential generator; its high bits are good enough here.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % limit
    };
    for number in 0..600 {
        let source: String = (0..below(30)).map(|_| FRAGMENTS[below(FRAGMENTS.len())]).collect();
        let expected = at_once(source.trim_start_matches('\n'), size);
        assert_eq!(one_by_one(&source, size), expected, "document {number}: {source:?}");
        // On a small screen nothing above it is touched (the screen itself checks that).
        one_by_one(&source, Size { columns: 24, rows: 5 });
    }
}
