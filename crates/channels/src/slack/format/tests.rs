use super::*;

#[test]
fn markdown_becomes_mrkdwn() {
    for (markdown, rendered) in [
        ("**bold** *italic* ~~gone~~ `code`", "*bold* _italic_ ~gone~ `code`"),
        ("# Head\n\ntext", "*Head*\n\ntext"),
        ("[a|b](https://x.y/?a=1&b=2|3)", "<https://x.y/?a=1&amp;b=2%7C3|a|b>"),
        ("[a](javascript:x)", "a (javascript:x)"),
        ("see https://x.y/z, or not", "see <https://x.y/z>, or not"),
        ("https://x.y/~ann/a_(b)_c", "<https://x.y/~ann/a_(b)_c>"),
        ("(see https://x.y/a_(b)).", "(see <https://x.y/a_(b)>)."),
        ("- a\n- b\n  1. c\n  2. d", "• a\n• b\n    1. c\n    2. d"),
        ("> one\n> two\n\nafter", "> one\n> two\n\nafter"),
        ("```rust\nlet a = 1 < 2;\n```\nafter", "```\nlet a = 1 &lt; 2;\n```\n\nafter"),
        ("| a | bb |\n|---|---|\n| 1 | **2** |", "```\na | bb\n--|---\n1 | 2\n```"),
        ("- [x] done\n- [ ] open", "• ☑ done\n• ☐ open"),
        ("1 < 2 & 3 > 2", "1 &lt; 2 &amp; 3 &gt; 2"),
    ] {
        assert_eq!(render(markdown), rendered, "{markdown}");
    }
}

#[test]
fn nothing_in_a_text_mentions_anybody() {
    for markdown in [
        "<!channel> <!here> <!everyone> <@U123> <#C123> <!subteam^S1>",
        "`<!channel>` **<@U123>**",
        "```\n<!channel>\n```",
        "[x](https://a.b/><!channel>)",
        "https://a.b/><!channel>",
        "https://a.b/|<!channel>",
        "| <!channel> | <@U1> |\n|---|---|\n| <!here> | x |",
        "<div><!channel></div>",
        "<div>\n<!channel>\n</div>",
    ] {
        let rendered = render(markdown);
        for sign in ["<!", "<@", "<#"] {
            assert!(!rendered.contains(sign), "{markdown}: {rendered}");
        }
    }
}

#[test]
fn code_cannot_end_its_block_early() {
    assert_eq!(render("````\n```\n<b>\n````"), "```\n'''\n&lt;b&gt;\n```");
    assert_eq!(render("`` a`b ``"), "`a'b`");
}
