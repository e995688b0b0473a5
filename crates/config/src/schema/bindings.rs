//! Which keys do what in the chat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, KEY};

/// The keys of the chat that can be others, at the prompt and while the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeyBindings {
    /// Shows the last outputs, or a question, in full.
    pub unfold: KeyName,
    /// Shows or hides what the model thinks.
    pub thinking: KeyName,
    /// Goes to the next permission mode.
    pub mode: KeyName,
    /// Opens the message in an editor.
    pub editor: KeyName,
    /// Takes the picture of the clipboard.
    pub picture: KeyName,
    /// Gives the terminal to the shell.
    pub suspend: KeyName,
    /// Begins a new line.
    pub newline: KeyName,
}

impl Default for KeyBindings {
    fn default() -> Self {
        Self {
            unfold: KeyName::of("ctrl-o"),
            thinking: KeyName::of("ctrl-t"),
            mode: KeyName::of("shift-tab"),
            editor: KeyName::of("ctrl-g"),
            picture: KeyName::of("ctrl-v"),
            suspend: KeyName::of("ctrl-z"),
            newline: KeyName::of("ctrl-j"),
        }
    }
}

impl KeyBindings {
    /// Each action with its key.
    pub fn all(&self) -> [(&'static str, &KeyName); 7] {
        [
            ("unfold", &self.unfold),
            ("thinking", &self.thinking),
            ("mode", &self.mode),
            ("editor", &self.editor),
            ("picture", &self.picture),
            ("suspend", &self.suspend),
            ("newline", &self.newline),
        ]
    }
}

/// A key, such as `ctrl-o`, `alt-x`, `f5` or `shift-tab`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct KeyName(
    #[serde(deserialize_with = "values::key")]
    #[schemars(with = "values::KeyText")]
    String,
);

impl KeyName {
    fn of(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What terminals send for it: the first is the usual one. Empty for what is no name of a key.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        /// The numbers of the function keys in `ESC [ NUMBER ~`.
        const FUNCTION: [u8; 12] = [11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24];
        let name = self.0.as_str();
        if !(KEY.accepts)(name) {
            return Vec::new();
        }
        let last = name.bytes().last().unwrap_or_default();
        if name == "shift-tab" {
            return vec![b"\x1b[Z".to_vec(), b"\x1b[1;2Z".to_vec()];
        }
        if name.starts_with("ctrl-") {
            return vec![vec![last & 0x1f]];
        }
        if name.starts_with("alt-") {
            return vec![vec![0x1b, last]];
        }
        let number = name[1..].parse().ok().and_then(|at: usize| at.checked_sub(1));
        let Some((at, number)) = number.and_then(|at| Some((at, FUNCTION.get(at)?))) else {
            return Vec::new();
        };
        let mut sent = vec![format!("\x1b[{number}~").into_bytes()];
        if let Some(letter) = b"PQRS".get(at) {
            sent.insert(0, vec![0x1b, b'O', *letter]);
        }
        sent
    }
}
