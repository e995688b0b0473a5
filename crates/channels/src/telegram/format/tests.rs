//! Tests of formatting.

use proptest::prelude::*;

use super::*;

fn html(markdown: &str) -> String {
    render(markdown).html
}

#[test]
fn markdown_becomes_the_few_tags_that_telegram_has() {
    assert_eq!(html("**b** *i* ~~s~~ `c`"), "<b>b</b> <i>i</i> <s>s</s> <code>c</code>");
    assert_eq!(html("# Title\n\ntext"), "<b>Title</b>\n\ntext");
    assert_eq!(html("**a `b` c**"), "<b>a </b><code>b</code><b> c</b>");
    assert_eq!(html("a < b & c > \"d\""), "a &lt; b &amp; c &gt; &quot;d&quot;");
    assert_eq!(html("<script>x</script>"), "&lt;script&gt;x&lt;/script&gt;");
    assert_eq!(
        html("```rust\nlet a = &b;\n```\nend"),
        "<pre><code class=\"language-rust\">let a = &amp;b;</code></pre>\n\nend"
    );
    assert_eq!(html("- a\n- b\n  - c\n\n1. x\n2. y"), "• a\n• b\n  • c\n\n1. x\n2. y");
    assert_eq!(html("- [x] done\n- [ ] not"), "• ☑ done\n• ☐ not");
    assert_eq!(html("> a\n> > b\n\nc"), "<blockquote>a\n\nb</blockquote>\n\nc");
    assert_eq!(html("[a](https://b.c/?d&e)"), "<a href=\"https://b.c/?d&amp;e\">a</a>");
    assert_eq!(html("[a](javascript:x)"), "a (javascript:x)");
    assert_eq!(
        html("| a | bb |\n|---|---|\n| ccc | **d** |"),
        "<pre>a   | bb\n----|---\nccc | d</pre>"
    );
}

#[test]
fn units_are_those_of_the_visible_text() {
    assert_eq!(render("**😀** & `x`").units, utf16_units("😀 & x"));
    assert_eq!(render("```\nab\n```").units, 2);
}

/// Checks the tags as Telegram does: known names, properly nested, no formatting in code, no quote in a quote.
fn check(html: &str) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').ok_or("a tag has no end")? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop().ok_or_else(|| format!("{name} is not open"))?;
            if last != name {
                return Err(format!("{name} closes {last}"));
            }
            continue;
        }
        let name = tag.split(' ').next().unwrap_or_default();
        if !["b", "i", "s", "a", "code", "pre", "blockquote"].contains(&name) {
            return Err(format!("unknown tag {name}"));
        }
        let is_in_code = open.iter().any(|open| open == "code" || open == "pre");
        if is_in_code && !(name == "code" && open.last().is_some_and(|open| open == "pre")) {
            return Err(format!("{name} in code"));
        }
        if name == "blockquote" && open.iter().any(|open| open == name) {
            return Err("a quote in a quote".to_owned());
        }
        open.push(name.to_owned());
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} stay open")) }
}

proptest! {
    #[test]
    fn any_text_gives_tags_that_telegram_accepts(
        pieces in prop::collection::vec(prop_oneof![
            "[a-z<>&\" ]{0,8}", Just("**".to_owned()), Just("*".to_owned()), Just("~~".to_owned()),
            Just("`".to_owned()), Just("\n".to_owned()), Just("\n\n".to_owned()), Just("\n```x\n".to_owned()),
            Just("\n> ".to_owned()), Just("\n- ".to_owned()), Just("\n1. ".to_owned()), Just("[a](https://b)".to_owned()),
            Just("[".to_owned()), Just("](http://x)".to_owned()), Just("\n# ".to_owned()),
            Just("\n| a | b |\n|---|---|\n| c | d |\n".to_owned()), Just("![i](https://p)".to_owned()),
        ], 0..30),
    ) {
        let rendered = render(&pieces.concat());
        prop_assert_eq!(check(&rendered.html), Ok(()), "{}", rendered.html);
    }
}
