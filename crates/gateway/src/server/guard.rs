//! Who may ask: checked before anything else of a request is read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use tokio_util::sync::CancellationToken;

use futures_util::StreamExt as _;

use super::answer::error;
use super::devices::{CHANGE_PATH, PAIR_PATH};
use super::{MAX_BODY, Server, page, scope};
use crate::devices::{Known, Login, Scope};
use crate::token::Token;

/// Longest time for a request. A client that waits for an answer asks again.
const MOST_TIME: Duration = Duration::from_secs(15 * 60);
/// Longest time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Failed logins in [`WINDOW`] after which further wrong tokens are answered without being looked at. The right token is
/// always accepted: all clients come from this machine, so one of them could otherwise lock the owner out.
const MOST_FAILURES: usize = 20;
/// How long a failed login counts.
const WINDOW: Duration = Duration::from_secs(60);

/// Paths that anybody who reaches the port may ask for, like the files of the page. They say nothing, and pairing takes a
/// code.
const OPEN_PATHS: [&str; 3] = ["/health", "/ready", PAIR_PATH];
/// Below it are the requests of vendors, who know neither the token nor this machine's name for itself. Each channel
/// checks them in its own way.
pub(super) const HOOKS_PATH: &str = "/hooks/";
/// A WebSocket may present its token in the first frame, for browsers cannot set headers there.
const SOCKET_PATH: &str = "/ws";

/// The moments of failed logins.
#[derive(Default)]
pub(super) struct Failures(Mutex<VecDeque<Instant>>);

impl Failures {
    /// Notes a failed login. True if there were too many.
    pub(super) fn note(&self) -> bool {
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        moments.retain(|moment| now.duration_since(*moment) < WINDOW);
        if moments.len() >= MOST_FAILURES {
            return true;
        }
        moments.push_back(now);
        false
    }
}

/// The tokens that are accepted.
pub(crate) struct Tokens {
    clients: Mutex<ClientToken>,
    /// That of programs of this user, which find it in the gateway's directory. It holds as long as the process runs.
    own: Token,
}

struct ClientToken {
    token: Token,
    /// Fires when the token is replaced.
    replaced: CancellationToken,
}

impl Tokens {
    pub(crate) fn new(clients: Token, own: Token) -> Self {
        let replaced = CancellationToken::new();
        Self { clients: Mutex::new(ClientToken { token: clients, replaced }), own }
    }

    fn accept(&self, presented: &str) -> bool {
        let is_clients = self.lock().token.is(presented);
        // Both are compared, so that the time says nothing.
        self.own.is(presented) | is_clients
    }

    /// Fires when clients have to log in again.
    fn replaced(&self) -> CancellationToken {
        self.lock().replaced.clone()
    }

