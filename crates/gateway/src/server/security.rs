//! What is open in this set-up.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use myclaw_agent::security_check::security_findings;
use serde_json::{Value, json};

use super::Server;
use crate::GatewayError;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/security", get(security))
}

async fn security(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let config = server.delivery.config();
    let home = server.delivery.home();
    let looking = tokio::task::spawn_blocking(move || security_findings(&config, &home));
    let findings = looking.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    Ok(Json(json!({"findings": findings})))
}
