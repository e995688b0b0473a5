//! What a tool is, as data: what it can do, where it runs, and how it is shown.
//!
//! The policy, the sandbox and the front-ends decide by this, never by the name of a tool.

use serde_json::{Map, Value};

/// What a tool is. A tool that declares nothing counts as [`ToolDeclaration::UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// What a call does, in two to four words that begin with a verb; shown to users.
    pub title: &'static str,
    /// The kind of work, for displays.
    pub kind: ToolKind,
    /// What of a call's arguments a display names.
    pub about: About,
    /// The group whose name stands for the tool in the rules of the config (`group:fs`).
    pub group: Option<ToolGroup>,
    /// All that a call of it can do.
    pub powers: Powers,
    /// Where it works in a sandboxed session.
    pub place: WorkPlace,
}

/// The kind of work of a tool, for displays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Shows the text of a file.
    Read,
    /// Shows directories and pictures.
    Look,
    /// Changes files.
    Change,
    /// Finds things.
    Search,
    /// Fetches a page.
    Fetch,
    /// Runs commands.
    Run,
    /// Works on what runs already.
    Attend,
    /// Shows the user the agent's plan.
    Plan,
    /// Anything else.
    Other,
}

/// What of a call's arguments a display names, behind a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Nothing.
    Nothing,
    /// One argument.
    Argument {
        /// What is done with it; empty if it says that itself, as a command does.
        verb: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// The rest of the lines of one argument that begin with one of these marks.
    Lines {
        /// What is done with them.
        verb: &'static str,
        /// Name of the argument.
        name: &'static str,
        /// The marks.
        marks: &'static [&'static str],
    },
}

impl About {
    /// The verb, and what these arguments name, without repetitions. The arguments may be incomplete.
    pub fn of<'a>(&self, arguments: &'a Map<String, Value>) -> (&'static str, Vec<&'a str>) {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        match *self {
            Self::Nothing => ("", Vec::new()),
            Self::Argument { verb, name } => (verb, text(name).into_iter().collect()),
            Self::Lines { verb, name, marks } => {
                let rest = |line: &'a str| marks.iter().find_map(|mark| line.strip_prefix(mark));
                let mut named: Vec<&str> = Vec::new();
                for found in text(name).unwrap_or_default().lines().filter_map(rest) {
                    // A deleted file has no name of its own in a diff.
                    if found != "/dev/null" && !named.contains(&found) {
                        named.push(found);
                    }
                }
                (verb, named)
            }
        }
    }
}

/// The groups of tools. The names for the config are the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolGroup {
    /// Files and directories.
    Files,
    /// Commands and background jobs.
    Runtime,
    /// Pages and searches.
    Web,
    /// A browser.
    Ui,
    /// Other sessions and agents.
    Sessions,
    /// Notes.
    Memory,
    /// Work by the clock, and the gateway itself.
    Automation,
    /// Messages to people.
    Messaging,
    /// Other machines.
    Nodes,
}

/// Where a tool works in a sandboxed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkPlace {
    /// In the confined helper process.
    Helper,
    /// In this process, where it touches nothing but the commands that it runs in the sandbox.
    ThroughCommands,
    /// In this process.
    Here,
}

/// Something that a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Power {
    /// Reads files.
    ReadsFiles = 1,
    /// Creates, changes or deletes files.
    ChangesFiles = 1 << 1,
    /// Starts programs, or tells running ones what to do.
    RunsPrograms = 1 << 2,
    /// Connects to other machines.
    ReachesNetwork = 1 << 3,
    /// Writes to people or other sessions.
    SendsMessages = 1 << 4,
    /// Changes anything else, such as a schedule.
    ChangesState = 1 << 5,
}

/// A set of [`Power`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Powers(u8);

impl Powers {
    /// Every power.
    pub const ALL: Self = Self(u8::MAX);
    const CHANGING: Self = Self::of(&[
        Power::ChangesFiles,
        Power::RunsPrograms,
        Power::SendsMessages,
        Power::ChangesState,
    ]);

    /// These powers.
    pub const fn of(powers: &[Power]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < powers.len() {
            set |= powers[index] as u8;
            index += 1;
        }
        Self(set)
    }

    /// Whether the power is one of them.
    pub const fn has(self, power: Power) -> bool {
        self.0 & power as u8 != 0
    }
}

impl ToolDeclaration {
    /// A tool that says nothing about itself may do everything.
    pub const UNKNOWN: Self = Self {
        title: "Use a tool",
        kind: ToolKind::Other,
        about: About::Nothing,
        group: None,
        powers: Powers::ALL,
        place: WorkPlace::Here,
    };

    /// Whether its calls change nothing. Adjacent calls of such tools may run at the same time.
    pub const fn is_read_only(&self) -> bool {
        self.powers.0 & Powers::CHANGING.0 == 0
    }
}