    pub(super) fn replace(&self, token: Token) {
        let mut clients = self.lock();
        if clients.token != token {
            clients.token = token;
            std::mem::take(&mut clients.replaced).cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ClientToken> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the headers of a request hold the token.
pub(super) enum Presented {
    Right(Login),
    /// That of a device which the owner has not approved yet.
    Pending,
    Wrong,
    Nothing,
}

impl Server {
    /// Looks for the token in the headers.
    pub(super) fn presented(&self, headers: &HeaderMap) -> Presented {
        let Some(value) = headers.get(AUTHORIZATION) else { return Presented::Nothing };
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        token.map_or(Presented::Wrong, |token| self.who(token))
    }

    /// Who has this token.
    pub(super) fn who(&self, token: &str) -> Presented {
        if self.tokens.accept(token) {
            let gone = self.tokens.replaced();
            return Presented::Right(Login { scope: Scope::Owner, device: None, gone });
        }
        let devices = &self.delivery.nodes.devices;
        match devices.who(token) {
            Known::Device(login) => {
                if let Some((id, _)) = login.device.clone() {
                    let devices = Arc::clone(devices);
                    tokio::spawn(async move { devices.see(&id).await });
                }
                Presented::Right(login)
            }
            Known::Pending => Presented::Pending,
            Known::Nobody => Presented::Wrong,
        }
    }

    /// The names under which this server can be asked: a page that makes its own name point here has another one.
    fn is_own_host(&self, host: &str) -> bool {
        let port = self.address.port();
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host == format!("{name}:{port}"))
    }

    /// The answer to a wrong or missing token.
    pub(super) fn refuse(&self) -> Response {
        if self.failures.note() {
            let message = "too many failed logins; wait a minute, and check the token";
            return error(StatusCode::TOO_MANY_REQUESTS, "rate_limit", message);
        }
        let message = "the token is missing or wrong; send the header `Authorization: Bearer TOKEN`; \
                       `myclaw gateway status` says where the token is";
        error(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }
}

/// Lets a request through, or answers it.
pub(super) async fn guard(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path().starts_with(HOOKS_PATH) {
        return pass_on(request, next).await;
    }
    let mut response = checked(&server, request, next).await;
    page::protect(response.headers_mut());
    response
}

async fn checked(server: &Server, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if !text(HOST).is_some_and(|host| server.is_own_host(host)) {
        let message =
            "the host of the request is not this gateway; use http://127.0.0.1 with its port";
        return error(StatusCode::MISDIRECTED_REQUEST, "host", message);
    }
    let is_own_origin =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|host| server.is_own_host(host));
    if text(ORIGIN).is_some_and(|origin| !is_own_origin(origin)) {
        let message = "pages of other origins may not use this gateway";
        return error(StatusCode::FORBIDDEN, "origin", message);
    }
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|pair| pair.split('=').next() == Some("token")) {
        let message = "a token does not belong into an address, which is kept in logs and histories; send it in the \
                       header `Authorization`";
        return error(StatusCode::BAD_REQUEST, "token_in_url", message);
    }
    let path = request.uri().path();
    let is_page = page::is_file(path) && matches!(*request.method(), Method::GET | Method::HEAD);
    if is_page || OPEN_PATHS.contains(&path) {
        return pass_on(request, next).await;
    }
    match server.presented(headers) {
        Presented::Right(login) => let_in(login, request, next).await,
        Presented::Nothing if path == SOCKET_PATH => pass_on(request, next).await,
        Presented::Pending => {
            let message = "the device waits for an approval; the owner approves it with `myclaw devices approve`";
            error(StatusCode::FORBIDDEN, "pending", message)
        }
        Presented::Nothing | Presented::Wrong => server.refuse(),
    }
}

/// Answers the request of a known login, as long as its token holds.
async fn let_in(login: Login, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if let Err(refusal) = scope::check(login.scope, request.method(), path) {
        return *refusal;
    }
    // A device that revokes itself reads whether that is stored.
    if path == Some(CHANGE_PATH) {
        request.extensions_mut().insert(login);
        return pass_on(request, next).await;
    }
    let gone = login.gone.clone();
    request.extensions_mut().insert(login);
    let response = tokio::select! {
        biased;
        response = pass_on(request, next) => response,
        () = gone.cancelled() => {
            let message = "the token was replaced or revoked; log in again";
            return error(StatusCode::UNAUTHORIZED, "unauthorized", message);
        }
    };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response
        .map(|body| Body::from_stream(body.into_data_stream().take_until(gone.cancelled_owned())))
}

/// Reads a request that was let in, and has it answered.
async fn pass_on(request: Request, next: Next) -> Response {
    let request = match whole(request).await {
        Ok(request) => request,
        Err(response) => return *response,
    };
    match tokio::time::timeout(MOST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            error(StatusCode::REQUEST_TIMEOUT, "timeout", "the request took too long; try again")
        }
    }
}

/// Reads the body. A request without one is left as it is: it may become a WebSocket.
async fn whole(request: Request) -> Result<Request, Box<Response>> {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, body));
    }
    let too_large = || {
        let message = format!("the request has more than {MAX_BODY} bytes; send less");
        Box::new(error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message))
    };
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let message = "the body of the request did not arrive in time; try again";
            Err(Box::new(error(StatusCode::REQUEST_TIMEOUT, "timeout", message)))
        }
    }
}
