//! How the chat looks in a terminal, and how it calls its user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds after which a user who waits may look elsewhere.
const LONG_TURN_SECONDS: u64 = 10;

/// The chat in the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TerminalConfig {
    /// The colours of code and diffs: for a dark or a light background, or only the 16 colours that the terminal's own
    /// theme defines. `auto` asks the terminal for its background.
    pub theme: ThemeName,
    /// The keys of the line editor: those of Emacs, which most shells have, or those of vi.
    pub keys: KeysName,
    /// What happens when a long turn ends or the agent needs an answer: a bell and, where the terminal can, a desktop
    /// notification; only the bell; or nothing.
    pub notifications: NotificationsName,
    /// Seconds after which a turn is long: its end, and a question in it, call a user in any case.
    pub long_turn_seconds: u64,
}

impl Default for TerminalConfig {
    fn default() -> Self {
        Self {
            theme: ThemeName::default(),
            keys: KeysName::default(),
            notifications: NotificationsName::default(),
            long_turn_seconds: LONG_TURN_SECONDS,
        }
    }
}

/// A set of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ThemeName {
    /// As the terminal's background needs it.
    #[default]
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// The 16 colours of the terminal.
    Basic,
}

/// The keys of the line editor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum KeysName {
    /// Those of Emacs.
    #[default]
    Emacs,
    /// Those of vi, with its modes.
    Vi,
}

/// How the user is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum NotificationsName {
    /// A bell, and a desktop notification where the terminal can show one.
    #[default]
    Auto,
    /// The bell.
    Bell,
    /// Not at all.
    Off,
}
