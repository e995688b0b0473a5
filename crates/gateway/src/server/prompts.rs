//! The library of prompts: the commands that the owner has written in the state directory, for the page.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use myclaw_agent::Home;
use myclaw_agent::custom_commands::library::{
    Prompt, PromptError, delete_prompt, list_prompts, prompts_directory, read_prompt, write_prompt,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Server;
use super::request::{Body, Params};
use crate::GatewayError;

/// Held while a prompt is written: of two who change the same one, the second is told.
static WRITING: Mutex<()> = Mutex::const_new(());

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/prompts", get(list))
        .route("/api/prompts/{name}", get(read).put(write).delete(remove))
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    search: String,
}

/// A prompt, and what is in its place.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Change {
    prompt: Prompt,
    before: Option<Prompt>,
}

/// Runs `work` on a thread that may wait for the disk.
async fn with_home<F>(server: &Server, work: F) -> Result<Json<Value>, GatewayError>
where
    F: FnOnce(&Home) -> Result<Value, PromptError> + Send + 'static,
{
    let home = server.delivery.home();
    let working = tokio::task::spawn_blocking(move || work(&home)).await;
    let outcome = working.map_err(|error| GatewayError::Internal(error.to_string()))?;
    outcome.map(Json).map_err(|error| {
        let why = error.to_string();
        match error {
            PromptError::Unusable(_) => GatewayError::Unusable(why),
            PromptError::Gone(_) => GatewayError::NotFound(why),
            PromptError::Exists(_) | PromptError::Changed(_) => GatewayError::InUse(why),
            PromptError::File { .. } => GatewayError::Internal(why),
        }
    })
}

async fn list(
    State(server): State<Arc<Server>>,
    Params(Search { search }): Params<Search>,
) -> Result<Json<Value>, GatewayError> {
    with_home(&server, move |home| {
        Ok(json!({"prompts": list_prompts(home, &search), "directory": prompts_directory(home)}))
    })
    .await
}

async fn read(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    with_home(&server, move |home| Ok(json!(read_prompt(home, &name)?))).await
}

async fn write(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Body(Change { prompt, before }): Body<Change>,
) -> Result<Json<Value>, GatewayError> {
    let _writing = WRITING.lock().await;
    with_home(&server, move |home| {
        write_prompt(home, &name, &prompt, before.as_ref())?;
        Ok(json!({"name": name}))
    })
    .await
}

async fn remove(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    let _writing = WRITING.lock().await;
    with_home(&server, move |home| {
        delete_prompt(home, &name)?;
        Ok(json!({"name": name}))
    })
    .await
}
