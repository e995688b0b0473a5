//! Who may ask: checked before anything else of a request is read.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, ORIGIN, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use myclaw_gateway_client::{GatewayToken, SeenTokens};
use parking_lot::Mutex;

use tokio_util::sync::CancellationToken;

use futures_util::StreamExt as _;

use super::answer::error;
use super::devices::{CHANGE_PATH, PAIR_PATH, SIGN_IN_PATH};
use super::front::{Caller, Link, household};
use super::strangers::Place;
use super::views::VIEW_PATH;
use super::{MAX_BODY, Server, openai, page, scope};
use crate::devices::{Known, Login, Scope};

/// Longest time for a request. A client that waits for an answer asks again.
const MOST_TIME: Duration = Duration::from_secs(15 * 60);
/// Longest time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Failed logins of one client in [`WINDOW`] after which it has to wait. On this machine the right token is always
/// accepted: one of its programs could otherwise lock the owner out.
const MOST_FAILURES: usize = 20;
/// How long a failed login counts.
const WINDOW: Duration = Duration::from_secs(60);
/// Most clients whose failed logins are counted. The one whose last was longest ago is forgotten first.
const MOST_CLIENTS: usize = 10_000;
/// Header for a name that is the gateway's own: a year of HTTPS only.
const STRICT_TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Most bytes of the body of a request with which nobody shows anything; a code for pairing is shorter.
const MOST_OF_STRANGERS: usize = 16 * 1024;

/// Paths that anybody who reaches the port may ask for, like the files of the page. They say nothing, pairing takes a
/// code, and signing in a link.
const OPEN_PATHS: [&str; 4] = ["/health", "/ready", PAIR_PATH, SIGN_IN_PATH];
/// Below it are the requests of vendors, who know neither the token nor this machine's name for itself. Each channel
/// checks them in its own way.
pub(super) const HOOKS_PATH: &str = "/hooks/";
/// A WebSocket may present its token in the first frame, for browsers cannot set headers there.
const SOCKET_PATH: &str = "/ws";

/// The moments of failed logins, by client.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, VecDeque<Instant>>>);

impl Failures {
    /// Notes a failed login. True if there were too many.
    pub(super) fn note(&self, client: IpAddr) -> bool {
        let client = household(client);
        let mut clients = self.0.lock();
        if clients.len() >= MOST_CLIENTS && !clients.contains_key(&client) {
            let oldest = clients.iter().min_by_key(|(_, moments)| moments.back().copied());
            oldest.map(|(client, _)| *client).and_then(|client| clients.remove(&client));
        }
        let moments = clients.entry(client).or_default();
        let now = Instant::now();
        moments.retain(|moment| now.duration_since(*moment) < WINDOW);
        if moments.len() >= MOST_FAILURES {
            return true;
        }
        moments.push_back(now);
        false
    }

    /// Whether a client of another machine has to wait before its token is looked at.
    fn has_too_many(&self, client: IpAddr) -> bool {
        let clients = self.0.lock();
        let moments = clients.get(&household(client)).filter(|_| !client.is_loopback());
        moments.is_some_and(|moments| {
            moments.iter().filter(|moment| moment.elapsed() < WINDOW).count() >= MOST_FAILURES
        })
    }
}

/// The tokens that are accepted.
pub(crate) struct Tokens {
    clients: Mutex<ClientToken>,
    /// That of programs of this user, which find it in the gateway's directory. It holds as long as the process runs.
    own: GatewayToken,
    /// Those of the other gateways on the store.
    gateways: Option<SeenTokens>,
}

struct ClientToken {
    token: GatewayToken,
    /// Fires when the token is replaced.
    replaced: CancellationToken,
}

impl Tokens {
    pub(crate) fn new(
        clients: GatewayToken,
        own: GatewayToken,
        gateways: Option<GatewayToken>,
    ) -> Self {
        let replaced = CancellationToken::new();
        let gateways = gateways.map(SeenTokens::new);
        Self { clients: Mutex::new(ClientToken { token: clients, replaced }), own, gateways }
    }

