//! Requests that are answered with one JSON object.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use myclaw_agent::sessions::{EntryId, TranscriptMessage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{error, message as message_object};
use super::{Server, route};
use crate::GatewayError;
use crate::delivery::NewMessage;
use crate::rows::MessageId;

/// The header with which programs name a message, so that a repetition is not a second message.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Session of a message that names none.
pub(super) const DEFAULT_SESSION: &str = "main";
/// Longest wait for an answer in one request, in seconds.
const LONGEST_WAIT: u64 = 600;
/// Messages of a history, unless the client wants fewer.
const HISTORY: usize = 50;
/// Most messages of a history.
const MOST_HISTORY: usize = 200;

#[derive(Deserialize)]
pub(super) struct NewMessageBody {
    text: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Wait {
    #[serde(default)]
    wait: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct HistoryRange {
    #[serde(default)]
    pub(super) limit: Option<usize>,
    #[serde(default)]
    pub(super) before: Option<String>,
}

pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub(super) async fn ready(State(server): State<Arc<Server>>) -> Response {
    if server.stop.is_cancelled() {
        return GatewayError::Stopping.into_response();
    }
    Json(json!({"status": "ready"})).into_response()
}

pub(super) async fn status(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "processId": std::process::id(),
        "address": server.address.to_string(),
        "seconds": server.begun.elapsed().as_secs(),
        "openMessages": server.delivery.open_count(),
        "sockets": super::MOST_SOCKETS - server.sockets.available_permits(),
        "stateDirectory": server.delivery.home().paths.state_dir(),
    }))
}

/// Step 1 for programs: when the answer leaves, the message is on disk.
pub(super) async fn send(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Result<Json<NewMessageBody>, JsonRejection>,
) -> Result<Response, GatewayError> {
    let Json(body) = body.map_err(|error| GatewayError::Unusable(error.body_text()))?;
    let of_header = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
    let source_id = body.id.or_else(|| of_header.map(str::to_owned));
    let new = NewMessage {
        route: route(),
        source_id: source_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        session: body.session.unwrap_or_else(|| DEFAULT_SESSION.to_owned()),
        text: body.text,
    };
    let accepted = server.delivery.accept(new).await?;
    let answer = message_object(&server.delivery, &accepted.id, &accepted.row).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

/// What became of a message; waits for its end as long as the client wants.
pub(super) async fn message(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Query(wait): Query<Wait>,
) -> Result<Response, GatewayError> {
    let id = MessageId::from_text(&id);
    let wait = Duration::from_secs(wait.wait.min(LONGEST_WAIT));
    let until = async {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = server.stop.cancelled() => {}
        }
    };
    match server.delivery.outcome(&id, until).await? {
        Some(row) => Ok(Json(message_object(&server.delivery, &id, &row).await?).into_response()),
        None => {
            let message = "there is no such message; ids come from POST /api/messages, and are kept for 30 days";
            Ok(error(StatusCode::NOT_FOUND, "not_found", message))
        }
    }
}

pub(super) async fn history(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
    Query(range): Query<HistoryRange>,
) -> Result<Json<Value>, GatewayError> {
    server.history(&session, range).await.map(Json)
}

pub(super) async fn abort(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    Ok(Json(json!({"aborted": server.delivery.abort(&session)?})))
}

pub(super) async fn not_found() -> Response {
    let message = "there is no such path; docs/gateway.md lists them";
    error(StatusCode::NOT_FOUND, "not_found", message)
}

impl Server {
    /// The newest messages of a session, the oldest first, with the number of the event up to which they are complete.
    pub(super) async fn history(
        &self,
        session: &str,
        range: HistoryRange,
    ) -> Result<Value, GatewayError> {
        let (key, is_busy) = self.delivery.session(session)?;
        // Before the log is read: what comes later is in the events.
        let (newest, _) = self.delivery.hub.watch(key.as_str());
        let store = self.delivery.home().session_store();
        let (limit, of_session) = (range.limit.unwrap_or(HISTORY).min(MOST_HISTORY), key.clone());
        let before = range.before.as_deref().map(EntryId::from_text);
        let reading = tokio::task::spawn_blocking(move || {
            let Some(reader) = store.reader(&of_session)? else { return Ok(Some(Vec::new())) };
            reader.messages_before(before, limit)
        });
        let read = reading.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let found: Option<Vec<TranscriptMessage>> =
            read.map_err(|error| GatewayError::Agent(error.into()))?;
        let Some(messages) = found else {
            let why = "the session has no message with the id of `before`; leave it out to read the newest ones";
            return Err(GatewayError::Unusable(why.to_owned()));
        };
        Ok(json!({
            "session": key.as_str(),
            "busy": is_busy,
            "stream": self.delivery.hub.stream(),
            "sequence": newest,
            "messages": messages,
        }))
    }
}
