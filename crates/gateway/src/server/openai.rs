//! OpenAI's protocols, for programs that speak nothing else: chat completions and responses.
//!
//! A request is a message like any other: it is stored before anything is done, the same `Idempotency-Key` is the same
//! message, and its answer is in the store.

mod chat;
mod files;
mod options;
mod responses;
mod stream;
mod turns;

use std::ops::Range;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use myclaw_delivery::message::{MessageFile, NewMessage};
use myclaw_delivery::route::Route;
use myclaw_delivery::rows::{MessageId, Origin};
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(super) use chat::chat_completions;
pub(super) use responses::{cancel, create, input_items, remove, retrieve};

use self::files::File;
use super::answer::{self, class_of, message as message_object};
use super::attachments::{Attachment, MOST_ATTACHMENTS, pictures};
use super::{Server, route};
use crate::GatewayError;
use crate::devices::Login;
use crate::hub::Watching;
use myclaw_engine::ProgramRequest;
use myclaw_llm::ToolCall;
use myclaw_session::SessionKey;

/// The only model of the list: the agent.
const MODEL: &str = "myclaw";
/// What is asked where the last message is the assistant's.
const CONTINUE: &str = "Continue your last message from where it ends. Do not repeat what it says.";
/// The header that names the session.
const SESSION_HEADER: &str = "x-myclaw-session";
/// The header with which programs name a request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(14 * 60);

/// What the paths of these protocols begin with.
const PATHS: &str = "/v1/";

/// Status and body of an error.
pub(super) type Failure = (StatusCode, Value);

/// Content of a message: a text, or parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    image_url: Option<ImageUrl>,
    #[serde(default)]
    file: Option<File>,
    #[serde(flatten)]
    own_file: File,
}

/// Address of a picture: chat completions wrap it in an object, responses do not.
#[derive(Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Text(String),
    Object { url: String },
}

/// What a message says.
#[derive(Default)]
struct Said {
    text: String,
    pictures: Vec<Attachment>,
    /// What is neither text nor a picture.
    files: Vec<MessageFile>,
    /// The bytes of the text that are from outside.
    outside: Vec<Range<usize>>,
}

impl Said {
    /// Adds what another one says.
    fn add(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.pictures.extend(other.pictures);
        self.files.extend(other.files);
    }
}

/// A whole answer.
pub(super) struct Answer {
    text: String,
    /// The calls of the program's tools with which it ends.
    calls: Vec<ToolCall>,
    /// Whether it was cut at a limit.
    is_cut: bool,
}

/// A request that was stored.
struct Accepted {
    id: MessageId,
    key: SessionKey,
    /// The session's events since before the request was stored.
    watching: Watching,
}

pub(super) async fn models() -> Json<Value> {
    let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "myclaw"});
    Json(json!({"object": "list", "data": [model]}))
}

impl Server {
    /// Stores a request as a message to `session`, or, without one, to a session of its own.
    async fn accept(
        &self,
        source: Source,
        session: Option<String>,
        question: Said,
        asked: Option<Box<ProgramRequest>>,
    ) -> Result<Accepted, GatewayError> {
        let session = session.unwrap_or_else(|| source.session());
        let Source { route, id: source_id } = source;
        let (key, _) = self.delivery.session(&session)?;
        // Before the message is stored: nothing of its answer is missed.
        self.relay.join(key.as_str()).await;
        let watching = self.hub.watch(key.as_str());
        let images = pictures(question.pictures).await?;
        let text = question.text;
        let new = NewMessage { route, source_id, session, text, images, asked };
        let origin = Origin { outside: question.outside, ..Origin::default() };
        if question.files.len() > MOST_ATTACHMENTS {
            let why =
                format!("a message has at most {MOST_ATTACHMENTS} files; send the others later");
            return Err(GatewayError::Unusable(why));
        }
        let id = self.delivery.accept_from(new, origin, question.files).await?.id;
        Ok(Accepted { id, key, watching })
    }

    /// Refuses a request with a model that there is not, or with options that the agent's model cannot be asked.
    async fn check_asked(
        &self,
        session: &str,
        asked: &ProgramRequest,
        fields: &Map<String, Value>,
    ) -> Result<(), Box<Failure>> {
        let config = self.delivery.session_config(session);
        let config = config.map_err(|error| Box::new(failed(&error.into())))?;
        match (config.select_model(asked.model.as_deref()).await, &asked.model) {
            (Ok(selection), _) => {
                let model = selection.model();
                match asked.options.unsupported(model.api) {
                    Some(option) => {
                        let name = format!("{}/{}", model.provider, model.id);
                        Err(options::not_carried(option, &name, fields))
                    }
                    None => Ok(()),
                }
            }
            (Err(error), Some(name)) => Err(options::no_model(name, &error.message)),
            // The run will report it.
            (Err(_), None) => Ok(()),
        }
    }

