//! The model behind a Unix socket: what runners need if they have neither key nor network.
//!
//! Each run has a socket of its own, in a directory that only its container sees. It takes calls of one model and passes
//! them to one server, with the key. A runner decides neither where a call goes nor with which headers, and nothing that
//! comes back holds the key.

mod filter;
mod upstream;
mod usage;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited, combinators::UnsyncBoxBody};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use myclaw_exec::UnixListener;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

pub use upstream::{ModelLimits, ModelUpstream};
use usage::UsageBook;
pub use usage::{DayUsage, GroupUsage};

/// The name of the socket in its directory.
pub(crate) const SOCKET: &str = "model.sock";
/// Longest time for the head of a request, and for its body.
const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(60);
/// Most connections of a runner; further ones wait.
const MOST_CONNECTIONS: usize = 16;
/// Pause after a connection could not be taken, for example because the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);
/// The time in which calls are counted for the limit on their rate.
const MINUTE: Duration = Duration::from_secs(60);

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What is counted for a group, over all its runs.
pub(crate) struct Account {
    /// When the calls of the last minute began.
    recent: Mutex<VecDeque<Instant>>,
    /// Places for calls.
    places: Arc<Semaphore>,
    book: UsageBook,
}

impl Account {
    /// The account of a group, whose usage is in `file`.
    pub(crate) fn open(limits: &ModelLimits, file: PathBuf) -> Self {
        Self {
            recent: Mutex::default(),
            places: Arc::new(Semaphore::new(limits.at_once)),
            book: UsageBook::open(file),
        }
    }

    /// A place for a call, or why there is none.
    fn admit(&self, limits: &ModelLimits) -> Result<OwnedSemaphorePermit, Refusal> {
        let too_many = |message: String| Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
        if let Some(most) = limits.tokens_per_day
            && self.book.tokens_today() >= most
        {
            return Err(too_many(format!(
                "the group has used its {most} tokens of today; the owner can raise --model-tokens"
            )));
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            too_many(format!("{} calls of the group go on; wait for one", limits.at_once))
        })?;
        let mut recent = self.recent.lock();
        while recent.front().is_some_and(|begun| begun.elapsed() >= MINUTE) {
            recent.pop_front();
        }
        if recent.len() >= limits.per_minute {
            return Err(too_many(format!(
                "the group has made {} calls within a minute; wait a little",
                limits.per_minute
            )));
        }
        recent.push_back(Instant::now());
        Ok(place)
    }
}

/// An answer of the host itself instead of the model server's.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn response(self) -> Response<Body> {
        let body = json!({"error": {"message": self.message, "type": "host"}}).to_string();
        let body = Full::from(body).map_err(|never: Infallible| match never {}).boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// The socket of one run. It ends with this.
pub(crate) struct ModelSocket {
    path: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl ModelSocket {
    /// Listens in `directory`, which only the group's runner sees.
    pub(crate) fn open(
        upstream: Arc<ModelUpstream>,
        account: Arc<Account>,
        directory: &Path,
    ) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        // That of a killed host.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => io::Error::other(
                "the path of a socket must be shorter than 108 bytes, so choose a shorter --directory",
            ),
            _ => error,
        })?;
        let door = Arc::new(Door { upstream, account });
        Ok(Self { path, _serving: AbortOnDropHandle::new(tokio::spawn(accept(listener, door))) })
    }
}

impl Drop for ModelSocket {
    fn drop(&mut self) {
        // One that stays is removed before the next run.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Takes connections. They end with this future.
async fn accept(listener: UnixListener, door: Arc<Door>) {
    let mut connections = JoinSet::new();
    loop {
        let taken = tokio::select! {
            Some(_) = connections.join_next() => continue,
            taken = listener.accept(), if connections.len() < MOST_CONNECTIONS => taken,
        };
        let Ok((stream, _)) = taken else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let door = Arc::clone(&door);
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let door = Arc::clone(&door);
                async move { Ok::<_, Infallible>(door.answer(request).await) }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            // A connection that breaks concerns its runner only.
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// What stands between a runner and the model server.
struct Door {
    upstream: Arc<ModelUpstream>,
    account: Arc<Account>,
}

/// What is read of a request's body.
#[derive(Deserialize)]
struct Call {
    model: String,
    /// OpenRouter answers with one of these if the model does not.
    #[serde(default)]
    models: Option<IgnoredAny>,
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        self.pass(request).await.unwrap_or_else(|refusal| refusal.response())
    }

    /// Passes a call on. Of the request only its body is used.
    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let upstream = &self.upstream;
        // The path alone: hosts in the request line or the headers have no effect.
        let uri = request.uri();
        let is_call = uri.path() == upstream.call_path() && uri.query().is_none();
        if !is_call {
            let message = format!("only {} can be reached here", upstream.call_path());
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        }
        if request.method() != Method::POST {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only POST is answered here"));
        }
        let place = self.account.admit(&upstream.limits)?;
        let body = read(request.into_body(), upstream.limits.body).await?;
        let call: Call = serde_json::from_slice(&body).map_err(|error| {
            Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("the body is no call of a model: {error}"),
            )
        })?;
        if call.model != upstream.model || call.models.is_some() {
            let message = format!("only the model {} can be called here", upstream.model);
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        let mut meter = self.account.book.begin(upstream.price, body.len());
        let answer = match upstream.send(body).await {
            Ok(answer) => answer,
            Err(message) => {
                meter.was_refused();
                return Err(Refusal::new(StatusCode::BAD_GATEWAY, message));
            }
        };
        if !answer.status().is_success() {
            meter.was_refused();
            return Ok(self.refused(answer).await);
        }
        let content_type = answer.headers().get(CONTENT_TYPE).cloned();
        let mut response = Response::new(upstream.streamed(answer, (meter, place)));
        if let Some(content_type) = content_type.filter(|value| !upstream.has_key(value.as_bytes()))
        {
            response.headers_mut().insert(CONTENT_TYPE, content_type);
        }
        Ok(response)
    }

    /// A refusal of the model server, without the key.
    async fn refused(&self, answer: reqwest::Response) -> Response<Body> {
        let status = answer.status();
        let wait = answer.headers().get(RETRY_AFTER).cloned();
        let message = self.upstream.refusal(answer).await;
        // A redirect or the like means nothing to the runner.
        let shown = if status.is_client_error() || status.is_server_error() {
            status
        } else {
            StatusCode::BAD_GATEWAY
        };
        let mut response = Refusal::new(shown, message).response();
        if let Some(wait) = wait.filter(|value| !self.upstream.has_key(value.as_bytes())) {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        response
    }
}

async fn read(body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    let too_long = || {
        let message = format!("the request is longer than {most} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > most) {
        return Err(too_long());
    }
    let reading = tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect());
    match reading.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the request broke off")),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request took too long")),
    }
}
