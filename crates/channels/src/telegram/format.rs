//! Markdown in Telegram's HTML, which has few tags and refuses a message with a wrong one.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::table::aligned;
use crate::utf16_units;

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
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for event in Parser::new_ext(markdown, options) {
        writer.event(event);
    }
    writer.out.html.truncate(writer.out.html.trim_end().len());
    writer.out
}

#[derive(Default)]
struct Writer {
    out: Rendered,
    /// Open tags of inline formatting, with their opening text.
    inline: Vec<(&'static str, String)>,
    /// Open lists with the next number of each.
    lists: Vec<Option<u64>>,
    quotes: usize,
    is_code_block: bool,
    /// Whether the next block begins on the line of its list item.
    is_after_bullet: bool,
    table: Option<Table>,
    /// The destination of a link that is not clickable.
    plain_links: Vec<Option<String>>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => self.code(&text),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.block();
                self.text("———");
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { .. } => {
                self.block();
                self.open("b", "<b>".to_owned());
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
                // Telegram allows no quote in a quote.
                if self.quotes == 1 {
                    self.out.html.push_str("<blockquote>");
                }
                self.is_after_bullet = true;
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.is_code_block = true;
                self.out.html.push_str("<pre>");
                let class = escape(&language);
                self.out.html.push_str(&format!("<code class=\"language-{class}\">"));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.new_line();
                let depth = self.lists.len().saturating_sub(1);
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.text(&format!("{}{bullet}", "  ".repeat(depth)));
                self.is_after_bullet = true;
            }
            Tag::Emphasis => self.open("i", "<i>".to_owned()),
            Tag::Strong => self.open("b", "<b>".to_owned()),
            Tag::Strikethrough => self.open("s", "<s>".to_owned()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let is_clickable = LINKS.iter().any(|start| dest_url.starts_with(start));
                let is_nested = self.inline.iter().any(|(name, _)| *name == "a");
                if is_clickable && !is_nested && self.table.is_none() {
                    self.open("a", format!("<a href=\"{}\">", escape(&dest_url)));
                    self.plain_links.push(None);
                } else {
                    self.plain_links.push(Some(dest_url.to_string()));
                }
            }
            Tag::Table(_) => {
                self.block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Heading(_) | TagEnd::Strong => self.close("b"),
            TagEnd::Emphasis => self.close("i"),
            TagEnd::Strikethrough => self.close("s"),
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                if self.quotes == 0 {
                    self.out.html.truncate(self.out.html.trim_end().len());
                    self.out.html.push_str("</blockquote>");
                }
            }
            TagEnd::CodeBlock => {
                self.is_code_block = false;
                if self.out.html.ends_with('\n') {
                    self.out.html.pop();
                    self.out.units = self.out.units.saturating_sub(1);
                }
                self.out.html.push_str("</code></pre>");
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_after_bullet = false;
            }
            TagEnd::Item => self.is_after_bullet = false,
            TagEnd::Link | TagEnd::Image => match self.plain_links.pop().flatten() {
                Some(address) if !address.is_empty() => self.text(&format!(" ({address})")),
                Some(_) => {}
                None => self.close("a"),
            },
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let Some(row) = table.rows.last_mut()
                {
                    row.push(std::mem::take(&mut table.cell).trim().to_owned());
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(&table.rows);
                }
            }
            _ => {}
        }
    }

    /// Begins a block: after an empty line, in a list on a line of its own.
    fn block(&mut self) {
        if std::mem::take(&mut self.is_after_bullet) || self.out.html.is_empty() {
            return;
        }
        self.new_line();
        if self.lists.is_empty() {
            self.raw_text("\n");
        }
    }

    fn new_line(&mut self) {
        self.is_after_bullet = false;
        if !self.out.html.is_empty() && !self.out.html.ends_with('\n') {
            self.raw_text("\n");
        }
    }

    fn open(&mut self, name: &'static str, opening: String) {
        if self.table.is_some() {
            return;
        }
        self.is_after_bullet = false;
        self.out.html.push_str(&opening);
        self.inline.push((name, opening));
    }

    fn close(&mut self, name: &'static str) {
        if self.inline.last().is_some_and(|(open, _)| *open == name) {
            self.inline.pop();
            self.out.html.push_str(&format!("</{name}>"));
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(table) = &mut self.table {
            table.cell.push_str(&text.replace('\n', " "));
            return;
        }
        self.is_after_bullet = false;
        self.raw_text(text);
    }

    fn raw_text(&mut self, text: &str) {
        self.out.units += utf16_units(text);
        self.out.html.push_str(&escape(text));
    }

    /// Code in a line. No other formatting may contain it, so it is closed and opened again.
    fn code(&mut self, text: &str) {
        if self.table.is_some() {
            return self.text(text);
        }
        self.is_after_bullet = false;
        for (name, _) in self.inline.iter().rev() {
            self.out.html.push_str(&format!("</{name}>"));
        }
        self.out.html.push_str("<code>");
        self.out.units += utf16_units(text);
        self.out.html.push_str(&escape(text));
        self.out.html.push_str("</code>");
        for (_, opening) in &self.inline {
            self.out.html.push_str(opening);
        }
    }

    /// A table as aligned text: Telegram has none of its own.
    fn table(&mut self, rows: &[Vec<String>]) {
        self.out.html.push_str("<pre>");
        self.raw_text(&aligned(rows));
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
