//! Dictation and reading aloud for clients, by those who listen and speak as the config says.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::speech::{speaker, transcriber};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Server;
use super::request::Body;
use crate::GatewayError;

/// Most recordings and texts at a time: each can start a program.
static PLACES: Semaphore = Semaphore::const_new(4);

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/speech", get(offered))
        .route("/api/speech/listen", post(listen))
        .route("/api/speech/speak", post(speak))
}

async fn offered(State(server): State<Arc<Server>>) -> Json<Value> {
    let config = server.delivery.config();
    Json(json!({
        "listens": transcriber(&config).is_some(),
        "speaks": speaker(&config).is_some(),
    }))
}

/// What is said in a recording, which is the body.
async fn listen(
    State(server): State<Arc<Server>>,
    recording: Bytes,
) -> Result<Json<Value>, GatewayError> {
    let listener = transcriber(&server.delivery.config()).ok_or_else(|| {
        let why = "nobody listens here; set `transcription` in the config (docs/use/speech.md)";
        GatewayError::Unusable(why.to_owned())
    })?;
    let _place = place()?;
    let text = listener.transcribe(&recording, &server.stop.child_token()).await;
    let text = text.map_err(|error| {
        GatewayError::Unusable(format!("the recording was not transcribed: {error}"))
    })?;
    Ok(Json(json!({"text": text})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken {
    text: String,
}

/// A text as audio.
async fn speak(
    State(server): State<Arc<Server>>,
    Body(Spoken { text }): Body<Spoken>,
) -> Result<Response, GatewayError> {
    let speaker = speaker(&server.delivery.config()).ok_or_else(|| {
        let why = "nobody speaks here; set `speech` in the config (docs/use/speech.md)";
        GatewayError::Unusable(why.to_owned())
    })?;
    if text.trim().is_empty() {
        return Err(GatewayError::Unusable("there is nothing to read".to_owned()));
    }
    let _place = place()?;
    let audio = speaker.speak(&text, None, &server.stop.child_token()).await;
    let audio =
        audio.map_err(|error| GatewayError::Unusable(format!("it was not read: {error}")))?;
    Ok(([(CONTENT_TYPE, audio.format.media_type())], audio.bytes).into_response())
}

fn place() -> Result<SemaphorePermit<'static>, GatewayError> {
    PLACES.try_acquire().map_err(|_| {
        GatewayError::TooOften("others are being heard and read; try again in a moment".to_owned())
    })
}
