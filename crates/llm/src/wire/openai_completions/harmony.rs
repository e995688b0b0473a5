//! The form in which models of the gpt-oss family write, where the server leaves it in the text: messages with a header that
//! names a channel, such as `<|start|>assistant<|channel|>analysis<|message|>…<|end|>`.

use super::content::Prose;

/// How such text begins.
pub(super) const STARTS: [&str; 2] = ["<|start|>assistant", "<|channel|>"];

/// Separates the header of a message from what it says.
const MESSAGE: &str = "<|message|>";
/// What ends a message; the last two begin the header of the next one.
const ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"];
/// Longest header, in bytes. Those of calls name a tool and a format.
const MOST_HEADER_BYTES: usize = 400;

/// Separates thinking from text as the pieces arrive; a mark may be cut anywhere.
#[derive(Debug)]
pub(super) struct Harmony {
    place: Place,
    /// What came and is not passed on yet.
    held: String,
    /// Whether there was text, from which the next text is separated.
    has_text: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the end of a header.
    Header,
    /// In a message.
    Message(Prose),
    /// In what is no such form, or a call, which the reader of the whole answer recognises by its marks.
    Raw,
}

impl Harmony {
    pub(super) fn new() -> Self {
        Self { place: Place::Header, held: String::new(), has_text: false }
    }

    /// Takes a piece of the content and passes it on as text or thinking.
    pub(super) fn feed(&mut self, piece: &str, take: &mut dyn FnMut(Prose, &str)) {
        self.held.push_str(piece);
        while self.step(take) {}
    }

    /// Ends the content: passes on what was held back.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(Prose, &str)) {
        let held = std::mem::take(&mut self.held);
        match self.place {
            // The beginning of a message that never came.
            Place::Header if self.has_text || held.trim().is_empty() => {}
            Place::Header | Place::Raw => take(Prose::Text, &held),
            Place::Message(prose) => take(prose, &held),
        }
    }

    /// Passes on what is sure; returns whether there may be more.
    fn step(&mut self, take: &mut dyn FnMut(Prose, &str)) -> bool {
        match self.place {
            Place::Raw => {
                take(Prose::Text, &std::mem::take(&mut self.held));
                false
            }
            Place::Header => self.header(take),
            Place::Message(prose) => {
                let first = ENDS.iter().filter_map(|end| Some((self.held.find(end)?, *end))).min();
                let Some((at, end)) = first else {
                    let keep = self.held.len() - partial(&self.held);
                    let ready: String = self.held.drain(..keep).collect();
                    take(prose, &ready);
                    return false;
                };
                take(prose, &self.held[..at]);
                let next = if ENDS[3..].contains(&end) { at } else { at + end.len() };
                self.held.drain(..next);
                self.place = Place::Header;
                true
            }
        }
    }

    fn header(&mut self, take: &mut dyn FnMut(Prose, &str)) -> bool {
        let text = self.held.trim_start();
        let is_one = STARTS.iter().any(|start| text.starts_with(start) || start.starts_with(text));
        let Some((header, _)) = text.split_once(MESSAGE).filter(|_| is_one) else {
            if is_one && text.len() <= MOST_HEADER_BYTES {
                return false;
            }
            self.place = Place::Raw;
            return true;
        };
        // A call is addressed to a tool.
        if header.contains("to=") {
            self.place = Place::Raw;
            return true;
        }
        let is_analysis = header.contains("<|channel|>analysis");
        let prose = if is_analysis { Prose::Thinking } else { Prose::Text };
        let length = self.held.len() - text.len() + header.len() + MESSAGE.len();
        self.held.drain(..length);
        if prose == Prose::Text && std::mem::replace(&mut self.has_text, true) {
            take(Prose::Text, "\n\n");
        }
        self.place = Place::Message(prose);
        true
    }
}

/// How many bytes at the end of `text` may be the beginning of the end of a message.
fn partial(text: &str) -> usize {
    let longest = |end: &&str| (1..end.len()).rev().find(|&length| text.ends_with(&end[..length]));
    ENDS.iter().filter_map(longest).max().unwrap_or(0)
}
