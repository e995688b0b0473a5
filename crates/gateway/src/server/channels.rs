//! Requests about channels, and requests of their vendors.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use myclaw_channels::{HookAnswer, HookRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::request::{Body, Params};
use crate::GatewayError;
use crate::routing::PairingChange;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/hooks/{channel}/{account}", any(hook))
        .route("/api/channels", get(channels))
        .route("/api/pairing", get(pairings))
        .route("/api/pairing/{change}", post(change_pairing))
}

/// A request that only its channel can check.
async fn hook(
    State(server): State<Arc<Server>>,
    Path((channel, account)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let headers = headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let request = HookRequest {
        method: method.as_str().to_owned(),
        query: query.unwrap_or_default(),
        headers: headers.collect(),
        body: body.to_vec(),
    };
    let answer = match server.routing.channel(&channel, &account) {
        Some(of_vendor) => {
            let answer = of_vendor.receive(request, &*server.routing).await;
            if matches!(answer.status, 401 | 403) {
                server.delivery.metrics.refused(&channel);
            }
            answer
        }
        None => HookAnswer::error(404, "there is no such channel, or no such account of it"),
    };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, answer.content_type)], answer.body).into_response()
}

#[derive(Deserialize)]
struct Page {
    /// A part that was not delivered; older ones are wanted.
    before: Option<String>,
}

async fn channels(
    State(server): State<Arc<Server>>,
    Params(page): Params<Page>,
) -> Result<Json<Value>, GatewayError> {
    server.routing.describe(page.before.as_deref()).await.map(Json)
}

async fn pairings(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(server.routing.pairings().list())
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn change_pairing(
    State(server): State<Arc<Server>>,
    Path(change): Path<String>,
    Body(named): Body<Named>,
) -> Result<Json<Value>, GatewayError> {
    let change = match change.as_str() {
        "approve" => PairingChange::Approve,
        "deny" => PairingChange::Deny,
        _ => return Err(GatewayError::Unusable("there are approve and deny".to_owned())),
    };
    let changed = server.routing.pairings().change(change, &named.name).await?;
    server.routing.announce(&changed).await?;
    Ok(Json(json!({"sender": changed.sender_key(), "name": changed.name})))
}
