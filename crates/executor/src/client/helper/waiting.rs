//! Who waits for the replies of a helper.

use std::sync::Arc;

use myclaw_engine::ToolUpdate;
use tokio::sync::{mpsc, oneshot};

use crate::backlog::{Backlog, Chunk};
use crate::protocol::{CallOutcome, CommandEnd, MAX_PIECE_BYTES, Reply, check_update, decode};

/// Somebody who waits for the end of a call or command.
#[derive(Debug)]
pub(in crate::client) enum Waiting {
    Call {
        updates: mpsc::Sender<ToolUpdate>,
        result: oneshot::Sender<CallOutcome>,
    },
    Command(CommandEvents),
    /// A command that runs next to the helper and ends with it. Nobody replies to it; the sender is dropped with the
    /// helper.
    Beside {
        _lost: oneshot::Sender<()>,
    },
    /// The caller is gone. The sender is dropped with the end of the call.
    GivenUp {
        _over: oneshot::Sender<()>,
    },
}

/// Receives what happens to a command.
#[derive(Debug)]
pub(in crate::client) struct CommandEvents {
    pub(in crate::client) output: Arc<Backlog>,
    /// Whether its input is closed, once for each piece of input.
    pub(in crate::client) took: mpsc::Sender<bool>,
    pub(in crate::client) end: oneshot::Sender<CommandEnd>,
}

impl Waiting {
    /// Passes a reply on that is not the last one.
    ///
    /// # Errors
    /// The reply is not one to this call.
    pub(super) fn go_on(&self, reply: Reply) -> Result<(), String> {
        match (self, reply) {
            (Self::Call { updates, .. }, Reply::Update { text, details, .. }) => {
                if let Some(update) = check_update(text, details) {
                    // More progress than anybody looks at is lost.
                    let _ = updates.try_send(update);
                }
                Ok(())
            }
            (Self::Command(command), Reply::Output { skipped_bytes, skipped_lines, data, .. }) => {
                let bytes = decode(&data)?;
                if bytes.len() > MAX_PIECE_BYTES {
                    return Err("it sent too much output at once".to_owned());
                }
                command.output.push_chunk(&Chunk { skipped_bytes, skipped_lines, bytes });
                Ok(())
            }
            (Self::Command(command), Reply::Took { is_closed, .. }) => {
                command.took.try_send(is_closed).map_err(|_| "it took input twice".to_owned())
            }
            (Self::GivenUp { .. }, _) => Ok(()),
            _ => Err("it mixed up calls and commands".to_owned()),
        }
    }

    /// Passes the last reply on. A caller that is gone does not matter.
    ///
    /// # Errors
    /// The reply is not one to this call.
    pub(in crate::client) fn end(self, reply: Reply) -> Result<(), String> {
        match (self, reply) {
            (Self::Call { result, .. }, Reply::Result { outcome, .. }) => {
                let _ = result.send(outcome);
            }
            (Self::Command(command), Reply::Ended { end, .. }) => {
                let _ = command.end.send(*end);
            }
            (Self::GivenUp { .. }, _) => {}
            _ => return Err("it mixed up calls and commands".to_owned()),
        }
        Ok(())
    }
}
