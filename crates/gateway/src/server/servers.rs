//! The MCP servers, for the page: how they are, their tools, and what there is to approve.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::mcp::ConfiguredServer;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::request::Body;
use crate::GatewayError;

/// The session for which they are listed: servers of an agent may differ, and the page shows those of the first one.
const SESSION: &str = "main";
/// Most characters of a tool's description in the list.
const MOST_ABOUT: usize = 200;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/mcp", get(servers))
        .route("/api/mcp/{server}/changes", post(changes))
        .route("/api/mcp/{server}/approve", post(approve))
}

async fn configured(server: &Server) -> Result<Vec<ConfiguredServer>, GatewayError> {
    let config = server.delivery.session_config(SESSION)?;
    let listing = tokio::task::spawn_blocking(move || config.mcp_servers());
    listing.await.map_err(|error| GatewayError::Internal(error.to_string()))
}

async fn named(server: &Server, name: &str) -> Result<ConfiguredServer, GatewayError> {
    let found = configured(server).await?.into_iter().find(|it| it.name == name);
    found.ok_or_else(|| GatewayError::NotFound(format!("there is no MCP server `{name}`")))
}

async fn servers(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let servers = configured(&server).await?;
    let describing = tokio::task::spawn_blocking(move || servers.iter().map(described).collect());
    let described: Vec<Value> =
        describing.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    Ok(Json(json!({"servers": described})))
}

/// A server as it was approved. It is not started.
fn described(server: &ConfiguredServer) -> Value {
    let mut shown = json!({"name": server.name, "shown": server.shown(), "tools": []});
    let (state, why) = match (server.config.is_enabled(), server.approved()) {
        (false, _) => ("disabled", None),
        (true, Ok(None)) => ("unapproved", None),
        (true, Err(error)) => ("unusable", Some(error.message)),
        (true, Ok(Some(approved))) => {
            let tools = approved.tools.iter().map(|tool| {
                let about: String = tool.description.chars().take(MOST_ABOUT).collect();
                json!({
                    "name": tool.offered_name(&server.name), "description": about,
                    "isOffered": server.offers(&tool.name),
                })
            });
            shown["tools"] = tools.collect();
            ("approved", None)
        }
    };
    shown["state"] = json!(state);
    shown["reason"] = json!(why);
    shown
}

/// Starts a server, and shows what has changed since its approval.
async fn changes(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    let found = named(&server, &name).await?.to_approve().await?;
    Ok(Json(json!({"changes": found})))
}

#[derive(Deserialize)]
struct Shown {
    code: String,
}

/// Approves what was shown.
async fn approve(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Body(shown): Body<Shown>,
) -> Result<Json<Value>, GatewayError> {
    named(&server, &name).await?.approve_shown(&shown.code).await?;
    Ok(Json(json!({"name": name, "state": "approved"})))
}
