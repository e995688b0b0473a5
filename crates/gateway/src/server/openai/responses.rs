//! Responses. Each is a message of the store, kept for 30 days; its id names the message. `previous_response_id` continues
//! from that response, in the same session if it is the newest there, else in a fork.

mod events;
mod form;

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{StreamExt as _, stream};
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::rows::{Incoming, MessageId, MessageState};
use myclaw_engine::ProgramRequest;
use myclaw_session::{EntryId, Role, SessionKey, TAKEN_IDS};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::events::Events;
use self::form::Form;
use super::chat::whole;
use super::stream::{Whole, pieces};
use super::turns::{Handed, Turn};
use super::{Accepted, Content, MODEL, Said, Source, failure, named_session, options, refusal};
use crate::GatewayError;
use crate::devices::Login;
use crate::server::Server;
use crate::server::answer::message as message_object;
use crate::server::request::Body;

/// Before the id of the message.
const PREFIX: &str = "resp_";
/// Longest wait for the end of a run that was cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// Time between two tries to stop it.
const CANCEL_AGAIN: Duration = Duration::from_millis(100);
/// Why a removed response is dropped.
const REMOVED: &str = "removed by the program that asked";
#[derive(Deserialize)]
pub(in crate::server) struct Request {
    #[serde(default)]
    model: Option<String>,
    input: Input,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    /// Whether the answer is only stored, for a program that asks for it later.
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    user: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    asked: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<Item>),
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    output: Option<Content>,
}

pub(in crate::server) async fn create(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    headers: HeaderMap,
    body: Result<Body<Request>, GatewayError>,
) -> Response {
    let request = match body {
        Ok(Body(request)) => request,
        Err(error) => return failure(&error),
    };
    let asked = match options::read(request.model.as_deref(), &request.asked) {
        Ok(asked) => asked,
        Err(failure) => return refusal(*failure),
    };
    let source = Source::new(&login, &headers);
    if let Some(asked) = &asked
        && let Err(failure) = server.check_asked(&source.session(), asked, &request.asked).await
    {
        return refusal(*failure);
    }
    let has_format = asked.as_ref().is_some_and(|asked| asked.options.format.is_some());
    let model = request.model.clone().unwrap_or_else(|| MODEL.to_owned());
    let previous = request.previous_response_id.clone();
    let is_stream = request.stream.unwrap_or(false);
    let is_background = request.background.unwrap_or(false);
    let mut echo = request.echo();
    echo.extend(asked.as_deref().map(form::echo_of).unwrap_or_default());
    let accepted = server.accept_response(source, &headers, request, asked).await;
    let Accepted { id, key, watching } = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return failure(&error),
    };
    let form = Form { id: id.clone(), model, created: now_ms() / 1_000, previous, echo };
    if is_background && !is_stream {
        return Json(form.object("queued", &json!([]))).into_response();
    }
    let pieces = pieces(server, key, watching, id, has_format);
    if is_stream {
        let mut events = Events { form, number: 0, text: None };
        let begin = events.begin();
        let rest = pieces.flat_map(move |piece| stream::iter(events.of(piece)));
        let events = stream::iter(begin).chain(rest).map(Ok::<_, Infallible>);
        return Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    }
    match whole(pieces).await {
        Some(Ok(answer)) => Json(form.completed(&answer, now_ms() / 1_000)).into_response(),
        Some(Err((status, body))) => (status, Json(body)).into_response(),
        None => failure(&GatewayError::Stopping),
    }
}

