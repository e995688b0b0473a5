//! `/compact`: replaces the older messages with a summary.

use std::sync::Arc;

use myclaw_agent::{CompactionReport, EventCallback, Foreground};

use super::display::Display;
use super::{Chat, View};
use crate::commands::sessions::compact::{describe, notices};
use crate::exit::CliError;
use crate::print::note;
use crate::terminal::Style;

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
            let report = self.compact_with(focus, notices(print)).await?;
            return self.say(&describe(&report, &name));
        }
        let display = Arc::new(Display::new(self.closed.clone(), Arc::clone(&self.common)));
        display.wait_for("summarising");
        let screen = Arc::clone(&display);
        let on_event = notices(move |line| screen.say(Style::Warning, line));
        let outcome = display.drawing(self.compact_with(focus, on_event)).await;
        if let Ok(report) = &outcome {
            display.say(Style::Dim, &describe(report, &name));
        }
        display.finish();
        outcome.map(drop)
    }

    async fn compact_with(
        &self,
        focus: Option<&str>,
        on_event: EventCallback,
    ) -> Result<CompactionReport, CliError> {
        let cancel = self.closed.child_token();
        let armed = self.interrupts.arm(cancel.clone());
        let compaction = self.session.compact_here(focus, Foreground { cancel, on_event });
        armed.unless_quit(async { Ok(compaction.await?) }).await
    }
}