    fn is_of_gateways(&self, presented: &str) -> bool {
        self.gateways.as_ref().is_some_and(|tokens| tokens.is_known(presented))
    }

    fn accept(&self, presented: &str) -> bool {
        let is_clients = self.clients.lock().token.is(presented);
        // Both are compared, so that the time says nothing.
        self.own.is(presented) | is_clients
    }

    /// Fires when clients have to log in again.
    fn replaced(&self) -> CancellationToken {
        self.clients.lock().replaced.clone()
    }

    pub(super) fn replace(&self, token: GatewayToken) {
        let mut clients = self.clients.lock();
        if clients.token != token {
            clients.token = token;
            std::mem::take(&mut clients.replaced).cancel();
        }
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
        if !headers.contains_key(AUTHORIZATION) {
            return Presented::Nothing;
        }
        if self.is_gateway(headers) {
            // It holds as long as this process runs.
            let gone = CancellationToken::new();
            let login = Login { scope: Scope::Owner, device: None, is_gateway: true, gone };
            return Presented::Right(login);
        }
        bearer(headers).map_or(Presented::Wrong, |token| self.who(token))
    }

    /// Whether another gateway on the store asks, which is no browser: it knows this one by the name that is in the store.
    fn is_gateway(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|token| self.tokens.is_of_gateways(token))
    }

    /// Whether the token of a gateway opens a connection: it does so once.
    pub(super) fn opens(&self, headers: &HeaderMap) -> bool {
        let tokens = self.tokens.gateways.as_ref();
        bearer(headers).zip(tokens).is_some_and(|(token, tokens)| tokens.use_up(token))
    }

    /// Who has this token: a client. Gateways show theirs in a header.
    pub(super) fn who(&self, token: &str) -> Presented {
        if self.tokens.accept(token) {
            let gone = self.tokens.replaced();
            let login = Login { scope: Scope::Owner, device: None, is_gateway: false, gone };
            return Presented::Right(login);
        }
        let devices = &self.nodes.devices;
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

    /// The answer to a wrong or missing token.
    fn refuse(&self, client: IpAddr) -> Response {
        if self.failures.note(client) {
            return too_many();
        }
        let message = "the token is missing or wrong; send the header `Authorization: Bearer TOKEN`; \
                       `myclaw gateway status` says where the token is";
        error(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }
}

/// Lets a request through, or answers it.
pub(super) async fn guard(
    State(server): State<Arc<Server>>,
    Extension(link): Extension<Link>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.uri().path().starts_with(HOOKS_PATH) {
        return vendors(&server, &link, request, next).await;
    }
    let caller = server.front().caller(&link, request.headers());
    request.extensions_mut().insert(caller.clone());
    let path = request.uri().path().to_owned();
    let response = checked(&server, (&link, &caller), request, next).await;
    let mut response = openai::in_own_form(&path, response);
    page::protect(response.headers_mut());
    if caller.owns_name() && response.status() != StatusCode::MISDIRECTED_REQUEST {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
    }
    response
}

/// Passes a request of a vendor on. Before its body is read, there has to be such a channel, and where the vendor shows a
/// secret in a header, it has to be the right one.
async fn vendors(server: &Server, link: &Link, mut request: Request, next: Next) -> Response {
    let client = server.front().caller(link, request.headers()).address;
    if let Err(answer) = super::channels::admit(server, &mut request).await {
        return super::channels::answered(answer);
    }
    of_stranger(server, client, MAX_BODY, request, next).await
}

/// Passes a request of somebody on who has shown nothing. Its body has at most `most` bytes, and is counted.
async fn of_stranger(
    server: &Server,
    client: IpAddr,
    most: usize,
    request: Request,
    next: Next,
) -> Response {
    let mut held = server.bodies.begin(household(client));
    match whole(request, most, |bytes| held.grow(bytes)).await {
        Ok(request) => answer(request, next).await,
        Err(response) => *response,
    }
}

async fn checked(
    server: &Server,
    (link, caller): (&Link, &Caller),
    request: Request,
    next: Next,
) -> Response {
    let front = server.front();
    let headers = request.headers();
    let is_own_target = front.is_own_target(request.uri(), link, caller);
    if !is_own_target || !front.is_asked(headers, link, caller) && !server.is_gateway(headers) {
        let message = "the host of the request is not this gateway; use its address with its port, or name the host in \
                       gateway.allowedHosts";
        return error(StatusCode::MISDIRECTED_REQUEST, "host", message);
    }
    let origin = headers.get(ORIGIN).map(|value| value.to_str().unwrap_or_default());
    // The frame that draws diagrams has no origin. Its script is the same for everybody, and holds no secret.
    let is_of_frame = origin == Some("null")
        && request.uri().path() == page::MERMAID
        && *request.method() == Method::GET;
    if origin.is_some_and(|origin| !is_of_frame && !front.is_own_origin(origin, link, caller)) {
        let message = "pages of other origins may not use this gateway; gateway.allowedOrigins names exceptions";
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
    // The address of a view is the secret.
    let is_view = path.starts_with(VIEW_PATH) && *request.method() == Method::GET;
    if is_page || is_view || OPEN_PATHS.contains(&path) {
        return of_stranger(server, caller.address, MOST_OF_STRANGERS, request, next).await;
    }
    if server.failures.has_too_many(caller.address) {
        return too_many();
    }
    match server.presented(headers) {
        Presented::Right(login) => {
            if let Some(place) = request.extensions().get::<Arc<Place>>() {
                place.is_known();
            }
            let_in(login, request, next).await
        }
        Presented::Nothing if path == SOCKET_PATH => {
            of_stranger(server, caller.address, MOST_OF_STRANGERS, request, next).await
        }
        Presented::Pending => {
            let message = "the device waits for an approval; the owner approves it with `myclaw devices approve`";
            error(StatusCode::FORBIDDEN, "pending", message)
        }
        Presented::Nothing | Presented::Wrong => server.refuse(caller.address),
    }
}

/// Answers the request of a known login, as long as its token holds.
async fn let_in(login: Login, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if let Err(refusal) = scope::check(login.scope, request.method(), path) {
        return *refusal;
    }
    if login.is_gateway && path != Some(SOCKET_PATH) {
        let message = "the token of a gateway is for /ws; use the token of a client or of a device";
        return error(StatusCode::FORBIDDEN, "scope", message);
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

/// The token in the headers.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn too_many() -> Response {
    let message = "too many failed logins; wait a minute, and check the token";
    error(StatusCode::TOO_MANY_REQUESTS, "rate_limit", message)
}

/// Reads a request that was let in, and has it answered.
async fn pass_on(request: Request, next: Next) -> Response {
    match whole(request, MAX_BODY, |_| true).await {
        Ok(request) => answer(request, next).await,
        Err(response) => *response,
    }
}

async fn answer(request: Request, next: Next) -> Response {
    match tokio::time::timeout(MOST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            error(StatusCode::REQUEST_TIMEOUT, "timeout", "the request took too long; try again")
        }
    }
}

/// Reads the body, as far as there is room for it. A request without one is left as it is: it may become a WebSocket.
async fn whole(
    request: Request,
    most: usize,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<Request, Box<Response>> {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, body));
    }
    let too_large = || {
        let message = format!("the request has more than {most} bytes; send less");
        Box::new(error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message))
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let reading = async {
        let (mut chunks, mut bytes) = (body.into_data_stream(), Vec::new());
        while let Some(chunk) = chunks.next().await {
            let Ok(chunk) = chunk else {
                let message = "the body of the request broke off; send it again";
                return Err(Box::new(error(StatusCode::BAD_REQUEST, "usage", message)));
            };
            if bytes.len() + chunk.len() > most {
                return Err(too_large());
            }
            if !has_room(chunk.len()) {
                let message = "too many requests are on their way; try again in a minute";
                return Err(Box::new(error(StatusCode::SERVICE_UNAVAILABLE, "busy", message)));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(response)) => Err(response),
        Err(_) => {
            let message = "the body of the request did not arrive in time; try again";
            Err(Box::new(error(StatusCode::REQUEST_TIMEOUT, "timeout", message)))
        }
    }
}
