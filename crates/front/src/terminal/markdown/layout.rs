//! Lays out Markdown as lines.
//!
//! The layout of a text that still grows must not move lines above its end: lists have the same layout with and without
//! blank lines between their items, and every gap precedes a block and never follows it.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::line::{Line, Piece, Spaces, Styles};
use super::table::Table;
use super::wrap::wrap;
use crate::terminal::highlight::{CodeColours, Span};
use crate::terminal::{Paint, Style, escaped};

/// The supported extensions of CommonMark.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Before each line of a quotation.
const QUOTE_PREFIX: &str = "│ ";
/// Before each line of code.
const CODE_PREFIX: &str = "    ";
/// Longest rule between sections.
const RULE_COLUMNS: usize = 40;
/// Fewest columns of text, even if it is nested deeply in lists and quotations.
const NARROWEST_TEXT: usize = 10;

/// A text, laid out.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) lines: Vec<Line>,
    /// Whether there is any block; one may have no line yet (a code block that was just opened).
    pub(super) has_blocks: bool,
}

/// Lays out `source` in `columns` columns. Code is not broken: its lines may be longer. `paint` says whether marks must
/// replace styles.
pub(super) fn layout(
    source: &str,
    columns: usize,
    paint: Paint,
    colours: &mut CodeColours,
) -> Page {
    colours.begin();
    let mut layout = Layout::new(columns, paint, colours);
    for event in Parser::new_ext(source, OPTIONS) {
        layout.event(event);
    }
    layout.flush_paragraph();
    Page { lines: layout.lines, has_blocks: layout.has_blocks }
}

/// A container of blocks.
#[derive(Debug)]
enum Container {
    Quote,
    List { next_number: Option<u64> },
    Item { marker: String, marker_is_used: bool },
}

/// A container with the state that its next block needs.
#[derive(Debug)]
struct Level {
    container: Container,
    has_blocks: bool,
}

/// The relation of a block to the block before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// A list follows the text of its item directly.
    List,
    Other,
}

#[derive(Debug)]
struct Layout<'a> {
    columns: usize,
    paint: Paint,
    lines: Vec<Line>,
    has_blocks: bool,
    levels: Vec<Level>,
    /// The running text of the block that is read.
    pieces: Vec<Piece>,
    styles: Vec<Styles>,
    /// For each open link or image: where it goes, and where its text begins in `pieces`.
    links: Vec<(String, usize)>,
    code: Option<Code>,
    table: Option<Table>,
    colours: &'a mut CodeColours,
}

/// A block of code that is read.
#[derive(Debug)]
struct Code {
    /// What its opening names; empty if nothing.
    language: String,
    text: String,
}

