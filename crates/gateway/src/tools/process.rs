//! The tool `gateway`.

use std::sync::Weak;
use std::time::Duration;

use myclaw_agent::{Home, config_write::ConfigProposal};
use myclaw_config::{ConfigPath, MASKED, schema_outline};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Call;
use crate::GatewayError;
use crate::server::config::{home, read_file};

/// How long the end of the process may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Status,
    Restart,
    Config,
    Schema,
    Change,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    path: Option<String>,
    /// For `change`, and read by [`ConfigProposal`].
    #[serde(rename = "version")]
    _version: Option<String>,
    #[serde(rename = "changes")]
    _changes: Option<Value>,
}

impl Call<'_> {
    pub(super) async fn gateway(&self) -> Result<Value, GatewayError> {
        let Arguments { action, path, .. } = self.arguments()?;
        self.delivery.check_owner(self.caller.session_key.as_str())?;
        match action {
            Action::Status => self.state(),
            Action::Restart => self.restart().await,
            Action::Config => config(&parsed(path.as_deref())?).await,
            Action::Schema => schema(&parsed(path.as_deref())?),
            Action::Change => self.change_config().await,
        }
    }

    /// What `myclaw gateway status` shows.
    fn state(&self) -> Result<Value, GatewayError> {
        let server = self.server.get().and_then(Weak::upgrade);
        server.map(|server| server.state()).ok_or(GatewayError::Stopping)
    }

    async fn restart(&self) -> Result<Value, GatewayError> {
        self.delivery.begin_restart(self.caller, self.id).await?;
        // The run ends with the process. The next process continues the turn, and knows that it is the next one.
        tokio::select! {
            () = tokio::time::sleep(PATIENCE) => {}
            () = self.cancel.cancelled() => {}
        }
        Err(GatewayError::Internal("the gateway did not restart; tell the owner".to_owned()))
    }

    /// Makes a change of the config that the owner has approved: the policy lets no such call pass without a question, and
    /// the version binds the answer to the difference that was shown.
    async fn change_config(&self) -> Result<Value, GatewayError> {
        let home = home().await?;
        let (of_proposal, arguments) = (home.clone(), self.arguments.as_map().clone());
        let proposal = blocking(move || {
            ConfigProposal::of_call(&of_proposal, &arguments).map_err(GatewayError::Unusable)
        });
        let written = proposal.await?.write(&home).await;
        let written = written.map_err(|error| GatewayError::Unusable(error.to_string()))?;
        Ok(json!({
            "changed": true,
            "version": written.file.version(),
            "warnings": written.warnings,
            "note": "the gateway takes it over within seconds; action status says whether it has",
        }))
    }
}

/// The values of the file at a path.
async fn config(path: &ConfigPath) -> Result<Value, GatewayError> {
    let home: Home = home().await?;
    let file = read_file(&home).await?;
    let masked = file.values().map_err(|why| GatewayError::Unusable(why.to_string()))?;
    let value = masked.get(path).cloned().ok_or_else(|| {
        GatewayError::Unusable(format!(
            "the file has no value at {path}; the action schema says what it may have"
        ))
    })?;
    Ok(json!({
        "file": file.path(), "version": file.version(), "path": path.to_string(), "value": value,
        "note": format!("{MASKED} stands for a secret"),
    }))
}

fn schema(path: &ConfigPath) -> Result<Value, GatewayError> {
    let outline = schema_outline(path).ok_or_else(|| {
        GatewayError::Unusable(format!("the config has no key {path}; ask for the object above it"))
    })?;
    Ok(json!({"path": path.to_string(), "schema": outline}))
}

fn parsed(path: Option<&str>) -> Result<ConfigPath, GatewayError> {
    let path = path.unwrap_or_default().trim();
    path.parse().map_err(|error| GatewayError::Unusable(format!("{path:?}: {error}")))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| GatewayError::Internal(error.to_string()))?
}
