//! Reasoning that a host leaves in the text, between `<think>` and `</think>` at its beginning, or in the form [`harmony`].

use super::content::Prose;
use super::harmony::{self, Harmony};

/// The tags in use, each with its end.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// Separates reasoning from text as the pieces arrive; a tag may be cut anywhere.
#[derive(Debug)]
pub(super) enum ThinkTags {
    /// Only white space and perhaps the beginning of a tag came; it is held back here.
    Start(String),
    /// After the start tag; the line breaks that follow it are dropped.
    Opened(&'static str),
    /// Between the tags; the possible beginning of the end tag is held back.
    Inside { end: &'static str, held: String },
    /// After the end tag; the line breaks that follow it are dropped.
    Behind,
    /// Messages with headers.
    Harmony(Harmony),
    /// Everything that follows is text, even if it looks like a tag.
    Text,
}

impl ThinkTags {
    pub(super) fn new() -> Self {
        Self::Start(String::new())
    }

    /// Takes a piece of the content and passes it on as text or reasoning.
    pub(super) fn feed(&mut self, piece: &str, take: &mut dyn FnMut(Prose, &str)) {
        match self {
            Self::Text => take(Prose::Text, piece),
            Self::Harmony(harmony) => harmony.feed(piece, take),
            Self::Behind => {
                let text = piece.trim_start_matches(['\r', '\n']);
                if !text.is_empty() {
                    *self = Self::Text;
                    take(Prose::Text, text);
                }
            }
            Self::Start(held) => {
                held.push_str(piece);
                let text = held.trim_start();
                if let Some((start, end)) = TAGS.iter().find(|(start, _)| text.starts_with(start)) {
                    let inside = text[start.len()..].to_owned();
                    *self = Self::Opened(end);
                    self.feed(&inside, take);
                } else if harmony::STARTS.iter().any(|start| text.starts_with(start)) {
                    let text = std::mem::take(held);
                    *self = Self::Harmony(Harmony::new());
                    self.feed(&text, take);
                } else if !TAGS
                    .iter()
                    .map(|(start, _)| start)
                    .chain(&harmony::STARTS)
                    .any(|start| start.starts_with(text))
                {
                    let text = std::mem::take(held);
                    *self = Self::Text;
                    take(Prose::Text, &text);
                }
            }
            Self::Opened(end) => {
                let text = piece.trim_start_matches(['\r', '\n']);
                if !text.is_empty() {
                    *self = Self::Inside { end, held: String::new() };
                    self.feed(text, take);
                }
            }
            Self::Inside { end, held } => {
                held.push_str(piece);
                if let Some(at) = held.find(*end) {
                    let behind = held.split_off(at);
                    take(Prose::Thinking, held.trim_end_matches(['\r', '\n']));
                    let end = end.len();
                    *self = Self::Behind;
                    self.feed(&behind[end..], take);
                } else {
                    let keep = held.len() - held_back(held, end);
                    let ready: String = held.drain(..keep).collect();
                    take(Prose::Thinking, &ready);
                }
            }
        }
    }

    /// Ends the content: passes on what was held back.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(Prose, &str)) {
        match std::mem::replace(self, Self::Text) {
            Self::Start(held) => take(Prose::Text, &held),
            Self::Inside { held, .. } => take(Prose::Thinking, &held),
            Self::Harmony(mut harmony) => harmony.finish(take),
            Self::Opened(_) | Self::Behind | Self::Text => {}
        }
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`, line breaks before it included.
fn held_back(text: &str, tag: &str) -> usize {
    let partial = (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0);
    let before = &text[..text.len() - partial];
    partial + before.len() - before.trim_end_matches(['\r', '\n']).len()
}

#[cfg(test)]
mod tests;
