//! What the agents remember, for the page: see, search, correct, delete, and why it is known.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use myclaw_agent::remembered::{Redaction, SessionsOf, refuse_store};
use myclaw_agent::{AgentError, SessionConfig};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::Server;
use super::agents::main_session;
use super::request::{Body, Params};
use crate::GatewayError;

/// Most passages that a search finds.
const MOST_FOUND: usize = 20;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/memory", get(facts).post(add))
        .route("/api/memory/search", get(search))
        .route("/api/memory/{fact}", get(why).put(edit).delete(forget))
}

/// The agent's id; the default one if it is missing.
#[derive(Deserialize)]
struct WhoseFacts {
    agent: Option<String>,
}

#[derive(Deserialize)]
struct Search {
    agent: Option<String>,
    query: String,
}

#[derive(Deserialize)]
struct Words {
    text: String,
}

/// Runs `work` with the owner's session of an agent, on a thread that may wait for the disk.
async fn with_notes<F>(
    server: &Server,
    agent: Option<&str>,
    work: F,
) -> Result<Json<Value>, GatewayError>
where
    F: FnOnce(&SessionConfig) -> Result<Value, AgentError> + Send + 'static,
{
    let config = main_session(server, &server.delivery.config(), agent)?;
    let working = spawn_blocking(move || work(&config)).await;
    Ok(Json(working.map_err(|error| GatewayError::Internal(error.to_string()))??))
}

/// All facts, also those that hold no more.
async fn facts(
    State(server): State<Arc<Server>>,
    Params(whose): Params<WhoseFacts>,
) -> Result<Json<Value>, GatewayError> {
    let listed = |config: &SessionConfig| {
        let notebook = config.facts()?;
        Ok(json!({
            "agent": config.agent.id.as_str(), "facts": notebook.facts()?, "path": notebook.path(),
        }))
    };
    with_notes(&server, whose.agent.as_deref(), listed).await
}

async fn search(
    State(server): State<Arc<Server>>,
    Params(Search { agent, query }): Params<Search>,
) -> Result<Json<Value>, GatewayError> {
    let found = move |config: &SessionConfig| {
        let hits = config.search_memory(&query, Some(MOST_FOUND), SessionsOf::Owner)?;
        let passage = |(shown, place): &(String, Value)| {
            let mut passage = place.clone();
            // The line before the text says the place.
            passage["text"] =
                json!(shown.split_once('\n').map_or(shown.as_str(), |(_, text)| text).trim_end());
            passage
        };
        let passages: Vec<Value> = hits.entries.iter().map(passage).collect();
        Ok(json!({"passages": passages, "remarks": hits.remarks}))
    };
    with_notes(&server, agent.as_deref(), found).await
}

/// A fact, and what was said where it comes from.
async fn why(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Params(whose): Params<WhoseFacts>,
) -> Result<Json<Value>, GatewayError> {
    let origin = move |config: &SessionConfig| {
        let fact = config.fact(&id)?;
        Ok(json!({"fact": fact, "said": config.words_of_origin(&fact)?}))
    };
    with_notes(&server, whose.agent.as_deref(), origin).await
}

async fn add(
    State(server): State<Arc<Server>>,
    Params(whose): Params<WhoseFacts>,
    Body(Words { text }): Body<Words>,
) -> Result<Json<Value>, GatewayError> {
    let added =
        move |config: &SessionConfig| Ok(json!({"fact": config.remember(&text, None)?.fact()}));
    with_notes(&server, whose.agent.as_deref(), added).await
}

async fn edit(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Params(whose): Params<WhoseFacts>,
    Body(Words { text }): Body<Words>,
) -> Result<Json<Value>, GatewayError> {
    let edited = move |config: &SessionConfig| {
        config.facts()?.edit(&config.fact(&id)?.id, &text)?;
        Ok(json!({"fact": config.fact(&id)?}))
    };
    with_notes(&server, whose.agent.as_deref(), edited).await
}

/// Forgets a fact. Messages that say it stay in the logs.
async fn forget(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Params(whose): Params<WhoseFacts>,
) -> Result<Json<Value>, GatewayError> {
    let forgotten = move |config: &SessionConfig| {
        let fact = config.fact(&id)?;
        let forgot = config.forget(Some(&fact), &Redaction::Nothing, &refuse_store)?;
        Ok(json!({"fact": fact, "messages": forgot.messages}))
    };
    with_notes(&server, whose.agent.as_deref(), forgotten).await
}
