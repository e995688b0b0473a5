//! What a call shows to the model: notes of this tool, and text from outside, marked as such.

use std::fmt::Write as _;

use myclaw_engine::ToolOutput;
use myclaw_llm::ContentBlock;
use myclaw_llm::outside::{mark, visible};

use crate::reply::{Reply, quoted};
use crate::transfer::Downloads;

/// Characters reserved for the notes around the text of a page.
const NOTE_CHARS: usize = 2_000;

/// What a call shows to the model.
#[derive(Default)]
pub(crate) struct Shown {
    /// Said by this tool.
    notes: String,
    /// Text from outside.
    pub(crate) content: String,
    pub(crate) image: Option<ContentBlock>,
    is_error: bool,
}

impl Shown {
    pub(crate) fn note(&mut self, note: &str) {
        if !self.notes.is_empty() {
            self.notes.push('\n');
        }
        self.notes.push_str(note);
    }

    /// Notes where the browser is now.
    pub(crate) fn page(&mut self, what: &str, reply: Option<&Reply>) {
        let Some(url) = reply.and_then(|reply| reply.text("url").or_else(|| reply.text("origin")))
        else {
            return;
        };
        let title = reply.and_then(|reply| reply.text("title")).filter(|title| !title.is_empty());
        let title = title.map(|title| format!(", title {}", quoted(title))).unwrap_or_default();
        self.note(&format!("{what} {}{title}.", quoted(url)));
    }

    /// Notes what failed, and what waits for an answer.
    pub(crate) fn failures(&mut self, replies: &[Reply]) {
        for reply in replies {
            if let Some(failure) = reply.failure() {
                self.is_error = true;
                self.note(&format!("The browser reports: {}.", quoted(failure)));
            }
            if let Some(warning) = reply.warning() {
                self.note(&format!("The browser reports: {}.", quoted(warning)));
            }
        }
        if replies.iter().any(Reply::has_lost_pages) {
            self.is_error = true;
            self.note("The browser had crashed and was started anew; its pages are gone. Open the page again.");
        }
    }

    pub(crate) fn downloads(&mut self, downloads: &Downloads) {
        for (path, bytes) in &downloads.finished {
            self.note(&format!("Downloaded {} ({bytes} bytes).", path.display()));
        }
        if downloads.running > 0 {
            self.note(&format!(
                "Downloads still running: {}. Wait some seconds.",
                downloads.running
            ));
        }
    }

    pub(crate) fn into_output(self, max_chars: usize) -> ToolOutput {
        let mut text = self.notes;
        if !self.content.is_empty() {
            let room = max_chars.saturating_sub(NOTE_CHARS);
            let total = self.content.chars().count();
            let start: String = self.content.chars().take(room).collect();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&mark(&visible(&start)));
            if total > room {
                // Writing to a string cannot fail.
                let _ = write!(
                    text,
                    "\n[{} of {total} characters cut. Take a snapshot of a part: give its CSS selector as ref, or \
                     interactive: true.]",
                    total - room
                );
            }
        }
        if text.is_empty() {
            "Done.".clone_into(&mut text);
        }
        let content = [ContentBlock::text(text)].into_iter().chain(self.image).collect();
        ToolOutput { content, details: None, is_error: self.is_error }
    }
}
