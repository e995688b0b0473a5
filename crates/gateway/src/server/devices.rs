//! Requests about devices.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::Value;

use super::request::Body;
use super::{Server, scope};
use crate::GatewayError;
use crate::devices::{DeviceChange, Login, Scope};

/// The one path here that needs no token: the device has none yet.
pub(super) const PAIR_PATH: &str = "/api/devices/pair";
/// A change of a device.
pub(super) const CHANGE_PATH: &str = "/api/devices/{change}";

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/scopes", get(scopes))
        .route("/api/devices", get(devices))
        .route("/api/devices/code", post(code))
        .route(PAIR_PATH, post(pair))
        .route(CHANGE_PATH, post(change))
}

/// What the login may do.
async fn scopes(Extension(login): Extension<Login>) -> Json<Value> {
    Json(scope::described(login.scope))
}

async fn devices(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(server.nodes.devices.listed())
}

#[derive(Deserialize)]
struct NewCode {
    scope: Scope,
}

async fn code(
    State(server): State<Arc<Server>>,
    Body(body): Body<NewCode>,
) -> Result<Json<Value>, GatewayError> {
    server.nodes.devices.new_code(body.scope).map(Json)
}

/// A scope that a device asks for is not read.
#[derive(Deserialize)]
struct Pairing {
    code: String,
    #[serde(default)]
    name: String,
}

async fn pair(
    State(server): State<Arc<Server>>,
    Body(body): Body<Pairing>,
) -> Result<Json<Value>, GatewayError> {
    let Pairing { code, name } = body;
    server.nodes.devices.pair(&code, &name).await.map(Json)
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn change(
    State(server): State<Arc<Server>>,
    Path(change): Path<String>,
    Body(body): Body<Named>,
) -> Result<Json<Value>, GatewayError> {
    let Some(change) = DeviceChange::named(&change) else {
        let why = "there are approve, deny, revoke and rotate";
        return Err(GatewayError::NotFound(why.to_owned()));
    };
    let Named { name } = body;
    // A task of its own: a client that goes away does not leave the change half-way.
    let changing = tokio::spawn(async move { server.nodes.devices.change(change, &name).await });
    let changed = changing.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    changed.map(|(_, shown)| Json(shown))
}
