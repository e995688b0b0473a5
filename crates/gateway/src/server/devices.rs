//! Requests about devices.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::Body;
use super::{Server, scope};
use crate::GatewayError;
use crate::devices::{DeviceChange, Login, Scope};
use crate::qr::qr_code;

/// The one path here that needs no token: the device has none yet.
pub(super) const PAIR_PATH: &str = "/api/devices/pair";
/// Signs in with a link, which stands for a token.
pub(super) const SIGN_IN_PATH: &str = "/api/devices/sign-in";
/// A change of a device.
pub(super) const CHANGE_PATH: &str = "/api/devices/{change}";

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/scopes", get(scopes))
        .route("/api/devices", get(devices))
        .route("/api/devices/code", post(code))
        .route("/api/devices/link", post(link))
        .route(SIGN_IN_PATH, post(sign_in))
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

/// Makes a link. A device may not: it could keep one, and come back with it after it was revoked.
async fn link(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
) -> Result<Json<Value>, GatewayError> {
    if login.device.is_some() {
        let why =
            "a link is made with the gateway's own token; run `myclaw gateway link` on its machine";
        return Err(GatewayError::Forbidden(why.to_owned()));
    }
    let (links, expires_at) = server.new_links();
    // The last name is one that a phone may reach.
    let code = links.last().map(|link| qr_code(link)).transpose()?;
    Ok(Json(json!({"links": links, "expiresAt": expires_at, "code": code})))
}

impl Server {
    /// A new link under all names of this gateway, that of this machine first, and when it ends. Each works if the others
    /// were not used.
    pub(crate) fn new_links(&self) -> (Vec<String>, u64) {
        let (secret, expires_at) = self.nodes.devices.new_link();
        let config = self.delivery.config();
        let is_behind_proxy = !config.gateway.trusted_proxies().is_empty();
        let own = self.url();
        let scheme = if own.starts_with("https:") { "https" } else { "http" };
        let hosts = config.gateway.allowed_hosts.iter().map(|entry| {
            let host = entry.0.trim();
            match (is_behind_proxy, host.contains(':')) {
                (true, _) => format!("https://{host}"),
                (false, true) => format!("{scheme}://{host}"),
                (false, false) => format!("{scheme}://{host}:{}", self.address.port()),
            }
        });
        let at = |address: &str| format!("{address}/#/sign-in/{secret}");
        let others: Vec<String> = hosts.map(|address| at(&address)).collect();
        ([vec![at(&own)], others].concat(), expires_at)
    }
}

#[derive(Deserialize)]
struct SignIn {
    secret: String,
    #[serde(default)]
    name: String,
}

async fn sign_in(
    State(server): State<Arc<Server>>,
    Body(body): Body<SignIn>,
) -> Result<Json<Value>, GatewayError> {
    let SignIn { secret, name } = body;
    server.nodes.devices.sign_in(&secret, &name).await.map(Json)
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