/// A stored response.
pub(in crate::server) async fn retrieve(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Response {
    match server.stored_response(&id).await {
        Ok(response) => Json(response).into_response(),
        Err(error) => failure(&error),
    }
}

/// Stops the run that works on a response.
pub(in crate::server) async fn cancel(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Response {
    match server.cancel_response(&id).await {
        Ok(response) => Json(response).into_response(),
        Err(error) => failure(&error),
    }
}

/// Removes a stored response. The session keeps what was said.
pub(in crate::server) async fn remove(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Response {
    match server.remove_response(&id).await {
        Ok(()) => {
            Json(json!({"id": id, "object": "response.deleted", "deleted": true})).into_response()
        }
        Err(error) => failure(&error),
    }
}

/// What a stored response was asked.
pub(in crate::server) async fn input_items(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Response {
    match server.response_row(&id).await {
        Ok((message, row)) => Json(input_of(&message, &row)).into_response(),
        Err(error) => failure(&error),
    }
}

impl Server {
    async fn accept_response(
        &self,
        source: Source,
        headers: &HeaderMap,
        request: Request,
        asked: Option<Box<ProgramRequest>>,
    ) -> Result<Accepted, GatewayError> {
        let session = match &request.previous_response_id {
            None => named_session(headers, request.user.as_deref()),
            Some(previous) => {
                let (message, row) = self.response_row(previous).await?;
                Some(self.goes_on_from(&message, &row, source.session()).await?)
            }
        };
        let instructions = request.instructions.filter(|text| !text.trim().is_empty());
        let turns = turns(request.input)?;
        let named = (session, Handed::Anew);
        let (session, question) = self.question_in(turns, instructions, named, &source).await?;
        self.accept(source, session, question, asked).await
    }

    /// The message of a response that was not removed.
    async fn response_row(&self, id: &str) -> Result<(MessageId, Incoming), GatewayError> {
        let message = message_of(id)?;
        let row = self.delivery.ledger().message(&message).await?;
        let row = row.filter(|row| !is_removed(row)).ok_or_else(|| unknown(id))?;
        Ok((message, row))
    }

    async fn cancel_response(&self, id: &str) -> Result<Value, GatewayError> {
        let (message, row) = self.response_row(id).await?;
        self.stop_message(&message, row).await?;
        self.stored_response(id).await
    }

    /// Stops the run that works on a message, and waits until the message is reported.
    pub(in crate::server) async fn stop_message(
        &self,
        message: &MessageId,
        row: Incoming,
    ) -> Result<(), GatewayError> {
        let mut is_open = row.state == MessageState::Open;
        let begun = Instant::now();
        while is_open && begun.elapsed() < CANCEL_PATIENCE {
            // The run of a message that was stored a moment ago may not have begun.
            self.delivery.abort(&row.session).await?;
            let now = self.delivery.outcome(message, tokio::time::sleep(CANCEL_AGAIN)).await?;
            is_open = now.is_some_and(|row| row.state == MessageState::Open);
        }
        Ok(())
    }

    async fn remove_response(&self, id: &str) -> Result<(), GatewayError> {
        let message = message_of(id)?;
        let why = || GatewayError::InUse(format!("{id} is not answered yet; cancel it first"));
        let row = self.delivery.ledger().forget(&message, REMOVED).await?;
        match row.ok_or_else(|| unknown(id))? {
            row if row.state == MessageState::Open => Err(why()),
            row if is_removed(&row) => Err(unknown(id)),
            _ => Ok(()),
        }
    }

    async fn stored_response(&self, id: &str) -> Result<Value, GatewayError> {
        let (message, row) = self.response_row(id).await?;
        let answer = message_object(&self.delivery, &message, &row).await?;
        let created = row.accepted_at / 1_000;
        let model = row.asked.as_ref().and_then(|asked| asked.model.clone());
        let model = model.unwrap_or_else(|| MODEL.to_owned());
        let echo = row.asked.as_deref().map(form::echo_of).unwrap_or_default();
        let form = Form { id: message, model, created, previous: None, echo };
        Ok(match &row.state {
            MessageState::Open => form.object("in_progress", &json!([])),
            MessageState::Reported { class, .. } if class == "aborted" => {
                form.object("cancelled", &json!([]))
            }
            MessageState::Answered { parts } => {
                let text = answer["reply"].as_str().unwrap_or_default().to_owned();
                let parts = self.delivery.parts(parts).await?;
                let at = parts.last().map_or(row.accepted_at, |part| part.created_at);
                let (calls, is_cut) = (row.calls, row.is_cut);
                form.completed(&Whole { text, calls, is_cut, usage: None }, at / 1_000)
            }
            MessageState::Reported { class, message, .. } => form.failed(class, message),
            MessageState::Dropped { reason, .. } => form.failed("dropped", reason),
        })
    }

    /// The session that continues from the answer to a message: its own, or a fork `place` if more was said there since.
    pub(super) async fn goes_on_from(
        &self,
        message: &MessageId,
        row: &Incoming,
        place: String,
    ) -> Result<String, GatewayError> {
        let message = message.clone();
        if row.state == MessageState::Open {
            let why = format!("{PREFIX}{message} is not answered yet; wait for it");
            return Err(GatewayError::InUse(why));
        }
        let (key, _) = self.delivery.session(&row.session)?;
        let (to, _) = self.delivery.session(&place)?;
        let home = self.delivery.home();
        let (of_session, fork) = (key.clone(), to.clone());
        let forking = tokio::task::spawn_blocking(move || {
            // A repeated request finds its fork.
            let catalog = home.catalog();
            if catalog.exists(&fork) {
                return Ok(Some(fork));
            }
            let Some(at) = end_of_answer(&**catalog, &of_session, &message)? else {
                return Ok(None);
            };
            catalog.fork(&of_session, Some(at), &fork).map(|_| Some(fork))
        });
        let forked = forking.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let forked = forked.map_err(|error| GatewayError::Agent(error.into()))?;
        Ok(forked.unwrap_or(key).to_string())
    }
}

/// The last row of the answer to `message`, if another message of the user follows it.
fn end_of_answer(
    catalog: &dyn myclaw_session::Catalog,
    key: &SessionKey,
    message: &MessageId,
) -> Result<Option<EntryId>, myclaw_session::SessionError> {
    let Some(reader) = catalog.read(key)? else { return Ok(None) };
    let (mut end, mut newer, mut found): (Option<EntryId>, Option<EntryId>, _) = (None, None, None);
    reader.visit_newest(&mut |row| {
        if row.role != Role::User {
            // The newest row before a later message of the user.
            end = end.or(Some(row.id));
            return ControlFlow::Continue(());
        }
        let ids: Vec<MessageId> =
            row.meta.as_ref().and_then(|meta| meta.field(TAKEN_IDS)).unwrap_or_default();
        if ids.contains(message) {
            found = newer.and(end);
            return ControlFlow::Break(());
        }
        (newer, end) = (Some(row.id), None);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn message_of(id: &str) -> Result<MessageId, GatewayError> {
    id.strip_prefix(PREFIX).map(MessageId::from_text).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> GatewayError {
    GatewayError::NotFound(format!("there is no response `{id}`; responses are kept for 30 days"))
}

fn is_removed(row: &Incoming) -> bool {
    matches!(&row.state, MessageState::Dropped { reason, .. } if reason == REMOVED)
}

/// The list of what was asked, which is one message.
fn input_of(id: &MessageId, row: &Incoming) -> Value {
    let mut content = vec![json!({"type": "input_text", "text": row.text})];
    content.extend(row.images.iter().map(|image| {
        let url = format!("data:{};base64,{}", image.mime_type, image.data);
        json!({"type": "input_image", "detail": "auto", "image_url": url, "file_id": null})
    }));
    let files = row.origin.files.iter();
    content.extend(
        files.map(|file| json!({"type": "input_file", "filename": file.name, "file_id": null})),
    );
    let id = format!("msg_in_{id}");
    let item = json!({"id": id, "type": "message", "role": "user", "status": "completed", "content": content});
    json!({"object": "list", "data": [item], "first_id": id, "last_id": id, "has_more": false})
}

impl Request {
    /// What the response repeats.
    fn echo(&self) -> Map<String, Value> {
        let mut echo = Map::new();
        for name in ["metadata", "safety_identifier", "prompt_cache_key"] {
            let value = self.asked.get(name).filter(|value| !value.is_null());
            echo.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        let texts = [("user", &self.user), ("instructions", &self.instructions)];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        echo.extend(texts.map(|(name, text)| (name.to_owned(), json!(text))));
        echo.insert("background".to_owned(), json!(self.background.unwrap_or(false)));
        echo
    }
}

/// What is handed in, one by one.
fn turns(input: Input) -> Result<Vec<Turn>, GatewayError> {
    let items = match input {
        Input::Text(text) => return Ok(vec![Turn::Said("user".to_owned(), text.into())]),
        Input::Items(items) => items,
    };
    let mut turns = Vec::new();
    for item in items {
        let read =
            |content: Option<Content>| content.map_or_else(|| Ok(Said::default()), Content::read);
        let kind = item.r#type.as_deref().unwrap_or("message");
        match (kind, item.call_id) {
            ("message", _) => {
                let role = item.role.unwrap_or_else(|| "user".to_owned());
                turns.push(Turn::Said(role, read(item.content)?));
            }
            ("function_call", Some(id)) => turns.push(Turn::Call {
                id,
                name: item.name.unwrap_or_default(),
                arguments: item.arguments.unwrap_or_default(),
            }),
            ("function_call_output", Some(call_id)) => {
                turns.push(Turn::Result { call_id, said: read(item.output)? });
            }
            // What a model thought elsewhere says nothing to this one.
            ("reasoning", _) => {}
            ("function_call" | "function_call_output", None) => {
                let why = format!("an item of type `{kind}` needs the `call_id` of its call");
                return Err(GatewayError::Unusable(why));
            }
            _ => {
                let why = format!(
                    "input of type `{kind}` is not supported; send messages, and results of functions"
                );
                return Err(GatewayError::Unusable(why));
            }
        }
    }
    Ok(turns)
}
