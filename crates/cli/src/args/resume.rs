//! The options that go on with an earlier session.

use clap::Args;

/// Whether to go on with the last session.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct ContinueArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue", conflicts_with = "session")]
    pub(crate) continue_last: bool,
}

/// Which session to go on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct ResumeArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue", conflicts_with_all = ["session", "resume"])]
    pub(crate) continue_last: bool,
    /// Choose a session from a list; without a terminal, print the list
    #[arg(short, long, conflicts_with = "session")]
    pub(crate) resume: bool,
}

impl ResumeArgs {
    /// Whether one of them is given.
    pub(crate) fn is_given(self) -> bool {
        self.continue_last || self.resume
    }

    /// Takes from `other` what is not set here.
    pub(super) fn complete(&mut self, other: Self) {
        self.continue_last |= other.continue_last;
        self.resume |= other.resume;
    }
}
