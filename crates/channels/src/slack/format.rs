//! Markdown as mrkdwn, the markup of Slack's texts.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use crate::table::aligned;
use crate::utf16_units;

/// Protocols of links that Slack makes clickable.
const LINKS: [&str; 3] = ["http://", "https://", "mailto:"];

/// Renders a Markdown text. Nothing in the result mentions anybody: `<` begins links only.
pub(super) fn render(markdown: &str) -> String {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    // An address with a sign of Markdown, such as `/~ann`, comes in pieces.
    for event in TextMergeStream::new(Parser::new_ext(markdown, options)) {
        writer.event(event);
    }
    writer.out.truncate(writer.out.trim_end().len());
    writer.out
}

/// The units that Slack's limit counts, or more: it does not say whether it counts characters or UTF-16 units, nor
/// whether an escaped character is one.
pub(super) fn units(rendered: &str) -> usize {
    utf16_units(rendered)
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Open lists with the next number of each.
    lists: Vec<Option<u64>>,
    quotes: usize,
    is_code_block: bool,
    /// Whether the next block begins on the line of its list item or quote.
    is_after_mark: bool,
    /// Rows, and the cell that is being read.
    table: Option<(Vec<Vec<String>>, String)>,
    /// Open links: the destination, and whether it is clickable.
    links: Vec<(String, bool)>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) if self.is_code_block => self.literal(&text),
            Event::Text(text) => self.words(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.literal(&text),
            Event::Code(text) => {
                let text = text.replace('`', "'");
                self.mark("`");
                self.literal(&text);
                self.mark("`");
            }
            Event::SoftBreak | Event::HardBreak => self.literal("\n"),
            Event::Rule => {
                self.block();
                self.literal("———");
            }
            Event::TaskListMarker(is_done) => self.literal(if is_done { "☑ " } else { "☐ " }),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { .. } => {
                self.block();
                self.mark("*");
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
                if self.quotes == 1 {
                    self.out.push_str("> ");
                }
                self.is_after_mark = true;
            }
            Tag::CodeBlock(_) => {
                self.block();
                self.is_code_block = true;
                self.raw("```\n");
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.mark("_"),
            Tag::Strong => self.mark("*"),
            Tag::Strikethrough => self.mark("~"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let is_clickable = LINKS.iter().any(|start| dest_url.starts_with(start))
                    && self.links.is_empty()
                    && self.table.is_none();
                if is_clickable {
                    self.is_after_mark = false;
                    self.out.push_str(&format!("<{}|", address(&dest_url)));
                }
                self.links.push((dest_url.to_string(), is_clickable));
            }
            Tag::Table(_) => {
                self.block();
                self.table = Some(Default::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some((rows, _)) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Heading(_) | TagEnd::Strong => self.mark("*"),
            TagEnd::Emphasis => self.mark("_"),
            TagEnd::Strikethrough => self.mark("~"),
            TagEnd::BlockQuote(_) => self.quotes = self.quotes.saturating_sub(1),
            TagEnd::CodeBlock => {
                self.is_code_block = false;
                self.new_line();
                self.raw("```");
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_after_mark = false;
            }
            TagEnd::Item => self.is_after_mark = false,
            TagEnd::Link | TagEnd::Image => match self.links.pop() {
                Some((_, true)) => self.out.push('>'),
                Some((address, false)) if !address.is_empty() => {
                    self.literal(&format!(" ({address})"));
                }
                _ => {}
            },
            TagEnd::TableCell => {
                if let Some((rows, cell)) = &mut self.table
                    && let Some(row) = rows.last_mut()
                {
                    row.push(std::mem::take(cell).trim().to_owned());
                }
            }
            TagEnd::Table => {
                if let Some((rows, _)) = self.table.take() {
                    self.raw("```\n");
                    self.literal(&aligned(&rows).replace("```", "'''"));
                    self.raw("\n```");
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.new_line();
        let depth = self.lists.len().saturating_sub(1);
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        self.literal(&format!("{}{bullet}", "    ".repeat(depth)));
        self.is_after_mark = true;
    }

    /// Begins a block: after an empty line, in a list on a line of its own.
    fn block(&mut self) {
        if std::mem::take(&mut self.is_after_mark) || self.out.is_empty() {
            return;
        }
        self.new_line();
        if self.lists.is_empty() {
            self.raw("\n");
        }
    }

    fn new_line(&mut self) {
        self.is_after_mark = false;
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        if !line.is_empty() && line != "> " {
            self.raw("\n");
        }
    }

    /// A sign of the markup. A table is in a fixed-width font, in which there are none.
    fn mark(&mut self, mark: &str) {
        match &mut self.table {
            Some((_, cell)) if mark == "`" => cell.push('`'),
            Some(_) => {}
            None => {
                self.is_after_mark = false;
                self.out.push_str(mark);
            }
        }
    }

    /// A text in which addresses become links.
    fn words(&mut self, text: &str) {
        if self.table.is_some() || !self.links.is_empty() {
            return self.literal(text);
        }
        for piece in text.split_inclusive(char::is_whitespace) {
            let at = ["https://", "http://"].iter().filter_map(|start| piece.find(start)).min();
            let Some(at) = at else {
                self.literal(piece);
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
            self.literal(before);
            self.out.push_str(&format!("<{}>", address(&rest[..end])));
            self.literal(&rest[end..]);
        }
    }

    /// A text in which nothing is markup of links or mentions.
    fn literal(&mut self, text: &str) {
        if let Some((_, cell)) = &mut self.table {
            cell.push_str(&text.replace('\n', " "));
            return;
        }
        self.is_after_mark = false;
        let text = if self.is_code_block { text.replace("```", "'''") } else { text.to_owned() };
        self.raw(&escape(&text));
    }

    /// Markup. In a quote each line begins with `>`.
    fn raw(&mut self, text: &str) {
        match self.quotes {
            0 => self.out.push_str(text),
            _ => self.out.push_str(&text.replace('\n', "\n> ")),
        }
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
