//! What a call will do, in plain data.
//!
//! A tool reads the arguments of a call once and says what they mean. The policy judges that, an approval is bound to
//! it, a question shows it, and the tool acts on it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CallArguments;

/// What a call will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSubject {
    /// What it does outside of the tool itself.
    pub effects: Vec<CallEffect>,
    /// Everything that decides what happens, in the order in which a question shows it.
    pub facts: Vec<ShownFact>,
}

/// Something that a call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEffect {
    /// Runs a command on this machine.
    Run(CommandLine),
    /// Writes to a running command.
    Input(JobInput),
    /// Touches a file or a directory.
    Touch(Target),
    /// Connects to this address.
    Connect(String),
    /// Writes to this person, chat or session.
    Message(String),
    /// Runs something on another machine, whose programs are not known here.
    RunElsewhere(String),
    /// Does what only the owner may decide, for this reason. It is always asked about.
    OwnerDecides(String),
    /// Changes the config of this program. It is always asked about.
    ChangeConfig,
    /// Does what nobody here knows; it counts as a command that cannot be read.
    Unknown,
}

impl CallEffect {
    /// Whether only the owner decides about it, each time anew.
    pub fn is_the_owners(&self) -> bool {
        matches!(self, Self::OwnerDecides(_) | Self::ChangeConfig)
    }
}

/// A command as it will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The command line, as the shell gets it.
    pub command: String,
    /// Where it runs: absolute, with all links followed.
    pub directory: PathBuf,
    /// The variables that the call sets.
    pub environment: BTreeMap<String, String>,
    /// Whether it gets a terminal.
    pub terminal: bool,
    /// Whether it can be written to later, because it continues as a background job from the start.
    pub background: bool,
}

/// Input for a background job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInput {
    /// What is written: the action of the tool, and its text or keys.
    pub input: String,
    /// What the job runs; `None` if there is no such job, so that nothing will be written.
    pub job: Option<JobCommand>,
}

/// The command of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// The command line, as far as it is known.
    pub command: String,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// Where it was started.
    pub directory: PathBuf,
}

/// A file or directory that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How.
    pub access: TargetAccess,
    /// The path: absolute, with all links followed.
    pub path: PathBuf,
}

/// How a call touches a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetAccess {
    /// Reads it.
    Read,
    /// Looks through all that is below it.
    Search,
    /// Creates or changes it.
    Write,
    /// Deletes it.
    Delete,
}

/// Something that a question shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownFact {
    /// What it is, in one or two words.
    pub label: Cow<'static, str>,
    /// All of it. It may hold any characters; escape them before they go to a terminal.
    pub text: String,
    /// How it is shown.
    pub form: FactForm,
    /// Whether `text` is all of it. What is not whole cannot be approved for good.
    pub is_whole: bool,
}

/// How a fact is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactForm {
    /// As text.
    Text,
    /// As a unified diff.
    Diff,
}

impl ShownFact {
    /// A whole text.
    pub fn text(label: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), form: FactForm::Text, is_whole: true }
    }

    /// A whole diff.
    pub fn diff(label: impl Into<Cow<'static, str>>, diff: impl Into<String>) -> Self {
        Self { form: FactForm::Diff, ..Self::text(label, diff) }
    }
}

impl CallSubject {
    /// A call that does nothing outside of its tool but what is added. All its arguments are shown.
    pub fn of(arguments: &CallArguments) -> Self {
        let fact = |(name, value): (&String, &Value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                value => serde_json::to_string_pretty(value).unwrap_or_default(),
            };
            ShownFact::text(name.clone(), text)
        };
        Self { effects: Vec::new(), facts: arguments.as_map().iter().map(fact).collect() }
    }

    /// A call of a tool that does not say what it does.
    pub fn unknown(arguments: &CallArguments) -> Self {
        Self::of(arguments).with(CallEffect::Unknown)
    }

    /// Adds an effect.
    #[must_use]
    pub fn with(mut self, effect: CallEffect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Shows `facts` before all others, in place of those with the labels `instead_of`.
    #[must_use]
    pub fn first(mut self, instead_of: &[&str], mut facts: Vec<ShownFact>) -> Self {
        self.facts.retain(|fact| !instead_of.contains(&&*fact.label));
        facts.append(&mut self.facts);
        Self { facts, ..self }
    }

    /// The commands that it runs on this machine.
    pub fn commands(&self) -> impl Iterator<Item = &CommandLine> {
        self.effects.iter().filter_map(|effect| match effect {
            CallEffect::Run(command) => Some(command),
            _ => None,
        })
    }

    /// The files and directories that it touches.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.effects.iter().filter_map(|effect| match effect {
            CallEffect::Touch(target) => Some(target),
            _ => None,
        })
    }
}
