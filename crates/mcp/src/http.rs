//! A server behind an address: each message is a request of HTTP, answered by one message or by a stream of them.
//!
//! Three forms are spoken: without sessions (2026-07-28), with sessions (2025-03-26 to 2025-11-25), and the first one
//! (2024-11-05), in which all answers come on one stream. What the server answers goes through the same [`Exchange`] as the
//! lines of a program. A server can do no more than fail the request whose answer it is.

mod answer;
mod headers;
mod old;

use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::access::{host_label, transport_error};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::connection::Revision;
use crate::exchange::{Asked, Exchange, Outgoing};
use crate::failure::{Failure, Kind};
use crate::spec::Address;
pub(crate) use headers::{parameter_headers, parameter_values};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a message without an answer may take, and the end of a session.
const NOTE_LIMIT: Duration = Duration::from_secs(10);
/// Messages without an answer that wait to be sent.
const NOTES: usize = 64;
/// How long requests wait for the stream of what nobody has asked for. Most servers send the head of their answer at once, and
/// those that wait for something to say cost this time once.
const OPEN_LIMIT: Duration = Duration::from_millis(300);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const BOTH_FORMS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A connection. Dropping it gives up what waits, and ends the session.
pub(crate) struct Http {
    endpoint: Arc<Endpoint>,
    _sending: AbortOnDropHandle<()>,
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// Where requests go, and what is agreed with the server.
struct Endpoint {
    address: Address,
    /// Those of the config.
    headers: HeaderMap,
    exchange: Arc<Exchange>,
    form: Form,
    agreed: Mutex<Agreed>,
}

/// How answers come.
enum Form {
    /// Each with the request that it answers.
    Streamable,
    /// All on one stream. Requests go to this address.
    OneStream(Url),
}

#[derive(Default, Clone)]
struct Agreed {
    revision: Option<Revision>,
    session: Option<HeaderValue>,
    /// The token of the last request.
    token: Option<SecretString>,
}

impl Http {
    /// Nothing is sent yet.
    pub(crate) fn new(address: Address) -> Self {
        let (exchange, queue) = Exchange::new();
        Self::with(Endpoint::new(address, Form::Streamable, exchange), queue)
    }

    fn with(endpoint: Endpoint, queue: mpsc::Receiver<Outgoing>) -> Self {
        let endpoint = Arc::new(endpoint);
        let sending = tokio::spawn(send_all(Arc::clone(&endpoint), queue));
        let _sending = AbortOnDropHandle::new(sending);
        Self { endpoint, _sending, listening: Mutex::default() }
    }

    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        &self.endpoint.exchange
    }

    /// Sends what follows in this revision; `None` before one is agreed on.
    pub(crate) fn speak(&self, revision: Option<&Revision>) {
        self.endpoint.agreed.lock().revision = revision.cloned();
    }

    /// Opens the stream on which a server with sessions says what nobody has asked for. Some servers send the answer of a
    /// call on a stream that is opened after it, and some measure when a stream is taken up again. So this one is open before
    /// the first request, if the server opens it soon.
    pub(crate) async fn listen(&self) {
        let (is_open, opened) = oneshot::channel();
        let listening = tokio::spawn(Arc::clone(&self.endpoint).listen(is_open));
        *self.listening.lock() = Some(AbortOnDropHandle::new(listening));
        // What it says does not matter: without a stream the requests go on as well.
        let _ = timeout(OPEN_LIMIT, opened).await;
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let has_session = self.endpoint.agreed.lock().session.is_some();
        let has_ended = self.endpoint.exchange.ended().is_some();
        self.endpoint.exchange.end(Failure::new(Kind::Ended, "the connection was closed"));
        if let (true, false, Ok(runtime)) = (has_session, has_ended, Handle::try_current()) {
            let endpoint = Arc::clone(&self.endpoint);
            runtime.spawn(async move {
                // A server that does not hear of it forgets the session by itself.
                let _ = timeout(NOTE_LIMIT, endpoint.send(Method::DELETE, None, &[])).await;
            });
        }
    }
}

/// Whether a request may be made twice: it asks for something and changes nothing. What a tool does, nobody knows.
fn changes_nothing(message: &Value) -> bool {
    const METHODS: [&str; 8] = [
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "ping",
    ];
    message["method"].as_str().is_some_and(|method| METHODS.contains(&method))
}

/// Sends all messages: each request at once, the others one after the other.
async fn send_all(endpoint: Arc<Endpoint>, mut queue: mpsc::Receiver<Outgoing>) {
    let mut requests = JoinSet::new();
    let (aside, mut notes) = mpsc::channel::<Outgoing>(NOTES);
    let noting = Arc::clone(&endpoint);
    let _noting = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(note) = notes.recv().await {
            // Nobody waits for an answer, and the next request notices a server that is gone.
            let _ = timeout(NOTE_LIMIT, noting.note(&note.message)).await;
        }
    }));
    loop {
        tokio::select! {
            message = queue.recv() => match message {
                None => return,
                Some(message) if message.asked.is_some() => {
                    requests.spawn(Arc::clone(&endpoint).answer(message));
                }
                // A server that answers no notes gets no more of them.
                Some(note) => drop(aside.try_send(note)),
            },
            Some(_) = requests.join_next() => {}
        }
    }
}

