//! Markdown as plain text with styled ranges, for channels without HTML.

use crate::walk::{Inline, Marks, walk};

/// A text with styles.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Styled {
    pub(crate) text: String,
    /// Ranges, in the order in which they end. One may contain another.
    pub(crate) spans: Vec<Span>,
}

/// A range with a style, in bytes of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) style: Style,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// How a range looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Italic,
    Strike,
    /// Code within a line.
    Code,
    /// Whole lines of code.
    CodeBlock,
}

/// Renders a Markdown text. Quotes have `> ` before their lines, as in Markdown.
pub(crate) fn render(markdown: &str) -> Styled {
    let Styled { mut text, mut spans } = walk(markdown, Writer::default()).out;
    text.truncate(text.trim_end().len());
    for span in &mut spans {
        span.end = span.end.min(text.len());
    }
    spans.retain(|span| span.start < span.end);
    Styled { text, spans }
}

#[derive(Default)]
struct Writer {
    out: Styled,
    /// Open styles, with where they began.
    open: Vec<(Style, usize)>,
    quotes: usize,
}

impl Writer {
    fn begin(&mut self, style: Style) {
        // The mark of a quote is no part of what begins on its line.
        self.mark_quote();
        self.open.push((style, self.out.text.len()));
    }

    fn end(&mut self) {
        let Some((style, start)) = self.open.pop() else { return };
        let end = self.out.text.len();
        if start < end {
            self.out.spans.push(Span { style, start, end });
        }
    }

    fn within(&mut self, style: Style, text: &str) {
        self.begin(style);
        self.text(text);
        self.end();
    }

    /// Removes the lines at the end that hold nothing but the mark of a quote. What a quote says may end with `>` too.
    fn drop_empty_marks(&mut self) {
        let mut end = self.out.text.trim_end().len();
        loop {
            let start = self.out.text[..end].rfind('\n').map_or(0, |at| at + 1);
            if self.out.text[start..end] != *">" {
                break;
            }
            end = self.out.text[..start].trim_end().len();
        }
        self.out.text.truncate(end);
        // What follows is written there, and no range may reach into it.
        for span in &mut self.out.spans {
            span.end = span.end.min(end);
        }
    }

    fn mark_quote(&mut self) {
        if self.quotes > 0 && self.is_at_line_start() {
            self.out.text.push_str("> ");
        }
    }
}

impl Marks for Writer {
    const BULLET: &'static str = "- ";
    const INDENT: &'static str = "  ";

    fn is_empty(&self) -> bool {
        self.out.text.is_empty()
    }

    fn is_at_line_start(&self) -> bool {
        self.out.text.is_empty() || self.out.text.ends_with('\n')
    }

    /// Writes a text, with the marks of quotes at the start of its lines.
    fn text(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            self.mark_quote();
            self.out.text.push_str(line);
        }
    }

    fn code(&mut self, text: &str) {
        self.within(Style::Code, text);
    }

    fn open(&mut self, inline: Inline) {
        self.begin(match inline {
            Inline::Bold => Style::Bold,
            Inline::Italic => Style::Italic,
            Inline::Strike => Style::Strike,
        });
    }

    fn close(&mut self, _inline: Inline) {
        self.end();
    }

    fn begin_quote(&mut self) {
        self.quotes += 1;
    }

    fn end_quote(&mut self) {
        self.drop_empty_marks();
        self.quotes = self.quotes.saturating_sub(1);
    }

    fn begin_code(&mut self, _language: &str) {
        self.begin(Style::CodeBlock);
    }

    fn end_code(&mut self) {
        if self.out.text.ends_with('\n') {
            self.out.text.pop();
        }
        self.end();
    }

    fn table(&mut self, lines: &str) {
        self.within(Style::CodeBlock, lines);
    }
}

#[cfg(test)]
mod tests;
