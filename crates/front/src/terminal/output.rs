//! Standard output of a turn: buffered, and flushed in time.
//!
//! A model sends tens of thousands of small pieces. Each is copied into one buffer under an uncontended lock; the
//! buffer is written when the engine waits for something (see [`Output::flushing`]), when it is full, and before output
//! to standard error whose order matters. No thread and no timer runs while there is nothing to write.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use myclaw_files::portable::standard_output;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Escaper, MarkdownStream, Paint, Size};

/// The buffer is written when it holds this much: one page, which a pipe takes in one piece.
const FLUSH_AT: usize = 4 * 1024;
/// Shortest time between two writes to a pipe or a file: often enough for a user who watches.
const PIPE_INTERVAL: Duration = Duration::from_millis(20);

/// The kind of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A terminal: write whenever the engine waits, and escape controls.
    Terminal,
    /// A pipe or a file: coalesce writes, and leave the text unchanged.
    Pipe,
}

impl Destination {
    /// The kind of standard output.
    pub fn of_stdout() -> Self {
        if io::stdout().is_terminal() { Self::Terminal } else { Self::Pipe }
    }
}

/// Standard output with a buffer of its own.
pub struct Output {
    destination: Destination,
    state: Mutex<State>,
    /// Notified when the buffer stops being empty.
    written: Notify,
    /// Fires when the reader has closed standard output, so that the turn ends too.
    on_closed: CancellationToken,
}

struct State {
    /// The destination of the bytes.
    sink: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    escaper: Escaper,
    /// Renders the text, on a terminal with styles.
    markdown: Option<MarkdownStream>,
    last_flush: Option<Instant>,
    /// Whether the last thing written was a line feed; true at the beginning.
    at_line_start: bool,
    /// The first failed write. Nothing is written after it.
    failure: Option<io::Error>,
}

impl Output {
    /// Standard output. `on_closed` fires when writing to it fails.
    pub fn stdout(on_closed: CancellationToken) -> Self {
        // `Stdout` has a line buffer, which would write each line on its own; a file made from it has none.
        let sink: Box<dyn Write + Send> = match standard_output() {
            Ok(file) => Box::new(file),
            Err(_) => Box::new(io::stdout()),
        };
        Self::new(Destination::of_stdout(), sink, on_closed)
    }

    fn new(
        destination: Destination,
        sink: Box<dyn Write + Send>,
        on_closed: CancellationToken,
    ) -> Self {
        let is_rendered = destination == Destination::Terminal
            && Paint::for_stream(&io::stdout()) == Paint::Styled;
        let state = State {
            sink,
            markdown: is_rendered.then(|| MarkdownStream::new(Paint::Styled)),
            buffer: Vec::with_capacity(FLUSH_AT + 1024),
            escaper: Escaper::default(),
            last_flush: None,
            at_line_start: true,
            failure: None,
        };
        Self { destination, state: Mutex::new(state), written: Notify::new(), on_closed }
    }

    /// Appends text of the model: unchanged for a pipe, with controls escaped for a terminal.
    pub fn push_text(&self, text: &str) {
        let Some(last) = text.as_bytes().last() else { return };
        self.append(|state| {
            if let Some(markdown) = &mut state.markdown {
                markdown.push(text);
                state.at_line_start = false;
                return;
            }
            match self.destination {
                Destination::Terminal => state.escaper.push(text, &mut state.buffer),
                Destination::Pipe => state.buffer.extend_from_slice(text.as_bytes()),
            }
            state.at_line_start = *last == b'\n';
        });
    }

    /// Appends `value` as one line of JSON.
    pub fn push_json(&self, value: &impl Serialize, mode: JsonMode) {
        self.append(|state| {
            // Writing to memory cannot fail, and the values that are printed have string keys only.
            let _serialised = mode.write(value, &mut state.buffer);
            state.buffer.push(b'\n');
        });
    }

