//! A message of the program to the model, written between two runs.

use myclaw_llm::{ContentBlock, TextContent, UserMessage};
use myclaw_session::{OpenSession, SessionError, SwitchedOff};

use crate::Clock;
use crate::open_log::OpenLog;

/// Tokens of the end of the log that are read. The last message of the user and what follows it are always read, and
/// that is all that is needed here.
const LEAST_BUDGET: u64 = 1;

/// Appends a message to a session that no run has open: the model reads it with the next message of the user. Calls that
/// an interrupted run left open get their results first. The message is on disk when this returns. Blocks.
///
/// # Errors
/// The log cannot be read or written.
pub fn tell_model(
    log: Box<dyn OpenSession>,
    content: TextContent,
    clock: &dyn Clock,
) -> Result<(), SessionError> {
    let (mut log, _) = OpenLog::load(log, LEAST_BUDGET, SwitchedOff::default())?;
    log.close_interrupted_calls(|| clock.now_ms())?;
    log.append_user(UserMessage {
        content: vec![ContentBlock::Text(content)],
        annotation: None,
        timestamp: clock.now_ms(),
    })?;
    log.sync_handle().sync()
}
