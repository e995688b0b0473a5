//! Renders Markdown in the terminal while it arrives.
//!
//! Complete blocks are printed once and never changed. Only the last block, which may still change its kind (a line
//! becomes a heading, a paragraph a table), is laid out again, and only the lines that differ are written. So nothing
//! flickers and nothing is printed twice.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::highlight::{CodeColours, Continuation};
use super::{Paint, Size};
use fence::Fence;
use layout::{OPTIONS, layout};
use line::Line;

mod fence;
mod layout;
mod line;
mod table;
mod wrap;

/// Longest line of running text: longer lines are hard to read.
const MAX_TEXT_COLUMNS: usize = 100;
/// From this length on the last block is laid out again only after it grew by a sixteenth, so that the work for a block
/// is proportional to its length and not to its square.
const LARGE_BLOCK_BYTES: usize = 16 * 1024;

/// Renders one message.
#[derive(Debug)]
pub struct MarkdownStream {
    paint: Paint,
    /// Text that may still change on the screen.
    pending: String,
    /// Length of `pending` when it was last laid out.
    laid_out: usize,
    /// The lines of `pending` as they stand on the screen; the cursor is at the end of the last one.
    shown: Vec<Line>,
    /// Whether the cursor is on an empty line.
    on_empty_line: bool,
    /// Columns of the line that the cursor is on.
    end_width: usize,
    /// How `pending` joins the text before it.
    joint: Joint,
    colours: CodeColours,
}

/// The whole of `text` as Markdown, in lines that end with a line feed.
pub fn rendered(text: &str, paint: Paint, size: Size) -> String {
    let mut stream = MarkdownStream::new(paint);
    stream.push(text);
    let mut out = String::new();
    stream.finish(size, &mut out);
    out.replace("\r\n", "\n")
}

/// How the pending text joins the text before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// Nothing was printed yet.
    First,
    /// A block was printed: an empty line comes first.
    Gap,
    /// Lines of a code block were printed; `pending` repeats its opening fence and continues.
    InsideFence,
}

impl MarkdownStream {
    /// A renderer for one message that begins on an empty line.
    pub fn new(paint: Paint) -> Self {
        Self {
            paint,
            pending: String::new(),
            laid_out: 0,
            shown: Vec::new(),
            on_empty_line: true,
            end_width: 0,
            joint: Joint::First,
            colours: CodeColours::default(),
        }
    }

    /// Whether nothing has arrived yet.
    pub fn is_empty(&self) -> bool {
        self.joint == Joint::First && self.pending.is_empty()
    }

    /// Columns of the drawn line at whose end the cursor is; zero on an empty line. The line may be wider than the
    /// terminal.
    pub fn end_width(&self) -> usize {
        if self.on_empty_line { 0 } else { self.end_width }
    }

    /// Takes more text. Nothing is drawn.
    pub fn push(&mut self, text: &str) {
        // Blank lines at the beginning would only be dropped by the layout.
        let text = if self.is_empty() { text.trim_start_matches('\n') } else { text };
        self.pending.push_str(text);
    }

    /// Bytes that have arrived since the last update.
    pub fn undrawn(&self) -> usize {
        self.pending.len() - self.laid_out
    }

    /// Appends the sequence that updates the screen to `out`.
    pub fn draw(&mut self, size: Size, out: &mut String) {
        let grown = self.undrawn();
        let due = if self.pending.len() < LARGE_BLOCK_BYTES { 1 } else { self.pending.len() / 16 };
        if grown >= due {
            self.draw_now(size, out);
        }
    }

    /// Appends the rest of the message and a line end to `out`. The renderer is reset.
    pub fn finish(&mut self, size: Size, out: &mut String) {
        self.draw_now(size, out);
        if !self.on_empty_line {
            out.push_str("\r\n");
        }
        *self = Self::new(self.paint);
    }

    /// Something else was written to the screen: what may still change is drawn again, on the empty line that the cursor
    /// is on.
    pub fn begin_again(&mut self) {
        self.shown.clear();
        self.on_empty_line = true;
        self.laid_out = 0;
    }

    fn draw_now(&mut self, size: Size, out: &mut String) {
        let lines = self.lines(size);
        self.redraw(lines, size, out);
        self.commit(size);
        self.laid_out = self.pending.len();
    }

    /// The lines of the pending text.
    fn lines(&mut self, size: Size) -> Vec<Line> {
        let columns = size.columns.saturating_sub(1).clamp(1, MAX_TEXT_COLUMNS);
        let mut page = layout(&self.pending, columns, self.paint, &mut self.colours);
        if self.joint == Joint::Gap && page.has_blocks {
            page.lines.insert(0, Line::default());
        }
        page.lines
    }