impl Endpoint {
    fn new(address: Address, form: Form, exchange: Arc<Exchange>) -> Self {
        // The config was checked: each of them is a header.
        let headers = address.headers.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::try_from(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        });
        Self { headers: headers.collect(), address, exchange, form, agreed: Mutex::default() }
    }

    fn is_stateless(&self) -> bool {
        self.agreed.lock().revision.as_ref().is_some_and(Revision::is_stateless)
    }

    /// Makes a request, and takes its answer. It ends with the answer, or when nobody waits for it any more.
    async fn answer(self: Arc<Self>, mut outgoing: Outgoing) {
        let Some(asked) = outgoing.asked.take() else { return };
        let outcome = tokio::select! {
            () = asked.given_up.cancelled() => return,
            outcome = self.request(&outgoing.message, &asked) => outcome,
        };
        if let Err(failure) = outcome {
            self.exchange.fail(asked.id, failure);
        }
    }

    /// Makes a request. One that changes nothing is made again once if its connection broke off.
    async fn request(&self, message: &Value, asked: &Asked) -> Result<(), Failure> {
        match self.request_once(message, asked).await {
            Err(failure) if failure.kind == Kind::BrokenOff && changes_nothing(message) => {
                self.request_once(message, asked).await
            }
            outcome => outcome,
        }
    }

    async fn request_once(&self, message: &Value, asked: &Asked) -> Result<(), Failure> {
        let mut extra = Vec::new();
        if self.is_stateless() {
            extra = headers::of_message(message);
            extra.extend(asked.headers.iter().filter_map(headers::pair));
        }
        let response = self.send(Method::POST, Some(message), &extra).await?;
        if message["method"] == "initialize"
            && let Some(session) = response.headers().get(SESSION)
        {
            self.agreed.lock().session = Some(session.clone());
        }
        match self.form {
            Form::OneStream(_) if response.status().is_success() => Ok(()),
            _ => self.take_answer(response, asked).await,
        }
    }

    /// Sends a message that has no answer.
    async fn note(&self, message: &Value) -> Result<(), Failure> {
        if self.is_stateless() {
            // A request is cancelled by the end of its connection, and there is nothing else to say.
            return Ok(());
        }
        self.send(Method::POST, Some(message), &[]).await.map(drop)
    }

    /// Makes one request of HTTP, with a login if there is one. A token that is refused is replaced once.
    async fn send(
        &self,
        method: Method,
        message: Option<&Value>,
        extra: &[(HeaderName, HeaderValue)],
    ) -> Result<Response, Failure> {
        // A request for which nobody waits, which may break off at any time, renews no login.
        let known = self.agreed.lock().token.clone().filter(|_| message.is_none());
        let token = match known {
            Some(token) => Some(token),
            None => self.token().await?,
        };
        let response = self.send_with(method.clone(), message, extra, token.as_ref()).await?;
        let (Some(token), Some(login)) = (token, &self.address.login) else { return Ok(response) };
        let is_refused = response.status() == StatusCode::UNAUTHORIZED && method != Method::DELETE;
        if !is_refused || !login.refuse(&token).await {
            return Ok(response);
        }
        let token = self.token().await?;
        self.send_with(method, message, extra, token.as_ref()).await
    }

    /// A header of the config counts more than a login.
    async fn token(&self) -> Result<Option<SecretString>, Failure> {
        match &self.address.login {
            Some(login) if !self.headers.contains_key(AUTHORIZATION) => {
                let token = login.token().await.map_err(|why| Failure::new(Kind::Login, why))?;
                self.agreed.lock().token = token.clone();
                Ok(token)
            }
            _ => Ok(None),
        }
    }

    async fn send_with(
        &self,
        method: Method,
        message: Option<&Value>,
        extra: &[(HeaderName, HeaderValue)],
        token: Option<&SecretString>,
    ) -> Result<Response, Failure> {
        let url = match &self.form {
            Form::OneStream(url) if message.is_some() => url,
            _ => &self.address.url,
        };
        let headers = self.headers(message.is_some(), extra, token);
        let unreached = |what: String| Failure::new(Kind::Unreached, what);
        let client = self.address.http.clients().client(url, CONNECT_LIMIT).await;
        let client = client.map_err(|error| unreached(error.message))?;
        let mut request = client.request(method, url.clone()).headers(headers);
        if let Some(message) = message {
            request = request.body(message.to_string());
        }
        // A server may close an idle connection just when a request goes out on it, and nobody knows then what became of it.
        let again = request.try_clone().filter(|_| message.is_some_and(changes_nothing));
        let sent = match (request.send().await, again) {
            (Err(error), Some(again)) if !error.is_connect() && !error.is_timeout() => {
                again.send().await
            }
            (sent, _) => sent,
        };
        sent.map_err(|error| unreached(transport_error(&error, url, CONNECT_LIMIT).message))
    }

    fn headers(
        &self,
        has_body: bool,
        extra: &[(HeaderName, HeaderValue)],
        token: Option<&SecretString>,
    ) -> HeaderMap {
        let mut headers = self.headers.clone();
        let Agreed { revision, session, .. } = self.agreed.lock().clone();
        let version =
            revision.and_then(|revision| HeaderValue::try_from(revision.to_string()).ok());
        let bearer = token.and_then(|token| {
            let mut value =
                HeaderValue::try_from(format!("Bearer {}", token.expose_secret())).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        headers.insert(ACCEPT, if has_body { BOTH_FORMS } else { STREAM });
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let own = [(VERSION, version), (SESSION, session), (AUTHORIZATION, bearer)];
        for (name, value) in own {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        headers.extend(extra.iter().cloned());
        headers
    }

    fn host(&self) -> String {
        host_label(&self.address.url)
    }
}
