//! What a tool is, as data: what it can do, where it runs, and how it is shown.
//!
//! The policy, the sandbox and the front-ends decide by this, never by the name of a tool.

/// What a tool is. A tool that declares nothing counts as [`ToolDeclaration::UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// What a call does, in two to four words that begin with a verb; shown to users.
    pub title: &'static str,
    /// The kind of work, for displays.
    pub kind: ToolKind,
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
    /// Shows files, directories and pictures.
    Read,
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
        group: None,
        powers: Powers::ALL,
        place: WorkPlace::Here,
    };

    /// Whether its calls change nothing. Adjacent calls of such tools may run at the same time.
    pub const fn is_read_only(&self) -> bool {
        self.powers.0 & Powers::CHANGING.0 == 0
    }
}
