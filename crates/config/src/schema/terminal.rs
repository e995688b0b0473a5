//! How the chat looks in a terminal, and how it calls its user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeyBindings, values};

/// Seconds after which a user who waits may look elsewhere.
const LONG_TURN_SECONDS: u64 = 10;

/// The chat in the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TerminalConfig {
    /// The colours of code and diffs: for a dark or a light background, or only the 16 colours that the terminal's own
    /// theme defines. `auto` asks the terminal for its background.
    pub theme: ThemeName,
    /// The parts of the status line, in their order. The permission mode, if it is not the usual one, and the goal stand before
    /// them in any case. Leave it out for all parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_line: Option<Vec<StatusPart>>,
    /// A command for `sh -c`: the first line that it prints takes the place of the parts. It is run before each prompt and
    /// reads what there is to show as JSON.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<values::NonBlankText>")]
    pub status_command: Option<String>,
    /// The keys of the line editor: those of Emacs, which most shells have, or those of vi.
    pub keys: KeysName,
    /// The keys of the chat that can be others.
    pub bindings: KeyBindings,
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
            status_line: None,
            status_command: None,
            keys: KeysName::default(),
            bindings: KeyBindings::default(),
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
    /// No colours.
    Plain,
    /// Few and strong colours, and nothing faint.
    #[serde(rename = "high-contrast")]
    HighContrast,
}

/// A part of the status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StatusPart {
    /// Where the tools work, and the branch that is checked out there.
    Directory,
    /// The model.
    Model,
    /// How much it thinks.
    Thinking,
    /// How full its context window is.
    Context,
    /// What this chat has cost.
    Cost,
    /// What all sessions have cost today.
    Today,
    /// The name of the session.
    Session,
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
