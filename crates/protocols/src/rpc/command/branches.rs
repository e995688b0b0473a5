//! New sessions that continue earlier ones.

use std::sync::Arc;

use myclaw_agent::{Session, messages_of_user};
use myclaw_session::EntryId;
use serde_json::{Value, json};

use super::super::request::{Fork, Rewind};
use super::{Controller, to_value};
use myclaw_front::exit::CliError;

impl Controller {
    pub(super) async fn fork(&mut self, from: &Session, fork: Fork) -> Result<Value, CliError> {
        let to = self.new_key(fork.name)?;
        let at = fork.at.map(|id| EntryId::from_text(&id));
        let catalog = Arc::clone(&self.sessions.catalog);
        let (from, new) = (from.key().clone(), to.clone());
        let made = tokio::task::spawn_blocking(move || catalog.fork(&from, at, &new))
            .await
            .map_err(|error| CliError::failure(format!("internal error: {error}")))??;
        self.make_current(&to)?;
        Ok(json!({
            "session": to.as_str(),
            "forkedFrom": made.origin.session_key,
            "at": made.origin.entry_id,
        }))
    }

    /// Goes back to before a message, in files too.
    pub(super) async fn rewind(
        &mut self,
        from: &Session,
        wanted: Rewind,
    ) -> Result<Value, CliError> {
        let id = EntryId::from_text(&wanted.message_id);
        let said = messages_of_user(&*self.sessions.catalog, from.key())?;
        let said = said.into_iter().find(|said| said.message.id == id).ok_or_else(|| {
            CliError::usage("rewind: no message of the user has the id that `messageId` names")
        })?;
        let to = self.new_key(wanted.name)?;
        let rewound = from.rewind(&said, &to).await?;
        self.make_current(&to)?;
        Ok(json!({
            "session": to.as_str(),
            "message": said.message.content,
            "undone": to_value(rewound.undone)?,
        }))
    }
}