    /// The answer, or the status and the body of an error.
    async fn reply(&self, id: &MessageId) -> Result<Answer, Failure> {
        let until = async {
            tokio::select! {
                () = tokio::time::sleep(LONGEST_WAIT) => {}
                () = self.stop.cancelled() => {}
            }
        };
        let row = self.delivery.outcome(id, until).await.map_err(|error| failed(&error.into()))?;
        let row =
            row.ok_or_else(|| failed(&GatewayError::Internal("the message is gone".to_owned())))?;
        let answer =
            message_object(&self.delivery, id, &row).await.map_err(|error| failed(&error))?;
        match (answer["reply"].as_str(), answer["message"].as_str()) {
            (Some(reply), _) => {
                Ok(Answer { text: reply.to_owned(), calls: row.calls, is_cut: row.is_cut })
            }
            (None, Some(report)) => {
                let class = answer["class"].as_str().unwrap_or("failed");
                Err((StatusCode::BAD_GATEWAY, error_object(class, report)))
            }
            (None, None) => {
                let message =
                    "there is no answer yet; repeat the request with the same Idempotency-Key";
                Err((StatusCode::GATEWAY_TIMEOUT, error_object("timeout", message)))
            }
        }
    }
}

/// Who makes a request, and under which id.
struct Source {
    route: Route,
    /// The program's own id of the request, or a new one.
    id: String,
}

impl Source {
    fn new(login: &Login, headers: &HeaderMap) -> Self {
        let of_header = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
        let id = of_header.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        Self { route: route(login), id }
    }

    /// The session of a request that names none. The same request again has the same.
    fn session(&self) -> String {
        format!("openai-{}", MessageId::of(&self.route, &self.id))
    }
}

/// The session that a request names.
fn named_session(headers: &HeaderMap, user: Option<&str>) -> Option<String> {
    let of_header = headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok());
    of_header.map(str::to_owned).or_else(|| user.map(|user| format!("openai-{user}")))
}

/// What is asked, after what was said before it. The pictures and files of all of it belong to the question.
fn with_earlier(before: Vec<(String, Said)>, question: Said) -> Said {
    if before.is_empty() {
        return question;
    }
    let mut text = "[Earlier messages, as the program that asks has them:]\n".to_owned();
    let (mut pictures, mut files) = (Vec::new(), Vec::new());
    for (role, said) in before {
        text.push_str(&format!("{role}: {}\n", said.text));
        pictures.extend(said.pictures);
        files.extend(said.files);
    }
    pictures.extend(question.pictures);
    files.extend(question.files);
    text.push_str("[The message to answer:]\n");
    let at = text.len();
    let moved = question.outside.into_iter().map(|part| part.start + at..part.end + at);
    let outside = moved.collect();
    text.push_str(&question.text);
    Said { text, pictures, files, outside }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Content {
    /// The text, the pictures and the files. Parts of other types are refused.
    fn read(self) -> Result<Said, GatewayError> {
        let parts = match self {
            Self::Text(text) => return Ok(text.into()),
            Self::Parts(parts) => parts,
        };
        let mut said = Said::default();
        for part in parts {
            match (part.r#type.as_str(), part.text, part.image_url, part.file) {
                ("text" | "input_text" | "output_text", Some(text), ..) => {
                    said.text.push_str(&text);
                }
                ("image_url" | "input_image", _, Some(url), _) => {
                    said.pictures.push(url.picture()?);
                }
                ("file", .., Some(file)) => file.add_to(&mut said)?,
                ("input_file", ..) => part.own_file.add_to(&mut said)?,
                (kind, ..) => {
                    let why = format!(
                        "content of type `{kind}` is not supported; send text, pictures or files"
                    );
                    return Err(GatewayError::Unusable(why));
                }
            }
        }
        Ok(said)
    }
}

impl ImageUrl {
    /// The picture in a data URL. Other addresses are refused: the gateway fetches nothing that a program names.
    fn picture(self) -> Result<Attachment, GatewayError> {
        let (Self::Text(url) | Self::Object { url }) = self;
        let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let (_, data) = data.ok_or_else(|| {
            let why = "pictures are not fetched; send them as `data:image/…;base64,…`";
            GatewayError::Unusable(why.to_owned())
        })?;
        Ok(Attachment::new(data.to_owned()))
    }
}

fn failed(error: &GatewayError) -> Failure {
    let (status, class) = class_of(error);
    (status, error_object(class, &error.to_string()))
}

/// The answer to a request that asks for what cannot be done.
fn refusal(failure: Failure) -> Response {
    let (status, body) = failure;
    answer::with_retry((status, Json(body)).into_response())
}

fn failure(error: &GatewayError) -> Response {
    refusal(failed(error))
}

/// Gives an error of the gateway OpenAI's form, if it answers a request of OpenAI's protocols.
pub(super) fn in_own_form(path: &str, mut response: Response) -> Response {
    match response.extensions_mut().remove::<answer::Said>() {
        Some(said) if path.starts_with(PATHS) => {
            refusal((response.status(), error_object(&said.class, &said.message)))
        }
        _ => response,
    }
}

/// An error in OpenAI's form.
fn error_object(class: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": class, "param": null, "code": class}})
}