    /// Ends the line, unless it is ended already.
    pub fn end_line(&self) {
        let state = &mut *self.state.lock();
        if let Some(markdown) = state.markdown.as_mut().filter(|markdown| !markdown.is_empty()) {
            let mut text = String::new();
            markdown.finish(Size::current(), &mut text);
            state.buffer.extend_from_slice(text.as_bytes());
            state.at_line_start = true;
        }
        if !state.at_line_start {
            state.escaper.finish(&mut state.buffer);
            state.buffer.push(b'\n');
            state.at_line_start = true;
        }
    }

    /// Writes the buffer. Called before anything goes to standard error, before tools run, and at the end.
    pub fn flush(&self) {
        self.flush_state(&mut self.state.lock());
    }

    /// The failure of a write, if there was one. Taken once.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.state.lock().failure.take()
    }

    /// Runs `work`, and writes the buffer whenever it waits: at once to a terminal, to a pipe not more often
    /// than each 20 ms.
    pub async fn flushing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut flusher = pin!(self.keep_flushed());
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                let Poll::Pending = flusher.as_mut().poll(context);
            }
            polled
        })
        .await
    }

    async fn keep_flushed(&self) -> Infallible {
        loop {
            self.written.notified().await;
            let last_flush = self.state.lock().last_flush;
            if let (Destination::Pipe, Some(last)) = (self.destination, last_flush) {
                tokio::time::sleep_until(last + PIPE_INTERVAL).await;
            }
            let state = &mut *self.state.lock();
            state.draw();
            if !state.buffer.is_empty() {
                self.flush_state(state);
                state.last_flush = Some(Instant::now());
            }
        }
    }

    fn append(&self, write: impl FnOnce(&mut State)) {
        let state = &mut *self.state.lock();
        if state.failure.is_some() {
            return;
        }
        let was_empty = state.buffer.is_empty();
        write(state);
        if state.buffer.len() >= FLUSH_AT {
            self.flush_state(state);
        } else if was_empty {
            self.written.notify_one();
        }
    }

    fn flush_state(&self, state: &mut State) {
        if state.buffer.is_empty() || state.failure.is_some() {
            return;
        }
        if let Err(error) = state.sink.write_all(&state.buffer).and_then(|()| state.sink.flush()) {
            state.failure = Some(error);
            self.on_closed.cancel();
        }
        state.buffer.clear();
    }
}

impl State {
    /// Adds what the text has changed on the screen.
    fn draw(&mut self) {
        if let Some(markdown) = &mut self.markdown {
            let mut text = String::new();
            markdown.draw(Size::current(), &mut text);
            self.buffer.extend_from_slice(text.as_bytes());
        }
    }
}

/// How JSON strings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonMode {
    /// For programs: only what JSON requires is escaped.
    Compact,
    /// For a terminal: DEL and the C1 controls are escaped too; still the same JSON value.
    TerminalSafe,
}

impl JsonMode {
    /// The form for `destination`.
    pub fn for_destination(destination: Destination) -> Self {
        match destination {
            Destination::Terminal => Self::TerminalSafe,
            Destination::Pipe => Self::Compact,
        }
    }

    /// Writes `value` without a line feed.
    pub fn write(self, value: &impl Serialize, out: impl Write) -> serde_json::Result<()> {
        match self {
            Self::Compact => serde_json::to_writer(out, value),
            Self::TerminalSafe => value
                .serialize(&mut serde_json::Serializer::with_formatter(out, TerminalSafeFormatter)),
        }
    }
}

/// Compact JSON whose strings hold no raw control character at all.
struct TerminalSafeFormatter;

impl Formatter for TerminalSafeFormatter {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, control)) = rest.char_indices().find(|(_, char)| char.is_control()) {
            CompactFormatter.write_string_fragment(writer, &rest[..at])?;
            write!(writer, "\\u{:04x}", control as u32)?;
            rest = &rest[at + control.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests;
