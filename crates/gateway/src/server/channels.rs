//! Requests about channels, and requests of their vendors.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, RequestExt as _, Router};
use myclaw_channels::{HookAnswer, HookRequest};
use myclaw_delivery::routing::PairingChange;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::request::{Body, Params};
use crate::GatewayError;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/hooks/{channel}/{account}", any(hook))
        .route("/api/channels", get(channels))
        .route("/api/pairing", get(pairings))
        .route("/api/pairing/{change}", post(change_pairing))
}

/// What can be said about a request of a vendor before its body is read: whether there is such a channel, and whether it
/// refuses the headers.
pub(super) async fn admit(server: &Server, request: &mut Request) -> Result<(), HookAnswer> {
    let place = request.extract_parts::<Path<(String, String)>>().await;
    let Path((name, account)) = place.map_err(|_| no_channel())?;
    let of_vendor = server.routing.channel(&name, &account).ok_or_else(no_channel)?;
    let query = request.uri().query().unwrap_or_default();
    let head = hook_request(request.method(), query, request.headers(), Vec::new());
    of_vendor.admit(&head).inspect_err(|answer| {
        if matches!(answer.status, 401 | 403) {
            server.counting.metrics.refused(&name);
        }
    })
}

fn no_channel() -> HookAnswer {
    HookAnswer::error(404, "there is no such channel, or no such account of it")
}

fn hook_request(method: &Method, query: &str, headers: &HeaderMap, body: Vec<u8>) -> HookRequest {
    let headers = headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let (method, headers) = (method.as_str().to_owned(), headers.collect());
    HookRequest { method, query: query.to_owned(), headers, body }
}

/// An answer for a vendor.
pub(super) fn answered(answer: HookAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, answer.content_type)], answer.body).into_response()
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
    let request = hook_request(&method, &query.unwrap_or_default(), &headers, body.into());
    let answer = match server.routing.channel(&channel, &account) {
        Some(of_vendor) => {
            let answer = of_vendor.receive(request, &*server.routing).await;
            if matches!(answer.status, 401 | 403) {
                server.counting.metrics.refused(&channel);
            }
            answer
        }
        None => no_channel(),
    };
    answered(answer)
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
    Ok(Json(server.routing.describe(page.before.as_deref()).await?))
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
