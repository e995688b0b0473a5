//! Markdown in the marks of WhatsApp and of XMPP (XEP-0393). They cannot be escaped, so a mark is left out where it would end
//! too early.

use crate::markup::{Span, Style, Styled, render};

/// A Markdown text with marks: `*bold*`, `_italic_`, `~no~`, `` `code` ``. `fences` stand before and after blocks of code.
pub(crate) fn marked(markdown: &str, fences: [&'static str; 2]) -> String {
    let Styled { text, spans } = render(markdown);
    // Position, whether it closes, number of the range, and the mark.
    let mut marks: Vec<(usize, bool, usize, &str)> = Vec::new();
    for (number, span) in spans.into_iter().enumerate() {
        let [before, after] = match span.style {
            Style::Bold => ["*"; 2],
            Style::Italic => ["_"; 2],
            Style::Strike => ["~"; 2],
            Style::Code => ["`"; 2],
            Style::CodeBlock => fences,
        };
        for (start, end) in pieces(&text, span) {
            if !text[start..end].contains(before.trim()) {
                marks.push((start, false, number, before));
                marks.push((end, true, number, after));
            }
        }
    }
    // A range ends after those that it contains. At one position what closes comes before what opens.
    marks.sort_by(|one, other| {
        let nesting = if one.1 { one.2.cmp(&other.2) } else { other.2.cmp(&one.2) };
        one.0.cmp(&other.0).then(other.1.cmp(&one.1)).then(nesting)
    });
    let mut out = String::with_capacity(text.len() + marks.len());
    let mut done = 0;
    for (at, _, _, mark) in marks {
        out.push_str(&text[done..at]);
        out.push_str(mark);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

/// The parts of a range that can have marks: within a line, without spaces at their ends. A code block is one.
fn pieces(text: &str, span: Span) -> Vec<(usize, usize)> {
    if span.style == Style::CodeBlock {
        return vec![(span.start, span.end)];
    }
    let mut pieces = Vec::new();
    let mut at = span.start;
    for line in text[span.start..span.end].split_inclusive('\n') {
        let quoted = if at > span.start { line.strip_prefix("> ").unwrap_or(line) } else { line };
        let start = at + (line.len() - quoted.len()) + (quoted.len() - quoted.trim_start().len());
        let end = start + quoted.trim().len();
        if start < end {
            pieces.push((start, end));
        }
        at += line.len();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn markdown_becomes_marks() {
        for (markdown, expected) in [
            ("**bold** _it_ ~~no~~ `c` & <x>", "*bold* _it_ ~no~ `c` & <x>"),
            ("***both***", "_*both*_"),
            ("**a *b***", "*a _b_*"),
            ("**one\ntwo**", "*one*\n*two*"),
            ("> **one\n> two**", "> *one*\n> *two*"),
            ("# Head\n\n- a\n- b", "*Head*\n\n- a\n- b"),
            ("```\nlet a;\n```", "```let a;```"),
            ("[docs](https://a.b)", "docs (https://a.b)"),
            ("**2 * 3**", "2 * 3"),
            ("` a `", "`a`"),
        ] {
            assert_eq!(marked(markdown, ["```"; 2]), expected, "{markdown}");
        }
        let lines = marked("x\n```\nlet a;\n```\ny", ["```\n", "\n```"]);
        assert_eq!(lines, "x\n\n```\nlet a;\n```\n\ny");
    }
}
