//! The gateways that share the store with this one, for the owner.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::request::Body;
use crate::{ClusterView, GatewayError};

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/cluster", get(state)).route("/api/cluster/drain", post(drain))
}

async fn state(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    Ok(Json(cluster(&server)?.state().await.map_err(GatewayError::Elsewhere)?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    node: String,
}

async fn drain(
    State(server): State<Arc<Server>>,
    Body(Wanted { node }): Body<Wanted>,
) -> Result<Json<Value>, GatewayError> {
    let asked = cluster(&server)?.drain(&node).await.map_err(GatewayError::Elsewhere)?;
    if asked.is_empty() {
        return Err(GatewayError::NotFound(format!("no gateway has the name {node}")));
    }
    Ok(Json(json!({"asked": asked})))
}

fn cluster(server: &Server) -> Result<&dyn ClusterView, GatewayError> {
    server.cluster.as_deref().ok_or_else(|| {
        let why = "this gateway shares its database with no other (docs/operate/cluster.md)";
        GatewayError::NotFound(why.to_owned())
    })
}
