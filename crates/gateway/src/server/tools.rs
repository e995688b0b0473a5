//! The tools of the gateway for sessions that other programs of the owner run, such as chats in a terminal.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use myclaw_gateway_client::RemoteCall;
use serde_json::Value;

use super::Server;
use super::request::Body;
use crate::GatewayError;
use crate::tools::answer_elsewhere;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/tools/{tool}", post(answer))
}

async fn answer(
    State(server): State<Arc<Server>>,
    Path(tool): Path<String>,
    Body(call): Body<RemoteCall>,
) -> Result<Json<Value>, GatewayError> {
    Ok(Json(answer_elsewhere(&server, &tool, call).await?))
}
