//! What is on the screen, and what is about to be drawn.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use myclaw_agent::{declaration_of, plan::Plan};
use myclaw_engine::{IMAGE_GENERATE, ToolKind};
use myclaw_tools::shown_size;
use unicode_width::UnicodeWidthChar;

use super::Drawing;
use crate::footer::{Footer, Rows};
use crate::outputs::Common;
use crate::plan_lines;
use crate::tool_lines::{EndedCall, last_state, shown_code};
use myclaw_front::coming_call::ComingCall;
use myclaw_front::report::{first_line, summarise_arguments};
use myclaw_front::shown::Shown;
use myclaw_front::terminal::images::{is_picture, shown_picture};
use myclaw_front::terminal::{
    LiveLine, MarkdownStream, Paint, Size, Style, StyledLine, escaped, truncated, wrapped,
};

/// Lines of a running command's output that are shown.
const LIVE_LINES: usize = 4;
/// Bytes of one line of a running command's output that are kept.
const MOST_LINE_BYTES: usize = 1_000;
/// Text that waits for the next update at most. A fast model may send more, and the layout of a text takes twenty times
/// as much memory as the text.
const MOST_UNDRAWN_BYTES: usize = 16 * 1024;
/// Waiting messages that are shown.
const QUEUE_LINES: usize = 3;
/// On a terminal with fewer rows nothing but the typed line is below the text.
const FEWEST_ROWS: usize = 8;

/// The screen during one turn.
pub(super) struct Scene {
    pub(super) common: Arc<Common>,
    pub(super) drawing: Drawing,
    paint: Paint,
    /// When it was last drawn.
    size: Size,
    markdown: MarkdownStream,
    live: LiveLine,
    /// Since when the user waits; `None` while text arrives.
    waiting: Option<Instant>,
    /// The running calls, the first to start first.
    calls: Vec<RunningCall>,
    /// The call that the model is writing.
    coming: ComingCall,
    /// What the model thinks, from the last line break on.
    thought: String,
    /// The kind of line above, which decides whether an empty line follows.
    above: Above,
    /// Whether the model has said something since its last call of a tool.
    has_said: bool,
    /// Composed output that is not written yet.
    pub(super) pending: String,
    footer: Footer,
    /// The line that the user types.
    pub(super) typed: String,
    /// The messages that wait.
    pub(super) queue: Vec<Queued>,
    /// Lines that wait for the end of the text.
    held: Vec<(Style, String)>,
}

/// A message that waits.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) id: String,
    /// When it is read, and its beginning.
    pub(crate) line: String,
}

struct RunningCall {
    id: String,
    tool: String,
    about: String,
    since: Instant,
    output: OutputEnd,
}

/// The last lines that a command has printed.
#[derive(Default)]
struct OutputEnd {
    lines: VecDeque<String>,
    /// Whether the last line may continue.
    is_open: bool,
    /// Whether what continues it replaces it.
    is_written_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Nothing,
    Text,
    Lines,
    Thoughts,
}

impl Scene {
    pub(super) fn new(common: Arc<Common>, size: Size) -> Self {
        let paint = Paint::for_stream(&std::io::stdout());
        Self {
            common,
            drawing: Drawing::On,
            paint,
            size,
            markdown: MarkdownStream::new(paint),
            live: LiveLine::default(),
            waiting: None,
            calls: Vec::new(),
            coming: ComingCall::default(),
            thought: String::new(),
            above: Above::Nothing,
            has_said: false,
            pending: String::new(),
            footer: Footer::default(),
            typed: String::new(),
            queue: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Whether something moves on the screen though nothing happens.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(super) fn take(&mut self, event: impl Into<Shown>) {
        let shown = event.into();
        if !matches!(shown, Shown::Thinking(_)) {
            self.end_thoughts();
        }
        match shown {
            Shown::Nothing => {}
            Shown::Wait(what) => self.wait_for(&what),
            Shown::Text(text) => self.push_text(&text),
            Shown::TextEnd => self.end_text(),
            Shown::Thinking(delta) => self.push_thought(&delta),
            Shown::CallBegin { block, tool } => {
                self.end_text();
                self.wait_for(&format!("preparing {tool}"));
                self.coming = ComingCall::new(block, &tool);
            }
            Shown::CallDelta { block, delta } => self.preview_call(block, &delta),
            Shown::ToolStart { tool, id, arguments } => {
                self.end_text();
                self.has_said = false;
                let (about, since) = (summarise_arguments(&arguments), Instant::now());
                self.calls.push(RunningCall {
                    id,
                    tool,
                    about,
                    since,
                    output: OutputEnd::default(),
                });
                self.show_calls();
            }
            Shown::ToolOutput { id, text } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
                    call.output.push(&text);
                }
            }
            Shown::ToolEnd { tool, id, took, is_error, text, details } => {
                let about = match self.calls.iter().position(|call| call.id == id) {
                    Some(at) => self.calls.remove(at).about,
                    None => String::new(),
                };
                let (about, details) = (about.as_str(), details.as_ref());
                if let Some(plan) = Plan::of_details(details) {
                    self.common.set_plan(Some(plan));
                    return self.show_calls();
                }
                let call = EndedCall { tool: &tool, about, took, is_error, text: &text, details };
                let lines = call.lines(self.columns());
                self.put_lines(&lines.shown);
                self.common.keep(lines.all);
                if declaration_of(&tool).kind == ToolKind::Read && !is_error {
                    self.put_picture(Path::new(about));
                }
                let made = details.and_then(|details| details["path"].as_str());
                if let Some(path) = made.filter(|_| tool == IMAGE_GENERATE && !is_error) {
                    self.push_line(Style::Dim, &format!("  {}", escaped(path)));
                    self.put_picture(Path::new(path));
                }
                self.show_calls();
            }
            Shown::Taken { ids, text } => {
                self.queue.retain(|queued| !ids.contains(&queued.id));
                self.put_line(Style::Dim, &format!("read: {}", first_line(&text)));
            }
            Shown::Answer(reply) => {
                if !self.has_said {
                    self.push_text(&reply);
                }
                self.end_text();
                self.has_said = false;
            }
            Shown::Line(style, line) => self.put_line(style, &line),
            Shown::Once(line) => {
                if self.common.is_news(&line) {
                    self.put_line(Style::Warning, &line);
                }
            }
        }
    }

