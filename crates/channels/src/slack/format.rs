//! Markdown as mrkdwn, the markup of Slack's texts.

use crate::utf16_units;
use crate::walk::{Inline, Marks, walk};

/// Protocols of links that Slack makes clickable.
const LINKS: [&str; 3] = ["http://", "https://", "mailto:"];

/// Renders a Markdown text. Nothing in the result mentions anybody: `<` begins links only.
pub(super) fn render(markdown: &str) -> String {
    let mut out = walk(markdown, Writer::default()).out;
    out.truncate(out.trim_end().len());
    out
}

/// The units that Slack's limit counts, or more: it does not say whether it counts characters or UTF-16 units, nor
/// whether an escaped character is one.
pub(super) fn units(rendered: &str) -> usize {
    utf16_units(rendered)
}

#[derive(Default)]
struct Writer {
    out: String,
    quotes: usize,
    is_code_block: bool,
}

impl Writer {
    /// Markup. In a quote each line begins with `>`.
    fn raw(&mut self, text: &str) {
        match self.quotes {
            0 => self.out.push_str(text),
            _ => self.out.push_str(&text.replace('\n', "\n> ")),
        }
    }
}

fn mark(inline: Inline) -> &'static str {
    match inline {
        Inline::Bold => "*",
        Inline::Italic => "_",
        Inline::Strike => "~",
    }
}

impl Marks for Writer {
    const BULLET: &'static str = "• ";
    const INDENT: &'static str = "    ";
    const CELL_CODE: &'static str = "`";

    fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn is_at_line_start(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        line.is_empty() || line == "> "
    }

    fn text(&mut self, text: &str) {
        let text = if self.is_code_block { text.replace("```", "'''") } else { text.to_owned() };
        self.raw(&escape(&text));
    }

    /// A text in which addresses become links.
    fn words(&mut self, text: &str) {
        if self.is_code_block {
            return self.text(text);
        }
        for piece in text.split_inclusive(char::is_whitespace) {
            let at = ["https://", "http://"].iter().filter_map(|start| piece.find(start)).min();
            let Some(at) = at else {
                self.text(piece);
                continue;
            };
            let (before, rest) = piece.split_at(at);
            let mut end = rest
                .trim_end()
                .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\''])
                .len();
            // A bracket that the address itself opens belongs to it.
            let opened = rest[..end].matches('(').count();
            if opened > rest[..end].matches(')').count() && rest[end..].starts_with(')') {
                end += 1;
            }
            self.text(before);
            self.out.push_str(&format!("<{}>", address(&rest[..end])));
            self.text(&rest[end..]);
        }
    }

    fn code(&mut self, text: &str) {
        self.out.push('`');
        self.text(&text.replace('`', "'"));
        self.out.push('`');
    }

    fn open(&mut self, inline: Inline) {
        self.out.push_str(mark(inline));
    }

    fn close(&mut self, inline: Inline) {
        self.out.push_str(mark(inline));
    }

    fn open_link(&mut self, address: &str) -> bool {
        let is_clickable = LINKS.iter().any(|start| address.starts_with(start));
        if is_clickable {
            self.out.push_str(&format!("<{}|", self::address(address)));
        }
        is_clickable
    }

    fn close_link(&mut self) {
        self.out.push('>');
    }

    fn begin_quote(&mut self) {
        self.quotes += 1;
        if self.quotes == 1 {
            self.out.push_str("> ");
        }
    }

    fn end_quote(&mut self) {
        self.quotes = self.quotes.saturating_sub(1);
    }

    fn begin_code(&mut self, _language: &str) {
        self.is_code_block = true;
        self.raw("```\n");
    }

    fn end_code(&mut self) {
        self.is_code_block = false;
        if !self.is_at_line_start() {
            self.raw("\n");
        }
        self.raw("```");
    }

    fn table(&mut self, lines: &str) {
        self.raw("```\n");
        self.text(&lines.replace("```", "'''"));
        self.raw("\n```");
    }
}

/// A text in which nothing is a link or a mention.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An address that cannot end its link early.
fn address(address: &str) -> String {
    escape(&address.replace('|', "%7C").replace('>', "%3E").replace('<', "%3C"))
}

#[cfg(test)]
mod tests;
