//! Turns the terminal's bytes into lines while the agent works.

use std::mem;

use super::attention::Focus;

/// Longest line, in bytes, as for `myclaw run -`; further input is ignored.
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// The key that takes the picture of the clipboard.
const CTRL_V: u8 = 0x16;

/// What a key press asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// Sends the line.
    Send(SentLine),
    /// Ctrl-O: show the last output in full.
    Unfold,
    /// Ctrl-T: show or hide what the model thinks.
    Thinking,
    /// Shift-Tab: the next permission mode.
    Mode,
    /// Ctrl-V: take the picture of the clipboard.
    Picture,
    /// Ctrl-Z: suspend the program.
    Suspend,
    /// Ctrl-D on an empty line: leave.
    Leave,
    /// The terminal was brought to the front, or something else was.
    Focus(Focus),
}

/// A line that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentLine {
    pub(super) text: String,
    pub(super) key: SendKey,
}

/// The key that sent the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendKey {
    Enter,
    AltEnter,
}

/// The line that is being typed.
#[derive(Debug, Default)]
pub(super) struct TypedLine {
    text: String,
    /// Bytes of a character that is not whole yet.
    partial: Vec<u8>,
    escape: Escape,
    /// Parameters of the escape sequence so far.
    parameters: Vec<u8>,
    is_pasting: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// In `ESC [ … final`.
    Control,
    /// After `ESC O`.
    Function,
}

impl TypedLine {
    /// The text of the line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the end of a paste is still to come: an escape character is the beginning of its mark.
    pub(super) fn is_pasting(&self) -> bool {
        self.is_pasting
    }

    /// Takes the text, and leaves the line empty.
    pub(super) fn take(&mut self) -> String {
        mem::take(&mut self.text)
    }

    /// Puts text at the end of the line.
    pub(super) fn push(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.insert(byte));
    }

    /// Handles key presses; returns what they ask for.
    pub(super) fn press(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.press_byte(*byte)).collect()
    }

    /// As [`press`](Self::press), and takes what was handled out of `bytes`: up to the first Ctrl-V, since what follows
    /// it stands behind the picture's path.
    pub(super) fn press_next(&mut self, bytes: &mut Vec<u8>) -> Vec<Key> {
        let end = bytes.iter().position(|byte| *byte == CTRL_V).map_or(bytes.len(), |at| at + 1);
        let next: Vec<u8> = bytes.drain(..end).collect();
        self.press(&next)
    }

    fn press_byte(&mut self, byte: u8) -> Option<Key> {
        match (self.escape, byte) {
            (Escape::None, 0x1b) => self.escape = Escape::Begun,
            (Escape::None, b'\r' | b'\n') if self.is_pasting => self.insert(b'\n'),
            // Ctrl-J, also with Shift and Enter.
            (Escape::None, b'\n') => self.insert(b'\n'),
            (Escape::None, b'\r') => return self.send(SendKey::Enter),
            (Escape::None, 0x7f | 0x08) => drop(self.text.pop()),
            // Ctrl-U and Ctrl-W, as in every line editor.
            (Escape::None, 0x15) => self.text.clear(),
            (Escape::None, 0x17) => self.remove_word(),
            (Escape::None, 0x04) if self.text.is_empty() && !self.is_pasting => {
                return Some(Key::Leave);
            }
            (Escape::None, 0x0f) if !self.is_pasting => return Some(Key::Unfold),
            (Escape::None, 0x14) if !self.is_pasting => return Some(Key::Thinking),
            (Escape::None, CTRL_V) if !self.is_pasting => return Some(Key::Picture),
            (Escape::None, 0x1a) if !self.is_pasting => return Some(Key::Suspend),
            (Escape::None, b'\t') if !self.is_pasting => self.insert(b' '),
            (Escape::None, b'\t') => self.insert(b'\t'),
            (Escape::None, 0..0x20) => {}
            (Escape::None, byte) => self.insert(byte),
            (Escape::Begun, b'\r' | b'\n') => {
                self.escape = Escape::None;
                return self.send(SendKey::AltEnter);
            }
            (Escape::Begun, b'[') => {
                self.parameters.clear();
                self.escape = Escape::Control;
            }
            (Escape::Begun, b'O') => self.escape = Escape::Function,
            (Escape::Begun | Escape::Function, _) => self.escape = Escape::None,
            (Escape::Control, 0x40..=0x7e) => {
                self.escape = Escape::None;
                match (self.parameters.as_slice(), byte) {
                    (b"", b'I') => return Some(Key::Focus(Focus::Gained)),
                    (b"", b'O') => return Some(Key::Focus(Focus::Lost)),
                    (b"" | b"1;2", b'Z') if !self.is_pasting => return Some(Key::Mode),
                    _ => {}
                }
                self.is_pasting = match (self.parameters.as_slice(), byte) {
                    (b"200", b'~') => true,
                    (b"201", b'~') => false,
                    _ => self.is_pasting,
                };
            }
            (Escape::Control, byte) if self.parameters.len() < 16 => self.parameters.push(byte),
            (Escape::Control, _) => {}
        }
        None
    }

    fn send(&mut self, key: SendKey) -> Option<Key> {
        let text = self.take();
        (!text.trim().is_empty()).then_some(Key::Send(SentLine { text, key }))
    }

    fn insert(&mut self, byte: u8) {
        if self.text.len() >= MAX_BYTES {
            return;
        }
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(text) => self.text.push_str(text),
            // The rest of the character is still to come.
            Err(error) if error.error_len().is_none() => return,
            Err(_) => {}
        }
        self.partial.clear();
    }

    fn remove_word(&mut self) {
        let kept = self.text.trim_end();
        let at = kept
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + kept[at..].chars().next().map_or(0, char::len_utf8));
        self.text.truncate(at);
    }
}

#[cfg(test)]
mod tests;
