//! Why a request to a server has no result.

use myclaw_llm::outside::{mark, visible};

/// Why a request has no result. The text is for the owner; [`Failure::for_model`] marks what the server said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", said_on_a_line(.said))]
pub struct Failure {
    /// What happened and what to do, in words of this program.
    pub what: String,
    /// What the server said about it; may be empty.
    pub said: String,
    pub(crate) kind: Kind,
    /// The revisions that the server speaks, if it has refused because of the revision.
    pub(crate) supported: Vec<String>,
}

/// What a failure means for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The server has answered that it cannot.
    Refused,
    /// No answer came in time.
    Overdue,
    /// The server has ended, or was ended.
    Ended,
    /// The answer makes no sense, or the request was not made.
    Other,
    /// The run was aborted.
    Aborted,
    /// A status of HTTP in place of an answer.
    Status(u16),
    /// The server wants a login, or another one.
    Login,
    /// Nothing was sent: the server could not be reached.
    Unreached,
    /// The connection ended in the middle of the answer.
    BrokenOff,
    /// The server has forgotten the session, and did nothing.
    SessionLost,
}

fn said_on_a_line(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; it said:\n{}", visible(said)),
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { what: what.into(), said: String::new(), kind, supported: Vec::new() }
    }

    pub(crate) fn other(what: impl Into<String>) -> Self {
        Self::new(Kind::Other, what)
    }

    pub(crate) fn saying(mut self, said: impl Into<String>) -> Self {
        self.said = said.into();
        self
    }

    /// The text for a model, in which what the server said is marked as text from outside.
    pub fn for_model(&self) -> String {
        match self.said.trim() {
            "" => self.what.clone(),
            said => format!("{}. What it said:\n{}", self.what, mark(&visible(said))),
        }
    }
}
