//! Walks over Markdown, for channels with a markup of their own: where blocks, lines and items begin is the same for all
//! of them, and the marks are not.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use crate::table::aligned;

/// Formatting within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inline {
    Bold,
    Italic,
    Strike,
}

/// What a channel writes for the parts of a text.
pub(crate) trait Marks {
    /// What begins an item of a list without numbers.
    const BULLET: &'static str;
    /// What stands before items, for each list that theirs is in.
    const INDENT: &'static str;
    /// What stands around code in a table.
    const CELL_CODE: &'static str = "";

    /// Whether nothing is written yet.
    fn is_empty(&self) -> bool;

    /// Whether the next text begins a line.
    fn is_at_line_start(&self) -> bool;

    /// A text in which nothing is markup.
    fn text(&mut self, text: &str);

    /// What somebody wrote, outside of links.
    fn words(&mut self, text: &str) {
        self.text(text);
    }

    /// Code in a line.
    fn code(&mut self, text: &str);

    fn open(&mut self, inline: Inline);

    fn close(&mut self, inline: Inline);

    /// Begins a link, if it can be one. Otherwise its address is written behind its text.
    fn open_link(&mut self, address: &str) -> bool {
        let _ = address;
        false
    }

    fn close_link(&mut self) {}

    fn begin_quote(&mut self);

    fn end_quote(&mut self);

    /// Begins lines of code in a language, which may be empty.
    fn begin_code(&mut self, language: &str);

    fn end_code(&mut self);

    /// A table as lines with columns of equal width.
    fn table(&mut self, lines: &str);
}

/// Writes a Markdown text with `marks`.
pub(crate) fn walk<M: Marks>(markdown: &str, marks: M) -> M {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut walker =
        Walker { marks, lists: Vec::new(), is_after_mark: false, table: None, links: Vec::new() };
    // A text with a sign of Markdown, such as an address with `~`, comes in pieces.
    for event in TextMergeStream::new(Parser::new_ext(markdown, options)) {
        walker.event(event);
    }
    walker.marks
}

struct Walker<M> {
    marks: M,
    /// Open lists, with the next number of each.
    lists: Vec<Option<u64>>,
    /// Whether the next block begins on the line of its list item or quote.
    is_after_mark: bool,
    table: Option<Table>,
    links: Vec<Link>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

struct Link {
    address: String,
    text: String,
    /// Whether the channel shows it as a link.
    is_shown: bool,
}

impl<M: Marks> Walker<M> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) if self.table.is_none() && self.links.is_empty() => {
                self.is_after_mark = false;
                self.marks.words(&text);
            }
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
                self.open(Inline::Bold);
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.marks.begin_quote();
                self.is_after_mark = true;
            }
            Tag::CodeBlock(kind) => {
                self.block();
                match kind {
                    CodeBlockKind::Fenced(info) => {
                        self.marks.begin_code(info.split([' ', ',']).next().unwrap_or_default());
                    }
                    CodeBlockKind::Indented => self.marks.begin_code(""),
                }
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.open(Inline::Italic),
            Tag::Strong => self.open(Inline::Bold),
            Tag::Strikethrough => self.open(Inline::Strike),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.open_link(&dest_url),
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
            TagEnd::Heading(_) | TagEnd::Strong => self.close(Inline::Bold),
            TagEnd::Emphasis => self.close(Inline::Italic),
            TagEnd::Strikethrough => self.close(Inline::Strike),
            TagEnd::BlockQuote(_) => {
                self.marks.end_quote();
                self.is_after_mark = false;
            }
            TagEnd::CodeBlock => self.marks.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_after_mark = false;
            }
            TagEnd::Item => self.is_after_mark = false,
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let Some(row) = table.rows.last_mut()
                {
                    row.push(std::mem::take(&mut table.cell).trim().to_owned());
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.marks.table(&aligned(&table.rows));
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
            _ => M::BULLET.to_owned(),
        };
        self.marks.text(&format!("{}{bullet}", M::INDENT.repeat(depth)));
        self.is_after_mark = true;
    }

    /// Begins a block: after an empty line, in a list on a line of its own.
    fn block(&mut self) {
        if std::mem::take(&mut self.is_after_mark) || self.marks.is_empty() {
            return;
        }
        self.new_line();
        if self.lists.is_empty() {
            self.marks.text("\n");
        }
    }

    fn new_line(&mut self) {
        self.is_after_mark = false;
        if !self.marks.is_at_line_start() {
            self.marks.text("\n");
        }
    }

    /// A table is in a fixed-width font, in which there is no formatting.
    fn open(&mut self, inline: Inline) {
        if self.table.is_none() {
            self.is_after_mark = false;
            self.marks.open(inline);
        }
    }

    fn close(&mut self, inline: Inline) {
        if self.table.is_none() {
            self.marks.close(inline);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        if let Some(table) = &mut self.table {
            table.cell.push_str(&text.replace('\n', " "));
            return;
        }
        self.is_after_mark = false;
        self.marks.text(text);
    }

    fn code(&mut self, text: &str) {
        if self.table.is_some() {
            return self.text(&format!("{0}{text}{0}", M::CELL_CODE));
        }
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        self.is_after_mark = false;
        self.marks.code(text);
    }

    fn open_link(&mut self, address: &str) {
        let is_free = self.table.is_none() && !self.links.iter().any(|link| link.is_shown);
        let is_shown = is_free && self.marks.open_link(address);
        if is_shown {
            self.is_after_mark = false;
        }
        self.links.push(Link { address: address.to_owned(), text: String::new(), is_shown });
    }

    /// The address follows the text, unless it is the text.
    fn close_link(&mut self) {
        let Some(Link { address, text, is_shown }) = self.links.pop() else { return };
        if is_shown {
            return self.marks.close_link();
        }
        let is_text = text == address || Some(text.as_str()) == address.strip_prefix("mailto:");
        if !is_text && !address.is_empty() {
            self.text(&format!(" ({address})"));
        }
    }
}