impl<'a> Layout<'a> {
    fn new(columns: usize, paint: Paint, colours: &'a mut CodeColours) -> Self {
        Self {
            columns,
            paint,
            colours,
            lines: Vec::new(),
            has_blocks: false,
            levels: Vec::new(),
            pieces: Vec::new(),
            styles: vec![Styles::default()],
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.inline_code(&text),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            // Models break lines where they mean it: in addresses, verses and lists without marks.
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.begin_block(BlockKind::Other);
                let rule = Line::of(
                    &"─".repeat(self.text_columns().min(RULE_COLUMNS)),
                    Styles::default().with(Style::Dim),
                );
                self.put(vec![rule]);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.flush_paragraph(),
            Tag::Heading { level, .. } => {
                self.flush_paragraph();
                self.push_style(Style::Heading);
                self.text(&format!("{} ", "#".repeat(heading_depth(level))));
            }
            Tag::BlockQuote(_) => self.enter(Container::Quote, BlockKind::Other),
            Tag::List(first) => self.enter(Container::List { next_number: first }, BlockKind::List),
            Tag::Item => self.enter_item(),
            Tag::CodeBlock(kind) => {
                self.flush_paragraph();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    // An indented block keeps its spaces.
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
            }
            Tag::Table(alignments) => {
                self.flush_paragraph();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead => {
                self.push_style(Style::Bold);
                self.start_row();
            }
            Tag::TableRow => self.start_row(),
            Tag::Emphasis => self.emphasis("*", Style::Italic),
            Tag::Strong => self.emphasis("**", Style::Bold),
            Tag::Strikethrough => self.emphasis("~~", Style::Strike),
            Tag::Link { dest_url, link_type, .. } => {
                let target = if link_type == LinkType::Email {
                    String::new()
                } else {
                    dest_url.into_string()
                };
                self.links.push((target, self.pieces.len()));
                self.push_style(Style::Underline);
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image: ");
                self.links.push((dest_url.into_string(), self.pieces.len()));
                self.push_style(Style::Italic);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush_paragraph(),
            TagEnd::Heading(_) => {
                self.pop_style();
                self.flush_paragraph();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => self.leave(),
            TagEnd::Item => self.leave_item(),
            TagEnd::CodeBlock => self.finish_code(),
            TagEnd::Table => self.finish_table(),
            TagEnd::TableHead => self.pop_style(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Strikethrough => self.end_emphasis("~~"),
            TagEnd::Link => {
                self.pop_style();
                self.finish_link();
            }
            TagEnd::Image => {
                self.pop_style();
                self.text("]");
                self.finish_link();
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.piece(text, self.style(), Spaces::Separate);
    }

    fn piece(&mut self, text: &str, styles: Styles, spaces: Spaces) {
        self.pieces.push(Piece { text: escaped(text).into_owned(), styles, spaces });
    }

    fn inline_code(&mut self, text: &str) {
        let styles = self.style().with(Style::Code);
        // Without colours only the marks distinguish code from text.
        let mark = if self.paint == Paint::Plain { "`" } else { "" };
        // A tab has no width of its own, and none is needed within a line of text.
        let text = text.replace('\t', " ");
        self.piece(&format!("{mark}{text}{mark}"), styles, Spaces::Keep);
    }

    fn emphasis(&mut self, mark: &str, style: Style) {
        self.push_style(style);
        self.plain_mark(mark);
    }

    fn end_emphasis(&mut self, mark: &str) {
        self.plain_mark(mark);
        self.pop_style();
    }

    fn plain_mark(&mut self, mark: &str) {
        if self.paint == Paint::Plain {
            self.text(mark);
        }
    }

    fn finish_link(&mut self) {
        let Some((target, text_start)) = self.links.pop() else { return };
        let text: String = self.pieces[text_start.min(self.pieces.len())..]
            .iter()
            .map(|piece| &*piece.text)
            .collect();
        if !target.is_empty() && text != target {
            let styles = self.style().with(Style::Dim);
            self.piece(&format!(" ({target})"), styles, Spaces::Separate);
        }
    }

    fn style(&self) -> Styles {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().with(style));
    }

    fn pop_style(&mut self) {
        self.styles.pop();
    }
}

/// Blocks and their containers.
impl Layout<'_> {
    fn enter(&mut self, container: Container, kind: BlockKind) {
        self.flush_paragraph();
        self.begin_block(kind);
        self.levels.push(Level { container, has_blocks: false });
    }

    fn leave(&mut self) {
        self.flush_paragraph();
        self.levels.pop();
    }

    fn enter_item(&mut self) {
        self.flush_paragraph();
        let marker = match self.levels.last_mut().map(|level| &mut level.container) {
            Some(Container::List { next_number: Some(number) }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.levels.push(Level {
            container: Container::Item { marker, marker_is_used: false },
            has_blocks: false,
        });
    }

    fn leave_item(&mut self) {
        self.flush_paragraph();
        if let Some(Level { container: Container::Item { marker_is_used: false, .. }, .. }) =
            self.levels.last()
        {
            self.put(vec![Line::default()]);
        }
        self.levels.pop();
    }

    fn start_row(&mut self) {
        self.pieces.clear();
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn finish_table(&mut self) {
        if let Some(table) = self.table.take() {
            self.begin_block(BlockKind::Other);
            let lines = table.layout(self.text_columns());
            self.put(lines);
        }
    }

    fn finish_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        self.begin_block(BlockKind::Other);
        let colours = match self.paint {
            Paint::Styled => self.colours.lines(&code.language, &code.text),
            Paint::Plain => None,
        };
        let lines = code.text.lines().enumerate().map(|(at, text)| {
            let mut line = Line::of(CODE_PREFIX, Styles::default());
            match colours.as_ref().and_then(|lines| lines.get(at)) {
                Some(spans) => push_coloured(text, spans, &mut line),
                None => line.push_str(&escaped(text), Styles::default().with(Style::Code)),
            }
            line
        });
        let lines = lines.collect();
        self.put(lines);
    }

    fn flush_paragraph(&mut self) {
        if self.pieces.is_empty() || self.table.is_some() {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        self.begin_block(BlockKind::Other);
        let mut lines = wrap(&pieces, self.text_columns());
        // The text of an HTML block ends with a line feed.
        if lines.len() > 1 && lines.last().is_some_and(|line| line.width() == 0) {
            lines.pop();
        }
        self.put(lines);
    }

    /// Puts an empty line before a block that is not the first in its container.
    fn begin_block(&mut self, kind: BlockKind) {
        let (has_blocks, is_item) = match self.levels.last_mut() {
            Some(level) => {
                let is_item = matches!(level.container, Container::Item { .. });
                (std::mem::replace(&mut level.has_blocks, true), is_item)
            }
            None => (std::mem::replace(&mut self.has_blocks, true), false),
        };
        if has_blocks && !(is_item && kind == BlockKind::List) {
            self.put(vec![Line::default()]);
        }
    }

    /// Columns that are left for text.
    fn text_columns(&self) -> usize {
        let taken: usize = self
            .levels
            .iter()
            .map(|level| match &level.container {
                Container::Quote => QUOTE_PREFIX.chars().count(),
                Container::List { .. } => 0,
                Container::Item { marker, .. } => marker.chars().count(),
            })
            .sum();
        self.columns.saturating_sub(taken).max(NARROWEST_TEXT.min(self.columns))
    }

    /// Adds lines, each after the marks of its containers.
    fn put(&mut self, lines: Vec<Line>) {
        for line in lines {
            let is_empty = line.width() == 0;
            let mut out = Line::default();
            for level in &mut self.levels {
                match &mut level.container {
                    Container::Quote => {
                        out.push_str(QUOTE_PREFIX, Styles::default().with(Style::Dim))
                    }
                    Container::List { .. } => {}
                    Container::Item { marker, marker_is_used } if !*marker_is_used => {
                        *marker_is_used = true;
                        out.push_str(marker, Styles::default());
                    }
                    Container::Item { marker, .. } if !is_empty => {
                        out.push_str(&" ".repeat(marker.chars().count()), Styles::default());
                    }
                    Container::Item { .. } => {}
                }
            }
            out.push_line(&line);
            self.lines.push(out);
        }
    }
}

/// Adds a line of code with the colours of its parts.
fn push_coloured(text: &str, spans: &[Span], line: &mut Line) {
    let mut from = 0;
    let mut put = |range: std::ops::Range<usize>, styles| {
        line.push_str(&escaped(text.get(range).unwrap_or_default()), styles);
    };
    for (range, style) in spans {
        put(from..range.start, Styles::default());
        put(range.clone(), Styles::default().with(*style));
        from = range.end;
    }
    put(from..text.len(), Styles::default());
}

fn heading_depth(level: HeadingLevel) -> usize {
    level as usize
}

#[cfg(test)]
mod tests;
