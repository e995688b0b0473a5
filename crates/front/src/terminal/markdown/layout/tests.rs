use super::{Line, layout};
use crate::terminal::Paint;
use crate::terminal::highlight::CodeColours;

fn lines(source: &str, columns: usize) -> Vec<String> {
    painted(source, columns, Paint::Plain)
}

fn painted(source: &str, columns: usize, paint: Paint) -> Vec<String> {
    let write = |line: &Line| {
        let mut text = String::new();
        line.write(paint, &mut text);
        text
    };
    layout(source, columns, paint, &mut CodeColours::default()).lines.iter().map(write).collect()
}

#[test]
fn words_wrap_at_spaces_and_between_wide_characters() {
    assert_eq!(lines("aaa bbb ccc", 7), ["aaa bbb", "ccc"]);
    assert_eq!(lines("世界世界世界", 5), ["世界", "世界", "世界"]);
    assert_eq!(lines("abcdefghij", 4), ["abcd", "efgh", "ij"]);
}

#[test]
fn lists_keep_their_numbers_and_nesting() {
    assert_eq!(
        lines("7. seven\n8. eight with more words\n   - inner\n", 14),
        ["7. seven", "8. eight with", "   more words", "   • inner"]
    );
    assert_eq!(lines("- [x] done\n- [ ] open\n-\n", 20), ["• [x] done", "• [ ] open", "• "]);
}

#[test]
fn blank_lines_between_items_change_nothing() {
    assert_eq!(lines("- a\n- b\n", 20), lines("- a\n\n- b\n", 20));
}

#[test]
fn quotes_are_marked_on_every_line() {
    assert_eq!(
        lines("> one and\n> two\n>\n> three\n", 12),
        ["│ one and", "│ two", "│ ", "│ three"]
    );
}

#[test]
fn marks_stay_where_there_are_no_colours() {
    assert_eq!(lines("**a** *b* ~~c~~ `d  e`", 40), ["**a** *b* ~~c~~ `d  e`"]);
    assert_eq!(painted("**a** `b`", 40, Paint::Styled), ["\x1b[1ma\x1b[0m \x1b[36mb\x1b[0m"]);
}

#[test]
fn links_name_their_target_once() {
    assert_eq!(
        lines("[text](https://a.example) <https://b.example>", 80),
        ["text (https://a.example) https://b.example"]
    );
    assert_eq!(lines("![alt](x.png)", 80), ["[image: alt] (x.png)"]);
}

#[test]
fn tables_align_and_narrow() {
    let table = "| left | right |\n|---|---:|\n| a | 1 |\n| long words here | 22 |\n";
    assert_eq!(
        lines(table, 40),
        [
            "left            │ right",
            "────────────────┼──────",
            "a               │     1",
            "long words here │    22"
        ]
    );
    assert_eq!(
        lines(table, 18)[2..],
        ["a          │     1", "long words │    22", "here       │      "].map(str::to_owned)
    );
    assert_eq!(lines(table, 9)[..2], ["left: a", "right: 1"].map(str::to_owned));
}

#[test]
fn html_and_rules_are_shown() {
    assert_eq!(lines("<b>x</b>\n\n---\n", 10), ["<b>x</b>", "", "──────────"]);
}
