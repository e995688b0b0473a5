//! One HTML file with everything in it.
//!
//! HTML in a session is never treated as markup: texts are escaped, of a model's Markdown only the forms are kept, images are only taken in if they are of a known
//! type and plain base64, and the page's policy forbids the browser to run or to load anything.

use std::io::{self, Write};

use myclaw_llm::{ContentBlock, ImageContent, Redactor};
use myclaw_session::{CompactionEntry, Role, TranscriptMessage};

use super::redaction::redact_blocks;
use super::rich::{escape, rich};
use super::{Document, ExportedSession, local_minute, redacted_note, speaker};

/// The beginning of the page; `{title}` is the title.
const HEAD: &str = include_str!("page.html");
const END: &str = "</body>\n</html>\n";
/// Types that browsers show and that cannot hold scripts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// One section per message; calls, their results and reasoning are folded away.
pub(super) struct Page<W> {
    out: W,
}

impl<W: Write> Page<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    fn section(&mut self, class: &str, head: &str, ts: u64) -> io::Result<()> {
        write!(
            self.out,
            "<section class=\"{class}\">\n<h2>{} <small>{}</small></h2>\n",
            escape(head),
            escape(&local_minute(ts))
        )
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.out.write_all(b"</section>\n")
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<div class=\"text\">{}</div>", escape(text.trim_end()))
    }

    /// A text of a model.
    fn rich(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<div class=\"rich\">{}</div>", rich(text).trim_end())
    }

    fn folded(&mut self, head: &str, text: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(head),
            escape(text)
        )
    }

    fn image(&mut self, image: &ImageContent) -> io::Result<()> {
        let is_base64 =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if IMAGE_TYPES.contains(&image.mime_type.as_str()) && image.data.bytes().all(is_base64) {
            writeln!(
                self.out,
                "<img alt=\"image\" src=\"data:{};base64,{}\">",
                image.mime_type, image.data
            )
        } else {
            self.text(&format!("[an image of type {}]", image.mime_type))
        }
    }

    fn block(&mut self, block: &ContentBlock, role: Role) -> io::Result<()> {
        match block {
            ContentBlock::Text(text) if role == Role::Tool => self.folded("Result", &text.text),
            ContentBlock::Text(text) if role == Role::Assistant => self.rich(&text.text),
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::Thinking(thinking) if thinking.thinking.is_empty() => Ok(()),
            ContentBlock::Thinking(thinking) => self.folded("Reasoning", &thinking.thinking),
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::ToolCall(call) => {
                let arguments = match &call.invalid_arguments {
                    Some(text) => text.clone(),
                    None => serde_json::to_string_pretty(&call.arguments)?,
                };
                self.folded(&format!("Calls {}", call.name), &arguments)
            }
        }
    }
}

impl<W: Write> Document for Page<W> {
    fn begin(&mut self, session: &mut ExportedSession<'_>) -> io::Result<()> {
        let head = HEAD.replace("{title}", &escape(&session.title));
        self.out.write_all(head.as_bytes())
    }

    fn redact(&self, message: &mut TranscriptMessage, redactor: &mut Redactor) {
        redact_blocks(message, redactor);
    }

    fn message(&mut self, message: &TranscriptMessage) -> io::Result<()> {
        self.section(message.role.as_str(), &speaker(message), message.ts)?;
        let blocks: Option<Vec<ContentBlock>> =
            message.meta.as_ref().and_then(|meta| meta.field("contentBlocks"));
        let blocks = blocks.unwrap_or_else(|| vec![ContentBlock::text(message.content.as_str())]);
        for block in &blocks {
            self.block(block, message.role)?;
        }
        self.end_section()
    }

    fn summary(&mut self, compaction: &CompactionEntry) -> io::Result<()> {
        self.section("summary", "summary of the session so far", compaction.ts)?;
        self.rich(&compaction.summary)?;
        self.end_section()
    }

    fn end(&mut self, redacted: usize) -> io::Result<()> {
        if redacted > 0 {
            writeln!(self.out, "<p><small>{}</small></p>", escape(&redacted_note(redacted)))?;
        }
        self.out.write_all(END.as_bytes())
    }
}
