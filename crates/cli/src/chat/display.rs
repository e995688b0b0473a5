//! A turn as it is drawn on a terminal: streamed Markdown, one line for each tool, and a live line at the bottom while
//! the user waits.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use myclaw_agent::EventCallback;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use unicode_width::UnicodeWidthChar;

use super::shown::Shown;
use crate::coming_call::ComingCall;
use crate::report::{failure_line, summarise_arguments};
use crate::terminal::{
    LiveLine, MarkdownStream, Paint, Size, Style, escaped, format_elapsed, truncated,
};

/// Shortest time between two updates: screens do not refresh faster.
const FRAME: Duration = Duration::from_millis(16);

/// Draws one turn on standard output.
pub(super) struct Display {
    shared: Arc<Shared>,
}

struct Shared {
    scene: Mutex<Scene>,
    changed: Notify,
    /// Fired when the terminal is gone.
    on_closed: CancellationToken,
}

/// What is on the screen, and what is about to be drawn.
struct Scene {
    paint: Paint,
    markdown: MarkdownStream,
    live: LiveLine,
    /// What the user waits for, and since when; `None` while text arrives.
    waiting: Option<Instant>,
    /// The running calls, the first to start first.
    calls: Vec<RunningCall>,
    /// The call that the model is writing.
    coming: ComingCall,
    /// The kind of line above, which decides whether an empty line follows.
    above: Above,
    /// Composed output that is not written yet.
    pending: String,
    typed: TypedDisplay,
    /// Lines that wait for the end of the text.
    held: Vec<(Style, String)>,
}

