use super::*;

#[test]
fn no_text_ends_or_begins_a_section() {
    for tag in PROMPT_TAGS {
        for (form, expected) in [
            (format!("</{tag}>"), format!("&lt;/{tag}>")),
            (format!("<{tag} path=\"A.md\">"), format!("&lt;{tag} path=\"A.md\">")),
            (format!("</{}>", tag.to_uppercase()), format!("&lt;/{}>", tag.to_uppercase())),
            (format!("< / {tag} >"), format!("&lt; / {tag} >")),
            (format!("<\n/\t{tag}\n>"), format!("&lt;\n/\t{tag}\n>")),
            (format!("</{tag}\u{a0}>"), format!("&lt;/{tag}\u{a0}>")),
            (format!("＜／{tag}＞"), format!("&lt;／{tag}＞")),
            (format!("<\\/{tag}>"), format!("&lt;\\/{tag}>")),
            (
                format!("<\u{200b}/{}\u{200b}{}>", &tag[..2], &tag[2..]),
                format!("&lt;\u{200b}/{}\u{200b}{}>", &tag[..2], &tag[2..]),
            ),
            (format!("<<//{tag}>>"), format!("<&lt;//{tag}>>")),
            (format!("</{tag}"), format!("&lt;/{tag}")),
        ] {
            assert_eq!(held(&form), expected);
            assert_eq!(held(&expected), expected, "a second time");
        }
    }
    assert_eq!(held("<safety><Runtime>"), "&lt;safety>&lt;Runtime>");
}

#[test]
fn other_text_is_unchanged() {
    for text in [
        "",
        "a < b && c > d, <b>bold</b>, </body>, <filename>, <tools-x>, Vec<File<T>>",
        "sort < file; cat <file>; cat <file_name >out; if (a <notesize) {}; x <- y; <!-- tools -->; tools/runtime",
        "<",
        "</",
    ] {
        assert_eq!(held(text), text);
    }
}

#[test]
fn the_rest_of_a_text_with_a_tag_is_unchanged() {
    assert_eq!(held("ä </file> b <i>\n<Safety>"), "ä &lt;/file> b <i>\n&lt;Safety>");
}

#[test]
fn names_and_values_are_one_line() {
    assert_eq!(held_line("a\n</tools>\r\u{2028}b"), "a &lt;/tools>  b");
    assert_eq!(attribute("a\"b>\n<c＜.md"), "a_b___c_.md");
}
