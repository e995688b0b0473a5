//! Requests that may take as long as a call of a model: their answers are written when they are there.

use std::sync::Arc;

use myclaw_agent::SessionCommand;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::params::missing;
use super::{Client, MOST_COMMANDS, Params};
use crate::GatewayError;
use crate::server::answer::class_of;
use crate::server::sessions::name_of;

impl Client {
    /// Begins to obey a command about a session. Its answer comes later.
    pub(super) fn obey_later(&self, id: &str, params: Params) -> Result<(), GatewayError> {
        let session = params.session.ok_or_else(|| missing("command", "session"))?;
        let line = params.text.ok_or_else(|| missing("command", "text"))?;
        let command = SessionCommand::parse(&line).ok_or_else(|| {
            GatewayError::Unusable(format!(
                "{line} is no command about a session; docs/operate/gateway.md lists them"
            ))
        })?;
        let (key, _) = self.server.delivery.session(&session)?;
        let agent = self.server.delivery.config().default_agent_id().to_string();
        let name = name_of(&agent, &key);
        let place = self.place_of_command()?;
        let (delivery, client, id) =
            (Arc::clone(&self.server.delivery), self.line.clone(), id.to_owned());
        tokio::spawn(async move {
            let obeyed = delivery.obey(&key, &name, (&line, command)).await;
            drop(place);
            let answer = obeyed.map(|answer| json!(answer)).map_err(GatewayError::from);
            // A client that is gone reads it no more.
            if let Some(line) = client.upgrade() {
                line.answer_late(response(&id, answer).to_string());
            }
        });
        Ok(())
    }
}

/// A command that a client of another gateway gave.
#[derive(Deserialize)]
struct OfOther {
    session: String,
    name: String,
    line: String,
}

impl Client {
    /// Begins to obey a command that a client of another gateway gave, if this one has the session. Its answer comes later.
    pub(super) fn obey_for_gateway(&self, id: &str, params: Value) -> Result<(), GatewayError> {
        let read = serde_json::from_value(params);
        let OfOther { session, name, line } =
            read.map_err(|error| GatewayError::Unusable(error.to_string()))?;
        let command = SessionCommand::parse(&line);
        let command = command.ok_or(GatewayError::Unusable(line))?;
        let (key, _) = self.server.delivery.session(&session)?;
        let place = self.place_of_command()?;
        let (delivery, client, id) =
            (Arc::clone(&self.server.delivery), self.line.clone(), id.to_owned());
        tokio::spawn(async move {
            let obeyed = delivery.obey_if_here(&key, &name, command).await;
            let answer = obeyed.map(|obeyed| json!(obeyed.map_err(|error| error.to_string())));
            drop(place);
            if let Some(line) = client.upgrade() {
                line.answer_late(response(&id, Ok(json!(answer))).to_string());
            }
        });
        Ok(())
    }

    fn place_of_command(&self) -> Result<OwnedSemaphorePermit, GatewayError> {
        Arc::clone(&self.commands).try_acquire_owned().map_err(|_| {
            let why = format!("{MOST_COMMANDS} commands wait for their answers; wait for one");
            GatewayError::Unusable(why)
        })
    }
}

/// The response to a request.
pub(super) fn response(id: &str, answer: Result<Value, GatewayError>) -> Value {
    match answer {
        Ok(result) => json!({"type": "response", "id": id, "ok": true, "result": result}),
        Err(error) => {
            let (_, class) = class_of(&error);
            let error = json!({"class": class, "message": error.to_string()});
            json!({"type": "response", "id": id, "ok": false, "error": error})
        }
    }
}