/// The line that the user types while the turn runs: it is drawn below everything else and erased at the end.
#[derive(Debug, Default)]
struct TypedDisplay {
    text: String,
    /// The placeholder while nothing is typed.
    notice: String,
    /// Its place on the screen, if it is drawn.
    drawn: Option<TypedPlace>,
    has_changed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypedPlace {
    /// On a line that was empty.
    OnEmptyLine,
    /// Below a text whose last line may continue.
    BelowText,
}

struct RunningCall {
    id: String,
    tool: String,
    about: String,
    since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Nothing,
    Text,
    Lines,
}

impl Display {
    /// Draws nothing yet. `on_closed` fires when the terminal is gone.
    pub(super) fn new(on_closed: CancellationToken) -> Self {
        let paint = Paint::for_stream(&std::io::stdout());
        let scene = Scene {
            paint,
            markdown: MarkdownStream::new(paint),
            live: LiveLine::default(),
            waiting: None,
            calls: Vec::new(),
            coming: ComingCall::default(),
            above: Above::Nothing,
            pending: String::new(),
            typed: TypedDisplay::default(),
            held: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                scene: Mutex::new(scene),
                changed: Notify::new(),
                on_closed,
            }),
        }
    }

    /// Takes the events of the turn.
    pub(super) fn callback(&self) -> EventCallback {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |event| {
            shared.lock().take(event.kind);
            shared.changed.notify_one();
        })
    }

    /// Shows a change.
    pub(super) fn show(&self, shown: Shown) {
        self.shared.lock().take(shown);
        self.shared.changed.notify_one();
    }

    /// Shows the current activity in the live line.
    pub(super) fn wait_for(&self, what: &str) {
        self.shared.lock().wait_for(what);
        self.shared.changed.notify_one();
    }

    /// Draws the line that the user types.
    pub(super) fn show_typed(&self, text: &str) {
        let mut scene = self.shared.lock();
        scene.typed.text = escaped(text).replace(['\n', '\t'], " ");
        scene.typed.has_changed = true;
        drop(scene);
        self.shared.changed.notify_one();
    }

    /// Adds a line of the program itself. While text arrives, it is shown in the typed line until the text is complete.
    pub(super) fn say(&self, style: Style, line: &str) {
        let mut scene = self.shared.lock();
        if scene.markdown.is_empty() {
            scene.put_line(style, line);
        } else {
            scene.typed.notice = escaped(line).replace(['\n', '\t'], " ");
            scene.typed.has_changed = true;
            scene.held.push((style, line.to_owned()));
        }
        drop(scene);
        self.shared.changed.notify_one();
    }

    /// Runs `work`, and draws whenever it waits.
    pub(super) async fn drawing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut drawer = pin!(self.keep_drawn());
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                let Poll::Pending = drawer.as_mut().poll(context);
            }
            polled
        })
        .await
    }

    /// Draws what is left, and leaves the cursor on an empty line.
    pub(super) fn finish(&self) {
        let mut scene = self.shared.lock();
        scene.typed.text.clear();
        scene.typed.has_changed = true;
        scene.end_text();
        scene.stop_waiting();
        scene.pending.push_str("\r\n");
        self.shared.write(&mut scene);
    }

    async fn keep_drawn(&self) -> Infallible {
        loop {
            let is_live = self.shared.lock().waiting.is_some();
            if is_live {
                tokio::select! {
                    () = self.shared.changed.notified() => {}
                    () = tokio::time::sleep(LiveLine::TICK) => {}
                }
            } else {
                self.shared.changed.notified().await;
            }
            self.shared.write(&mut self.shared.lock());
            tokio::time::sleep(FRAME).await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the screen up to date, in one write.
    fn write(&self, scene: &mut Scene) {
        scene.compose(Size::current());
        if scene.pending.is_empty() {
            return;
        }
        let mut stdout = std::io::stdout();
        if stdout.write_all(scene.pending.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            self.on_closed.cancel();
        }
        scene.pending.clear();
    }
}

impl Scene {
    fn take(&mut self, event: impl Into<Shown>) {
        match event.into() {
            Shown::Nothing => {}
            Shown::Wait(what) => self.wait_for(&what),
            Shown::Text(text) => self.push_text(&text),
            Shown::TextEnd => self.end_text(),
            Shown::CallBegin { block, tool } => {
                self.end_text();
                self.wait_for(&format!("preparing {tool}"));
                self.coming = ComingCall::new(block, &tool);
            }
            Shown::CallDelta { block, delta } => self.preview_call(block, &delta),
            Shown::ToolStart { tool, id, arguments } => {
                self.end_text();
                let (about, since) = (summarise_arguments(&arguments), Instant::now());
                self.calls.push(RunningCall { id, tool, about, since });
                self.show_calls();
            }
            Shown::ToolEnd { tool, id, took, is_error, text } => {
                let about = match self.calls.iter().position(|call| call.id == id) {
                    Some(at) => self.calls.remove(at).about,
                    None => String::new(),
                };
                let outcome =
                    if is_error { format!(": {}", failure_line(&text)) } else { String::new() };
                let (mark, style) =
                    if is_error { ('✗', Style::Bad) } else { ('✓', Style::Dim) };
                let (time, call) = (format_elapsed(took), format!("{tool} {about}"));
                self.put_line(style, &format!("{mark} {}  {time}{outcome}", call.trim_end()));
                self.show_calls();
            }
            Shown::Answer(reply) => {
                if self.above != Above::Text && !reply.is_empty() {
                    self.push_text(&reply);
                }
                self.end_text();
            }
            Shown::Line(style, line) => self.put_line(style, &line),
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
        if self.markdown.is_empty() {
            self.stop_waiting();
            self.separate(Above::Text);
        }
        self.markdown.push(text);
    }

    fn end_text(&mut self) {
        if !self.markdown.is_empty() {
            self.markdown.finish(Size::current(), &mut self.pending);
            self.typed.notice.clear();
            self.typed.has_changed = true;
            for (style, line) in std::mem::take(&mut self.held) {
                self.put_line(style, &line);
            }
        }
    }

    /// One line that stays.
    fn put_line(&mut self, style: Style, line: &str) {
        self.end_text();
        self.live.clear(&mut self.pending);
        self.separate(Above::Lines);
        let line = escaped(line).replace(['\n', '\t'], " ");
        self.pending.push_str(&self.paint.paint(style, line.trim_end()));
        self.pending.push_str("\r\n");
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
            self.stop_waiting();
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

    fn wait_for(&mut self, what: &str) {
        self.live.set(what);
        self.waiting = Some(Instant::now());
    }

    fn stop_waiting(&mut self) {
        self.waiting = None;
        self.live.clear(&mut self.pending);
    }

    /// Adds the difference to what the screen shows to `pending`.
    fn compose(&mut self, size: Size) {
        match self.waiting {
            Some(since) if self.markdown.is_empty() && self.typed.text.is_empty() => {
                self.live.draw(since.elapsed(), size.columns, self.paint, &mut self.pending);
            }
            _ => {
                self.live.clear(&mut self.pending);
                self.markdown.draw(size, &mut self.pending);
            }
        }
        self.compose_typed(size);
    }

    /// Puts the typed line below the composed output. Everything else is drawn without regard to it.
    fn compose_typed(&mut self, size: Size) {
        let is_unchanged = self.pending.is_empty() && !std::mem::take(&mut self.typed.has_changed);
        let room = size.columns.saturating_sub(4);
        let line = match (self.typed.text.as_str(), self.typed.notice.as_str()) {
            ("", "") => None,
            ("", notice) => Some(truncated(notice, room)),
            (text, _) => Some(format!("> {}", end_of(text, room.saturating_sub(2)))),
        };
        if is_unchanged || (line.is_none() && self.typed.drawn.is_none()) {
            return;
        }
        let erased = match self.typed.drawn.take() {
            Some(TypedPlace::OnEmptyLine) => "\r\x1b[K",
            // Back to where the text ended.
            Some(TypedPlace::BelowText) => "\r\x1b[K\x1b8",
            None => "",
        };
        self.pending.insert_str(0, erased);
        let Some(line) = line else { return };
        let place = match self.markdown.is_empty() {
            true => TypedPlace::OnEmptyLine,
            false => TypedPlace::BelowText,
        };
        if place == TypedPlace::BelowText {
            // Makes sure that there is a line below, remembers the place, and goes there.
            self.pending.push_str("\x1bD\x1b[A\x1b7\x1b[B\r");
        }
        self.pending.push_str(&line);
        self.pending.push_str("\x1b[K");
        self.typed.drawn = Some(place);
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

#[cfg(test)]
mod tests;
