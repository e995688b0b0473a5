use super::*;

/// The text with the styled ranges in brackets.
fn shown(markdown: &str) -> String {
    let Styled { text, spans } = render(markdown);
    let ranges =
        spans.iter().map(|span| format!("{:?} {:?}", span.style, &text[span.start..span.end]));
    format!("{text:?} [{}]", ranges.collect::<Vec<_>>().join(", "))
}

#[test]
fn styles_are_ranges_of_the_text() {
    for (markdown, expected) in [
        ("plain", r#""plain" []"#),
        ("**a _b_** `c`", r#""a b c" [Italic "b", Bold "a b", Code "c"]"#),
        ("# Head\n\ntext ~~no~~", r#""Head\n\ntext no" [Bold "Head", Strike "no"]"#),
        ("```rust\nlet x;\n\ny\n```\nend", r#""let x;\n\ny\n\nend" [CodeBlock "let x;\n\ny"]"#),
        ("- a\n- b\n  1. c\n  2. d", r#""- a\n- b\n  1. c\n  2. d" []"#),
        ("> one **two**\n> three\n\nfour", r#""> one two\n> three\n\nfour" [Bold "two"]"#),
        ("> a\n>\n> b", r#""> a\n> \n> b" []"#),
        ("[text](https://a.b) <https://c.d>", r#""text (https://a.b) https://c.d" []"#),
        (
            "| a | b |\n|---|---|\n| ccc | **d** |",
            r#""a   | b\n----|--\nccc | d" [CodeBlock "a   | b\n----|--\nccc | d"]"#,
        ),
        ("> `->`\n\nend", r#""> ->\n\nend" [Code "->"]"#),
        ("> `>>>`\n\naöö", r#""> >>>\n\naöö" [Code ">>>"]"#),
        ("abc\n\n>\n\nd", r#""abc\n\nd" []"#),
        ("****", r#""———" []"#),
        ("", r#""" []"#),
    ] {
        assert_eq!(shown(markdown), expected, "{markdown}");
    }
}