    /// Shows what the coming call is about.
    fn preview_call(&mut self, block: usize, delta: &str) {
        let Some(arguments) = self.coming.push(block, delta) else { return };
        let about = summarise_arguments(&arguments);
        if !about.is_empty() {
            self.live.set(&format!("preparing {} {about}", self.coming.tool));
        }
    }

    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.has_said = true;
        if self.markdown.is_empty() {
            self.waiting = None;
            self.separate(Above::Text);
        }
        self.markdown.push(text);
        if self.drawing == Drawing::On && self.markdown.undrawn() > MOST_UNDRAWN_BYTES {
            self.markdown.draw(self.size, &mut self.pending);
        }
    }

    pub(super) fn end_text(&mut self) {
        if !self.markdown.is_empty() {
            self.markdown.finish(self.size, &mut self.pending);
            for (style, line) in std::mem::take(&mut self.held) {
                self.put_line(style, &line);
            }
        }
    }

    fn push_thought(&mut self, delta: &str) {
        if !self.common.shows_thinking() {
            return;
        }
        self.end_text();
        self.thought.push_str(delta);
        while let Some(at) = self.thought.find('\n') {
            let rest = self.thought.split_off(at + 1);
            let line = std::mem::replace(&mut self.thought, rest);
            self.put_thought(&line);
        }
        let about = end_of(self.thought.trim_end(), self.columns());
        self.live.set(&format!("thinking {about}"));
    }

    fn end_thoughts(&mut self) {
        let line = std::mem::take(&mut self.thought);
        self.put_thought(&line);
    }

    fn put_thought(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.separate(Above::Thoughts);
            for line in wrapped(&escaped(line.trim_end()), self.columns()) {
                self.push_line(Style::Italic, &line);
            }
        }
    }

    /// One message of the program, which stays.
    fn put_line(&mut self, style: Style, line: &str) {
        self.end_text();
        self.separate(Above::Lines);
        let line = escaped(line).replace(['\n', '\t'], " ");
        for line in wrapped(line.trim_end(), self.columns()) {
            self.push_line(style, &line);
        }
    }

    /// Lines that stay and fit.
    fn put_lines(&mut self, lines: &[StyledLine]) {
        self.end_text();
        self.separate(Above::Lines);
        for line in lines {
            line.paint(self.paint, &mut self.pending);
            self.pending.push_str("\r\n");
        }
    }

    /// The picture that was read, where the terminal can show it, else its size. The line above names it.
    fn put_picture(&mut self, path: &Path) {
        if !is_picture(path) {
            return;
        }
        let path = self.common.place().join(path);
        match shown_picture(&path) {
            Some(shown) => self.pending.push_str(&shown),
            None => {
                let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
                self.push_line(Style::Dim, &format!("  a picture of {}", shown_size(bytes)));
            }
        }
    }

    fn push_line(&mut self, style: Style, line: &str) {
        self.pending.push_str(&self.paint.paint(style, line));
        self.pending.push_str("\r\n");
    }

    pub(super) fn say(&mut self, style: Style, line: &str) {
        if self.markdown.is_empty() {
            self.put_line(style, line);
        } else {
            self.held.push((style, line.to_owned()));
        }
    }

    /// Adds an empty line between lines of different kinds, and between two texts.
    fn separate(&mut self, kind: Above) {
        let is_apart = self.above != Above::Nothing && (self.above != kind || kind == Above::Text);
        if is_apart {
            self.pending.push_str("\r\n");
        }
        self.above = kind;
    }

    fn show_calls(&mut self) {
        let Some(first) = self.calls.first() else {
            self.waiting = None;
            return;
        };
        let others = match self.calls.len() - 1 {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let call = format!("{} {}", first.tool, first.about);
        self.live.set(&format!("{}{others}", call.trim_end()));
        self.waiting = Some(first.since);
    }

    pub(super) fn wait_for(&mut self, what: &str) {
        self.live.set(what);
        self.waiting = Some(Instant::now());
    }

    /// Bytes that are kept of what streams in and is not on the screen yet.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let output = |call: &RunningCall| call.output.lines.iter().map(String::len).sum::<usize>();
        self.markdown.undrawn() + self.coming.kept() + self.calls.iter().map(output).sum::<usize>()
    }

    /// Columns of a line: some terminals wrap after the last column too early.
    fn columns(&self) -> usize {
        self.size.columns.saturating_sub(1).max(1)
    }

    /// Composes what is left, without anything below it.
    pub(super) fn finish(&mut self) {
        self.end_thoughts();
        self.end_text();
        let plan = self.common.plan_to_print();
        for (style, line) in plan.iter().flat_map(plan_lines::all) {
            self.put_line(style, &line);
        }
        self.waiting = None;
        let erased = self.footer.erase(self.size);
        self.pending.insert_str(0, &erased);
        self.pending.push_str("\r\n");
    }

    /// Composes what leaves the cursor on an empty line, for something else that writes to the screen.
    pub(super) fn step_aside(&mut self) {
        let erased = self.footer.erase(self.size);
        self.pending.insert_str(0, &erased);
        if self.markdown.end_width() > 0 {
            self.pending.push_str("\r\n");
        }
        self.markdown.begin_again();
    }

    /// Adds the difference to what the screen shows to `pending`.
    pub(super) fn compose(&mut self, size: Size) {
        self.size = size;
        self.markdown.draw(size, &mut self.pending);
        let rows = self.rows();
        if self.pending.is_empty() && self.footer.shows(&rows, size) {
            return;
        }
        let erased = self.footer.erase(size);
        self.pending.insert_str(0, &erased);
        let text_width = self.markdown.end_width();
        self.footer.draw(rows, text_width, size, self.paint, &mut self.pending);
    }

    /// The lines below the text.
    fn rows(&mut self) -> Rows {
        let columns = self.columns();
        let typed = end_of(&self.typed, columns.saturating_sub(4));
        if self.size.rows < FEWEST_ROWS {
            return Rows { typed, ..Rows::default() };
        }
        let mut above = Vec::new();
        if let Some(since) = self.waiting {
            let room = columns.saturating_sub(2);
            let lines = self.calls.first().into_iter().flat_map(|call| &call.output.lines);
            above.extend(lines.map(|line| (Style::Dim, format!("  {}", truncated(line, room)))));
            above.push((Style::Warning, self.live.next(since.elapsed(), columns)));
        }
        above.extend(self.common.plan().iter().flat_map(|plan| plan_lines::around(plan, columns)));
        let held = self.held.iter().rev().take(QUEUE_LINES).rev();
        above.extend(held.map(|(style, line)| {
            (*style, truncated(&escaped(line).replace(['\n', '\t'], " "), columns))
        }));
        for queued in self.queue.iter().take(QUEUE_LINES) {
            let line = escaped(&queued.line).replace(['\n', '\t'], " ");
            above.push((Style::Dim, truncated(&line, columns)));
        }
        if self.queue.len() > QUEUE_LINES {
            let more = self.queue.len() - QUEUE_LINES;
            above.push((Style::Dim, truncated(&format!("and {more} more (/queue)"), columns)));
        }
        // A footer that does not fit on the screen could not be erased. The line of text above it, the typed line and the
        // status stay; the output of the command goes first.
        let surplus = above.len().saturating_sub(self.size.rows.saturating_sub(3));
        above.drain(..surplus);
        let status = self.common.status().as_ref().map(|status| status.line(columns));
        Rows { above, typed, status }
    }
}

impl OutputEnd {
    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if !self.is_open {
                if self.lines.len() >= LIVE_LINES {
                    self.lines.pop_front();
                }
                self.lines.push_back(String::new());
            }
            self.is_open = !piece.ends_with('\n');
            let piece = piece.trim_end_matches('\n');
            let Some(line) = self.lines.back_mut() else { continue };
            // What follows a carriage return is written over the line.
            if std::mem::take(&mut self.is_written_over) && !piece.is_empty()
                || piece.trim_end_matches('\r').contains('\r')
            {
                line.clear();
            }
            self.is_written_over = self.is_open && piece.ends_with('\r');
            if line.len() < MOST_LINE_BYTES {
                line.push_str(&truncated(&shown_code(last_state(piece)), MOST_LINE_BYTES));
            }
        }
    }
}

/// The longest end of `text` that fits into `columns`, so that the cursor stays visible.
fn end_of(text: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = text.char_indices().rev().take_while(|(_, char)| {
        width += char.width().unwrap_or(0);
        width <= columns
    });
    let from = fits.last().map_or(text.len(), |(at, _)| at);
    if from == 0 { text.to_owned() } else { format!("…{}", &text[from..]) }
}
