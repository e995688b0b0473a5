//! Commands about a session that every front-end has, for clients.

use std::sync::Arc;

use myclaw_agent::{CommandAnswer, SessionCommand};
use myclaw_session::SessionKey;

use super::Delivery;
use crate::DeliveryError;
use crate::choice::Choice;

impl Delivery {
    /// Obeys a command about a session, which people call `name`; the answer is for them, without keys. A model or a thinking level is kept with the
    /// session.
    ///
    /// # Errors
    /// What is asked for cannot be done.
    pub async fn obey(
        self: &Arc<Self>,
        key: &SessionKey,
        name: &str,
        command: SessionCommand,
    ) -> Result<CommandAnswer, DeliveryError> {
        let needs_rest = matches!(
            command,
            SessionCommand::Undo(_) | SessionCommand::Compact(_) | SessionCommand::Rewind(Some(_))
        );
        if needs_rest && self.asks_others("in_use", key.as_str()).await {
            return Err(DeliveryError::Lost(key.as_str().to_owned()));
        }
        let desk = self.desk_in(&mut self.desks(), key.as_str())?;
        let choice = match &command {
            SessionCommand::Model(Some(model)) => {
                Some(Choice { model: Some(Some(model.clone())), thinking: None })
            }
            SessionCommand::Thinking(Some(level)) => {
                level.parse().ok().map(|level| Choice { model: None, thinking: Some(level) })
            }
            _ => None,
        };
        let obeyed = desk.session.obey(command, name).await;
        // A desk without messages is closed again where there are many.
        desk.wake.notify_one();
        let mut answer = obeyed?;
        if let Some(choice) = choice {
            self.note_choice(&desk, choice).await?;
        }
        let mut redactor = desk.session.config().home.redactor();
        let texts = answer.rows.iter_mut().flatten().chain([&mut answer.text]);
        texts.for_each(|text| redactor.clean_in_place(text));
        Ok(answer)
    }
}
