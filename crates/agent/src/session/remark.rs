//! Messages of the program to the model, between two turns.

use std::time::Duration;

use myclaw_engine::{SystemClock, tell_model};
use myclaw_llm::TextContent;
use myclaw_session::LockWait;
use myclaw_tools::FROM_PROGRAM;

use super::Session;
use crate::AgentError;
use crate::blocking::blocking;
use crate::undo::{REDID, UNDID};

/// Longest wait for another process that has the session open.
const WAIT: LockWait = LockWait::Until(Duration::from_secs(5));

/// How the message begins that says which command the user ran; its directory follows.
pub const RAN_COMMAND: &str = "[The user ran a command in ";

/// Whether a message under the user's name was written by the program: the user did not say it.
pub fn is_remark(text: &str) -> bool {
    [RAN_COMMAND, UNDID, REDID, FROM_PROGRAM].iter().any(|beginning| text.starts_with(beginning))
}

impl Session {
    /// Writes a message of the program into the log, which the model reads with the next message of the user.
    ///
    /// # Errors
    /// The session is busy, or the log cannot be read or written.
    pub async fn tell_model(&self, content: TextContent) -> Result<(), AgentError> {
        if self.work().is_some() {
            return Err(self.busy());
        }
        let config = self.config();
        let writing = blocking(move || {
            let log = config.sessions().open(&config.session_key, WAIT)?;
            tell_model(log, content, &SystemClock)
        });
        Ok(writing.await??)
    }
}
