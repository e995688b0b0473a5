//! The config file over HTTP: its values without secrets, its schema, and changes by path.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use myclaw_agent::{
    AgentError, Home,
    config_write::{ConfigWriteError, change_config},
};
use myclaw_config::{ConfigChange, ConfigError, ConfigFile, MASKED, Report, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::answer::{error, error_object};
use super::request::Body;
use crate::GatewayError;
use crate::reloads::ReloadState;

/// Most changes of one request: far more than a person makes in a form.
const MOST_CHANGES: usize = 500;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/config", get(read).patch(change).put(change))
}

/// A list of changes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    /// The version of the file that they were made for.
    version: String,
    changes: Vec<ConfigChange>,
}

async fn read(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let home = home().await?;
    let file = read_file(&home).await?;
    let state = server.reloads.state();
    let mut answer = described(&file);
    answer["file"] = json!(file.path());
    answer["found"] = json!(file.found());
    answer["schema"] = json_schema();
    answer["masked"] = json!(MASKED);
    answer["inForce"] = json!(state.is_current());
    answer["state"] = json!(state);
    Ok(Json(answer))
}

async fn change(
    State(server): State<Arc<Server>>,
    Body(Changes { version, changes }): Body<Changes>,
) -> Response {
    if changes.is_empty() || changes.len() > MOST_CHANGES {
        let why = format!("a request has 1 to {MOST_CHANGES} changes");
        return GatewayError::Unusable(why).into_response();
    }
    match server.change_config(&version, &changes).await {
        Ok(answer) => Json(answer).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// Why the config is as it was.
pub(super) enum Refusal {
    /// The file is not the one that the changes were made for.
    Other {
        /// Its version.
        version: String,
    },
    Write(ConfigWriteError),
    Gateway(GatewayError),
}

impl From<GatewayError> for Refusal {
    fn from(error: GatewayError) -> Self {
        Self::Gateway(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let changed = "the config file was changed in the meantime; read it again, then make the changes again";
        match self {
            Self::Other { version } => {
                let mut body = error_object("conflict", changed);
                body["error"]["version"] = json!(version);
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            Self::Write(ConfigWriteError::Write(
                why @ myclaw_config::WriteError::Changed { .. },
            )) => error(StatusCode::CONFLICT, "conflict", &why.to_string()),
            Self::Write(ConfigWriteError::Write(why)) => {
                error(StatusCode::SERVICE_UNAVAILABLE, "storage", &why.to_string())
            }
            Self::Write(ConfigWriteError::Edit(why)) => {
                let issue = json!({"path": why.path, "message": why.problem.to_string()});
                refused(&why.to_string(), vec![issue])
            }
            Self::Write(ConfigWriteError::Invalid(why)) => {
                let issues = why.report().map(issues).unwrap_or_default();
                refused(&why.to_string(), issues)
            }
            Self::Gateway(error) => error.into_response(),
        }
    }
}

fn refused(message: &str, issues: Vec<Value>) -> Response {
    let mut body = error_object("config", message);
    body["error"]["issues"] = Value::Array(issues);
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// The mistakes, each with the path of its value.
fn issues(report: &Report) -> Vec<Value> {
    let issues = report.issues().iter().map(|issue| {
        let line = issue.location.map(|location| location.line);
        json!({"path": issue.path, "message": issue.message, "help": issue.help, "line": line})
    });
    issues.collect()
}

impl Server {
    /// Changes the config file, and waits until the new one is in force or refused.
    pub(super) async fn change_config(
        &self,
        version: &str,
        changes: &[ConfigChange],
    ) -> Result<Value, Refusal> {
        let home = home().await?;
        let file = read_file(&home).await?;
        if file.version() != version {
            return Err(Refusal::Other { version: file.version() });
        }
        let written = change_config(&home, &file, changes).await.map_err(Refusal::Write)?;
        let state = self.reloads.now(&home).await;
        let mut answer = described(&written.file);
        answer["warnings"] = json!(written.warnings);
        answer["inForce"] = json!(state.as_ref().map(ReloadState::is_current));
        answer["state"] = json!(state);
        Ok(answer)
    }
}

/// Version and values of a file; the mistakes of one that cannot be read.
fn described(file: &ConfigFile) -> Value {
    let mut answer = json!({"version": file.version()});
    match file.values() {
        Ok(masked) => {
            answer["values"] = masked.values;
            answer["secrets"] = json!(masked.secrets);
        }
        Err(why) => {
            answer["problem"] = json!(why.to_string());
            answer["issues"] = Value::Array(why.report().map(issues).unwrap_or_default());
        }
    }
    answer
}

/// The environment as it is now, with the `.env` file.
pub(crate) async fn home() -> Result<Home, GatewayError> {
    blocking(|| Home::find().map_err(GatewayError::from)).await
}

pub(crate) async fn read_file(home: &Home) -> Result<ConfigFile, GatewayError> {
    let paths = home.paths.clone();
    let unreadable = |error: ConfigError| GatewayError::Agent(AgentError::from(error));
    blocking(move || ConfigFile::read(&paths).map_err(unreadable)).await
}

/// Does something that blocks.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| GatewayError::Internal(error.to_string()))?
}
