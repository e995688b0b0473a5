//! The output of `myclaw run` during a turn: the answer goes to standard output, everything else to standard error.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use myclaw_engine::{AgentRunEvent, EventCallback, RunResult};

use crate::print::fitting_stderr;
use crate::report::{Verbosity, failure_line, read_line, summarise_arguments, usage_line};
use crate::shown::Shown;
use crate::terminal::{Output, Paint, Style, escaped};

/// A callback that prints the answer as text.
pub fn text_reporter(output: Arc<Output>, verbosity: Verbosity) -> EventCallback {
    reporter(output, verbosity, true)
}

/// A callback that prints what [`text_reporter`] prints, without the answer.
pub fn activity_reporter(output: Arc<Output>, verbosity: Verbosity) -> EventCallback {
    reporter(output, verbosity, false)
}

fn reporter(output: Arc<Output>, verbosity: Verbosity, shows_answer: bool) -> EventCallback {
    let reporter = TextReporter::new(output, verbosity, shows_answer);
    Arc::new(move |event| reporter.report(event.kind))
}

/// Prints a turn as text.
pub struct TextReporter {
    output: Arc<Output>,
    verbosity: Verbosity,
    shows_answer: bool,
    paint: Paint,
    began: Instant,
    /// Whether the message that arrives has shown any text.
    has_text: AtomicBool,
}

impl TextReporter {
    /// A reporter; `shows_answer` says whether what the model says is printed.
    pub fn new(output: Arc<Output>, verbosity: Verbosity, shows_answer: bool) -> Self {
        Self {
            output,
            verbosity,
            shows_answer,
            paint: Paint::for_stream(&std::io::stderr()),
            began: Instant::now(),
            has_text: AtomicBool::new(false),
        }
    }

    fn report(&self, event: AgentRunEvent) {
        match event {
            AgentRunEvent::LlmStart { .. } => self.message_begins(),
            AgentRunEvent::Done { mut result } => {
                self.show(Shown::Answer(std::mem::take(&mut result.reply)));
                self.say_usage(&result);
            }
            event => self.show(event.into()),
        }
    }

    /// The model begins a message.
    pub fn message_begins(&self) {
        self.has_text.store(false, Ordering::Relaxed);
    }

    /// Prints what the turn used.
    pub fn say_usage(&self, result: &RunResult) {
        self.say(Style::Dim, &usage_line(result, self.began.elapsed()));
    }

    /// Prints what is to be shown.
    pub fn show(&self, shown: Shown) {
        match shown {
            Shown::Text(text) if self.shows_answer && !text.is_empty() => {
                self.has_text.store(true, Ordering::Relaxed);
                self.output.push_text(&text);
            }
            // Blocks of text stand apart.
            Shown::TextEnd if self.shows_answer => self.output.end_line(),
            Shown::ToolStart { tool, arguments, .. } => {
                let about = summarise_arguments(&arguments);
                self.say(Style::Dim, &format!("tool start {tool} {about}"));
            }
            Shown::ToolEnd { tool, took, is_error: false, .. } => {
                self.say(Style::Dim, &format!("tool ok {tool} {} ms", took.as_millis()));
            }
            Shown::ToolEnd { tool, took, text, .. } => {
                let (took, reason) = (took.as_millis(), failure_line(&text));
                self.say(Style::Bad, &format!("tool error {tool} {took} ms: {reason}"));
            }
            Shown::Answer(reply) => {
                if self.shows_answer && !self.has_text.load(Ordering::Relaxed) {
                    self.output.push_text(&reply);
                }
                self.output.end_line();
                self.output.flush();
            }
            Shown::Taken { text, .. } => self.say(Style::Dim, &read_line(&text)),
            Shown::Line(style, line) => self.say(style, &line),
            Shown::Once(line) => self.say(Style::Warning, &line),
            _ => {}
        }
    }

    /// Writes one line to standard error, after flushing standard output.
    fn say(&self, style: Style, line: &str) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        self.output.end_line();
        self.output.flush();
        let line = fitting_stderr(escaped(line).trim_end());
        let mut line = self.paint.paint(style, &line);
        line.push('\n');
        // One write, so that lines of several processes do not mix. A failed write is ignored: there is no other place
        // to report it.
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
}
