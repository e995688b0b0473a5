//! The commands that the owner has written, for clients that offer them.

use myclaw_agent::{custom_commands, requests};
use serde_json::{Value, json};

use super::Server;
use crate::GatewayError;

impl Server {
    /// The commands of a session, with what each says of itself.
    pub(super) async fn commands(&self, session: &str) -> Result<Value, GatewayError> {
        let config = self.delivery.session_config(session)?;
        let reading = tokio::task::spawn_blocking(move || custom_commands::described(&config));
        let found = reading.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let command = |(name, description): (String, Option<String>)| json!({"name": name, "description": description});
        Ok(json!({"commands": found.into_iter().map(command).collect::<Vec<_>>()}))
    }

    /// The message that a line with such a command stands for; null for any other line.
    pub(super) async fn expand(&self, session: &str, line: String) -> Result<Value, GatewayError> {
        let config = self.delivery.session_config(session)?;
        let expanding = tokio::task::spawn_blocking(move || {
            let own = custom_commands::expand(&config, &line, |_| false);
            own.or_else(|| requests::expand(&line).map(Ok)).transpose()
        });
        let expanded =
            expanding.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        Ok(json!({"message": expanded.map_err(GatewayError::Unusable)?}))
    }
}
