//! Requests about notifications for browsers that are closed.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::Value;

use super::Server;
use super::request::Body;
use crate::GatewayError;
use crate::devices::Login;
use crate::push::Wanted;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/push", get(describe).post(add))
        .route("/api/push/{change}", post(change))
}

async fn describe(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    server.push.describe().await.map(Json)
}

async fn add(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Value>, GatewayError> {
    server.push.add(&login, wanted).await.map(Json)
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

async fn change(
    State(server): State<Arc<Server>>,
    Path(change): Path<String>,
    Body(Named { id }): Body<Named>,
) -> Result<Json<Value>, GatewayError> {
    match change.as_str() {
        "test" => server.push.test(&id).await,
        "remove" => server.push.end(&id).await,
        _ => Err(GatewayError::NotFound("there are test and remove".to_owned())),
    }
    .map(Json)
}
