//! What people ask of a group besides answers.

use crate::{Folder, Host, HostError};

/// Most messages that are counted.
const MAX_COUNTED: usize = 100;

/// What a group does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// Whether it works on something.
    pub is_working: bool,
    /// Messages without an answer; of more than 100, only so many are counted.
    pub open: usize,
    /// Its session, if it has one.
    pub session: Option<String>,
}

impl Host {
    /// Stops what a group does. What that was for is reported as not answered; messages that it has not read are answered
    /// then. False if it does nothing.
    pub fn stop(&self, folder: &Folder) -> bool {
        let working = self.0.working.lock().get(folder).cloned();
        working.inspect(|stop| stop.cancel()).is_some()
    }

    /// Lets the next message of a group begin a new session. What it does now ends in the old one.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn begin_anew(&self, folder: &Folder) -> Result<(), HostError> {
        self.0.ledger.begin_anew(folder).await?;
        self.0.wake(folder);
        Ok(())
    }

    /// What a group does.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn status(&self, folder: &Folder) -> Result<GroupStatus, HostError> {
        let ledger = &self.0.ledger;
        let state = ledger.state(folder).await?.row;
        let beginnings = ledger.beginnings(folder).await?;
        let open = ledger.open_messages(folder, MAX_COUNTED).await?.len();
        Ok(GroupStatus {
            is_working: self.0.working.lock().contains_key(folder),
            open,
            session: state.session_id.filter(|_| state.beginnings == beginnings),
        })
    }
}
