//! The permission mode of a session: what its agent may do without a question, in the session's present state.
//!
//! A mode only narrows what the rules of the config allow. It is decided by what a tool declares, never by its name. The
//! list of tools stays the same in every mode, so that the prompt's bytes stay; a call that the mode forbids is refused.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use myclaw_session::MODE;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{ToolDeclaration, ToolKind};

/// A permission mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing is changed, run or sent.
    ReadOnly,
    /// The same, until the user approves a plan.
    Plan,
    /// The user is asked before each change, command and message.
    Ask,
    /// The rules of the config alone decide.
    #[default]
    Auto,
    /// The tools are confined in the sandbox.
    Sandbox,
}

/// The name of a mode that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode `{0}`; there are read-only, plan, ask, auto and sandbox")]
pub struct UnknownMode(String);

impl Mode {
    /// All of them, in the order in which a key changes them.
    pub const ALL: [Self; 5] = [Self::ReadOnly, Self::Plan, Self::Ask, Self::Auto, Self::Sandbox];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Sandbox => "sandbox",
        }
    }

    /// What it means, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::ReadOnly => "nothing is changed, run or sent",
            Self::Plan => "nothing is changed, run or sent until you approve a plan",
            Self::Ask => "you are asked before each change, command and message",
            Self::Auto => "the rules of the config decide",
            Self::Sandbox => "files and commands are confined in the sandbox",
        }
    }

    /// The mode that the key chooses next.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|mode| *mode == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Whether calls of such a tool change nothing outside of what the user is shown.
    pub fn is_harmless(declaration: &ToolDeclaration) -> bool {
        declaration.is_read_only() || declaration.kind == ToolKind::Plan
    }

    /// What the model reads of it with each message.
    pub(crate) fn for_model(self) -> &'static str {
        match self {
            Self::ReadOnly => {
                "read-only: tools that change, run or send anything are refused; answer from what you can read"
            }
            Self::Plan => {
                "plan: tools that change, run or send anything are refused. Look around, then call update_plan with the steps \
                 that you propose; the user approves, changes or refuses them"
            }
            Self::Ask => "ask: the user is asked before each change, command and message",
            Self::Auto => "auto",
            Self::Sandbox => "sandbox: files and commands are confined in a sandbox",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == name);
        found.ok_or_else(|| UnknownMode(text.trim().chars().take(64).collect()))
    }
}

/// The mode of one session. Clones share it, so a change counts from the next call on.
#[derive(Debug, Clone, Default)]
pub struct SessionMode(Arc<Mutex<Chosen>>);

#[derive(Debug, Default)]
struct Chosen {
    /// `None` while nobody has chosen one: the log of such a session says nothing about modes.
    mode: Option<Mode>,
    /// The one before it became [`Mode::Plan`].
    before_plan: Option<Mode>,
}

impl SessionMode {
    /// The mode that was chosen, if any was.
    pub fn new(chosen: Option<Mode>) -> Self {
        Self(Arc::new(Mutex::new(Chosen { mode: chosen, before_plan: None })))
    }

    /// The mode in force.
    pub fn get(&self) -> Mode {
        self.chosen().unwrap_or_default()
    }

    /// The mode that was chosen, if any was.
    pub fn chosen(&self) -> Option<Mode> {
        self.0.lock().mode
    }

    /// Changes it; returns the one before.
    pub fn set(&self, mode: Mode) -> Mode {
        let mut chosen = self.0.lock();
        let before = chosen.mode.unwrap_or_default();
        if mode == Mode::Plan && before != Mode::Plan {
            chosen.before_plan = Some(before);
        }
        chosen.mode = Some(mode);
        before
    }

    /// The mode in which an approved plan is carried out: the one before, if that lets anything be done.
    pub fn after_plan(&self) -> Mode {
        match self.0.lock().before_plan {
            Some(mode @ (Mode::Ask | Mode::Sandbox)) => mode,
            _ => Mode::Auto,
        }
    }

    /// The field of a row and of the list of sessions that holds it; `None` while none was chosen.
    pub(crate) fn field(&self) -> Option<(String, serde_json::Value)> {
        Some((MODE.to_owned(), self.chosen()?.as_str().into()))
    }
}
