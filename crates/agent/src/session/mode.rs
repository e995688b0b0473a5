//! The permission mode of an open session.

use myclaw_engine::{Mode, RunEvent};

use super::{Session, SessionEvent};
use crate::AgentError;
use crate::blocking::blocking;

impl Session {
    /// The permission mode in force.
    pub fn mode(&self) -> Mode {
        self.config().mode.get()
    }

    /// Changes the permission mode, whether or not the session works: from the next call on. The sandbox begins and ends with
    /// the next message.
    ///
    /// # Errors
    /// The change cannot be stored. It counts for this process all the same.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), AgentError> {
        let config = self.config();
        let changing = config.clone();
        let stored = blocking(move || changing.change_mode(mode)).await;
        let event = RunEvent::mode_changed(config.session_key.clone(), mode);
        if !config.publish(&event) {
            self.emit(SessionEvent::Run(&event));
        }
        stored?
    }
}
