//! Long pastes: one line in the editor stands for them, and the message gets the text.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use myclaw_files::{create_private_directory, private_options};
use myclaw_front::terminal::{ENDING_LETTERS, end_was_read};
use parking_lot::Mutex;
use reedline::{EditCommand, EditMode, PromptEditMode, ReedlineEvent, ReedlineRawEvent};

use super::attention::Focus;
use super::outputs::Common;

/// A paste with more lines is folded.
const MOST_LINES: usize = 5;
/// A paste with more bytes is folded.
const MOST_BYTES: usize = 1_000;

/// Pastes that are kept for later chats.
const MOST_KEPT: usize = 50;
/// How the line that stands for a paste begins.
const MARK: &str = "[paste ";

/// The pastes of this chat, and those of earlier ones that the history may name.
#[derive(Debug, Clone, Default)]
pub(super) struct Pastes {
    texts: Arc<Mutex<HashMap<String, String>>>,
    /// Where they are kept.
    directory: PathBuf,
}

impl Pastes {
    /// Pastes that are kept in `directory`.
    pub(super) fn kept_in(directory: PathBuf) -> Self {
        Self { directory, ..Self::default() }
    }

    /// What the editor shows for `text`: itself, or a line that stands for it.
    fn fold(&self, text: String) -> String {
        let lines = text.lines().count();
        if lines <= MOST_LINES && text.len() <= MOST_BYTES {
            return text;
        }
        let id = digest(text.as_bytes());
        let mark = format!("{MARK}{id}: {lines} lines, {} bytes]", text.len());
        self.texts.lock().insert(id, text);
        mark
    }

    /// `text` with the pastes that its lines stand for.
    ///
    /// # Errors
    /// One of them is not kept any more; the mark of it.
    pub(super) fn unfold(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(MARK) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let Some((mark, id)) = mark(from) else {
                out.push_str(MARK);
                rest = &from[MARK.len()..];
                continue;
            };
            out.push_str(&self.text(id).ok_or_else(|| mark.to_owned())?);
            rest = &from[mark.len()..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Keeps the pastes that `text` names for later chats, whose history has the marks alone.
    pub(super) fn keep(&self, text: &str) -> io::Result<()> {
        for (at, _) in text.match_indices(MARK) {
            let Some((_, id)) = mark(&text[at..]) else { continue };
            let Some(paste) = self.texts.lock().get(id).cloned() else { continue };
            create_private_directory(&self.directory)?;
            let path = self.directory.join(id);
            if !path.exists() {
                private_options()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(&path)?
                    .write_all(paste.as_bytes())?;
            }
        }
        keep_newest(&self.directory, MOST_KEPT)
    }

    fn text(&self, id: &str) -> Option<String> {
        if let Some(text) = self.texts.lock().get(id) {
            return Some(text.clone());
        }
        std::fs::read_to_string(self.directory.join(id)).ok()
    }
}

/// The mark at the beginning of `text`, and the id in it.
fn mark(text: &str) -> Option<(&str, &str)> {
    let mark = &text[..=text.find(']')?];
    let (id, rest) = mark.strip_prefix(MARK)?.split_once(": ")?;
    let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && rest.ends_with(" bytes]")).then_some((mark, id))
}

/// Removes all files of a directory but the `most` newest.
pub(super) fn keep_newest(directory: &Path, most: usize) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(most);
    files.iter().take(surplus).try_for_each(|(_, path)| std::fs::remove_file(path))
}

/// A short name for some bytes: FNV-1a, 64 bits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The keys of the editor, with long pastes folded. What the terminal says about its focus is noted.
pub(super) struct FoldingKeys {
    pub(super) inner: Box<dyn EditMode>,
    pub(super) pastes: Pastes,
    pub(super) common: Arc<Common>,
}

impl EditMode for FoldingKeys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        match event {
            Event::FocusGained => self.common.attention.focus(Focus::Gained),
            Event::FocusLost => self.common.attention.focus(Focus::Lost),
            Event::Key(key) if may_end_line(key) => end_was_read(),
            _ => {}
        }
        let Ok(event) = ReedlineRawEvent::try_from(event) else { return ReedlineEvent::None };
        match self.inner.parse_event(event) {
            ReedlineEvent::Edit(commands) => ReedlineEvent::Edit(
                commands
                    .into_iter()
                    .map(|command| match command {
                        EditCommand::InsertString(text) => {
                            EditCommand::InsertString(self.pastes.fold(text))
                        }
                        other => other,
                    })
                    .collect(),
            ),
            other => other,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// Whether a key may end the line, as [`ENDING_LETTERS`] says.
fn may_end_line(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Enter | KeyCode::Esc | KeyCode::BackTab => true,
        KeyCode::Char(letter) => {
            key.modifiers == KeyModifiers::CONTROL && ENDING_LETTERS.contains(letter)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
