//! The command lines of `myclaw chat` and `myclaw attach`.

use clap::Args;
use myclaw_front::args::{ImageArgs, SessionArgs, WorktreeArgs};
use myclaw_front::gateway::WhichGateway;

/// Arguments of `attach`.
#[derive(Debug, Default, Args)]
pub struct AttachArgs {
    /// Name of the session to continue or begin; the default is the agent's main session
    #[arg(short, long, value_name = "NAME")]
    pub session: Option<String>,
    /// The gateway; the default is the one of this state directory.
    #[command(flatten)]
    pub gateway: WhichGateway,
}

/// Arguments of `chat`.
#[derive(Debug, Default, Args)]
pub struct ChatArgs {
    /// The first message, sent at once; several words are joined by spaces
    #[arg(value_name = "MESSAGE")]
    pub message: Vec<String>,
    /// Pictures.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Which session to go on with.
    #[command(flatten)]
    pub resume: ResumeArgs,
    /// The session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// The worktree.
    #[command(flatten)]
    pub worktree: WorktreeArgs,
}

/// Which session to go on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct ResumeArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue", conflicts_with_all = ["session", "resume"])]
    pub continue_last: bool,
    /// Choose a session from a list; without a terminal, print the list
    #[arg(short, long, conflicts_with = "session")]
    pub resume: bool,
}

impl ResumeArgs {
    /// Whether one of them is given.
    pub fn is_given(self) -> bool {
        self.continue_last || self.resume
    }

    /// Takes from `other` what is not set here.
    pub fn complete(&mut self, other: Self) {
        self.continue_last |= other.continue_last;
        self.resume |= other.resume;
    }
}