    /// Writes the difference between what is shown and `lines`.
    fn redraw(&mut self, lines: Vec<Line>, size: Size, out: &mut String) {
        let mut same = self.shown.iter().zip(&lines).take_while(|(old, new)| old == new).count();
        if same < self.shown.len() {
            // Something on the screen changes: begin on the last line that both have, if nothing follows it.
            same = same.min(lines.len().saturating_sub(1));
            let shown_after = &self.shown[same..];
            let grown = lines.get(same).filter(|_| shown_after.len() == 1).and_then(|line| {
                let count = line.growth_over(&shown_after[0])?;
                Some((line, count))
            });
            if let Some((line, count)) = grown {
                line.write_last(count, self.paint, out);
                same += 1;
            } else {
                same = self.move_up_to(same, size, out);
            }
        }
        for line in lines.iter().skip(same) {
            if !self.on_empty_line {
                out.push_str("\r\n");
            }
            line.write(self.paint, out);
            self.on_empty_line = false;
        }
        if let Some(last) = lines.last() {
            self.end_width = last.width();
        }
        self.shown = lines;
    }

    /// Moves the cursor to the beginning of shown line `target`, or of the first line below it that is still on the
    /// screen, and clears from there on. Returns which line it was.
    fn move_up_to(&mut self, target: usize, size: Size, out: &mut String) -> usize {
        let mut up: usize = self.shown[target..].iter().map(|line| line.rows(size.columns)).sum();
        up = up.saturating_sub(1);
        let mut target = target;
        // Lines that scrolled off the screen cannot be changed any more.
        while up >= size.rows && target + 1 < self.shown.len() {
            up -= self.shown[target].rows(size.columns);
            target += 1;
        }
        // A single line may be higher than the screen.
        up = up.min(size.rows.saturating_sub(1));
        out.push('\r');
        if up > 0 {
            out.push_str(&format!("\x1b[{up}A"));
        }
        out.push_str("\x1b[J");
        self.on_empty_line = true;
        target
    }

    /// Drops the text that cannot change any more: all blocks but the last, and the whole lines of an open code block.
    fn commit(&mut self, size: Size) {
        let Some(last) = LastBlock::of(&self.pending) else { return };
        // A block has certainly ended if the lines that begin the next one are complete.
        if last.start > 0
            && self.pending[last.start..].matches('\n').nth(last.opening_lines - 1).is_some()
        {
            let rest = self.pending.split_off(last.start);
            let joint = if last.is_only_block { self.joint } else { Joint::Gap };
            self.keep_only(rest, joint, size);
        }
        if last.is_fenced
            && let Some(rest) = open_fence_rest(&self.pending)
        {
            self.keep_only(rest, Joint::InsideFence, size);
        }
    }

    /// Drops the pending text except for `rest`, its end, and drops the shown lines that do not belong to `rest`.
    fn keep_only(&mut self, rest: String, joint: Joint, size: Size) {
        self.pending = rest;
        self.colours.go_on(match joint {
            Joint::InsideFence => Continuation::InFirstBlock,
            Joint::First | Joint::Gap => Continuation::Elsewhere,
        });
        self.joint = joint;
        let kept = self.lines(size).len();
        self.shown.drain(..self.shown.len().saturating_sub(kept));
    }
}

/// If a text begins with a code block that is still open and has complete lines: its opening fence, and the text after
/// the last complete line. Laid out as a block of its own, this is the part that is still to be shown.
fn open_fence_rest(source: &str) -> Option<String> {
    let opening_end = source.find('\n')? + 1;
    let lines_end = source.rfind('\n')? + 1;
    let (opening, body) = (&source[..opening_end], &source[opening_end..lines_end]);
    let fence = Fence::opening(opening)?;
    let is_closed = body.lines().any(|line| fence.is_closed_by(line));
    (!body.is_empty() && !is_closed).then(|| format!("{opening}{}", &source[lines_end..]))
}

/// The last top-level block of a text.
struct LastBlock {
    start: usize,
    /// Number of lines that determine its kind: two for a table, whose second line is the delimiter row.
    opening_lines: usize,
    is_fenced: bool,
    is_only_block: bool,
}

impl LastBlock {
    fn of(source: &str) -> Option<Self> {
        let mut depth = 0_usize;
        let mut last: Option<Self> = None;
        for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
            if depth == 0 && !matches!(event, Event::End(_)) {
                // The range of indented code begins after its indentation.
                let start = source[..range.start].rfind('\n').map_or(0, |at| at + 1);
                last = Some(Self {
                    start,
                    opening_lines: if matches!(event, Event::Start(Tag::Table(_))) { 2 } else { 1 },
                    is_fenced: matches!(
                        event,
                        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))
                    ),
                    is_only_block: last.is_none(),
                });
            }
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        last
    }
}

#[cfg(test)]
mod tests;
