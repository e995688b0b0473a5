//! The first set-up over HTTP: whether a model can answer, and a model with its key, tried before they are kept.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::{
    selection::environment_key,
    setup::{NewModel, SetupError, set_up_model, usable_model},
};
use myclaw_config::{Config, Environment, KeySource, SecretString};
use myclaw_llm::{KeyNeed, ModelCatalog, ProviderInfo};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::Server;
use super::answer::error_object;
use super::config::{Refusal, home, read_file};
use super::request::Body;
use crate::GatewayError;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/setup", get(state)).route("/api/setup/model", post(model))
}

/// A model to try and keep.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelBody {
    /// The version of the config file that the answer of `GET /api/config` or `/api/setup` named.
    version: String,
    provider: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    key: Option<SecretString>,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
}

async fn state(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let home = home().await?;
    let file = read_file(&home).await?;
    let usable = usable_model(&home).await;
    let config = server.delivery.config();
    let agent = config.resolve_agent(None).map_err(|error| GatewayError::Agent(error.into()))?;
    let stored = home.stored_keys(&agent);
    let builtin = ModelCatalog::builtin();
    let providers = builtin.providers().map(|info| {
        let has_key =
            !stored.profiles_of(info.name).is_empty() || has_key(info, &config, &home.environment);
        provider(info, has_key)
    });
    Ok(Json(json!({
        "needed": !matches!(&usable, Ok(Some(_))),
        "model": usable.as_ref().ok().and_then(Option::as_ref).map(ToString::to_string),
        "problem": usable.as_ref().err().map(ToString::to_string),
        "version": file.version(),
        "found": file.found(),
        "workspace": agent.workspace,
        "providers": providers.collect::<Vec<_>>(),
    })))
}

fn has_key(info: &ProviderInfo, config: &Config, environment: &Environment) -> bool {
    let own = config.models.providers.get(info.name);
    let configured = config.provider.as_ref().filter(|own| own.name == info.name);
    environment_key(info, environment).is_some()
        || own.is_some_and(|own| own.api_key.is_some())
        || configured.is_some_and(|own| !own.auth_profiles.is_empty())
}

fn provider(info: &ProviderInfo, has_key: bool) -> Value {
    json!({
        "name": info.name,
        "needsKey": info.key == KeyNeed::Required,
        "needsAddress": info.base_url.is_empty(),
        "model": info.default_model,
        "hasKey": has_key,
    })
}

async fn model(
    State(server): State<Arc<Server>>,
    body: Result<Body<ModelBody>, GatewayError>,
) -> Response {
    let body = match body {
        Ok(Body(body)) => body,
        // The text of the error could quote the key.
        Err(_) => {
            let why = "send version, provider, and where needed model, baseUrl and key, as texts";
            return GatewayError::Unusable(why.to_owned()).into_response();
        }
    };
    match server.set_up(body).await {
        Ok(answer) => Json(answer).into_response(),
        Err(response) => *response,
    }
}

impl Server {
    async fn set_up(&self, body: ModelBody) -> Result<Value, Box<Response>> {
        let of_gateway = |error: GatewayError| Box::new(error.into_response());
        let home = home().await.map_err(of_gateway)?;
        let file = read_file(&home).await.map_err(of_gateway)?;
        if file.version() != body.version {
            let version = file.version();
            return Err(Box::new(Refusal::Other { version }.into_response()));
        }
        let new = NewModel {
            provider: &body.provider,
            model: body.model.as_deref(),
            base_url: body.base_url.as_deref(),
            key: body.key.map(KeySource::Literal),
        };
        let done =
            set_up_model(&home, &file, new).await.map_err(|error| Box::new(refusal(error)))?;
        let state = self.reloads.now(&home).await;
        Ok(json!({
            "model": done.reference.to_string(),
            "tookMs": u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX),
            "version": done.written.file.version(),
            "warnings": done.written.warnings,
            "inForce": state.as_ref().map(crate::reloads::ReloadState::is_current),
            "state": state,
        }))
    }
}

fn refusal(error: SetupError) -> Response {
    let message = error.to_string();
    let (class, field) = match error {
        SetupError::Config(error) => return Refusal::Write(error).into_response(),
        SetupError::Store(_) => return GatewayError::Internal(message).into_response(),
        SetupError::Unusable { field, .. } => ("usage", field),
        SetupError::NoAnswer { class, .. } => (class, "key"),
    };
    let mut body = error_object(class, &message);
    body["error"]["field"] = json!(field);
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
