//! Requests that may take as long as a call of a model: their answers are written when they are there.

use std::sync::Arc;

use myclaw_agent::SessionCommand;
use serde_json::{Value, json};

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
        let Ok(place) = Arc::clone(&self.commands).try_acquire_owned() else {
            let why = format!("{MOST_COMMANDS} commands wait for their answers; wait for one");
            return Err(GatewayError::Unusable(why));
        };
        let (delivery, client, id) =
            (Arc::clone(&self.server.delivery), self.line.clone(), id.to_owned());
        tokio::spawn(async move {
            let obeyed = delivery.obey(&key, &name, command).await;
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
