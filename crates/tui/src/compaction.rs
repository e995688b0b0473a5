//! `/compact`: replaces the older messages with a summary.

use std::convert::Infallible;
use std::sync::Arc;

use myclaw_agent::{Foreground, compacted};
use myclaw_engine::{CompactionOutcome, CompactionReport, EventCallback};

use tokio_util::sync::CancellationToken;

use super::display::Display;
use super::outputs::Common;
use super::typed::{Key, TypedLine};
use super::{Chat, View};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;
use myclaw_front::sessions::compact::notices;
use myclaw_front::terminal::{Keyboard, PasteMarks, Style, suspend};

impl Chat {
    /// Compacts the session and prints the result.
    ///
    /// # Errors
    /// The session is unchanged.
    pub(super) async fn compact(&mut self, focus: Option<String>) -> Result<(), CliError> {
        let name = self.sessions.name_of(self.session.key());
        let focus = focus.as_deref();
        if !matches!(self.view, View::Terminal) {
            let print = |line: &str| note(format_args!("{line}"));
            let cancel = self.closed.child_token();
            let (common, say) = (Arc::clone(&self.common), notices(print));
            let on_event: EventCallback = Arc::new(move |event| {
                common.heed(&event.kind);
                say(event);
            });
            let report = self.compact_with(focus, on_event, cancel).await?;
            return self.say(&compacted(&report, &name));
        }
        let display = Arc::new(Display::new(self.closed.clone(), Arc::clone(&self.common)));
        display.wait_for("summarising");
        let (screen, common) = (Arc::clone(&display), Arc::clone(&self.common));
        let say = notices(move |line| screen.say(Style::Warning, line));
        let on_event: EventCallback = Arc::new(move |event| {
            common.heed(&event.kind);
            say(event);
        });
        let cancel = self.closed.child_token();
        let mut typed = Typed::default();
        let outcome = {
            let compaction = self.compact_with(focus, on_event, cancel.clone());
            let listening = typed.listen(&display, &self.common, &cancel);
            let both = async {
                tokio::select! {
                    biased;
                    outcome = compaction => outcome,
                    never = listening => match never {},
                }
            };
            display.drawing(both).await
        };
        if let Ok(report) = &outcome {
            if let (CompactionOutcome::Done, Some(status)) =
                (report.outcome, self.common.status().as_mut())
            {
                status.compacted(report.tokens_after);
            }
            display.say(Style::Dim, &compacted(report, &name));
        }
        display.finish();
        self.leftover.wants_to_leave = typed.wants_to_leave;
        self.leftover.unsent = typed.text();
        outcome.map(drop)
    }

    async fn compact_with(
        &self,
        focus: Option<&str>,
        on_event: EventCallback,
        cancel: CancellationToken,
    ) -> Result<CompactionReport, CliError> {
        let armed = self.interrupts.arm(cancel.clone());
        let compaction = self.session.compact_here(focus, Foreground { cancel, on_event });
        armed.unless_quit(async { Ok(compaction.await?) }).await
    }
}

/// What is typed meanwhile. It appears at the next prompt.
#[derive(Default)]
struct Typed {
    sent: Vec<String>,
    line: TypedLine,
    wants_to_leave: bool,
}

impl Typed {
    /// Listens to the keys; Esc cancels the work.
    async fn listen(
        &mut self,
        display: &Display,
        common: &Common,
        cancel: &CancellationToken,
    ) -> Infallible {
        let keyboard = Keyboard::listen();
        let marks = PasteMarks::begin();
        if let Ok(mut keyboard) = keyboard {
            // If the terminal is gone, another part ends the work.
            while let Ok(keys) = keyboard.read_keys().await {
                if keys == b"\x1b" && !self.line.is_pasting() {
                    cancel.cancel();
                    continue;
                }
                for key in self.line.press(&keys) {
                    match key {
                        Key::Send(line) => self.sent.push(line.text),
                        Key::Focus(focus) => common.attention.focus(focus),
                        Key::Suspend => display.lend(|| keyboard.lend(|| marks.lend(suspend))),
                        Key::Leave => self.wants_to_leave = true,
                        Key::Unfold | Key::Thinking | Key::Mode | Key::Picture => {}
                    }
                }
                display.show_typed(self.line.text());
            }
        }
        std::future::pending().await
    }

    fn text(mut self) -> String {
        self.sent.push(self.line.take());
        self.sent.retain(|text| !text.is_empty());
        self.sent.join("\n")
    }
}
