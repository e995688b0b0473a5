//! Requests that are answered with one JSON object.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use myclaw_delivery::message::NewMessage;
use myclaw_delivery::questions::{AnswerError, FullAnswer};
use myclaw_delivery::rows::{Incoming, MessageId, MessageState, Origin};
use myclaw_gateway_client::{GatewayToken, gateway_directory, near};
use myclaw_session::{EntryId, SessionError, TAKEN_IDS, TranscriptMessage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{error, message as message_object};
use super::attachments::{Attachment, attached};
use super::branches::ForkPlace;
use super::request::{Body, Params};
use super::sessions::ListRange;
use super::{Server, route, scope};
use crate::GatewayError;
use crate::devices::Login;
use crate::metrics::Gauge;

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
    #[serde(default)]
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
pub(super) struct ForkBody {
    #[serde(rename = "newSession")]
    new_session: String,
    #[serde(flatten)]
    place: ForkPlace,
}

#[derive(Deserialize)]
pub(super) struct TitleBody {
    #[serde(default)]
    title: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ApprovalRange {
    #[serde(default)]
    session: Option<String>,
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

pub(super) async fn health(State(server): State<Arc<Server>>) -> Json<Value> {
    let config = if server.reloads.state().is_current() { "current" } else { "invalid" };
    Json(json!({"status": "ok", "config": config}))
}

pub(super) async fn ready(State(server): State<Arc<Server>>) -> Response {
    if server.stop.is_cancelled() {
        return GatewayError::Stopping.into_response();
    }
    Json(json!({"status": "ready"})).into_response()
}

pub(super) async fn status(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(server.state())
}

pub(super) async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let gauge = |name, help, value: usize| Gauge { name, help, value: value as u64 };
    let seconds = usize::try_from(server.begun.elapsed().as_secs()).unwrap_or(usize::MAX);
    let sockets = super::MOST_SOCKETS - server.sockets.available_permits();
    let is_current = usize::from(server.reloads.state().is_current());
    let delivery = &server.delivery;
    let dropped =
        usize::try_from(server.counting.telemetry.exporter.dropped()).unwrap_or(usize::MAX);
    let gauges = [
        gauge("myclaw_uptime_seconds", "Seconds since the start.", seconds),
        gauge("myclaw_messages_open", "Messages without an answer.", delivery.open_count()),
        gauge("myclaw_parts_waiting", "Parts that wait to be sent.", delivery.outbox().waiting()),
        gauge("myclaw_sessions_working", "Sessions that work.", delivery.working().len()),
        gauge("myclaw_approvals_open", "Open questions.", delivery.questions().list(None).len()),
        gauge("myclaw_websockets", "Open WebSockets.", sockets),
        gauge("myclaw_spans_dropped", "Spans of traces that no receiver took.", dropped),
        gauge("myclaw_config_current", "1 if the config file is in force.", is_current),
    ];
    let text = server.counting.metrics.text(&gauges, &server.routing.channel_states());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Step 1 for programs: when the answer leaves, the message is on disk.
pub(super) async fn send(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    headers: HeaderMap,
    Body(body): Body<NewMessageBody>,
) -> Result<Response, GatewayError> {
    let session = scope::session_for(&login, body.session)?;
    let of_header = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
    let source_id = body.id.or_else(|| of_header.map(str::to_owned));
    let (images, files) = attached(body.attachments).await?;
    let new = NewMessage {
        route: route(&login),
        source_id: source_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        session: session.unwrap_or_else(|| DEFAULT_SESSION.to_owned()),
        text: body.text,
        images,
        asked: None,
    };
    let accepted = server.delivery.accept_from(new, Origin::default(), files).await?;
    let answer = message_object(&server.delivery, &accepted.id, &accepted.row).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

/// What became of a message; waits for its end as long as the client wants.
pub(super) async fn message(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Params(wait): Params<Wait>,
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
    Params(range): Params<HistoryRange>,
) -> Result<Json<Value>, GatewayError> {
    server.history(&session, range).await.map(Json)
}

pub(super) async fn abort(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    Ok(Json(json!({"aborted": server.delivery.abort(&session).await?})))
}

pub(super) async fn sessions(
    State(server): State<Arc<Server>>,
    Params(range): Params<ListRange>,
) -> Result<Json<Value>, GatewayError> {
    server.sessions(range).await.map(Json)
}

pub(super) async fn fork(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
    Body(body): Body<ForkBody>,
) -> Result<Json<Value>, GatewayError> {
    let ForkBody { new_session, place } = body;
    server.fork(&session, &new_session, place).await.map(Json)
}

pub(super) async fn branches(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    server.branches(&session).await.map(Json)
}

pub(super) async fn title(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
    Body(body): Body<TitleBody>,
) -> Result<Json<Value>, GatewayError> {
    server.title(&session, body.title).await.map(Json)
}

pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    server.delete(&session).await.map(Json)
}

pub(super) async fn approvals(
    State(server): State<Arc<Server>>,
    Params(range): Params<ApprovalRange>,
) -> Result<Json<Value>, GatewayError> {
    server.approvals(range.session.as_deref()).await.map(Json)
}

pub(super) async fn approve(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    Path(id): Path<String>,
    Body(answer): Body<FullAnswer>,
) -> Result<Json<Value>, GatewayError> {
    server.approve(&id, answer, &login).await.map(Json)
}

pub(super) async fn not_found() -> Response {
    let message = "there is no such path; docs/operate/gateway.md lists them";
    error(StatusCode::NOT_FOUND, "not_found", message)
}

impl Server {
    /// Where programs of this machine reach it.
    pub(super) fn url(&self) -> String {
        let scheme = if self.front().certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", near(self.address))
    }

    /// What the gateway says about itself.
    pub(crate) fn state(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "processId": std::process::id(),
            "address": self.address.to_string(),
            "url": self.url(),
            "certificateUntil": self.front().certificate.as_ref().map(|own| own.validity.until.to_string()),
            "seconds": self.begun.elapsed().as_secs(),
            "openMessages": self.delivery.open_count(),
            "sockets": super::MOST_SOCKETS - self.sockets.available_permits(),
            "isShared": self.cluster.is_some(),
            "tokenFile": self.token_file(),
            "config": self.reloads.state(),
            "usage": self.counting.metrics.usage(),
            "stateDirectory": self.delivery.home().paths.state_dir(),
        })
    }

    /// Where the token of clients is, unless the config has it.
    fn token_file(&self) -> Option<PathBuf> {
        let is_own = self.delivery.config().gateway.token.is_none();
        is_own.then(|| GatewayToken::path(&gateway_directory(&self.delivery.home())))
    }

    /// The questions that wait for an answer.
    pub(super) async fn approvals(&self, session: Option<&str>) -> Result<Value, GatewayError> {
        let key = session.map(|name| self.delivery.session(name)).transpose()?;
        let key = key.as_ref().map(|(key, _)| key.as_str());
        let open = self.delivery.open_questions(key).await;
        Ok(json!({"approvals": open, "answered": self.delivery.answered().list().await?}))
    }

    /// Answers a question.
    pub(super) async fn approve(
        &self,
        id: &str,
        given: FullAnswer,
        login: &Login,
    ) -> Result<Value, GatewayError> {
        let answer = given.answer;
        let answered = self.delivery.answer_question(id, given, login.label()).await?;
        answered.map_err(|error| match error {
            AnswerError::NoQuestion => GatewayError::NotFound(
                "no question with this id waits: it was answered, its time is over, or the run has ended".to_owned(),
            ),
            AnswerError::NotOffered => GatewayError::Unusable(
                "the question does not offer this answer: its `always` lists the scopes that it offers, and if it has `wants`, \
                 it is answered with `words`, `no` or `cancel`; `instead` needs `words`"
                    .to_owned(),
            ),
        })?;
        Ok(json!({"id": id, "answer": answer}))
    }

    /// The newest messages of a session, the oldest first, with the number of the event up to which they are complete, and
    /// that of the newest event of which they may tell.
    pub(super) async fn history(
        &self,
        session: &str,
        range: HistoryRange,
    ) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        // Before the log is read: what comes later is in the events.
        let newest = self.hub.newest(key.as_str());
        let home = self.delivery.home();
        let (limit, of_session) = (range.limit.unwrap_or(HISTORY).min(MOST_HISTORY), key.clone());
        let before = range.before.as_deref().map(EntryId::from_text);
        let reading =
            tokio::task::spawn_blocking(move || match home.catalog().read(&of_session)? {
                Some(reader) => home.shown_messages(&*reader, before, limit),
                None => Ok::<_, SessionError>(Some(Vec::new())),
            });
        let read = reading.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let found: Option<Vec<TranscriptMessage>> =
            read.map_err(|error| GatewayError::Agent(error.into()))?;
        let until = self.hub.newest(key.as_str());
        let Some(messages) = found else {
            let why = "the session has no message with the id of `before`; leave it out to read the newest ones";
            return Err(GatewayError::Unusable(why.to_owned()));
        };
        let reports = self.reports(&messages).await?;
        Ok(json!({
            "session": key.as_str(),
            "busy": self.hub.is_running(key.as_str()),
            "stream": self.hub.stream(),
            "sequence": newest,
            "until": until,
            "messages": messages,
            "reports": reports,
        }))
    }

    /// The reports about messages of these rows, which are in no log.
    async fn reports(&self, rows: &[TranscriptMessage]) -> Result<Vec<Value>, GatewayError> {
        let mut reports = Vec::new();
        for row in rows {
            let ids: Vec<MessageId> =
                row.meta.as_ref().and_then(|meta| meta.field(TAKEN_IDS)).unwrap_or_default();
            for id in ids {
                if let Some(Incoming {
                    state: MessageState::Reported { class, message, .. }, ..
                }) = self.delivery.ledger().message(&id).await?
                {
                    let report =
                        json!({"messageId": id, "row": row.id, "class": class, "message": message});
                    reports.push(report);
                }
            }
        }
        Ok(reports)
    }
}
