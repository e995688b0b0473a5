//! Markdown in Telegram's HTML, which has few tags and refuses a message with a wrong one.

use crate::utf16_units;
use crate::walk::{Inline, Marks, walk};

/// Protocols of links that Telegram makes clickable.
const LINKS: [&str; 4] = ["http://", "https://", "tg://", "mailto:"];

/// A message in HTML.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rendered {
    /// The text with its tags.
    pub(super) html: String,
    /// UTF-16 units without tags, which is what Telegram's limit counts.
    pub(super) units: usize,
}

/// Renders a Markdown text.
pub(super) fn render(markdown: &str) -> Rendered {
    let mut out = walk(markdown, Writer::default()).out;
    out.html.truncate(out.html.trim_end().len());
    out
}

#[derive(Default)]
struct Writer {
    out: Rendered,
    /// Open tags of inline formatting, with their opening text.
    inline: Vec<(&'static str, String)>,
    quotes: usize,
}

impl Writer {
    fn begin(&mut self, name: &'static str, opening: String) {
        self.out.html.push_str(&opening);
        self.inline.push((name, opening));
    }

    fn end(&mut self, name: &'static str) {
        if self.inline.last().is_some_and(|(open, _)| *open == name) {
            self.inline.pop();
            self.out.html.push_str(&format!("</{name}>"));
        }
    }
}

fn tag(inline: Inline) -> &'static str {
    match inline {
        Inline::Bold => "b",
        Inline::Italic => "i",
        Inline::Strike => "s",
    }
}

impl Marks for Writer {
    const BULLET: &'static str = "• ";
    const INDENT: &'static str = "  ";

    fn is_empty(&self) -> bool {
        self.out.html.is_empty()
    }

    fn is_at_line_start(&self) -> bool {
        self.out.html.is_empty() || self.out.html.ends_with('\n')
    }

    fn text(&mut self, text: &str) {
        self.out.units += utf16_units(text);
        self.out.html.push_str(&escape(text));
    }

    /// No other formatting may contain code, so it is closed and opened again.
    fn code(&mut self, text: &str) {
        for (name, _) in self.inline.iter().rev() {
            self.out.html.push_str(&format!("</{name}>"));
        }
        self.out.html.push_str("<code>");
        self.text(text);
        self.out.html.push_str("</code>");
        for (_, opening) in &self.inline {
            self.out.html.push_str(opening);
        }
    }

    fn open(&mut self, inline: Inline) {
        let name = tag(inline);
        self.begin(name, format!("<{name}>"));
    }

    fn close(&mut self, inline: Inline) {
        self.end(tag(inline));
    }

    fn open_link(&mut self, address: &str) -> bool {
        let is_clickable = LINKS.iter().any(|start| address.starts_with(start));
        if is_clickable {
            self.begin("a", format!("<a href=\"{}\">", escape(address)));
        }
        is_clickable
    }

    fn close_link(&mut self) {
        self.end("a");
    }

    fn begin_quote(&mut self) {
        self.quotes += 1;
        // Telegram allows no quote in a quote.
        if self.quotes == 1 {
            self.out.html.push_str("<blockquote>");
        }
    }

    fn end_quote(&mut self) {
        self.quotes = self.quotes.saturating_sub(1);
        if self.quotes == 0 {
            self.out.html.truncate(self.out.html.trim_end().len());
            self.out.html.push_str("</blockquote>");
        }
    }

    fn begin_code(&mut self, language: &str) {
        self.out.html.push_str(&format!("<pre><code class=\"language-{}\">", escape(language)));
    }

    fn end_code(&mut self) {
        if self.out.html.ends_with('\n') {
            self.out.html.pop();
            self.out.units = self.out.units.saturating_sub(1);
        }
        self.out.html.push_str("</code></pre>");
    }

    /// Telegram has no tables.
    fn table(&mut self, lines: &str) {
        self.out.html.push_str("<pre>");
        self.text(lines);
        self.out.html.push_str("</pre>");
    }
}

/// A text in which nothing is a tag.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
