//! Commands about a session that every front-end has, for clients.

use std::sync::Arc;

use myclaw_agent::{CommandAnswer, SessionCommand};
use myclaw_session::SessionKey;
use serde_json::json;

use super::Delivery;
use crate::DeliveryError;
use crate::choice::Choice;
use crate::sharing::desk_of;

impl Delivery {
    /// Obeys a command about a session, which people call `name`: the line that asks for it, and what it asks for. The answer is
    /// for them, without keys. A model or a thinking level is kept with the session. What changes a session that another gateway
    /// has is done there, where its files are.
    ///
    /// # Errors
    /// What is asked for cannot be done.
    pub async fn obey(
        self: &Arc<Self>,
        key: &SessionKey,
        name: &str,
        (line, command): (&str, SessionCommand),
    ) -> Result<CommandAnswer, DeliveryError> {
        let needs_rest = matches!(
            command,
            SessionCommand::Undo(_)
                | SessionCommand::Compact(_)
                | SessionCommand::Rewind(Some(_))
                | SessionCommand::Goal(_)
        );
        if needs_rest && !self.ledger().claims().holds(&desk_of(key.as_str())) {
            let asked = json!({"session": key.as_str(), "name": name, "line": line});
            let said = self.process.others.ask("command", asked).await.into_iter();
            let said = said.filter_map(|said| serde_json::from_value(said).ok()).next();
            let said: Option<Result<CommandAnswer, String>> = said;
            if let Some(said) = said {
                return said.map_err(DeliveryError::Unusable);
            }
            // One of an earlier version does not know the question.
            if self.asks_others("in_use", key.as_str()).await {
                return Err(DeliveryError::Lost(key.as_str().to_owned()));
            }
        }
        self.obey_here(key, name, command).await
    }

    /// Obeys a command for another gateway. `None` if this one does not have the session.
    pub async fn obey_if_here(
        self: &Arc<Self>,
        key: &SessionKey,
        name: &str,
        command: SessionCommand,
    ) -> Option<Result<CommandAnswer, DeliveryError>> {
        let has_it = self.ledger().claims().holds(&desk_of(key.as_str()));
        match has_it || self.is_in_use_here(key).await {
            true => Some(self.obey_here(key, name, command).await),
            false => None,
        }
    }

    /// The same in this process.
    ///
    /// # Errors
    /// As for [`Delivery::obey`].
    async fn obey_here(
        self: &Arc<Self>,
        key: &SessionKey,
        name: &str,
        command: SessionCommand,
    ) -> Result<CommandAnswer, DeliveryError> {
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
        if let SessionCommand::Goal(order) = &command
            && order.is_work()
        {
            self.goal_begins(&desk, order).await?;
        }
        let obeyed = desk.session.obey(command, name).await;
        self.look_after_goal(&desk);
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
