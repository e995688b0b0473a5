//! Undo of the file changes of an open session.

use myclaw_tools::{Direction, Undone, WhichTurn};

use super::Session;
use crate::blocking::blocking;
use crate::{AgentError, UndoMode};

impl Session {
    /// Undoes the file changes of a turn, or makes them again; see [`SessionConfig::undo`](crate::SessionConfig::undo).
    ///
    /// # Errors
    /// The session is busy, there is nothing to undo, or a file cannot be read or written.
    pub async fn undo(
        &self,
        direction: Direction,
        which: WhichTurn,
        mode: UndoMode,
    ) -> Result<Undone, AgentError> {
        if self.work().is_some() {
            return Err(self.busy());
        }
        let config = self.config();
        config.take_up_commands().await;
        blocking(move || config.undo(direction, which, mode)).await?
    }

    /// Undoes the file changes of all turns since a time; see [`SessionConfig::undo_since`](crate::SessionConfig::undo_since).
    ///
    /// # Errors
    /// The session is busy, or a file cannot be read or written.
    pub async fn undo_since(&self, since: u64) -> Result<Vec<Undone>, AgentError> {
        if self.work().is_some() {
            return Err(self.busy());
        }
        let config = self.config();
        config.take_up_commands().await;
        blocking(move || config.undo_since(since)).await?
    }
}
