//! Markdown as plain text with styled ranges, for channels without HTML.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

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
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for event in Parser::new_ext(markdown, options) {
        writer.event(event);
    }
    let Styled { mut text, mut spans } = writer.out;
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
    /// Open lists, with the next number of each.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// Whether the next block begins on the line of its list item or quote.
    is_after_bullet: bool,
    table: Option<Table>,
    /// Open links: where the text began, and the address.
    links: Vec<(usize, String)>,
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
            Event::Code(text) => {
                self.open(Style::Code);
                self.text(&text);
                self.close();
            }
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
                self.open(Style::Bold);
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
                self.is_after_bullet = true;
            }
            Tag::CodeBlock(_) => {
                self.block();
                self.open(Style::CodeBlock);
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
                    _ => "- ".to_owned(),
                };
                self.text(&format!("{}{bullet}", "  ".repeat(depth)));
                self.is_after_bullet = true;
            }
            Tag::Emphasis => self.open(Style::Italic),
            Tag::Strong => self.open(Style::Bold),
            Tag::Strikethrough => self.open(Style::Strike),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((self.position(), dest_url.to_string()));
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
            TagEnd::Heading(_) | TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => {
                self.close();
            }
            TagEnd::BlockQuote(_) => {
                self.drop_empty_marks();
                self.quotes = self.quotes.saturating_sub(1);
                self.is_after_bullet = false;
            }
            TagEnd::CodeBlock => {
                if self.out.text.ends_with('\n') {
                    self.out.text.pop();
                }
                self.close();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_after_bullet = false;
            }
            TagEnd::Item => self.is_after_bullet = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let Some(row) = table.rows.last_mut()
                {
                    row.push(std::mem::take(&mut table.cell).trim().to_owned());
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.open(Style::CodeBlock);
                    self.text(&aligned(&table.rows));
                    self.close();
                }
            }
            _ => {}
        }
    }

    /// The address follows the text, unless it is the text.
    fn end_link(&mut self) {
        let Some((start, address)) = self.links.pop() else { return };
        let written = match &self.table {
            Some(table) => table.cell.get(start..),
            None => self.out.text.get(start..),
        };
        let is_shown = written
            .is_some_and(|text| text == address || Some(text) == address.strip_prefix("mailto:"));
        if !is_shown && !address.is_empty() {
            self.text(&format!(" ({address})"));
        }
    }

    fn position(&self) -> usize {
        self.table.as_ref().map_or(self.out.text.len(), |table| table.cell.len())
    }

    /// Begins a block: after an empty line, in a list on a line of its own.
    fn block(&mut self) {
        if std::mem::take(&mut self.is_after_bullet) || self.out.text.is_empty() {
            return;
        }
        self.new_line();
        if self.lists.is_empty() {
            self.raw("\n");
        }
    }

    fn new_line(&mut self) {
        self.is_after_bullet = false;
        if !self.out.text.is_empty() && !self.out.text.ends_with('\n') {
            self.raw("\n");
        }
    }

    fn open(&mut self, style: Style) {
        self.is_after_bullet = false;
        // The mark of a quote is no part of what begins on its line.
        self.raw("");
        self.open.push((style, self.out.text.len()));
    }

    fn close(&mut self) {
        let Some((style, start)) = self.open.pop() else { return };
        let end = self.out.text.len();
        if start < end && self.table.is_none() {
            self.out.spans.push(Span { style, start, end });
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(table) = &mut self.table {
            table.cell.push_str(&text.replace('\n', " "));
            return;
        }
        self.is_after_bullet = false;
        self.raw(text);
    }

    /// Writes a text, with the marks of quotes at the start of its lines.
    fn raw(&mut self, text: &str) {
        if self.quotes == 0 || self.table.is_some() {
            self.out.text.push_str(text);
            return;
        }
        for line in text.split_inclusive('\n') {
            self.mark_quote();
            self.out.text.push_str(line);
        }
        if text.is_empty() {
            self.mark_quote();
        }
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
        if self.out.text.is_empty() || self.out.text.ends_with('\n') {
            self.out.text.push_str("> ");
        }
    }
}

/// A table with columns of equal width.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let fill = widths[column].saturating_sub(cell.width());
            format!("{cell}{}", " ".repeat(fill))
        });
        lines.push(cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned());
        if number == 0 {
            let dashes = widths.iter().map(|width| "-".repeat(*width));
            lines.push(dashes.collect::<Vec<_>>().join("-|-"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
